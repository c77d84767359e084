//! Settings of Nova other than those that the lab's scripts write.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::cloud::LEASING;
use crate::lab::scripts::replaced;

/// What the scripts say of notifications, and what the guide does.
const SILENT: &str = "driver=noop";
const VERSIONED: &str = "driver=messagingv2\n[notifications]\nnotification_format=versioned";

/// Where sections of `nova.conf` begin, for one to be put before.
const SECTION: &str = "[wsgi]\napi_paste_config=";

/// The beginning of `nova.conf`, for a file to be written before.
const FILE: &str = "cat >\"$S/etc/nova.conf\" <<X";

/// Has the cloud that the scripts bring up publish notifications, and let the service's user do what it needs.
pub fn as_in_the_guide(scripts: &Path) -> Result<()> {
    let up = scripts.join("up");
    let text = fs::read_to_string(&up).with_context(|| format!("cannot read {}", up.display()))?;
    let policy = "$S/etc/nova-policy.yaml";
    let section = format!("[oslo_policy]\npolicy_file={policy}\n{SECTION}");
    let rule = format!("\"context_is_admin\": \"role:admin or role:{LEASING}\"");
    let file = format!("echo '{rule}' >\"{policy}\"\n{FILE}");
    let text = replaced(text, &[(SILENT, VERSIONED), (SECTION, &section), (FILE, &file)])?;
    fs::write(&up, text).with_context(|| format!("cannot write {}", up.display()))
}
