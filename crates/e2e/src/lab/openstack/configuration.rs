//! Patches the lab's scripts so that Nova, Neutron, Glance, Keystone and Blazar are configured as the guide
//! says.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::cloud::LEASING;
use crate::lab::scripts::replaced;

/// Nova's notification settings: in the scripts, and in the guide.
const SILENT: &str = "driver=noop";
const VERSIONED: &str = "driver=messagingv2\n[notifications]\nnotification_format=versioned";

/// Start of a section of `nova.conf`. The new section is inserted before it.
const SECTION: &str = "[wsgi]\napi_paste_config=";

/// The script's line that begins `nova.conf`. The policy file is written before it.
const FILE: &str = "cat >\"$S/etc/nova.conf\" <<X";

/// Neutron's service plugins. The scripts set no plugins, but floating IPs need the router plugin.
const WITHOUT_ROUTERS: &str = "service_plugins=\nauth_strategy=keystone";
const WITH_ROUTERS: &str = "service_plugins=router\nauth_strategy=keystone";

/// Blazar's plugins: as in the scripts, and with floating IPs.
const WITHOUT_ADDRESSES: &str = "plugins=physical.host.plugin,virtual.instance.plugin,flavor.instance.plugin";
const WITH_ADDRESSES: &str =
    "plugins=physical.host.plugin,virtual.instance.plugin,flavor.instance.plugin,virtual.floatingip.plugin";

/// Start of a section of `neutron.conf`. The new section is inserted before it.
const NEUTRON_SECTION: &str = "[ml2]\ntype_drivers=";

/// The policy section that the scripts write to `keystone.conf`.
const KEYSTONE_POLICY: &str = "[oslo_policy]\nenforce_scope=true";

/// Keystone's policy rule for reading projects, extended by the role `service`.
const PROJECTS: &str =
    r#""identity:get_project": "rule:admin_required or role:service or project_id:%(target.project.id)s""#;

/// Start of a section of `glance-api.conf`. The new section is inserted before it.
const GLANCE_SECTION: &str = "[paste_deploy]\nflavor=keystone\nconfig_file=$VENV/etc/glance";

/// Patches the script `up`: the cloud publishes notifications and provides floating IPs, Blazar leases them,
/// and the service's user gets the permissions it needs.
pub fn as_in_the_guide(scripts: &Path) -> Result<()> {
    let up = scripts.join("up");
    let text = fs::read_to_string(&up).with_context(|| format!("cannot read {}", up.display()))?;
    let policy = "$S/etc/nova-policy.yaml";
    let section = format!("[oslo_policy]\npolicy_file={policy}\n{SECTION}");
    let rule = format!("\"context_is_admin\": \"role:admin or role:{LEASING}\"");
    let file = format!("printf '%s\\n' '{rule}' '{PROJECTS}' >\"{policy}\"\n{FILE}");
    // All four services read the same policy file: Nova, Neutron and Glance use the same rule name, and
    // Keystone has no rule of that name.
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
