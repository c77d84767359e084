//! `cargo xtask bench hostile`: what others wait for while members ask for all that is costly.
//!
//! In each scenario eight members, each of a project of their own, ask for one costly thing again and again. Meanwhile
//! another member makes plain leases, somebody asks whether the service is ready, and a lease is due. The figures say
//! how long these take, and what is left of the load: memory, and requests that wait. Wanted is that nobody waits for
//! half a second; this is a measurement, and fails by nothing.

mod load;
mod scenarios;

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result};
use chores::arguments::Arguments;
use chores::places;
use chores::run::Executable;
use e2e::leasing::date::Minute;
use e2e::leasing::http::{Caller, LIMIT};
use e2e::leasing::server::{Launch, Server};
use serde_json::{Value, json};

use self::load::{Load, Measured};
use self::scenarios::Scenario;
use super::leases::cloud::Cloud;

/// How long others may wait.
const WANTED: Duration = Duration::from_millis(500);
/// How long before the due start the load begins, and goes on after it.
const BEFORE: u64 = 8;
const AFTER: u64 = 6;
/// How long the service has to itself after a load, before it is looked at what is left.
const QUIET: Duration = Duration::from_secs(3);

/// Good for nothing but this, and known to everybody. A token's text is its user's name.
const TOKENS: [(&str, &str, &str); 10] = [
    ("operator", "06e55b633481f7bb072957eabcf110c972e86691c3cfedabe088024bffe42f23", "admin"),
    ("plain", "a116c9ed46d6207734a43317d30fd88f52ac8634c37d904bbf4e41d865f90475", "member"),
    ("hostile1", "37892f3df50ed8c48c0ab6b8940dd66cfddb76bb9abc7834e0923c19c6b1a087", "member"),
    ("hostile2", "75a809cef482149f4c9fa88f59e5dd1edc3b1b114a9aa4dcfba8558a9e1bcbb0", "member"),
    ("hostile3", "7b240c931ad381523318f531f5b48a1ac38186992375442187f4ad853e4c57ab", "member"),
    ("hostile4", "06b4c4c543e32a8bb0048d584043ae5bdbaa96624cda6ed74df15e6e3138fdfd", "member"),
    ("hostile5", "d10a8f364aa3045dfd8fbee776fc221afa8f1131c6f01010bc27987d9da22dab", "member"),
    ("hostile6", "661da675489b1b51c99f939723ac9e1a46f37251e33731d66dc76fca1092a54b", "member"),
    ("hostile7", "4328963afcdcf63e29ad5c69406dbdb0e20c865a38e58c296b48a12387a56a86", "member"),
    ("hostile8", "af8aecc1a21074f5223e453d17032b67a7087c7ba1864e67d2b8a81370ec2050", "member"),
];

/// Runs the chore.
pub fn main(mut arguments: Arguments) -> Result<()> {
    let hosts = arguments.value("--hosts", 1000)?;
    let leases = arguments.value("--leases", 3000)?;
    let only = arguments.text("--only")?;
    let rounds: usize = arguments.value("--rounds", 1)?;
    let json = arguments.switch("--json");
    let ours = arguments.text("--ours")?.map(Executable::new);
    arguments.finish()?;
    let ours = ours.map_or_else(places::released, Ok)?;
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("tokens.toml");
    fs::write(&file, tokens())?;
    let launch = Launch::new(&ours, directory.path()).with_machines(hosts);
    let launch = launch.with_auth(&format!("tokens:{}", file.display()));
    let server = launch.start()?;
    let operator = Caller::impatient(server.url(), LIMIT)?.with_token("operator");
    let mut cloud = Cloud::new(hosts);
    eprintln!("taking on {hosts} hosts, and asking for {leases} leases");
    cloud.take_on_hosts(&operator)?;
    cloud.fill(&Caller::impatient(server.url(), LIMIT)?.with_token("plain"), leases)?;
    let wanted = |scenario: &&Scenario| {
        only.as_ref().is_none_or(|only| only.split(',').any(|some| scenario.name.contains(some)))
    };
    let mut rows = Vec::new();
    // What memory a second round takes is what grows without end; the first also fills what is kept and used again.
    let all = (0..rounds).flat_map(|_| &scenarios::ALL);
    for scenario in all.filter(wanted) {
        eprintln!("{}", scenario.name);
        let row = measure(&server, &operator, scenario)?;
        if !json {
            if rows.is_empty() {
                println!("{}", Row::heading());
            }
            println!("{}", row.line());
        }
        rows.push(row);
    }
    if json {
        println!("{}", Value::Array(rows.iter().map(Row::json).collect()));
    }
    // What it takes to remember all that is left, and nothing of what was asked for.
    server.stop()?;
    let again = launch.start()?;
    eprintln!("started again: {:.0} MiB", memory_mib(&again)?);
    again.stop()?;
    Ok(())
}

fn tokens() -> String {
    let token = |(user, sha256, role): &(&str, &str, &str)| {
        format!(
            "[[tokens]]\nsha256 = \"{sha256}\"\nuser = \"{user}\"\nproject = \"{user}\"\nroles = [\"{role}\"]\n"
        )
    };
    TOKENS.iter().map(token).collect()
}

/// What came of a scenario.
struct Row {
    name: &'static str,
    measured: Measured,
    /// Resident memory before, and after it was quiet again; MiB.
    memory: [f64; 2],
    /// Leases before and after: what is kept of them is no waste.
    leases: [u64; 2],
    /// Requests that waited when it was quiet again.
    left: u64,
}

/// Runs one scenario over a start that is due.
fn measure(server: &Server, operator: &Caller, scenario: &Scenario) -> Result<Row> {
    // The load begins so long before the next minute, in which the lease starts.
    let left = u64::try_from(Minute::seconds_left())?;
    let start = if left > BEFORE + 2 { Minute::now().plus(1) } else { Minute::now().plus(2) };
    let wait = if left > BEFORE + 2 { left - BEFORE } else { left + 60 - BEFORE };
    let before = (memory_mib(server)?, load::leases(&operator.metrics()?));
    sleep(Duration::from_secs(wait.saturating_sub(1)));
    let load = Load { url: server.url(), scenario, start, lasts: Duration::from_secs(BEFORE + AFTER) };
    let measured = load.run(&TOKENS.map(|(user, _, _)| user)[2..])?;
    sleep(QUIET);
    let figures = operator.metrics()?;
    let left = load::waiting(&figures);
    let after = (memory_mib(server)?, load::leases(&figures));
    let (memory, leases) = ([before.0, after.0], [before.1, after.1]);
    Ok(Row { name: scenario.name, measured, memory, leases, left })
}

impl Row {
    fn heading() -> String {
        let (of, times) = ("ms: 99 %, worst", "create");
        format!(
            "{:<34} {:>17} {:>17} {:>9} {:>15} {:>15} {:>12}  answers to members\n{:<34} {times:>17} {:>17} {:>9} {:>15} {:>15} {:>12}",
            "",
            of,
            of,
            "",
            "MiB",
            "leases",
            "waiting",
            "",
            "readyz",
            "due start",
            "before, after",
            "before, after",
            "most, left",
        )
    }

    fn line(&self) -> String {
        let Measured { created, ready, late, most_waiting, answers } = &self.measured;
        let pair = |[ninety_ninth, worst]: [Duration; 2]| {
            let mark = if worst > WANTED { "!" } else { " " };
            format!("{:>7} {:>7}{mark}", ninety_ninth.as_millis(), worst.as_millis())
        };
        let late = match late {
            Some(late) => format!("{}{}", late.as_millis(), if *late > WANTED { "!" } else { " " }),
            None => "never!".to_owned(),
        };
        let answers: Vec<String> =
            answers.iter().map(|(status, count)| format!("{status}: {count}")).collect();
        let ([before, after], [leases_before, leases_after]) = (self.memory, self.leases);
        format!(
            "{:<34} {:>17} {:>17} {late:>9} {:>15} {:>15} {:>12}  {}",
            self.name,
            pair(load::worst(created)),
            pair(load::worst(ready)),
            format!("{before:.0}, {after:.0}"),
            format!("{leases_before}, {leases_after}"),
            format!("{most_waiting}, {}", self.left),
            answers.join(", "),
        )
    }

    fn json(&self) -> Value {
        let Measured { created, ready, late, most_waiting, answers } = &self.measured;
        let milliseconds = |times: &[Duration]| {
            let [ninety_ninth, worst] = load::worst(times).map(|time| time.as_secs_f64() * 1e3);
            json!({"count": times.len(), "p99_ms": ninety_ninth, "worst_ms": worst})
        };
        json!({
            "scenario": self.name,
            "create": milliseconds(created),
            "readyz": milliseconds(ready),
            "due_start_late_ms": late.map(|late| late.as_secs_f64() * 1e3),
            "memory_mib": {"before": self.memory[0], "after": self.memory[1]},
            "leases": {"before": self.leases[0], "after": self.leases[1]},
            "waiting": {"most": most_waiting, "left": self.left},
            "answers": answers.iter().map(|(status, count)| (status.clone(), json!(count))).collect::<serde_json::Map<_, _>>(),
        })
    }
}

/// Resident memory of the process.
fn memory_mib(server: &Server) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{}/status", server.process())).context("no /proc")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse().context("VmRSS is no number")?;
    Ok(kib / 1024.0)
}
