//! `cargo xtask bench hostile`: measures how expensive requests of some users affect the latency of ordinary
//! users, and the service's memory and disk.
//!
//! Each attack starts a service with the same fleet and leases. Sixteen clients repeat one request. At the
//! same time, ordinary users create leases, read calendars and make dry runs, and leases become due. The
//! bench fails if a measurement exceeds its limit.

mod attackers;
mod bodies;
mod client;
mod cost;
mod fake;
mod keystone;
mod largest;
mod listener;
mod load;
mod prey;
mod report;
mod users;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use chores::arguments::Arguments;
use chores::places;
use chores::run::Executable;
use e2e::leasing::acknowledged::of_hosts;
use e2e::leasing::date::Minute;
use e2e::leasing::http::{self, Caller, LIMIT};
use e2e::leasing::server::{Launch, Server};
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use self::attackers::{ATTACKS, Attack, UNDOCUMENTED, Who};
use self::client::{Client, Plan, Target};
use self::cost::Process;
use self::load::Load;
use self::report::Row;
use self::users::CLIENTS;
use super::leases::cloud::{Cloud, together};

/// Default numbers of hosts.
const FLEETS: &str = "6,1000,10000";
/// Number of hosts at which the known attacks also run with all attackers in one project.
const ONE_PROJECT: usize = 1000;
/// Future leases in the fleet: per host, and at most.
const LEASES_PER_HOST: usize = 3;
const LEASES: usize = 3000;
/// Maximum number of running leases of attackers, one host each.
const RUNNING: usize = 800;
/// Seconds before the start of a minute at which a load that spans it begins.
const EARLIER: u64 = 2;
/// Time limit for creating the prey of all clients.
const PREPARATION: Duration = Duration::from_secs(10);
/// State files, copied while the service is stopped.
const FILES: [&str; 2] = ["allot.db", "machines.json"];

#[derive(Debug)]
struct Options {
    fleets: Vec<usize>,
    only: Option<Vec<String>>,
    lasts: Duration,
    json: bool,
    ours: Executable,
    attacking: Attacking,
}

/// Runtime and HTTP client that all attackers share.
#[derive(Debug)]
struct Attacking {
    runtime: Runtime,
    http: reqwest::Client,
}

pub fn main(mut arguments: Arguments) -> Result<()> {
    let fleets = arguments.text("--hosts")?.unwrap_or_else(|| FLEETS.to_owned());
    let fleets = fleets.split(',').map(str::parse).collect::<Result<_, _>>();
    let only = arguments.text("--only")?;
    let seconds = arguments.value("--seconds", 3)?;
    let json = arguments.switch("--json");
    let ours = arguments.text("--ours")?.map(Executable::new);
    arguments.finish()?;
    let options = Options {
        fleets: fleets.context("--hosts: expected numbers with commas between them")?,
        only: only.map(|only| only.split(',').map(str::to_owned).collect()),
        lasts: Duration::from_secs(seconds),
        json,
        ours: ours.map_or_else(places::released, Ok)?,
        attacking: Attacking {
            runtime: Builder::new_current_thread().enable_all().build()?,
            http: http::client(LIMIT)?,
        },
    };
    let mut rows = Vec::new();
    for &hosts in &options.fleets {
        options.attack_fleet(hosts, false, &mut rows)?;
        if hosts == ONE_PROJECT {
            options.attack_fleet(hosts, true, &mut rows)?;
        }
    }
    for scenario in [listener::run, keystone::run] {
        if let Some(row) = scenario(&options)? {
            options.show(row, &mut rows);
        }
    }
    if json {
        println!("{}", Value::Array(rows.iter().map(Row::json).collect()));
    }
    let exceeded: Vec<String> = rows.iter().flat_map(Row::exceeded).collect();
    if exceeded.is_empty() {
        return Ok(());
    }
    eprintln!("\n{}", exceeded.join("\n"));
    bail!("{} measurements of {} attacks exceed their limits", exceeded.len(), rows.len());
}

impl Options {
    fn wants(&self, name: &str) -> bool {
        let is_name = |text: &str| ATTACKS.iter().any(|attack| attack.name() == text);
        let matches = |some: &String| name == some || (!is_name(some) && name.contains(some.as_str()));
        self.only.as_ref().is_none_or(|only| only.iter().any(matches))
    }

    fn show(&self, row: Row, rows: &mut Vec<Row>) {
        if let Some(refusal) = &row.refusal {
            eprintln!("{}: {refusal}", row.name);
        }
        if !self.json {
            if rows.last().is_none_or(|last| last.fleet != row.fleet) {
                println!("\n{}\n{}", row.fleet, Row::heading());
            }
            println!("{}", row.line());
        }
        rows.push(row);
    }

    fn attack_fleet(&self, hosts: usize, one_project: bool, rows: &mut Vec<Row>) -> Result<()> {
        let wanted = |attack: &&Attack| (attack.at_minute || !one_project) && self.wants(&attack.name());
        if !ATTACKS.iter().any(|attack| wanted(&attack)) {
            return Ok(());
        }
        let fleet = Fleet::build(&self.ours, hosts, one_project)?;
        for attack in ATTACKS.iter().filter(wanted) {
            self.show(fleet.measure(attack, self)?, rows);
        }
        Ok(())
    }
}

/// The state of a stopped service. Each attack starts a copy.
struct Fleet {
    directory: TempDir,
    ours: Executable,
    hosts: usize,
    one_project: bool,
    /// Value of `--auth`.
    auth: String,
    document: Value,
    asset: String,
}

impl Fleet {
    fn build(ours: &Executable, hosts: usize, one_project: bool) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let mut fleet = Self {
            auth: users::write(ours, directory.path(), one_project)?,
            directory,
            ours: ours.clone(),
            hosts,
            one_project,
            document: Value::Null,
            asset: "index.js".to_owned(),
        };
        eprintln!("making a fleet of {hosts} hosts");
        let server = fleet.launch(fleet.directory.path()).start()?;
        let caller =
            |user: &str| Ok::<_, anyhow::Error>(Caller::impatient(server.url(), LIMIT)?.with_token(user));
        fleet.document = caller("admin0")?.get("/openapi.json")?.expect(200)?;
        ensure_all_are_attacked(&fleet.document)?;
        if let Some(asset) = asset(&server)? {
            fleet.asset = asset;
        }
        let mut cloud = Cloud::new(hosts);
        cloud.take_on_hosts(&caller("admin0")?)?;
        cloud.fill(&caller("filler")?, LEASES.min(hosts * LEASES_PER_HOST))?;
        let end = Minute::now().plus(20 * 24 * 60);
        let running = RUNNING.min(hosts * 2 / 3);
        for client in 0..CLIENTS {
            let user = users::user(Who::Member, client).context("no user")?;
            let leases = vec![of_hosts("now", 1, &end.sent()); (running + client) / CLIENTS];
            for answer in together(&caller(&user)?, "/v1/leases", leases) {
                answer?.expect(201)?;
            }
        }
        server.stop()?;
        Ok(fleet)
    }

    fn launch(&self, directory: &Path) -> Launch {
        let launch = Launch::new(&self.ours, directory).with_machines(self.hosts + CLIENTS);
        launch.with_auth(&self.auth).with([
            "--preemptible-enabled=true",
            "--housekeeping-maintenance-project=admin",
            "--housekeeping-swaps=1000",
        ])
    }

    fn title(&self) -> String {
        format!("{} hosts{}", self.hosts, if self.one_project { ", attackers in one project" } else { "" })
    }

    fn measure(&self, attack: &Attack, options: &Options) -> Result<Row> {
        let directory = tempfile::tempdir()?;
        for file in FILES {
            copy_in_pages(&self.directory.path().join(file), &directory.path().join(file))?;
        }
        let server = self.launch(directory.path()).start()?;
        let target = Target {
            http: &options.attacking.http,
            url: server.url(),
            document: &self.document,
            hosts: self.hosts,
            asset: &self.asset,
            one_project: self.one_project,
        };
        let process = Process::new(server.process(), server.url(), &directory.path().join(FILES[0]))?;
        let row = self.measure_at(attack, options, &target, &process);
        let row = row.map_err(|error| anyhow!("{}: {error:#}\n{}", attack.name(), server.last_lines()))?;
        server.kill()?;
        Ok(row)
    }

    fn measure_at(
        &self,
        attack: &Attack,
        options: &Options,
        target: &Target,
        process: &Process,
    ) -> Result<Row> {
        let runtime = &options.attacking.runtime;
        let [memory, _] = process.memory()?;
        process.forget_peak()?;
        let (plan, mut first, mut refusal) = runtime.block_on(Plan::find(attack, target));
        let changes = attack.method() != "GET" && refusal.is_none() && !attack.is_question();
        let mut cost = None;
        if changes && attack.patience == 0 {
            match runtime.block_on(process.per_request(&mut first, &plan, options.lasts)) {
                Ok(measured) => cost = Some(measured),
                Err(error) => refusal = Some(format!("its cost was not measured: {error:#}")),
            }
        }
        let mut clients: Vec<Client> = first.at_once(attack.at_once).collect();
        let began = Instant::now();
        for client in (1..CLIENTS).take_while(|_| began.elapsed() < PREPARATION) {
            let mut client = Client::new(target, client);
            // A small fleet doesn't have enough prey for all clients.
            if runtime.block_on(client.prepare(&plan)).is_ok() {
                clients.extend(client.at_once(attack.at_once));
            }
        }
        let minute = if attack.at_minute && !self.one_project { Some(before_minute()?) } else { None };
        let load = Load { url: target.url, lasts: options.lasts, minute, question: attack.is_question() };
        let (others, answers) = load.run(runtime, clients, &plan)?;
        let [_, peak] = process.memory()?;
        Ok(Row {
            fleet: self.title(),
            name: attack.name(),
            refusal,
            scale: plan.scale,
            others,
            answers,
            memory: (peak - memory).max(0.0),
            cost,
            allocations: plan.allocations,
            changes: if attack.starts { 2.0 } else { 1.0 },
        })
    }
}

/// Copies a file one page at a time.
///
/// Larger writes make the kernel cache the copy in larger units, and it counts the whole unit as written when
/// the service changes a single byte: fifty writes of 1 KiB counted as 100 MiB.
fn copy_in_pages(from: &Path, to: &Path) -> Result<()> {
    const PAGE: usize = 4096;
    let mut copy = File::create(to)?;
    for page in fs::read(from)?.chunks(PAGE) {
        copy.write_all(page)?;
    }
    Ok(())
}

/// Waits until [`EARLIER`] seconds before the start of a minute, and returns that minute.
fn before_minute() -> Result<Minute> {
    let left = u64::try_from(Minute::seconds_left())?;
    sleep(Duration::from_secs(if left > EARLIER { left - EARLIER } else { left + 60 - EARLIER }));
    Ok(Minute::now().plus(1))
}

/// Fails unless the API document and the table have the same operations.
fn ensure_all_are_attacked(document: &Value) -> Result<()> {
    let paths = document["paths"].as_object().context("the document has no paths")?;
    let of_path = |(path, item): (&String, &Value)| -> Vec<String> {
        let methods = item.as_object().into_iter().flatten();
        methods.map(|(method, _)| format!("{} {path}", method.to_uppercase())).collect()
    };
    let documented: BTreeSet<String> =
        paths.iter().flat_map(of_path).chain(UNDOCUMENTED.map(str::to_owned)).collect();
    let attacked: BTreeSet<String> = ATTACKS.iter().map(|attack| attack.operation.to_owned()).collect();
    let differing: Vec<&String> = documented.symmetric_difference(&attacked).collect();
    ensure!(differing.is_empty(), "in the document or attacked, not both: {differing:?}");
    Ok(())
}

/// Name of an asset of the console; `None` if the program was built without the console.
fn asset(server: &Server) -> Result<Option<String>> {
    let request = http::client(LIMIT)?.get(server.url()).header("accept", "text/html");
    let page = server.caller().wait(async { request.send().await?.text().await })?;
    let name = page.split("/console/assets/").nth(1).and_then(|rest| rest.split('"').next());
    Ok(name.map(str::to_owned))
}
