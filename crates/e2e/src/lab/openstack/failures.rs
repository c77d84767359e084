//! Leases while parts of the cloud fail: a compute host, Placement, the cloud's database, its message bus.

use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chores::cases::Cases;

use super::site::{FREE_POOL, HOST_LEASE, Site, ends_well, until};
use crate::leasing::date::Minute;

/// Longer than Nova's `service_down_time`: a service that doesn't report for this long counts as down.
const LONGER_THAN_DOWN: Duration = Duration::from_secs(30);

/// Long enough for the service to send a request and get no answer.
const A_WHILE: Duration = Duration::from_secs(5);

/// Starts its own service, with a short observation interval.
pub fn on_nova(cases: &mut Cases, site: &Site<'_>) -> Result<()> {
    let often = ["--limits-observe-interval", "5s", "--openstack-failed-after", "15s"];
    let server = site.launch.clone().with(often).start()?;
    cases.check("a lease gets another host when a compute service dies", || a_dead_host(site));
    cases.check("a lease that is made while Placement is away starts when it is back", || {
        site.lab.stop("placement")?;
        site.client("alice", "physics", &Site::lease_words("placed", HOST_LEASE))?;
        sleep(A_WHILE);
        site.lab.up()?;
        site.until_active("placed")?;
        end(site, "placed")
    });
    cases.check("a lease that is due while Nova's database is down starts when it is up again", || {
        let start = Minute::begins_in(30);
        let words = ["lease", "create", "stored", "--hosts", "1", "--for", "1h", "--start", &start.sent()];
        site.allot("alice", "physics", &words)?;
        site.lab.stop("mariadb")?;
        while Minute::now() < start {
            sleep(Duration::from_secs(1));
        }
        sleep(A_WHILE);
        site.lab.up()?;
        site.until_active("stored")?;
        end(site, "stored")
    });
    cases.check("while no compute service reports, a lease keeps its hosts", || {
        let reservation = site.lease("alice", "physics", "silent", HOST_LEASE)?;
        let held = site.members(&reservation)?;
        site.lab.stop("rabbitmq")?;
        sleep(LONGER_THAN_DOWN);
        let meanwhile = site.members(&reservation)?;
        // Bring the cloud back before checking: later parts need it and all of its hosts, even if this check
        // fails.
        site.lab.up()?;
        until("compute services stay down", || {
            let all = site.nova("os-services?binary=nova-compute")?;
            let all = all["services"].as_array().context("no services")?.clone();
            Ok(all.iter().all(|service| service["state"] == "up"))
        })?;
        let after = site.members(&reservation)?;
        let hint = format!("reservation={reservation}");
        let booted = site.boot("alice", "physics", "heard", &["--flavor", "small", "--hint", &hint]);
        end(site, "silent")?;
        ensure!(
            meanwhile == held && after == held,
            "the lease should keep {held:?}, but has {meanwhile:?}, then {after:?}"
        );
        booted
    });
    cases.check("the service shuts down cleanly after these failures", || ends_well(server));
    Ok(())
}

/// The lease's host dies with a server on it, and restarts later.
fn a_dead_host(site: &Site<'_>) -> Result<()> {
    let reservation = site.lease("alice", "physics", "dead", HOST_LEASE)?;
    let hint = format!("reservation={reservation}");
    let words = ["--flavor", "small", "--hint", &hint];
    site.boot("alice", "physics", "lost", &words)?;
    let host = site.host_of("lost")?;
    let service = format!("nova-compute-{host}");
    // Suspend it instead of stopping it: a compute service with Nova's fake driver can't be started again
    // after it ended, because it has no identity on disk.
    site.lab.signal(&service, "STOP")?;
    until("there is no other host", || Ok(site.members(&reservation)?.iter().any(|other| *other != host)))?;
    site.until_active("dead")?;
    site.boot("alice", "physics", "again", &words)?;
    ensure!(site.host_of("again")? != host, "it runs on the host that is dead");
    let shown = site.alices("dead")?;
    ensure!(shown["reservations"][0]["resources_changed"] == true, "{shown}");
    site.lab.signal(&service, "CONT")?;
    until("the host did not return", || Ok(site.members(FREE_POOL)?.len() == 2))?;
    ensure!(site.members(FREE_POOL)?.contains(&host), "{:?}", site.members(FREE_POOL)?);
    ensure!(!site.is_there("lost")?, "the server is still on the host that came back");
    end(site, "dead")
}

/// Deletes a lease, and waits until its hosts are back in the free pool.
fn end(site: &Site<'_>, lease: &str) -> Result<()> {
    site.client("alice", "physics", &["reservation", "lease", "delete", lease])?;
    until("hosts did not return", || Ok(site.members(FREE_POOL)?.len() == 3))
}
