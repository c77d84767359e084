//! Three services on one PostgreSQL, under load and with faults: services are killed and stopped, the
//! database is restarted, connections break. Afterward, no lease is lost, no host was handed over twice, and
//! no lease was late by more than the outages explain.
//!
//! A seed determines the faults and the requests. Their timing is random, like in production.

mod clients;
mod cluster;
mod faults;
mod proxy;
pub mod verdict;

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use chores::cases::Cases;
use chores::random::Random;
use chores::run::Executable;
use chores::tally::Tally;
use serde_json::Value;

use self::clients::Clients;
pub use self::cluster::Cluster;
use self::faults::{Fault, Faults, USUAL_HOOK};
use self::verdict::{Killed, hosts_change_hands_in_turn, leases_begin_in_time, told};
use super::acknowledged::{Acknowledged, every_host_can_be_leased};
use super::http::{list, text};
use super::overlap::no_overlap;

/// Number of hosts. Most are being handed over at any time.
const HOSTS: usize = 12;
/// Pause between two faults, in which everything works.
const PEACE: Duration = Duration::from_secs(2);
/// Maximum delay of a lease's start without an outage. It covers hooks of at most 1.5 s each for taking back
/// and handing over a host, and the two seconds after which a service checks again for a step that another
/// service has claimed. On a busy machine, all this takes half as long again.
const MARGIN_MILLIS: i64 = 10_000;
/// Maximum wait until hosts that no lease needs are back in the free pool.
const PATIENCE: Duration = Duration::from_mins(1);

/// Runs the stage: `rounds` rounds of all faults. The first has a fixed order, later ones are shuffled.
pub fn run(ours: &Executable, seed: u64, rounds: usize) -> Result<Tally> {
    let mut cases = Cases::new("replicas");
    let mut cluster = Cluster::start(ours, HOSTS)?;
    cluster.hooks.take(USUAL_HOOK)?;
    let clients = Clients::start(&cluster.urls(), seed)?;
    let faults = everything_fails(&mut cases, &mut cluster, seed, rounds);
    // If clients gave up, there was no load anymore. Their error has the reason.
    let acknowledged = cases.check("clients' valid requests are never refused", || clients.stop());
    match (faults, acknowledged) {
        (Some(faults), Some(acknowledged)) => judge(&mut cases, &cluster, &faults, &acknowledged)?,
        _ => println!("{}", cluster.last_lines()),
    }
    Ok(cases.tally())
}

/// Injects one fault after another. `None` if the services didn't recover from one.
fn everything_fails(cases: &mut Cases, cluster: &mut Cluster, seed: u64, rounds: usize) -> Option<Faults> {
    let mut random = Random::new(seed);
    let mut faults = Faults::default();
    for round in 0..rounds {
        let mut plan = Fault::ALL.to_vec();
        while !plan.is_empty() {
            let fault = plan.remove(if round == 0 { 0 } else { random.below(plan.len()) });
            sleep(PEACE);
            let sentence = format!("{fault}, and then everything works again, seed {seed}");
            let back = cases.check(&sentence, || faults.happen(fault, cluster, &mut random))?;
            println!("replicas: {fault}: everything works again after {:.1} s", back.as_secs_f64());
        }
    }
    sleep(PEACE);
    Some(faults)
}

fn judge(cases: &mut Cases, cluster: &Cluster, faults: &Faults, acknowledged: &Acknowledged) -> Result<()> {
    println!("replicas: {} leases were acknowledged", acknowledged.len());
    cluster.delete_probes()?;
    for number in 0..cluster.replicas.len() {
        let caller = cluster.caller(number)?;
        let name = cluster.replicas[number].name;
        cases.check(&format!("{name} shows every lease that any service acknowledged"), || {
            ensure!(acknowledged.len() > HOSTS, "hardly any lease was acknowledged");
            acknowledged.all_there(caller)
        });
    }
    let caller = cluster.caller(0)?;
    cases.check("every lease gets where it was going", || {
        acknowledged.all_settle(caller).map_err(|error| error.context(cluster.last_lines()))
    });
    cases.check("no host is in two leases", || no_overlap(caller));
    cases.check("every host goes from one lease to the next, and no two calls for it run at once", || {
        all_comes_to_rest(cluster, &faults.killed)
    });
    cases.check("no lease begins later than it should have, but for outages", || {
        let starts = leases_begin_in_time(&told(caller)?, &faults.outages, MARGIN_MILLIS)?;
        println!("replicas: {starts}");
        Ok(())
    });
    cases.check("no host is stranded", || every_host_can_be_leased(caller, HOSTS));
    Ok(())
}

/// Waits until no hook is running, and exactly the hosts of active leases are handed over.
///
/// This can take longer than leases take to settle: if a lease ends during the handover of a host, the host
/// is taken back on its way to the free pool, and no lease waits for that.
fn all_comes_to_rest(cluster: &Cluster, killed: &[Killed]) -> Result<()> {
    let started = Instant::now();
    loop {
        let log = cluster.hooks.log_at_rest()?;
        let held = hosts_change_hands_in_turn(&log, killed)?;
        let active = active(cluster)?;
        if held == active {
            println!("replicas: {} calls were broken off", log.broken_off.len());
            return Ok(());
        }
        ensure!(started.elapsed() < PATIENCE, "handed over are {held:?}, and active are {active:?}");
        sleep(Duration::from_millis(100));
    }
}

/// Active lease of each host, by host name.
fn active(cluster: &Cluster) -> Result<BTreeMap<String, String>> {
    let caller = cluster.caller(1)?;
    let (hosts, leases) = (caller.hosts()?, caller.leases()?);
    let is_active = |id: &Value| leases.iter().any(|lease| lease["id"] == *id && lease["status"] == "ACTIVE");
    let mut active = BTreeMap::new();
    for allocated in list(caller.get("/v1/os-hosts/allocations")?.expect(200)?, "allocations")? {
        let host = hosts.iter().find(|host| host["id"] == allocated["resource_id"]);
        let host = host.with_context(|| format!("no such host: {allocated}"))?;
        let held = allocated["reservations"].as_array().into_iter().flatten();
        for held in held.filter(|held| is_active(&held["lease_id"])) {
            let name = text(host, "hypervisor_hostname")?;
            active.insert(name.to_owned(), text(held, "lease_id")?.to_owned());
        }
    }
    Ok(active)
}
