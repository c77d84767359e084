//! `cargo xtask execution`: compares the requests that programs send to a master daemon with those of the
//! reference.
//!
//! Both run against a simulated daemon that lets jobs succeed, fail or take time, or refuses them. The
//! comparison covers exit status, standard output and all requests.

pub mod mask;
mod replay;
mod scenario;

use std::ops::Range;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use chores::arguments::Arguments;
use chores::places;
use chores::run::Executable;
use chores::tally::{MOST_SHOWN, Tally, report_failure};

use self::scenario::{LIMIT, Scenario};
use crate::compare::{self, Difference};
use crate::luxi_server::Server;
use crate::outcome::{self, Outcome};
use crate::seeds;
pub use replay::replay;

/// Default number of scenarios, which take about half a minute.
pub const SEEDS: u64 = 120;
/// Number of concurrent scenarios, which wait far more than they compute.
const THREADS: usize = 24;

pub fn main(mut arguments: Arguments) -> Result<()> {
    let seeds = seeds::of(&mut arguments, SEEDS)?;
    let given = |path: String| Executable::new(PathBuf::from(path));
    let reference = arguments.text("--reference")?.map_or_else(places::reference, |p| Ok(given(p)))?;
    let ours = arguments.text("--ours")?.map_or_else(places::ours, |p| Ok(given(p)))?;
    arguments.finish()?;
    let mut tally = run(&reference, &ours, seeds)?;
    match places::shared() {
        Some(shared) => tally += replay(&ours, &shared)?,
        None => println!("recorded jobs: not replayed, ../shared (or $ALLOT_SHARED) is not there"),
    }
    tally.conclude("execution")
}

pub fn run(reference: &Executable, ours: &Executable, seeds: Range<u64>) -> Result<Tally> {
    let next = AtomicU64::new(seeds.start);
    let tally = Mutex::new(Tally::default());
    let kinds = Mutex::new(std::collections::BTreeMap::<String, usize>::new());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    let scenario = Scenario::draw(seed);
                    let verdict = one(reference, ours, &scenario);
                    let (Ok(mut tally), Ok(mut kinds)) = (tally.lock(), kinds.lock()) else { return };
                    match verdict {
                        Ok((kind, None)) => {
                            tally.passed += 1;
                            *kinds.entry(kind).or_default() += 1;
                        }
                        Ok((_, Some(found))) => {
                            tally.failed += 1;
                            if tally.failed <= MOST_SHOWN {
                                report_failure(format!("seed {seed}: {}\n{found}", scenario.command_line()));
                            }
                        }
                        Err(error) => {
                            tally.failed += 1;
                            report_failure(format!("seed {seed}: {}: {error:#}", scenario.command_line()));
                        }
                    }
                }
            });
        }
    });
    for (kind, count) in kinds.into_inner().unwrap_or_default() {
        println!("{count:>7} {kind}");
    }
    tally.into_inner().ok().context("a thread panicked while counting")
}

/// Outcome and requests of a program in a scenario.
struct Conduct {
    outcome: Outcome,
    requests: Vec<String>,
}

/// Compares one scenario. Returns its kind and the first difference.
fn one(
    reference: &Executable,
    ours: &Executable,
    scenario: &Scenario,
) -> Result<(String, Option<Difference>)> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let theirs = conduct(reference, scenario)?;
    let mine = conduct(ours, scenario)?;
    let masked = |text: &[u8]| mask::mask(&String::from_utf8_lossy(text), since).into_bytes();
    let log = |conduct: &Conduct| masked(conduct.requests.join("\n").as_bytes());
    let status = |conduct: &Conduct| format!("{:?}", conduct.outcome.status).into_bytes();
    let found = compare::bytes("exit status", &status(&theirs), &status(&mine))
        .or_else(|| {
            let stdout = |conduct: &Conduct| masked(&conduct.outcome.stdout);
            compare::bytes("standard output", &stdout(&theirs), &stdout(&mine))
        })
        .or_else(|| compare::bytes("requests", &log(&theirs), &log(&mine)))
        .or_else(|| {
            // Messages of a failed run are written for people, and differ.
            let worked = theirs.outcome.status == Some(0);
            let stderr = |conduct: &Conduct| masked(&conduct.outcome.stderr);
            if worked { compare::bytes("standard error", &stderr(&theirs), &stderr(&mine)) } else { None }
        });
    Ok((kind(scenario, &theirs), found))
}

/// Behavior that the scenario exercised.
fn kind(scenario: &Scenario, theirs: &Conduct) -> String {
    let submitted = theirs.requests.iter().any(|request| request.contains("SubmitManyJobs"));
    let stdout = String::from_utf8_lossy(&theirs.outcome.stdout);
    let how = match theirs.outcome.status {
        Some(0) if stdout.contains("Exiting early") => "interrupted",
        Some(0) if submitted => "jobs done",
        Some(0) if stdout.contains("jobs: ") => "jobs shown",
        Some(0) => "no jobs",
        Some(_) if submitted => "jobs failed or refused",
        _ => "refused",
    };
    format!("{} {how}", scenario.program)
}

/// Runs a program against its own daemon.
fn conduct(executable: &Executable, scenario: &Scenario) -> Result<Conduct> {
    let directory = tempfile::tempdir().context("no temporary directory")?;
    let server = Server::start(directory.path(), scenario.daemon())?;
    let mut arguments = scenario.arguments.clone();
    arguments.push(format!("-L{}", server.socket().display()));
    let mut left = scenario.interrupt_at_poll;
    let mut watch = |process: u32| {
        if left.is_some_and(|polls| server.calls("QueryJobs") >= polls) {
            left = None;
            // The comparison shows whether the signal arrived.
            let _ = Command::new("kill").args(["-INT", &process.to_string()]).status();
        }
    };
    let files: [(&str, &str); 0] = [];
    let outcome = outcome::watched(executable, scenario.program, &arguments, &files, LIMIT, &mut watch)?;
    let Some(outcome) = outcome else { bail!("not finished within {LIMIT:?}") };
    Ok(Conduct { outcome, requests: server.requests() })
}
