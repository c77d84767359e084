//! Where the cloud and what is stored differ, each difference made on purpose: what a host is like, an aggregate of no lease, a
//! lease of a deleted project, an address that was leased to nobody known. All are found and set right, by the loop or by
//! the doctor, and found no more.

use anyhow::{Result, ensure};
use chores::cases::Cases;

use super::addresses::external_network;
use super::cloud::OF_ALL;
use super::site::{FREE_POOL, HOST_LEASE, Site, ends_well, set_trait, until};

/// Of a lease that nobody knows.
const LEASE: &str = "0badcafe-0000-4000-8000-000000000001";
const RESERVATION: &str = "0badcafe-0000-4000-8000-000000000002";

/// An address that it seems to have.
const ADDRESS: &str = "203.0.113.212";

/// What a host is given.
const TRAIT: &str = "CUSTOM_LAB_FAST";

/// What the doctor says if it finds nothing.
const NOTHING: &str = "agree";

/// With a service of its own, to which everybody comes by Keystone.
pub fn on_nova(cases: &mut Cases, site: &Site<'_>) -> Result<()> {
    let server = site.launch.start()?;
    let doctor = |words: &[&str], said: &str| {
        let found = site.doctor(words)?;
        ensure!(found.contains(said), "{found}");
        Ok(())
    };
    cases.check("what Placement says of a host is stored when it has changed", || {
        doctor(&[], NOTHING)?;
        set_trait(site, "host1", TRAIT, true)?;
        doctor(&[], "machine host1 has other traits")?;
        doctor(&["--repair"], NOTHING)?;
        let spec = format!("trait:{TRAIT}=required");
        let lease = ["lease", "create", "fast", "--dry-run", "--for", "1h", "--hosts", "1"];
        site.allot("alice", "physics", &[&lease[..], &["--extra-spec", &spec]].concat())?;
        set_trait(site, "host1", TRAIT, false)?;
        doctor(&["--repair"], NOTHING)
    });
    cases.check("an aggregate of a lease that nobody knows is deleted", || {
        let mark = format!("allot:lease={LEASE}");
        site.admin_client(&["aggregate", "create", "--property", &mark, RESERVATION])?;
        until("the aggregate stays", || Ok(site.aggregate(RESERVATION)?.is_none()))?;
        doctor(&[], NOTHING)
    });
    cases.check("a lease of a deleted project is found, and deleted on request", || {
        site.admin_client(&["project", "create", "gone"])?;
        site.admin_client(&["user", "create", "--password", OF_ALL, "ursula"])?;
        site.admin_client(&["role", "add", "--project", "gone", "--user", "ursula", "member"])?;
        let reservation = site.lease("ursula", "gone", "left", HOST_LEASE)?;
        doctor(&[], NOTHING)?;
        site.admin_client(&["project", "delete", "gone"])?;
        doctor(&[], "lease left is of project")?;
        ensure!(site.aggregate(&reservation)?.is_some(), "the doctor has changed something");
        doctor(&["--repair"], NOTHING)?;
        until("the host does not come back", || Ok(site.members(FREE_POOL)?.len() == 3))?;
        until("the aggregate stays", || Ok(site.aggregate(&reservation)?.is_none()))?;
        site.admin_client(&["user", "delete", "ursula"]).map(drop)
    });
    cases.check("an address of a lease that nobody knows is taken back", || {
        let network = external_network(site)?;
        site.admin_client(&["reservation", "floatingip", "create", &network, ADDRESS])?;
        let tag = format!("reservation:{RESERVATION}");
        let made = ["floating", "ip", "create", "--floating-ip-address", ADDRESS, "--project", "physics"];
        site.admin_client(&[&made[..], &["--tag", "blazar", "--tag", &tag, &network]].concat())?;
        let words = ["floating", "ip", "list", "-f", "value", "-c", "Floating IP Address"];
        until("it stays", || Ok(!site.admin_client(&words)?.contains(ADDRESS)))?;
        doctor(&[], NOTHING)?;
        let known = ["reservation", "floatingip", "list", "-f", "value", "-c", "id"];
        let id = site.admin_client(&known)?;
        site.admin_client(&["reservation", "floatingip", "delete", id.trim()]).map(drop)
    });
    cases.check("the service ends as it should with nothing different any more", || ends_well(server));
    Ok(())
}
