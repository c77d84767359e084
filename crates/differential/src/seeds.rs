//! `cargo xtask differential`: compares the reference with our program on generated clusters.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use chores::arguments::Arguments;
use chores::places;
use chores::run::{Executable, write};
use chores::tally::{MOST_SHOWN, Tally, report_failure};

use crate::compare::{Difference, Pair, Verdict};
use crate::generate::{
    self,
    model::{Case, Program},
    wide::Space,
};
use crate::kinds::Kinds;
use crate::outcome;
use crate::shrink::shrink;

/// Maximum number of comparisons to shrink a failing case.
const SHRINK_BUDGET: usize = 400;
/// Time limit for shrinking a case.
const SHRINK_TIME: Duration = Duration::from_secs(20);

/// Cases to compare, and the programs to compare.
#[derive(Debug)]
pub struct Plan {
    pub pair: Pair,
    /// Seeds, the end excluded.
    pub seeds: std::ops::Range<u64>,
    /// Set of cases to draw from.
    pub space: Space,
    /// Programs that get a case per seed.
    pub programs: Vec<Program>,
    /// Time after which no new seed is started.
    pub until: Option<Instant>,
}

impl Plan {
    /// Reads the plan from a command line.
    pub fn from_arguments(arguments: &mut Arguments, default_seeds: u64) -> Result<Self> {
        let seeds = of(arguments, default_seeds)?;
        let programs = match arguments.text("--program")?.as_deref() {
            None => Program::ALL.to_vec(),
            Some(name) => vec![Program::from_name(name).with_context(|| {
                format!("--program cannot be '{name}': {}", Program::ALL.map(Program::name).join(", "))
            })?],
        };
        let space = if arguments.switch("--wide") { Space::Wide } else { Space::Small };
        let limit = Duration::from_secs_f64(arguments.value("--timeout", 4.0)?);
        let given = |path: String| Executable::new(PathBuf::from(path));
        let reference = arguments.text("--reference")?.map_or_else(places::reference, |p| Ok(given(p)))?;
        let ours = arguments.text("--ours")?.map_or_else(places::ours, |p| Ok(given(p)))?;
        Ok(Self { pair: Pair { reference, ours, limit }, seeds, space, programs, until: None })
    }
}

/// The seeds in `--seeds`, or by default the first `default_count`.
pub fn of(arguments: &mut Arguments, default_count: u64) -> Result<std::ops::Range<u64>> {
    match arguments.text("--seeds")? {
        None => Ok(0..default_count),
        Some(text) => parse_seeds(&text),
    }
}

fn parse_seeds(text: &str) -> Result<std::ops::Range<u64>> {
    let parse = || -> Option<std::ops::Range<u64>> {
        if let Some((from, to)) = text.split_once("..") {
            return Some(from.parse().ok()?..to.parse().ok()?);
        }
        let seed = text.parse().ok()?;
        Some(seed..seed + 1)
    };
    parse().with_context(|| format!("--seeds cannot be '{text}': A..B or one number"))
}

pub fn main(mut arguments: Arguments) -> Result<()> {
    let plan = Plan::from_arguments(&mut arguments, 300)?;
    arguments.finish()?;
    run(&plan).conclude("differential")
}

/// Compares all cases of a plan, on all processors.
pub fn run(plan: &Plan) -> Tally {
    let next = AtomicU64::new(plan.seeds.start);
    let tally = Mutex::new(Tally::default());
    let kinds = Kinds::default();
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let late = plan.until.is_some_and(|until| Instant::now() > until);
                    if seed >= plan.seeds.end || late {
                        return;
                    }
                    for program in &plan.programs {
                        one(plan, seed, *program, &tally, &kinds);
                    }
                }
            });
        }
    });
    kinds.print();
    tally.into_inner().unwrap_or_default()
}

fn one(plan: &Plan, seed: u64, program: Program, tally: &Mutex<Tally>, kinds: &Kinds) {
    let pair = &plan.pair;
    let case = generate::case_of(plan.space, seed, program);
    let verdict = pair.compare_telling(&case).map(|(verdict, reference)| {
        if let Some(reference) = &reference {
            kinds.count(&case, reference);
        }
        verdict
    });
    let count = |change: fn(&mut Tally)| {
        let mut tally = tally.lock().expect("no thread panics while counting");
        change(&mut tally);
        tally.failed
    };
    match verdict {
        Ok(Verdict::Equal) => {
            count(|t| t.passed += 1);
        }
        Ok(Verdict::TooSlow) => {
            count(|t| t.skipped += 1);
            println!("seed {seed} {program}: not compared, the reference took over {:?}", pair.limit);
        }
        Ok(Verdict::Crashed) => {
            count(|t| t.skipped += 1);
        }
        Ok(Verdict::Different(found)) => {
            let failed = count(|t| t.failed += 1);
            if failed <= MOST_SHOWN {
                report(seed, &case, &found, shrink_and_save(pair, &case, seed, &found));
            }
        }
        Err(error) => {
            count(|t| t.failed += 1);
            report_failure(format!("seed {seed} {program}: {error:#}"));
        }
    }
}

fn report(seed: u64, case: &Case, found: &Difference, saved: Result<PathBuf>) {
    let mut text = format!("seed {seed}: {} {}\n{found}\n", case.program, case.arguments().join(" "));
    match saved {
        Ok(path) => writeln!(text, "  smaller case in {}", path.display()),
        Err(error) => writeln!(text, "  smaller case not saved: {error:#}"),
    }
    .expect("writing to a string");
    report_failure(text.trim_end());
}

/// Shrinks the case and saves it with both answers for inspection.
fn shrink_and_save(pair: &Pair, case: &Case, seed: u64, found: &Difference) -> Result<PathBuf> {
    let kind = |difference: &Difference| difference.place.split(',').next().map(str::to_owned);
    let started = Instant::now();
    let still = |smaller: &Case| {
        started.elapsed() < SHRINK_TIME
            && matches!(pair.compare(smaller), Ok(Verdict::Different(d)) if kind(&d) == kind(found))
    };
    let small = shrink(case, SHRINK_BUDGET, still);
    let directory = places::target().join("differential").join(format!("{seed}-{}", case.program));
    fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
    for (name, content) in small.files() {
        write(&directory.join(name), content.as_bytes())?;
    }
    let line = format!("{} {}\n", small.program, small.arguments().join(" "));
    write(&directory.join("command"), line.as_bytes())?;
    for (name, executable) in [("reference", &pair.reference), ("ours", &pair.ours)] {
        if let Some(outcome) = outcome::of_case(executable, &small, pair.limit)? {
            write(&directory.join(format!("{name}.stdout")), &outcome.stdout)?;
            write(&directory.join(format!("{name}.stderr")), &outcome.stderr)?;
            for (file, content) in &outcome.files {
                write(&directory.join(format!("{name}.{file}")), content)?;
            }
        }
    }
    Ok(directory)
}
