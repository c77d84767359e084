//! The fence `traits`: Nova's isolated aggregates, a trait per lease, and flavors that require it.

use anyhow::{Context, Result, ensure};
use chores::cases::Cases;
use serde_json::{Value, json};

use super::Lab;
use super::scheduler::{self, BLAZAR_ENABLED, LAST_OF_SCHEDULER};
use super::site::{FREE_POOL, HOST_LEASE, Site, ends_well, first_reservation, until};
use super::staying;
use super::watcher::{self, Stay};

/// Scheduler option from the guide.
const ISOLATED: &str = "enable_isolated_aggregate_filtering=true\n";

/// Trait that preemptible flavors must require, in addition to the property that marks them.
pub const FREE: &str = "trait:CUSTOM_ALLOT_FREE_POOL";

/// Options of a service with this fence and preemptible servers.
pub const OPTIONS: [&str; 4] = ["--openstack-fence", "traits", "--preemptible-enabled", "true"];

/// Arguments to boot a server with a public flavor.
const PLAIN: [&str; 2] = ["--flavor", "small"];

/// Leases with this fence. The hosts are in the free pool, which had another fence before.
pub fn on_nova(cases: &mut Cases, site: &mut Site<'_>) -> Result<()> {
    site.delete_all_servers()?;
    isolate(site.lab)?;
    site.launch = site.launch.clone().with(OPTIONS);
    let server = site.launch.start()?;
    cases.check("the free pool is isolated when the service has started", || {
        until("hosts do not have the trait", || {
            Ok(providers_with(site, "CUSTOM_ALLOT_FREE_POOL")?.len() == 3)
        })?;
        let pool = site.aggregate(FREE_POOL)?.context("no free pool")?;
        ensure!(pool["metadata"][FREE] == "required", "{pool}");
        ensure!(pool["metadata"]["filter_tenant_id"].is_null(), "{pool}");
        Ok(())
    });
    cases.check("preemptible servers run in the free pool if their flavor requires its trait", || {
        site.refused("bob", "chemistry", "plain", &PLAIN)?;
        site.refused("bob", "chemistry", "marked", &["--flavor", "preempt"])?;
        site.admin_client(&["flavor", "set", "--property", &format!("{FREE}=required"), "preempt"])?;
        site.boot("bob", "chemistry", "spot", &["--flavor", "preempt"])?;
        site.client("bob", "chemistry", &["server", "delete", "--wait", "spot"]).map(drop)
    });
    watcher::check(cases, site, "preempt", Stay::Never);
    of_hosts(cases, site);
    of_instances(cases, site);
    let own = |reservation: &str| vec!["--flavor".to_owned(), format!("{reservation}.small")];
    staying::at_the_end(cases, site, staying::Ways { words: own, preemptible: "preempt", alone: false });
    ends_well(server)?;
    site.launch = site.launch.clone().with(["--preemptible-marks", "flavor,image,volume"]);
    let server = site.launch.start()?;
    by_image(cases, site);
    cases.check("no traces are left in Nova and Placement", || what_is_left(site));
    cases.check("the service shuts down cleanly with traits", || ends_well(server));
    Ok(())
}

/// Configures the scheduler to isolate aggregates, as the guide describes.
pub fn isolate(lab: &Lab) -> Result<()> {
    let settings = format!("{LAST_OF_SCHEDULER}{ISOLATED}");
    scheduler::set(lab, &[(BLAZAR_ENABLED, "\n"), (LAST_OF_SCHEDULER, &settings)])
}

fn of_hosts(cases: &mut Cases, site: &Site<'_>) {
    let leased = cases.check("the answer to a request for hosts names the flavors that use them", || {
        let answer = site.answer_to("first", "resource_type=physical:host,min=2,max=2")?;
        let flavors = answer["flavor_ids"].as_array().with_context(|| answer.to_string())?;
        let reservation = site.until_active("first")?;
        let named = |flavor: &str| flavors.contains(&json!(format!("{reservation}.{flavor}")));
        ensure!(named("small") && named("medium") && !named("preempt"), "{answer}");
        ensure!(site.members(&reservation)?.len() == 2, "{:?}", site.members(&reservation));
        Ok(reservation)
    });
    let Some(reservation) = leased else { return };
    let small = format!("{reservation}.small");
    cases.check("only the owner can start servers in the lease with them", || {
        let hosts = site.members(&reservation)?;
        for name in ["mine-1", "mine-2"] {
            site.boot("alice", "physics", name, &["--flavor", &small])?;
            ensure!(hosts.contains(&site.host_of(name)?), "{name} runs on {}", site.host_of(name)?);
        }
        let unknown = site.boot("bob", "chemistry", "theirs", &["--flavor", &small]);
        ensure!(unknown.is_err() && !site.is_there("theirs")?, "another project can use the flavor");
        let zone = format!("blazar_{reservation}");
        site.refused("bob", "chemistry", "zoned", &[&PLAIN[..], &["--availability-zone", &zone]].concat())?;
        site.refused("alice", "physics", "plain", &PLAIN)?;
        site.boot("bob", "chemistry", "spot-2", &["--flavor", "preempt"])?;
        ensure!(!hosts.contains(&site.host_of("spot-2")?), "a preemptible server runs in the lease");
        Ok(())
    });
    cases.check("two leases of a project are used with the flavors of each", || {
        let second = site.lease("alice", "physics", "second", HOST_LEASE)?;
        ensure!(!site.is_there("spot")? && !site.is_there("spot-2")?, "preemptible servers are still there");
        site.boot("alice", "physics", "second-1", &["--flavor", &format!("{second}.small")])?;
        ensure!(site.members(&second)? == [site.host_of("second-1")?], "it runs in the second lease");
        site.refused("bob", "chemistry", "no-room", &["--flavor", "preempt"])?;
        site.client("alice", "physics", &["reservation", "lease", "delete", "second"])?;
        site.client("alice", "physics", &["reservation", "lease", "delete", "first"])?;
        until("hosts did not return", || Ok(site.members(FREE_POOL)?.len() == 3))?;
        for name in ["mine-1", "mine-2", "second-1"] {
            ensure!(!site.is_there(name)?, "{name} is still there");
        }
        site.refused("bob", "chemistry", "late", &PLAIN)
    });
}

fn of_instances(cases: &mut Cases, site: &Site<'_>) {
    cases.check(
        "room for instances is used with its own flavor, and a lease without its flavors is not",
        || {
            let wanted =
                "resource_type=virtual:instance,vcpus=1,memory_mb=512,disk_gb=1,amount=2,affinity=None";
            let words = [&Site::lease_words("room", wanted)[..], &["-f", "json"]].concat();
            let made = first_reservation(&site.client("alice", "physics", &words)?)?;
            ensure!(made["flavor_ids"].is_null(), "{made}");
            let room = site.until_active("room")?;
            for name in ["room-1", "room-2"] {
                site.boot("alice", "physics", name, &["--flavor", &room])?;
            }
            site.refused("alice", "physics", "room-3", &["--flavor", &room])?;
            site.refused("alice", "physics", "plain", &PLAIN)?;
            site.client("alice", "physics", &["reservation", "lease", "delete", "room"])?;
            until("the aggregate stays", || Ok(site.aggregate(&room)?.is_none()))
        },
    );
}

/// Servers that are preemptible because of their image.
fn by_image(cases: &mut Cases, site: &Site<'_>) {
    cases.check(
        "servers run in the free pool if their image requires its trait, and leave for a lease",
        || {
            site.refused("bob", "chemistry", "unmarked", &PLAIN)?;
            site.admin_client(&["image", "set", "--property", &format!("{FREE}=required"), "fake"])?;
            site.boot("bob", "chemistry", "by-image", &PLAIN)?;
            site.lease("alice", "physics", "all", "resource_type=physical:host,min=3,max=3")?;
            ensure!(!site.is_there("by-image")?, "the preemptible server is still there");
            site.client("alice", "physics", &["reservation", "lease", "delete", "all"])?;
            until("hosts did not return", || Ok(site.members(FREE_POOL)?.len() == 3))?;
            site.admin_client(&["image", "unset", "--property", FREE, "fake"])?;
            site.refused("bob", "chemistry", "unmarked", &PLAIN)
        },
    );
}

fn what_is_left(site: &Site<'_>) -> Result<()> {
    until("aggregates stay", || {
        let aggregates = site.nova("os-aggregates")?;
        Ok(aggregates["aggregates"].as_array().is_some_and(|all| all.len() == 1))
    })?;
    ensure!(site.closed()? == 0, "{} compute services are disabled", site.closed()?);
    let flavors = site.nova("flavors?is_public=None")?;
    ensure!(!flavors.to_string().contains("reservation:"), "{flavors}");
    let traits = site.placement("traits?name=startswith:CUSTOM_ALLOT_")?;
    ensure!(traits["traits"] == json!(["CUSTOM_ALLOT_FREE_POOL"]), "{traits}");
    for host in ["host1", "host2", "host3"] {
        site.allot("admin", "admin", &["host", "delete", host])?;
    }
    let left = providers_with(site, "CUSTOM_ALLOT_FREE_POOL")?;
    ensure!(left.is_empty() && site.members(FREE_POOL)?.is_empty(), "{left:?}");
    Ok(())
}

fn providers_with(site: &Site<'_>, name: &str) -> Result<Vec<Value>> {
    // Placement answers 400 if the trait doesn't exist.
    let found = site.placement(&format!("resource_providers?required={name}"))?;
    Ok(found["resource_providers"].as_array().cloned().unwrap_or_default())
}
