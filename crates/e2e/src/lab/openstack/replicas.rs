//! Two services with one database drive one cloud.

use anyhow::{Context, Result, anyhow, ensure};
use chores::cases::Cases;
use chores::places;
use scratch_postgres::ScratchPostgres;

use super::RESERVATION;
use super::cloud::OF_ALL;
use super::site::{FREE_POOL, HOST_LEASE, Site, ends_well, until};
use crate::leasing::server::Server;

/// Port of the second service, as an offset from Keystone's. It's above all ports that the lab uses.
const SECOND: u16 = 22;

const HOSTS: [&str; 3] = ["host1", "host2", "host3"];

/// Makes leases through both services. Before and after, another service has the hosts.
pub fn on_nova(cases: &mut Cases, site: &Site<'_>) -> Result<()> {
    places::need_postgres()?;
    let postgres = ScratchPostgres::start().map_err(|error| anyhow!(error))?;
    postgres.run("CREATE DATABASE allot").map_err(|error| anyhow!(error))?;
    let before = site.launch.start()?;
    for_each_host(site, "delete")?;
    ends_well(before)?;
    give_up(site)?;
    let launch = |name: &str, port: u16| {
        let address = format!("127.0.0.1:{}", site.lab.port + port);
        let shared = site.launch.clone().with_name(name).with_database(&postgres.url("allot")).at(&address);
        shared.with(["--limits-step-time", "20s", "--limits-observe-interval", "5s"])
    };
    let (first, second) = (launch("first", RESERVATION), launch("second", SECOND));
    let (one, two) = (first.start()?, second.start()?);
    for_each_host(site, "create")?;
    at_both(cases, site);
    let (one, two) = after_a_crash(cases, site, (one, two), || first.start())?;
    for_each_host(site, "delete")?;
    cases.check("both services end as they should", || {
        ends_well(one)?;
        ends_well(two)?;
        for log in [first.said(), second.said()] {
            ensure!(!log.contains("panicked"), "{log}");
        }
        Ok(())
    });
    give_up(site)?;
    let server = site.launch.start()?;
    for_each_host(site, "create")?;
    ends_well(server)
}

/// Runs `allot host create` or `allot host delete` for each host, against the service at the catalog's
/// address.
fn for_each_host(site: &Site<'_>, what: &str) -> Result<()> {
    HOSTS.iter().try_for_each(|host| site.allot("admin", "admin", &["host", what, host]).map(drop))
}

/// Deletes the free pool's aggregate, which names the service that owns the hosts, so that another service
/// can take them.
fn give_up(site: &Site<'_>) -> Result<()> {
    let free = site.aggregate(FREE_POOL)?.context("no free pool")?;
    site.admin_client(&["aggregate", "delete", &free["id"].to_string()]).map(drop)
}

fn at_both(cases: &mut Cases, site: &Site<'_>) {
    cases.check(
        "preemptible servers run on all hosts of the service, and ordinary servers on no host",
        || {
            for name in ["spot1", "spot2", "spot3"] {
                site.boot("bob", "chemistry", name, &["--flavor", "preempt"])?;
            }
            spread_over(site, ["spot1", "spot2", "spot3"])?;
            site.refused("bob", "chemistry", "refused", &["--flavor", "small"])?;
            site.delete_all_servers()
        },
    );
    cases.check("leases that are made at both at the same time have hosts of their own", || {
        let address = format!("http://127.0.0.1:{}", site.lab.port + SECOND);
        let words = ["lease", "create", "there", "--hosts", "1", "--for", "1h", "--url", &address];
        let mut other = site.lab.client(site.ours.path(), "alice", OF_ALL, "physics");
        let mut other = other.args(words).spawn().context("cannot run allot")?;
        let here = site.lease("alice", "physics", "here", HOST_LEASE)?;
        ensure!(other.wait()?.success(), "the second service makes no lease");
        let there = site.until_active("there")?;
        let (here, there) = (site.members(&here)?, site.members(&there)?);
        ensure!(here.len() == 1 && there.len() == 1 && here != there, "{here:?} {there:?}");
        for name in ["here", "there"] {
            site.client("alice", "physics", &["reservation", "lease", "delete", name])?;
        }
        until("hosts did not return", || Ok(site.members(FREE_POOL)?.len() == 3))
    });
}

/// Kills the first service while a lease ends, and starts it again before returning.
fn after_a_crash(
    cases: &mut Cases,
    site: &Site<'_>,
    (one, two): (Server, Server),
    start: impl Fn() -> Result<Server>,
) -> Result<(Server, Server)> {
    let all = cases.check("servers run on all hosts of a lease that both have handed over", || {
        let reservation = site.lease("alice", "physics", "all", "resource_type=physical:host,min=3,max=3")?;
        let hint = format!("reservation={reservation}");
        for name in ["one", "two", "three"] {
            site.boot("alice", "physics", name, &["--flavor", "medium", "--hint", &hint])?;
        }
        spread_over(site, ["one", "two", "three"])?;
        Ok(reservation)
    });
    let mut one = Some(one);
    cases.check("one service ends it when the second is killed in the middle", || {
        let mut deleting = site.command("alice", "physics", &["reservation", "lease", "delete", "all"]);
        let mut deleting = deleting.spawn().context("cannot run the client")?;
        until("no host was taken back", || Ok(site.closed()? > 0))?;
        one.take().map_or(Ok(()), Server::kill)?;
        deleting.wait()?;
        until("hosts did not return", || Ok(site.members(FREE_POOL)?.len() == 3))?;
        until("services stay disabled", || Ok(site.closed()? == 0))?;
        let reservation = all.as_deref().context("no lease")?;
        until("the aggregate stays", || Ok(site.aggregate(reservation)?.is_none()))?;
        ensure!(site.servers("alice", "physics")?.is_empty(), "{}", site.servers("alice", "physics")?);
        site.refused("bob", "chemistry", "refused", &["--flavor", "small"])
    });
    let one = match one {
        Some(one) => one,
        None => start()?,
    };
    Ok((one, two))
}

/// Checks that each of these servers runs on a different host, since Nova spreads them by memory.
fn spread_over(site: &Site<'_>, names: [&str; 3]) -> Result<()> {
    let mut hosts = names.iter().map(|name| site.host_of(name)).collect::<Result<Vec<_>>>()?;
    hosts.sort_unstable();
    ensure!(hosts == HOSTS, "{hosts:?}");
    Ok(())
}
