//! Deliberate differences between the cloud and the stored records: changed host traits, an aggregate without
//! a lease, a lease of a deleted project, an address of an unknown lease. The loop or the doctor must find
//! and repair each difference, and then report no difference.

use anyhow::{Context, Result, ensure};
use chores::cases::Cases;
use reqwest::Method;

use super::addresses::external_network;
use super::cloud::OF_ALL;
use super::site::{FREE_POOL, HOST_LEASE, Site, ends_well, provider, set_trait, text_of, until};

/// A lease and a reservation without a record.
const LEASE: &str = "0badcafe-0000-4000-8000-000000000001";
const RESERVATION: &str = "0badcafe-0000-4000-8000-000000000002";

/// Address that is tagged with [`RESERVATION`].
const ADDRESS: &str = "203.0.113.212";

/// Trait that is added to a host.
const TRAIT: &str = "CUSTOM_LAB_FAST";

/// Part of the doctor's output when it finds no differences.
const NOTHING: &str = "agree";

/// Deletes a lease of alice's, and waits until its host is back in the free pool.
fn end(site: &Site<'_>, lease: &str) -> Result<()> {
    site.client("alice", "physics", &["reservation", "lease", "delete", lease])?;
    until("the host did not return", || Ok(site.members(FREE_POOL)?.len() == 3))
}

/// Starts its own service, which authenticates against Keystone.
pub fn on_nova(cases: &mut Cases, site: &Site<'_>) -> Result<()> {
    let server = site.launch.start()?;
    let doctor = |words: &[&str], said: &str| {
        let found = site.doctor(words)?;
        ensure!(found.contains(said), "{found}");
        Ok(())
    };
    cases.check("changed traits of a host in Placement are stored", || {
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
    cases.check("an aggregate of an unknown lease is deleted", || {
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
        until("the host did not return", || Ok(site.members(FREE_POOL)?.len() == 3))?;
        until("the aggregate stays", || Ok(site.aggregate(&reservation)?.is_none()))?;
        site.admin_client(&["user", "delete", "ursula"]).map(drop)
    });
    cases.check("a changed owner of a running lease's aggregate is reported, and set right", || {
        let reservation = site.lease("alice", "physics", "owned", HOST_LEASE)?;
        let owner = || -> Result<String> {
            let aggregate = site.aggregate(&reservation)?.context("no aggregate")?;
            Ok(text_of(&aggregate["metadata"]["blazar:owner"]))
        };
        let before = owner()?;
        site.admin_client(&["aggregate", "set", "--property", "blazar:owner=somebody", &reservation])?;
        doctor(&[], "key blazar:owner of aggregate")?;
        until("the owner stays changed", || Ok(owner()? == before))?;
        doctor(&[], NOTHING)?;
        end(site, "owned")
    });
    cases.check("deleted parts of a running lease of instances in Nova and Placement are restored", || {
        let wanted = "resource_type=virtual:instance,vcpus=1,memory_mb=512,disk_gb=1,amount=1,affinity=False";
        let reservation = site.lease("alice", "physics", "lost", wanted)?;
        let group = || -> Result<String> {
            let aggregate = site.aggregate(&reservation)?.context("no aggregate")?;
            Ok(text_of(&aggregate["metadata"]["affinity_id"]))
        };
        let class = format!("CUSTOM_RESERVATION_{}", reservation.to_uppercase().replace('-', "_"));
        let host = site.members(&reservation)?.first().context("no host")?.clone();
        let slots =
            format!("resource_providers/{}/inventories/{class}", provider(site, &format!("blazar_{host}"))?);
        let first = group()?;
        site.admin_client(&["flavor", "delete", &reservation])?;
        site.admin_client(&["server", "group", "delete", &first])?;
        site.change_placement(&Method::DELETE, &slots, None)?;
        for said in ["flavor", "server group", "has 0 of CUSTOM_RESERVATION_"] {
            doctor(&[], said)?;
        }
        until("they are not made again", || {
            let flavor = site.nova(&format!("flavors/{reservation}"))?;
            let total = &site.placement(&slots)?["total"];
            Ok(flavor["flavor"].is_object() && *total == 1 && group()? != first)
        })?;
        doctor(&[], NOTHING)?;
        site.boot("alice", "physics", "again", &["--flavor", &reservation])?;
        end(site, "lost")
    });
    cases.check("an address of an unknown lease is released", || {
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
    cases.check("the service shuts down cleanly without differences", || ends_well(server));
    Ok(())
}
