//! The fence `allot-filter`: Nova's scheduler asks the service which hosts a server can use.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chores::cases::Cases;
use chores::places;
use chores::run::must_run;
use serde_json::Value;

use super::scheduler::{self, BLAZAR_AVAILABLE, BLAZAR_ENABLED};
use super::site::{FREE_POOL, Site, ends_well, text_of, until};
use super::watcher::{self, Stay};
use super::{Lab, RESERVATION};
use crate::lab::scripts;
use crate::leasing::server::Server;

/// The filter's token, and its SHA-256 hash.
const TOKEN: &str = "only for the filter of the lab";
const HASH: &str = "c4ac867b34f238949d16926d15ede7581a6186f0dbe7cb50f018161542432eb7";

/// Seconds that the filter waits after a failed request before it asks again.
const PAUSE: u64 = 1;

/// The filter's path, for Nova's `available_filters`.
const AVAILABLE: &str = "allot_nova.filter.AllotFilter";

/// Authentication settings of a service that the filter asks: Keystone and the filter's token.
pub fn tokens(directory: &Path) -> Result<String> {
    let file = directory.join("tokens.toml");
    let known = format!(
        "[[tokens]]\nsha256 = \"{HASH}\"\nuser = \"nova-scheduler\"\nproject = \"service\"\nroles = [\"admin\"]\n"
    );
    chores::run::write(&file, known.as_bytes())?;
    Ok(format!("keystone,tokens:{}", file.display()))
}

/// Options of a service with this fence and preemptible servers.
pub const OPTIONS: [&str; 4] = ["--openstack-fence", "allot-filter", "--preemptible-enabled", "true"];

/// Checks a closed free pool, then all projects listed as preemptible, then an open pool.
pub fn on_nova(cases: &mut Cases, site: &mut Site<'_>) -> Result<()> {
    install(site.lab)?;
    site.launch = site.launch.clone().with(OPTIONS);
    let server = site.launch.start()?;
    closed_pool(cases, site);
    without_the_service(cases, site, server)?.stop()?;
    let server = site.launch.clone().with(["--preemptible-projects", "*"]).start()?;
    listed_projects(cases, site);
    server.stop()?;
    site.launch = site.launch.clone().with(["--openstack-open-pool", "true"]);
    let server = site.launch.start()?;
    open_pool(cases, site);
    those_that_are_paused(cases, site);
    those_that_do_not_run(cases, site);
    server.stop()?;
    let impatient = ["--openstack-migration-time", "1s", "--limits-observe-interval", "1s"];
    let server = site.launch.clone().with(impatient).start()?;
    those_that_take_too_long(cases, site);
    server.stop()?;
    let server = site.launch.start()?;
    // Last, because aborted builds count against a host in Nova's scheduler.
    those_that_came_just_before(cases, site)?;
    site.delete_all_servers()?;
    watcher::check(cases, site, "preempt", Stay::Never);
    cases.check("the service shuts down cleanly with the filter too", || ends_well(server));
    Ok(())
}

/// Replaces Blazar's filter in the scheduler by ours, as the guide describes.
pub fn install(lab: &Lab) -> Result<()> {
    let package = lab.root.join("allot-nova-package");
    scripts::copy(&places::root().join("contrib/nova"), &package)?;
    let mut install = Command::new(lab.program("uv"));
    install.args(["pip", "install", "-q", "--reinstall", "--no-build-isolation", "-p"]);
    must_run(install.arg(lab.program("python")).arg(&package))?;
    let token = lab.root.join("allot.token");
    chores::run::write(&token, TOKEN.as_bytes())?;
    let port = lab.port + RESERVATION;
    let section = format!(
        ",AllotFilter\n[allot]\nurl=http://127.0.0.1:{port}\ntoken_file={}\npause={PAUSE}\nfree_pool={FREE_POOL}\n",
        token.display()
    );
    scheduler::set(lab, &[(BLAZAR_AVAILABLE, AVAILABLE), (BLAZAR_ENABLED, &section)])
}

/// The service manages `host1` and `host2`, and gives up `host3`.
fn closed_pool(cases: &mut Cases, site: &Site<'_>) {
    cases.check("a regular server runs on a host that the service does not manage, and on no other", || {
        site.allot("admin", "admin", &["host", "delete", "host3"])?;
        until("the host stays in the free pool", || Ok(site.members(FREE_POOL)?.len() == 2))?;
        for name in ["regular-1", "regular-2"] {
            site.boot("bob", "chemistry", name, &["--flavor", "small"])?;
            ensure!(site.host_of(name)? == "host3", "{name} runs on {}", site.host_of(name)?);
        }
        Ok(())
    });
    cases.check("preemptible servers run in the free pool, by their flavor or by a hint", || {
        site.boot("bob", "chemistry", "spot", &["--flavor", "preempt"])?;
        site.boot("bob", "chemistry", "hinted", &["--flavor", "small", "--hint", "preemptible=true"])?;
        for name in ["spot", "hinted"] {
            ensure!(site.host_of(name)? != "host3", "{name} is outside of the free pool");
        }
        Ok(())
    });
    cases.check("they leave for a lease, which only its owner can use", || {
        let reservation =
            site.lease("alice", "physics", "fenced", "resource_type=physical:host,min=2,max=2")?;
        ensure!(!site.is_there("spot")? && !site.is_there("hinted")?, "preemptible servers are still there");
        let hint = format!("reservation={reservation}");
        let words = ["--flavor", "small", "--hint", &hint];
        site.boot("alice", "physics", "owner-1", &words)?;
        ensure!(site.host_of("owner-1")? != "host3", "it is outside of the lease");
        site.refused("bob", "chemistry", "foreign", &words)?;
        site.refused("bob", "chemistry", "no-room", &["--flavor", "preempt"])
    });
}

/// Stops the service, checks the scheduler without it, and starts the service again.
fn without_the_service(cases: &mut Cases, site: &Site<'_>, server: Server) -> Result<Server> {
    server.stop()?;
    cases.check("while the service is away servers run on hosts only that it does not manage", || {
        site.boot("bob", "chemistry", "regular-3", &["--flavor", "small"])?;
        ensure!(site.host_of("regular-3")? == "host3", "it runs on {}", site.host_of("regular-3")?);
        site.refused("bob", "chemistry", "spot-away", &["--flavor", "preempt"])?;
        let pools = site.nova("os-aggregates")?;
        let pools = pools["aggregates"].as_array().context("no aggregates")?;
        let pool = pools.iter().find(|pool| pool["metadata"]["blazar:owner"].is_string());
        let reservation = pool.and_then(|pool| pool["name"].as_str()).context("no aggregate of the lease")?;
        let hint = format!("reservation={reservation}");
        site.refused("alice", "physics", "owner-away", &["--flavor", "small", "--hint", &hint])
    });
    let server = site.launch.start()?;
    cases.check("after its restart the owner starts servers again, and the lease ends normally", || {
        sleep(Duration::from_secs(PAUSE + 1));
        let hint = format!("reservation={}", site.until_active("fenced")?);
        site.boot("alice", "physics", "owner-2", &["--flavor", "small", "--hint", &hint])?;
        site.client("alice", "physics", &["reservation", "lease", "delete", "fenced"])?;
        until("hosts did not return", || Ok(site.members(FREE_POOL)?.len() == 2))?;
        ensure!(
            !site.is_there("owner-1")? && !site.is_there("owner-2")?,
            "servers of the lease are still there"
        );
        for name in ["regular-1", "regular-2", "regular-3"] {
            ensure!(site.host_of(name)? == "host3", "{name} is somewhere else");
        }
        Ok(())
    });
    Ok(server)
}

/// The service still doesn't manage `host3`.
fn listed_projects(cases: &mut Cases, site: &Site<'_>) {
    cases.check("servers of listed projects are preemptible unless a hint says otherwise", || {
        site.boot("bob", "chemistry", "listed", &["--flavor", "small"])?;
        ensure!(site.host_of("listed")? != "host3", "it is outside of the free pool");
        let words = ["--flavor", "small", "--hint", "preemptible=false"];
        site.boot("bob", "chemistry", "opted-out", &words)?;
        ensure!(site.host_of("opted-out")? == "host3", "it is in the free pool");
        site.lease("alice", "physics", "both", "resource_type=physical:host,min=2,max=2")?;
        ensure!(!site.is_there("listed")?, "the preemptible server is still there");
        site.client("alice", "physics", &["reservation", "lease", "delete", "both"])?;
        until("hosts did not return", || Ok(site.members(FREE_POOL)?.len() == 2))?;
        site.client("bob", "chemistry", &["server", "delete", "--wait", "opted-out"]).map(drop)
    });
}

/// Servers of bob's, which leases of alice's have to move.
const FOREIGN: [&str; 7] =
    ["regular-1", "regular-2", "regular-3", "regular-4", "regular-5", "regular-6", "regular-7"];

/// Servers of any project run in the free pool, and a lease needs one of its hosts.
fn open_pool(cases: &mut Cases, site: &Site<'_>) {
    cases.check("a host is taken on with servers, and any server runs in an open pool", || {
        site.admin_client(&["reservation", "host", "create", "host3"])?;
        ensure!(site.members(FREE_POOL)?.len() == 3, "{:?}", site.members(FREE_POOL)?);
        for name in &FOREIGN[3..5] {
            site.boot("bob", "chemistry", name, &["--flavor", "small"])?;
        }
        let hosts = FOREIGN[..5].iter().map(|name| site.host_of(name)).collect::<Result<Vec<_>>>()?;
        for host in ["host1", "host2", "host3"] {
            ensure!(hosts.iter().any(|used| used == host), "no server is on {host}: {hosts:?}");
        }
        Ok(())
    });
    cases.check("a best-effort lease moves running servers of other projects away", || {
        hunt(site, "hunted", "10m")?;
        let reservation = site.until_active("hunted")?;
        let host = site.members(&reservation)?.pop().context("the lease has no host")?;
        for name in &FOREIGN[..5] {
            ensure!(site.host_of(name)? != host, "{name} is still on {host}");
        }
        let hint = format!("reservation={reservation}");
        site.boot("alice", "physics", "hunter", &["--flavor", "small", "--hint", &hint])?;
        ensure!(site.host_of("hunter")? == host, "the owner's server is outside of the lease");
        site.boot("bob", "chemistry", "regular-6", &["--flavor", "small"])?;
        ensure!(site.host_of("regular-6")? != host, "a foreign server runs in the lease");
        site.client("alice", "physics", &["reservation", "lease", "delete", "hunted"])?;
        until("the host did not return", || Ok(site.members(FREE_POOL)?.len() == 3))?;
        ensure!(!site.is_there("hunter")?, "the owner's server is still there");
        ensure!(FOREIGN[..6].iter().all(|name| site.host_of(name).is_ok()), "a foreign server is gone");
        Ok(())
    });
}

/// Creates a best-effort lease of alice's for one host: it starts once other tenants' servers can be moved
/// away.
fn hunt(site: &Site<'_>, name: &str, timeout: &str) -> Result<()> {
    let words = ["lease", "create", name, "--type", "best-effort", "--timeout", timeout, "--hosts", "1"];
    site.allot("alice", "physics", &[&words[..], &["--for", "1h"]].concat()).map(drop)
}

/// Hosts of bob's servers, which must all have that status.
fn places_of(site: &Site<'_>, names: &[&str], status: &str) -> Result<Vec<String>> {
    let place = |name: &&str| {
        let server = site.server(name)?;
        ensure!(server["status"] == status, "{server}");
        Ok(text_of(&server["OS-EXT-SRV-ATTR:host"]))
    };
    names.iter().map(place).collect()
}

/// Paused servers of bob's are on all hosts.
fn those_that_are_paused(cases: &mut Cases, site: &Site<'_>) {
    let bob = |word: &str| site.client("bob", "chemistry", &[&["server", word], &FOREIGN[..6]].concat());
    cases.check("a lease moves paused servers of other projects away, and they stay paused", || {
        bob("pause")?;
        until("servers are not paused", || Ok(places_of(site, &FOREIGN[..6], "PAUSED").is_ok()))?;
        hunt(site, "still", "10m")?;
        let held = site.members(&site.until_active("still")?)?;
        let places = places_of(site, &FOREIGN[..6], "PAUSED")?;
        ensure!(held.len() == 1 && !places.contains(&held[0]), "{held:?} {places:?}");
        bob("unpause")?;
        site.client("alice", "physics", &["reservation", "lease", "delete", "still"])?;
        until("the host did not return", || Ok(site.members(FREE_POOL)?.len() == 3))
    });
}

/// The migration time is one second, and every live migration takes longer.
fn those_that_take_too_long(cases: &mut Cases, site: &Site<'_>) {
    cases.check(
        "live migrations that take too long are aborted, and a lease that gives up leaves no traces",
        || {
            site.client("alice", "physics", &["reservation", "lease", "delete", "quiet"])?;
            until("the host did not return", || Ok(site.members(FREE_POOL)?.len() == 3))?;
            // Without this server, the lease could take the free host without moving any server.
            let free = || -> Result<Option<String>> {
                let places = places_of(site, &FOREIGN, "ACTIVE")?;
                Ok(["host1", "host2", "host3"]
                    .into_iter()
                    .find(|host| !places.iter().any(|used| used == host))
                    .map(str::to_owned))
            };
            if let Some(host) = free()? {
                let words = ["--flavor", "small", "--availability-zone"];
                let zone = format!("nova:{host}");
                site.boot("admin", "admin", "regular-8", &[&words[..], &[&zone]].concat())?;
            }
            let before = places_of(site, &FOREIGN, "ACTIVE")?;
            let live = || -> Result<Vec<Value>> {
                let mut all = site.nova("os-migrations?migration_type=live-migration")?;
                Ok(std::mem::take(all["migrations"].as_array_mut().context("no migrations")?))
            };
            let others = live()?.len();
            // The service estimates at most two minutes for the migrations.
            hunt(site, "hurried", "2m")?;
            sleep(Duration::from_mins(1));
            until("the lease does not give up", || Ok(site.alices("hurried")?["status"] == "ERROR"))?;
            until("a server is not where it was", || {
                Ok(places_of(site, &FOREIGN, "ACTIVE").is_ok_and(|places| places == before))
            })?;
            let mut all = live()?;
            all.sort_by_key(|migration| migration["id"].as_u64());
            let became: Vec<String> =
                all[others..].iter().map(|migration| text_of(&migration["status"])).collect();
            ensure!(!became.is_empty() && became.iter().all(|status| status == "cancelled"), "{became:?}");
            ensure!(site.members(FREE_POOL)?.len() == 3 && site.closed()? == 0, "a host is still closed");
            let pools = site.nova("os-aggregates")?;
            let pools = pools["aggregates"].as_array().context("no aggregates")?;
            ensure!(pools.iter().all(|pool| pool["metadata"]["blazar:owner"].is_null()), "{pools:?}");
            Ok(())
        },
    );
}

/// Starts servers on hosts that the last pass observed as empty.
fn those_that_came_just_before(cases: &mut Cases, site: &Site<'_>) -> Result<()> {
    site.delete_all_servers()?;
    // Longer than `limits.observe_interval`.
    sleep(Duration::from_secs(35));
    cases.check("a best-effort lease is planned by servers that have just been started", || {
        let zone = |host: &str| format!("nova:{host}");
        for (name, host) in [("new-1", "host1"), ("new-2", "host2"), ("new-3", "host3")] {
            let words = ["--flavor", "small", "--availability-zone", &zone(host)];
            site.boot("admin", "admin", name, &words)?;
        }
        site.boot("bob", "chemistry", "spare", &["--flavor", "small", "--hint", "preemptible=true"])?;
        let words =
            ["lease", "create", "prompt", "--type", "best-effort", "--timeout", "10m", "--hosts", "1"];
        let answer = site.allot("alice", "physics", &[&words[..], &["--for", "1h"]].concat())?;
        ensure!(answer.contains("to clear"), "no plan: {answer}");
        let held = site.members(&site.until_active("prompt")?)?;
        for name in ["new-1", "new-2", "new-3"] {
            ensure!(site.host_of(name)? != held[0], "{name} is still on {held:?}");
        }
        // It was either preempted for the lease or runs elsewhere.
        if site.is_there("spare")? {
            until("a server was shut down needlessly", || Ok(site.host_of("spare").is_ok()))?;
        }
        site.client("alice", "physics", &["reservation", "lease", "delete", "prompt"])?;
        until("the host did not return", || Ok(site.members(FREE_POOL)?.len() == 3))
    });
    cases.check("a server that was asked to leave for a lease that is deleted runs again", || {
        site.boot("bob", "chemistry", "vain", &["--flavor", "small", "--hint", "preemptible=true"])?;
        site.client("admin", "admin", &["server", "delete", "--wait", "new-1", "new-2", "new-3"])?;
        site.allot("alice", "physics", &["lease", "create", "short", "--hosts", "3", "--for", "1h"])?;
        until("the server is not asked to leave", || Ok(site.server("vain")?["status"] == "SHUTOFF"))?;
        site.client("alice", "physics", &["reservation", "lease", "delete", "short"])?;
        until("the server stays shut off", || Ok(site.host_of("vain").is_ok()))
    });
    Ok(())
}

/// Shut-off servers of bob's are on all hosts, and a lease needs one of the hosts.
fn those_that_do_not_run(cases: &mut Cases, site: &Site<'_>) {
    let bob = |words: &[&str]| site.client("bob", "chemistry", &[words, &FOREIGN[..]].concat());
    cases.check("a lease moves shut-off servers of other projects away, and they stay shut off", || {
        site.boot("bob", "chemistry", FOREIGN[6], &["--flavor", "small"])?;
        let hosts = FOREIGN.iter().map(|name| site.host_of(name)).collect::<Result<BTreeSet<_>>>()?;
        ensure!(hosts.len() == 3, "a host is empty: {hosts:?}");
        bob(&["server", "stop"])?;
        let all_are_off = || {
            let off = |name| Ok::<_, anyhow::Error>(site.server(name)?["status"] == "SHUTOFF");
            FOREIGN.into_iter().try_fold(true, |all, name| Ok(all && off(name)?))
        };
        until("servers are not shut off", all_are_off)?;
        hunt(site, "quiet", "10m")?;
        let held = site.members(&site.until_active("quiet")?)?;
        ensure!(held.len() == 1 && all_are_off()?, "{held:?}");
        for name in FOREIGN {
            ensure!(site.server(name)?["OS-EXT-SRV-ATTR:host"] != *held[0], "{name} is still on {held:?}");
        }
        let migrations = site.nova("os-migrations?migration_type=migration")?;
        let migrations = migrations["migrations"].as_array().context("no migrations")?;
        let confirmed = migrations.iter().filter(|migration| migration["status"] == "confirmed").count();
        ensure!(confirmed > 0 && confirmed == migrations.len(), "{migrations:?}");
        Ok(())
    });
    cases.check("they run again where they are now", || {
        bob(&["server", "start"])?;
        until("servers do not run again", || Ok(FOREIGN.iter().all(|name| site.host_of(name).is_ok())))
    });
}
