//! `cargo xtask test`: everything that continuous integration runs.
//!
//! Formatting, the build and unit tests come first, so that their failures end the run early. Then three
//! lanes run in parallel, which suits machines with few processors: stages that mostly wait for a service or
//! for time, the longest stage, which keeps one processor busy, and stages that compute. Each stage of a lane
//! is a separate process. Its output is shown when it has ended.
//!
//! Most stages belong to other crates, and their [programs](crate::programs) run them. This program is built
//! before the first stage, so it only knows their names.

mod lanes;
mod stage;

use std::num::NonZero;
use std::panic::resume_unwind;
use std::process::Command;
use std::thread;

use anyhow::{Context, Result, bail};
use chores::arguments::Arguments;
use chores::places::{self, cargo};
use chores::python::Python;
use chores::run::{Executable, must_run, output_of};
use chores::stages::{Outcome, Run};
use chores::tally::Tally;

use self::stage::{Check, Programs, Stage, checks, command, of};
use crate::programs::{self, Program};
use crate::{console, package, prose};

/// Run one after another. A failed command ends the run.
const FIRST: [Stage; 6] = [
    command("dependencies recorded", || {
        output_of(cargo().args(["metadata", "--locked", "--format-version", "1"])).map(drop)
    }),
    command("format", || must_run(cargo().args(["fmt", "--all", "--check"]))),
    of(Program::Advisories, "advisories"),
    checks("licenses", |_| {
        if !places::has_program("cargo-deny") {
            return Ok(Outcome::Skipped("cargo-deny is not installed ('cargo install --locked cargo-deny')"));
        }
        must_run(cargo().args(["deny", "--offline", "check", "licenses", "bans", "sources"]))?;
        Ok(Outcome::Counted(Tally { passed: 1, ..Tally::default() }))
    }),
    command("build", || {
        must_run(unit_tests().arg("--no-run"))?;
        // Building the tests has built the programs of crates with a directory `tests`. The remaining
        // programs only need to be linked.
        programs::build_all()
    }),
    command("unit tests", || must_run(&mut unit_tests())),
];

/// Stages that compute. Stages that use all processors are last, when the remaining lanes are nearly done.
const COMPUTING: [Stage; 10] = [
    command("lints", || {
        must_run(cargo().args(["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"]))
    }),
    of(Program::Bench, "instructions"),
    command("filter for Nova", || python_tests("contrib/nova/tests")),
    command("plugin for Tempest", || python_tests("contrib/tempest/tests")),
    checks("package", |ours| package::check(ours).map(Outcome::Counted)),
    of(Program::Differential, "differential"),
    of(Program::Differential, "feasibility"),
    of(Program::Differential, "recorded jobs"),
    of(Program::Differential, "vectors"),
    of(Program::Differential, "captures"),
];

/// Runs the Python tests in a directory, which need no packages.
fn python_tests(directory: &str) -> Result<()> {
    let tests = ["-m", "unittest", "discover", "--start-directory", directory];
    must_run(Command::new("python3").args(tests).current_dir(places::root()))
}

/// Stages that wait: for guests to be stopped, for services, for a browser.
const WAITING: [Stage; 8] = [
    of(Program::Differential, "execution"),
    of(Program::E2e, "races"),
    of(Program::E2e, "gabbi"),
    of(Program::E2e, "processes"),
    of(Program::E2e, "message bus"),
    of(Program::E2e, "replicas"),
    of(Program::E2e, "clients"),
    checks("console", |ours| console::check(ours).map(Outcome::Counted)),
];

/// The stage that takes as long as all remaining stages together.
const LONGEST: [Stage; 1] = [of(Program::E2e, "schemathesis")];

fn stages() -> Vec<Stage> {
    [&FIRST[..], &WAITING, &LONGEST, &COMPUTING].concat()
}

pub fn main(mut arguments: Arguments) -> Result<()> {
    let only = arguments.text("--only")?;
    let ours = arguments.text("--ours")?.map(Executable::new);
    arguments.finish()?;
    // Before any build: a build replaces the file of the running program.
    let this = std::env::current_exe().context("where is this program?")?;
    prepare()?;
    let mut run = Run::default();
    let Some(only) = only else {
        let programs = Programs { this, ours: ours.unwrap_or_else(places::ours_as_built) };
        let ended = everything(&mut run, &programs);
        return run.conclude(ended);
    };
    let all = stages();
    let Some(stage) = all.iter().find(|stage| stage.name == only) else {
        let names: Vec<&str> = all.iter().map(|stage| stage.name).collect();
        bail!("no stage is called '{only}': {}", names.join(", "));
    };
    // The first stages need no build, or are one.
    let needs_build =
        !FIRST.iter().any(|first| first.name == only) && !matches!(stage.check, Check::Command(_));
    let ours = match ours {
        None if needs_build => places::ours()?,
        ours => ours.unwrap_or_else(places::ours_as_built),
    };
    if let Check::Of(program) = stage.check {
        let words = ["test", "--only", stage.name, "--ours"].map(str::to_owned);
        return program.become_it(words.into_iter().chain([ours.path().display().to_string()]));
    }
    let ended = one(&mut run, *stage, &Programs { this, ours });
    run.conclude(ended)
}

/// Installs all prerequisites first, so that a missing one is noticed before minutes are spent. Registries
/// are queried in parallel.
fn prepare() -> Result<()> {
    let packages = || {
        places::reference()?;
        places::need_program("valgrind", "valgrind")?;
        places::need_postgres()?;
        places::need_program("rabbitmq-server", "rabbitmq-server")?;
        chores::console::need_browser()
    };
    let python = || Python::ready().and_then(|_| Python::for_message_bus()).map(drop);
    // The console must be built before our program, which contains it.
    let all: [&(dyn Fn() -> Result<()> + Sync); 3] = [&packages, &python, &chores::console::build];
    thread::scope(|scope| {
        let started = all.map(|one| scope.spawn(one));
        started.into_iter().try_for_each(|one| one.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

fn everything(run: &mut Run, programs: &Programs) -> Result<()> {
    for stage in FIRST {
        one(run, stage, programs)?;
    }
    if !has_nextest() {
        run.skip(
            "a limit of time for each unit test",
            "cargo-nextest is not installed ('cargo install --locked cargo-nextest')",
        );
    }
    if prose::script().is_none() {
        run.skip("counts of words compared", "the reference material has no tools/prose.py");
    }
    let lanes: [&[Stage]; 3] = [&WAITING, &LONGEST, &COMPUTING];
    lanes::side_by_side(&lanes, programs, |ended| run.take_over(ended))
}

fn one(run: &mut Run, stage: Stage, programs: &Programs) -> Result<()> {
    match stage.check {
        Check::Command(check) => run.command(stage.name, check)?,
        Check::Checks(check) => run.checks(stage.name, || check(&programs.ours)),
        Check::Of(program) => {
            program.build()?;
            run.take_over(&lanes::alone(stage, programs)?);
        }
    }
    Ok(())
}

fn has_nextest() -> bool {
    places::has_program("cargo-nextest")
}

fn unit_tests() -> Command {
    let mut command = cargo();
    if has_nextest() {
        // One more than the number of processors, because some tests wait.
        let at_once = thread::available_parallelism().map_or(1, NonZero::get) + 1;
        command.args(["nextest", "run", "--test-threads", &at_once.to_string()]);
    } else {
        command.args(["test", "--all-targets"]);
    }
    command.arg("--workspace");
    command
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
    fn every_stage_of_another_program_is_run() {
        let run_of = |program| {
            let of_it = stages()
                .into_iter()
                .filter(move |stage| matches!(stage.check, Check::Of(it) if it == program));
            of_it.map(|stage| stage.name).collect::<BTreeSet<_>>()
        };
        let leasing: BTreeSet<&str> = e2e::leasing::STAGES.iter().map(|(name, _)| *name).collect();
        assert_eq!(run_of(Program::E2e), leasing);
        let comparisons: BTreeSet<&str> = differential::STAGES.iter().map(|(name, _)| *name).collect();
        assert_eq!(run_of(Program::Differential), comparisons);
    }
}
