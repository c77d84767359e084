//! Settings of Nova, Neutron, Glance and Blazar other than those that the lab's scripts write.

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

/// What the scripts have Neutron do beside networks: nothing. Floating IPs are of routers.
const WITHOUT_ROUTERS: &str = "service_plugins=\nauth_strategy=keystone";
const WITH_ROUTERS: &str = "service_plugins=router\nauth_strategy=keystone";

/// What Blazar leases, and addresses as well.
const WITHOUT_ADDRESSES: &str = "plugins=physical.host.plugin,virtual.instance.plugin,flavor.instance.plugin";
const WITH_ADDRESSES: &str =
    "plugins=physical.host.plugin,virtual.instance.plugin,flavor.instance.plugin,virtual.floatingip.plugin";

/// A section of `neutron.conf`, for one to be put before.
const NEUTRON_SECTION: &str = "[ml2]\ntype_drivers=";

/// What the scripts have in `keystone.conf` of policy.
const KEYSTONE_POLICY: &str = "[oslo_policy]\nenforce_scope=true";

/// Who may know which projects there are.
const PROJECTS: &str =
    r#""identity:get_project": "rule:admin_required or role:service or project_id:%(target.project.id)s""#;

/// A section of `glance-api.conf`, for one to be put before.
const GLANCE_SECTION: &str = "[paste_deploy]\nflavor=keystone\nconfig_file=$VENV/etc/glance";

/// Has the cloud that the scripts bring up publish notifications and give out floating IPs, Blazar lease them, and the
/// service's user do what it needs.
pub fn as_in_the_guide(scripts: &Path) -> Result<()> {
    let up = scripts.join("up");
    let text = fs::read_to_string(&up).with_context(|| format!("cannot read {}", up.display()))?;
    let policy = "$S/etc/nova-policy.yaml";
    let section = format!("[oslo_policy]\npolicy_file={policy}\n{SECTION}");
    let rule = format!("\"context_is_admin\": \"role:admin or role:{LEASING}\"");
    let file = format!("printf '%s\\n' '{rule}' '{PROJECTS}' >\"{policy}\"\n{FILE}");
    // All read the same file: the rules of Nova, Neutron and Glance have the same name, and Keystone's none of theirs.
    let of_keystone = format!("{KEYSTONE_POLICY}\npolicy_file={policy}");
    let of_glance = format!("[oslo_policy]\npolicy_file={policy}\n{GLANCE_SECTION}");
    let of_neutron = format!("[oslo_policy]\npolicy_file={policy}\n{NEUTRON_SECTION}");
    let changes = [
        (SILENT, VERSIONED),
        (SECTION, &*section),
        (FILE, &*file),
        (KEYSTONE_POLICY, &*of_keystone),
        (WITHOUT_ROUTERS, WITH_ROUTERS),
        (NEUTRON_SECTION, &*of_neutron),
        (GLANCE_SECTION, &*of_glance),
        (WITHOUT_ADDRESSES, WITH_ADDRESSES),
    ];
    let text = replaced(text, &changes)?;
    fs::write(&up, text).with_context(|| format!("cannot write {}", up.display()))
}
