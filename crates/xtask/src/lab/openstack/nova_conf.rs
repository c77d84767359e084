//! Settings of Nova other than those that the lab's scripts write.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::cloud::LEASING;

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
    let mut text = fs::read_to_string(&up).with_context(|| format!("cannot read {}", up.display()))?;
    let policy = "$S/etc/nova-policy.yaml";
    let changes = [
        (SILENT, VERSIONED.to_owned()),
        (SECTION, format!("[oslo_policy]\npolicy_file={policy}\n{SECTION}")),
        (
            FILE,
            format!("echo '\"context_is_admin\": \"role:admin or role:{LEASING}\"' >\"{policy}\"\n{FILE}"),
        ),
    ];
    for (from, to) in changes {
        ensure!(text.matches(from).count() == 1, "other scripts: {from:?} is not there once");
        text = text.replace(from, &to);
    }
    fs::write(&up, text).with_context(|| format!("cannot write {}", up.display()))
}
