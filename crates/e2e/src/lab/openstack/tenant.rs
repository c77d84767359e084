//! The fence `tenant`: Nova's own tenant isolation, with no additions to Nova.

use anyhow::{Context, Result, ensure};
use chores::cases::Cases;
use serde_json::json;

use super::Lab;
use super::cloud::People;
use super::scheduler::{self, BLAZAR_ENABLED, LAST_OF_SCHEDULER};
use super::site::{FREE_POOL, HOST_LEASE, Site, ends_well, until};
use super::staying;
use super::watcher::{self, STAYS, Stay};
use crate::leasing::server::Server;

/// Scheduler options from the guide.
const OPTIONS: &str =
    "limit_tenants_to_placement_aggregate=true\nplacement_aggregate_required_for_tenants=true\n";

/// Filter from the guide, in addition to `AggregateMultiTenancyIsolation`, which the lab's scripts enable.
const ENABLED: &str = ",AggregateTypeAffinityFilter\n";

/// Arguments to boot a server with a public flavor.
const PLAIN: [&str; 2] = ["--flavor", "small"];

/// Leases with this fence; the first lease is made with another one. The hosts must be in the free pool.
pub fn on_nova(cases: &mut Cases, site: &mut Site<'_>, people: &People) -> Result<()> {
    site.delete_all_servers()?;
    let before = site.launch.start()?;
    let first = site.lease("alice", "physics", "first", HOST_LEASE)?;
    ends_well(before)?;
    isolate(site.lab)?;
    site.launch = site.launch.clone().with(options(people));
    let server = site.launch.start()?;
    taken_over(cases, site, people, &first);
    watcher::check(cases, site, "small", Stay::AtMost(STAYS));
    of_hosts(cases, site, &first);
    of_instances(cases, site);
    let plain = |_: &str| PLAIN.map(str::to_owned).to_vec();
    staying::at_the_end(cases, site, staying::Ways { words: plain, preemptible: "small", alone: false });
    what_is_left(cases, site, server);
    Ok(())
}

/// Configures the scheduler for tenant isolation, as the guide describes.
pub fn isolate(lab: &Lab) -> Result<()> {
    let settings = format!("{LAST_OF_SCHEDULER}{OPTIONS}");
    scheduler::set(lab, &[(BLAZAR_ENABLED, ENABLED), (LAST_OF_SCHEDULER, &settings)])
}

/// Options of a service with this fence; servers of the project `chemistry` are preemptible.
pub fn options(people: &People) -> [&str; 6] {
    let projects = people.chemistry.as_str();
    ["--openstack-fence", "tenant", "--preemptible-enabled", "true", "--preemptible-projects", projects]
}

fn taken_over(cases: &mut Cases, site: &Site<'_>, people: &People, first: &str) {
    cases.check(
        "a lease of another fence is isolated when the service has started, and the free pool",
        || {
            until("the lease is not isolated", || {
                let pool = site.aggregate(first)?.context("no aggregate")?;
                Ok(pool["metadata"]["filter_tenant_id"] == people.physics.as_str())
            })?;
            let pool = site.aggregate(FREE_POOL)?.context("no free pool")?;
            ensure!(pool["metadata"]["filter_tenant_id"] == "allot:nobody", "{pool}");
            let key = format!("filter_tenant_id:{}", people.chemistry);
            ensure!(pool["metadata"][&key] == people.chemistry.as_str(), "{pool}");
            Ok(())
        },
    );
}

fn of_hosts(cases: &mut Cases, site: &Site<'_>, first: &str) {
    cases.check("a project without a lease cannot start any server", || {
        let (hint, zone) = (format!("reservation={first}"), format!("blazar_{first}"));
        site.refused("gina", "geology", "plain", &PLAIN)?;
        site.refused("gina", "geology", "hinted", &[&PLAIN[..], &["--hint", &hint]].concat())?;
        site.refused("gina", "geology", "zoned", &[&PLAIN[..], &["--availability-zone", &zone]].concat())?;
        site.refused("gina", "geology", "marked", &["--flavor", "preempt"])
    });
    cases.check("an administrator that names a host is rejected too", || {
        let host = site.members(first)?.pop().context("the lease has no host")?;
        let zone = format!("blazar_{first}:{host}");
        site.refused("admin", "admin", "forced", &[&PLAIN[..], &["--availability-zone", &zone]].concat())
    });
    cases.check("a project with a lease starts servers in it and nowhere else", || {
        let host = site.members(first)?.pop().context("the lease has no host")?;
        // The zone of hosts without a zone doesn't let the owner escape the lease: no project is allowed on
        // those hosts.
        for (name, zone) in [("mine-1", ""), ("mine-2", "nova")] {
            let zoned = ["--availability-zone", zone];
            let words = [&PLAIN[..], if zone.is_empty() { &[] } else { &zoned }].concat();
            site.boot("alice", "physics", name, &words)?;
            ensure!(site.host_of(name)? == host, "{name} runs on {}", site.host_of(name)?);
        }
        Ok(())
    });
    cases.check("a project with preemptible servers uses only the free pool", || {
        let leased = site.members(first)?;
        for name in ["spot-1", "spot-2"] {
            site.boot("bob", "chemistry", name, &PLAIN)?;
            ensure!(!leased.contains(&site.host_of(name)?), "{name} runs in the lease");
        }
        Ok(())
    });
    cases.check("its servers leave for a lease, and each project has its own hosts", || {
        let second = site.lease("gina", "geology", "second", "resource_type=physical:host,min=2,max=2")?;
        ensure!(
            !site.is_there("spot-1")? && !site.is_there("spot-2")?,
            "preemptible servers are still there"
        );
        let hosts = site.members(&second)?;
        ensure!(hosts.len() == 2, "{hosts:?}");
        site.boot("gina", "geology", "theirs", &PLAIN)?;
        ensure!(hosts.contains(&site.host_of("theirs")?), "it runs outside of the lease");
        site.boot("alice", "physics", "mine-3", &PLAIN)?;
        ensure!(!hosts.contains(&site.host_of("mine-3")?), "it runs in another project's lease");
        site.refused("bob", "chemistry", "no-room", &PLAIN)
    });
    cases.check("hosts return to the free pool, which stays closed to other projects", || {
        site.client("gina", "geology", &["reservation", "lease", "delete", "second"])?;
        site.client("alice", "physics", &["reservation", "lease", "delete", "first"])?;
        until("hosts did not return", || Ok(site.members(FREE_POOL)?.len() == 3))?;
        for name in ["mine-1", "mine-2", "mine-3", "theirs"] {
            ensure!(!site.is_there(name)?, "{name} is still there");
        }
        site.refused("gina", "geology", "late", &PLAIN)?;
        site.refused("alice", "physics", "late", &PLAIN)?;
        site.boot("bob", "chemistry", "spot-3", &PLAIN)?;
        site.client("bob", "chemistry", &["server", "delete", "--wait", "spot-3"]).map(drop)
    });
    cases.check("of two leases a project names the one by its zone", || {
        for name in ["east", "west"] {
            let reservation = site.lease("alice", "physics", name, HOST_LEASE)?;
            let zone = format!("blazar_{reservation}");
            let server = format!("{name}-server");
            site.boot("alice", "physics", &server, &[&PLAIN[..], &["--availability-zone", &zone]].concat())?;
            ensure!(site.members(&reservation)? == [site.host_of(&server)?], "{server} is somewhere else");
        }
        for name in ["east", "west"] {
            site.client("alice", "physics", &["reservation", "lease", "delete", name])?;
        }
        until("hosts did not return", || Ok(site.members(FREE_POOL)?.len() == 3))
    });
}

fn of_instances(cases: &mut Cases, site: &Site<'_>) {
    cases.check("room for instances is used with its own flavor, by its owner, and no further", || {
        let wanted = "resource_type=virtual:instance,vcpus=1,memory_mb=512,disk_gb=1,amount=2,affinity=None";
        let room = site.lease("alice", "physics", "room", wanted)?;
        let hosts = site.members(&room)?;
        for name in ["room-1", "room-2"] {
            site.boot("alice", "physics", name, &["--flavor", &room])?;
            ensure!(hosts.contains(&site.host_of(name)?), "{name} runs outside of the lease");
        }
        site.refused("alice", "physics", "room-3", &["--flavor", &room])?;
        site.refused("alice", "physics", "plain", &PLAIN)?;
        site.refused("gina", "geology", "foreign", &PLAIN)?;
        site.boot("bob", "chemistry", "spot-4", &PLAIN)?;
        ensure!(!hosts.contains(&site.host_of("spot-4")?), "a preemptible server runs where there is room");
        site.client("bob", "chemistry", &["server", "delete", "--wait", "spot-4"])?;
        site.client("alice", "physics", &["reservation", "lease", "delete", "room"])?;
        until("the aggregate stays", || Ok(site.aggregate(&room)?.is_none()))?;
        ensure!(!site.is_there("room-1")? && !site.is_there("room-2")?, "servers are still there");
        Ok(())
    });
}

fn what_is_left(cases: &mut Cases, site: &Site<'_>, server: Server) {
    cases.check("no traces are left in Nova", || {
        ensure!(site.closed()? == 0, "{} compute services are disabled", site.closed()?);
        let aggregates = site.nova("os-aggregates")?;
        let names = aggregates["aggregates"].as_array().context("no aggregates")?;
        ensure!(names.len() == 1 && names[0]["name"] == FREE_POOL, "{aggregates}");
        let flavors = site.nova("flavors?is_public=None")?;
        let flavors = flavors["flavors"].as_array().context("no flavors")?;
        let reserved = |flavor: &&serde_json::Value| {
            flavor["name"].as_str().is_some_and(|name| name.starts_with("reservation:"))
        };
        ensure!(!flavors.iter().any(|flavor| reserved(&flavor)), "{}", json!(flavors));
        Ok(())
    });
    cases.check("the service shuts down cleanly with isolation of tenants", || ends_well(server));
}
