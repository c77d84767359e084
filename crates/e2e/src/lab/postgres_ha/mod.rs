//! `cargo xtask lab postgres-ha`: three services on a PostgreSQL cluster that Patroni and etcd make highly
//! available. Its primary is killed, cut off, and told to step down.
//!
//! Everything runs in its own namespaces ([`sandbox`]) and leaves nothing behind but a directory of logs.

mod checks;
mod cluster;
mod faults;
mod load;
mod network;
mod node;
mod outages;
mod packages;
mod sandbox;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use chores::arguments::Arguments;
use chores::cases::Cases;
use chores::places;
use chores::run::{Executable, output_of};
use serde_json::json;

use self::cluster::Cluster;
use self::faults::{Fault, Kind};
use self::load::{HOSTS, Load};
use crate::leasing::hooks::Hooks;
use crate::leasing::server::{Launch, Server};

/// Faults of a round, in order.
const ROUND: [Kind; 3] = [Kind::Kill, Kind::Cut, Kind::SwitchOver];
/// Default of `--minutes`, during which new rounds are started. One minute is enough for one round.
const USUAL_MINUTES: u64 = 1;
const SERVICES: [&str; 3] = ["one", "two", "three"];
/// Duration of a hook that hands over a host.
const HAND_OVER: Duration = Duration::from_millis(200);

/// Options of a run.
#[derive(Clone, Debug)]
struct Plan {
    ours: PathBuf,
    minutes: u64,
    keep: bool,
}

pub fn main(mut arguments: Arguments) -> Result<()> {
    let inside = arguments.switch("--inside");
    let keep = arguments.switch("--keep");
    let minutes = arguments.value("--minutes", USUAL_MINUTES)?;
    let ours = arguments.text("--ours")?;
    arguments.finish()?;
    places::need_root()?;
    if !inside {
        packages::ready()?;
    }
    let ours = ours.map_or_else(places::ours, |path| Ok(Executable::new(path)))?.path;
    let ours = fs::canonicalize(&ours).with_context(|| format!("there is no {}", ours.display()))?;
    let plan = Plan { ours, minutes, keep };
    if inside { run(&plan) } else { sandbox::run(&plan.arguments()) }
}

impl Plan {
    /// Command line of the same run inside the sandbox.
    fn arguments(&self) -> Vec<String> {
        let mut words = ["lab", "postgres-ha", "--inside", "--ours"].map(str::to_owned).to_vec();
        words.push(self.ours.display().to_string());
        words.extend(["--minutes".to_owned(), self.minutes.to_string()]);
        words.extend(self.keep.then(|| "--keep".to_owned()));
        words
    }
}

/// The whole run, inside the sandbox.
fn run(plan: &Plan) -> Result<()> {
    let started = Instant::now();
    let tell = |what: &str| println!("[{:4} s] {what}", started.elapsed().as_secs());
    let logs = empty_directory(&places::target().join("lab/postgres-ha"))?;
    tell(&format!("three nodes with etcd, Patroni and PostgreSQL; logs are in {}", logs.display()));
    let mut cluster = Cluster::start(&logs)?;
    tell("three services");
    let hooks = Hooks::new(&logs, HOSTS)?;
    hooks.take(HAND_OVER)?;
    let mut services = serve(plan, &cluster, &logs, &hooks)?;
    for host in 1..=HOSTS {
        services[0].caller().post("/v1/os-hosts", &json!({"id": host.to_string()}))?.expect(201)?;
    }
    let load = Load::start(&services.iter().map(|service| service.url().to_owned()).collect::<Vec<_>>())?;
    let mut happened: Vec<Fault> = Vec::new();
    while happened.is_empty() || started.elapsed() < Duration::from_mins(plan.minutes) {
        for kind in ROUND {
            tell(&kind.to_string());
            happened.push(faults::happen(kind, &mut cluster, &load)?);
        }
    }
    tell("the clients end their leases");
    let journal = load.stop()?;
    let outages = checks::outages(&happened, &journal)?;
    checks::print(&happened, &outages, &journal);
    let mut cases = Cases::new("lab postgres-ha");
    checks::of_clients(&mut cases, &happened, &outages, &journal);
    checks::of_what_is_left(&mut cases, &services.iter().map(Server::caller).collect::<Vec<_>>());
    checks::of_machines(&mut cases, &hooks);
    cases.check("every service is ready", || services.iter_mut().try_for_each(Server::wait_until_ready));
    cases.check("the database is whole", || check_database(plan, &cluster));
    if plan.keep {
        stay();
    }
    for service in services {
        cases.check("a service that is told to stop does so, and ends well", || {
            let status = service.stop()?;
            ensure!(status.success(), "it ended with {status}");
            Ok(())
        });
    }
    cases.tally().conclude("lab postgres-ha")
}

fn serve(plan: &Plan, cluster: &Cluster, logs: &Path, hooks: &Hooks) -> Result<Vec<Server>> {
    let ours = Executable::new(&plan.ours);
    let launch =
        |name: &str| Launch::new(&ours, logs).with_name(name).with_database(&cluster.url()).with_hooks(hooks);
    SERVICES.iter().map(|name| launch(name).start()).collect()
}

/// Runs `allot database check`, which reads everything that is stored.
fn check_database(plan: &Plan, cluster: &Cluster) -> Result<()> {
    output_of(Command::new(&plan.ours).args(["database", "check", &cluster.url()])).map(drop)
}

fn stay() {
    println!("everything is left running; look at it with");
    println!("  nsenter --all --target $(pgrep --full '^sh -c.*lab postgres-ha --inside' | head -n 1)");
    println!("and end it with Ctrl-C");
    loop {
        sleep(Duration::from_hours(1));
    }
}

fn empty_directory(path: &Path) -> Result<PathBuf> {
    if path.exists() {
        fs::remove_dir_all(path).with_context(|| format!("cannot empty {}", path.display()))?;
    }
    fs::create_dir_all(path).with_context(|| format!("cannot make {}", path.display()))?;
    fs::canonicalize(path).with_context(|| format!("cannot find {}", path.display()))
}
