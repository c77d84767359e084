//! `cargo xtask test`: everything that continuous integration runs.
//!
//! First what is built and tested most often, so that its failures come early and end the run. Then three lanes side by
//! side, on machines with few processors: stages that mostly wait for a service or for time, and meanwhile stages
//! that compute, and the longest of all, which keeps one processor busy. Each of those is a process of its own, whose
//! output is shown when it has ended. The comparisons come last, and use all processors.

mod lanes;
mod stage;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use self::lanes::Ended;
use self::stage::{Check, Outcome, Programs, Stage, command, counted};
use crate::arguments::Arguments;
use crate::compare::Pair;
use crate::differential::{self, Plan};
use crate::generate::model::Program;
use crate::places::{self, cargo};
use crate::run::{Executable, must_run};
use crate::tally::{self, Tally};
use crate::{advisories, bench, captures, console, execution, feasibility, leasing, package, vectors};

/// Seeds of the differential comparison, each with all programs. [`crate::soak`] goes on from there.
pub const SEEDS: u64 = 120;
/// Clusters that are filled and compared with what was promised. [`crate::soak`] goes on from there.
pub const FILLINGS: u64 = 100;
/// A case may take that many seconds; the reference exceeds it now and then.
const CASE_SECONDS: u64 = 4;

/// One after the other; a command that fails ends the run.
const FIRST: [Stage; 6] = [
    command("dependencies recorded", || {
        crate::run::output_of(cargo().args(["metadata", "--locked", "--format-version", "1"])).map(drop)
    }),
    command("format", || must_run(cargo().args(["fmt", "--all", "--check"]))),
    counted("advisories", |_| match advisories::database() {
        Some(database) => advisories::check(&database).map(Outcome::Counted),
        None => Ok(Outcome::Skipped(advisories::NO_DATABASE)),
    }),
    counted("licences", |_| {
        if !places::has_program("cargo-deny") {
            return Ok(Outcome::Skipped("cargo-deny is not installed ('cargo install --locked cargo-deny')"));
        }
        must_run(cargo().args(["deny", "--offline", "check", "licenses", "bans", "sources"]))?;
        Ok(Outcome::Counted(Tally { passed: 1, ..Tally::default() }))
    }),
    command("build", || must_run(unit_tests().arg("--no-run"))),
    command("unit tests", || must_run(&mut unit_tests())),
];

/// Stages that compute, beside those that [wait](waiting).
const COMPUTING: [Stage; 5] = [
    command("lints", || {
        must_run(cargo().args(["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"]))
    }),
    counted("instructions", |programs| bench::instructions::check(&programs.ours).map(Outcome::Counted)),
    command("filter for Nova", || python_tests("contrib/nova/tests")),
    command("plugin for Tempest", || python_tests("contrib/tempest/tests")),
    counted("package", |programs| package::check(&programs.ours).map(Outcome::Counted)),
];

/// Runs the tests in a directory, which need nothing but Python.
fn python_tests(directory: &str) -> Result<()> {
    let tests = ["-m", "unittest", "discover", "--start-directory", directory];
    must_run(Command::new("python3").args(tests).current_dir(places::root()))
}

/// One after the other, on all processors.
const LAST: [Stage; 5] = [
    counted("differential", |Programs { ours, reference }| {
        let limit = Duration::from_secs(CASE_SECONDS);
        let plan = Plan {
            pair: Pair { reference: reference.clone(), ours: ours.clone(), limit },
            seeds: 0..SEEDS,
            programs: Program::ALL.to_vec(),
            until: None,
        };
        Ok(Outcome::Counted(differential::run(&plan)))
    }),
    counted("feasibility", |programs| Ok(Outcome::Counted(feasibility::run(&programs.ours, 0..FILLINGS)))),
    counted("recorded jobs", |programs| with_shared(|shared| execution::replay(&programs.ours, shared))),
    counted("vectors", |programs| with_shared(|shared| vectors::run(&programs.ours, shared))),
    counted("captures", |programs| {
        with_shared(|shared| captures::run(&programs.ours, &programs.reference, shared))
    }),
];

/// The one of [`leasing::STAGES`] that takes as long as all others together.
const LONGEST: &str = "schemathesis";

/// Stages that wait: for guests to be stopped, for services, for a browser.
fn waiting() -> Vec<Stage> {
    let execution = counted("execution", |Programs { ours, reference }| {
        execution::run(reference, ours, 0..execution::SEEDS).map(Outcome::Counted)
    });
    let console = Stage { name: "console", check: Check::Leasing(console::check) };
    let leasing = leasing().filter(|stage| stage.name != LONGEST);
    std::iter::once(execution).chain(leasing).chain([console]).collect()
}

fn longest() -> Vec<Stage> {
    leasing().filter(|stage| stage.name == LONGEST).collect()
}

fn leasing() -> impl Iterator<Item = Stage> {
    leasing::STAGES.into_iter().map(|(name, check)| Stage { name, check: Check::Leasing(check) })
}

/// All stages.
fn stages() -> Vec<Stage> {
    [&FIRST[..], &waiting(), &longest(), &COMPUTING, &LAST].concat()
}

/// Runs the chore.
pub fn main(mut arguments: Arguments) -> Result<()> {
    let only = arguments.text("--only")?;
    let ours = arguments.text("--ours")?.map(Executable::new);
    arguments.finish()?;
    // Asked before anything is built: the build puts another file in the place of the one that runs.
    let program = std::env::current_exe().context("where is this program?")?;
    // What is missing is found out before minutes are spent.
    let reference = places::reference()?;
    places::need_program("valgrind", "valgrind")?;
    places::need_postgres()?;
    leasing::prepare()?;
    // Before anything is built: the program has the console in it.
    console::prepare()?;
    let mut run = Run::default();
    let Some(only) = only else {
        let programs = Programs { ours: ours.unwrap_or_else(built), reference };
        let ended = everything(&mut run, &program, &programs);
        return run.conclude(ended);
    };
    let all = stages();
    let Some(stage) = all.iter().find(|stage| stage.name == only) else {
        let names: Vec<&str> = all.iter().map(|stage| stage.name).collect();
        bail!("no stage is called '{only}': {}", names.join(", "));
    };
    // What comes first needs no build, or is one.
    let needs_build =
        !FIRST.iter().any(|first| first.name == only) && !matches!(stage.check, Check::Command(_));
    let ours = match ours {
        None if needs_build => places::ours()?,
        ours => ours.unwrap_or_else(built),
    };
    let ended = run.stage(*stage, &Programs { ours, reference });
    run.conclude(ended)
}

fn everything(run: &mut Run, program: &Path, programs: &Programs) -> Result<()> {
    for stage in FIRST {
        run.stage(stage, programs)?;
    }
    if !has_nextest() {
        run.skip(
            "a limit of time for each unit test",
            "cargo-nextest is not installed ('cargo install --locked cargo-nextest')",
        );
    }
    let lanes: [&[Stage]; 3] = [&waiting(), &longest(), &COMPUTING];
    lanes::side_by_side(&lanes, program, &programs.ours, |ended| run.of_lane(ended))?;
    for stage in LAST {
        run.stage(stage, programs)?;
    }
    Ok(())
}

/// What the unit tests have built.
fn built() -> Executable {
    Executable::new(places::development_build())
}

fn has_nextest() -> bool {
    places::has_program("cargo-nextest")
}

fn unit_tests() -> Command {
    let mut command = cargo();
    let arguments: &[&str] = if has_nextest() { &["nextest", "run"] } else { &["test", "--all-targets"] };
    command.args(arguments).arg("--workspace");
    command
}

fn with_shared(check: impl FnOnce(&Path) -> Result<Tally>) -> Result<Outcome> {
    match places::shared() {
        Some(shared) => check(&shared).map(Outcome::Counted),
        None => Ok(Outcome::Skipped("../shared (or $ALLOT_SHARED) is not there")),
    }
}

/// What came of all so far.
#[derive(Default)]
struct Run {
    tally: Tally,
    durations: Vec<(&'static str, f64)>,
}

impl Run {
    /// Runs a stage. An error ends the run; where checks are counted it goes on, so that all differences are seen at
    /// once.
    fn stage(&mut self, stage: Stage, programs: &Programs) -> Result<()> {
        println!("== {}", stage.name);
        let started = Instant::now();
        let outcome = match stage.check {
            Check::Command(check) => {
                check().map(|()| Outcome::Counted(Tally { passed: 1, ..Tally::default() }))
            }
            Check::Counted(check) => check(programs),
            Check::Leasing(check) => check(&programs.ours).map(Outcome::Counted),
        };
        self.durations.push((stage.name, started.elapsed().as_secs_f64()));
        match (outcome, stage.check) {
            (Ok(Outcome::Skipped(why)), _) => self.skip(stage.name, why),
            (Ok(Outcome::Counted(_)), Check::Command(_)) => self.tally.passed += 1,
            (Ok(Outcome::Counted(tally)), _) => self.count(stage.name, tally),
            (Err(error), check) => {
                self.fail(format!("{}: {error:#}", stage.name));
                ensure!(!matches!(check, Check::Command(_)), "{} failed", stage.name);
            }
        }
        Ok(())
    }

    /// Takes over what came of a stage that was run in a process of its own.
    fn of_lane(&mut self, ended: &Ended) {
        println!("{}", ended.output.trim_end());
        self.durations.push((ended.stage, ended.seconds));
        ended.failures.iter().for_each(|failure| tally::report_failure(failure.as_str()));
        ended.skips.iter().for_each(|skip| tally::report_skip(skip.as_str()));
        match ended.tally {
            Some(tally) => self.tally += tally,
            None => self.fail(format!("{}: it broke off ({})", ended.stage, ended.status)),
        }
    }

    fn count(&mut self, name: &str, tally: Tally) {
        println!("{name}: {tally}");
        if let Some(complaint) = tally.complaint() {
            self.fail(format!("{name}: {complaint}"));
        }
        if tally.skipped > 0 {
            let count = tally.skipped;
            tally::report_skip(format!("{name}: {count} cases: the reference crashed or took too long"));
        }
        self.tally += tally;
    }

    fn fail(&mut self, text: String) {
        tally::report_failure(text);
        self.tally.failed += 1;
    }

    fn skip(&mut self, name: &str, why: &str) {
        tally::report_skip(format!("{name}: {why}"));
        self.tally.skipped += 1;
    }

    /// The last line has the counts and nothing else, also where an error ended the run.
    fn conclude(self, ended: Result<()>) -> Result<()> {
        println!("== durations");
        for (name, seconds) in &self.durations {
            println!("{name:>21} {seconds:7.1} s");
        }
        tally::print_skips();
        tally::print_failures();
        println!("{}", self.tally);
        ended?;
        ensure!(self.tally.failed == 0, "{} checks failed", self.tally.failed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_stage_has_a_name_of_its_own() {
        let all = stages();
        let names: BTreeSet<&str> = all.iter().map(|stage| stage.name).collect();
        assert_eq!(names.len(), all.len());
    }

    #[test]
    fn every_stage_of_leasing_is_in_a_lane() {
        assert_eq!(longest().len(), 1);
        assert_eq!(waiting().len() + longest().len(), leasing::STAGES.len() + 2);
    }

    #[test]
    fn what_was_skipped_is_counted_and_what_failed_fails_the_run() {
        let programs = Programs { ours: Executable::new("/nowhere"), reference: Executable::new("/nowhere") };
        let mut run = Run::default();
        run.stage(counted("a", |_| Ok(Outcome::Skipped("it is not there"))), &programs).unwrap();
        run.stage(command("b", || Ok(())), &programs).unwrap();
        assert_eq!(run.tally, Tally { passed: 1, failed: 0, skipped: 1 });
        run.stage(counted("c", |_| Ok(Outcome::Counted(Tally::default()))), &programs).unwrap();
        run.stage(counted("d", |_| bail!("not to be had")), &programs).unwrap();
        assert_eq!(run.tally.failed, 2, "nothing compared, and an error");
        assert!(run.stage(command("e", || bail!("no")), &programs).is_err());
        assert!(run.conclude(Ok(())).is_err());
    }
}
