//! `cargo xtask test`: everything that continuous integration runs, in order of cost.

use std::time::Instant;

use anyhow::Result;

use crate::arguments::Arguments;
use crate::compare::Pair;
use crate::differential::{self, Plan};
use crate::generate::model::Program;
use crate::places::{self, cargo};
use crate::run::{Executable, must_run};
use crate::tally::{self, Tally};
use crate::{bench, captures, execution, feasibility, leasing, package, vectors};

/// Seeds of the differential comparison, each with all programs.
const SEEDS: u64 = 320;
/// Clusters that are filled and compared with what was promised.
const FILLINGS: u64 = 200;
/// A case may take that many seconds; the reference exceeds it now and then.
const CASE_SECONDS: u64 = 4;

/// Runs the chore.
pub fn main(arguments: Arguments) -> Result<()> {
    arguments.finish()?;
    // What is missing is found out before minutes are spent.
    let reference = places::reference()?;
    places::need_program("valgrind", "valgrind")?;
    places::need_postgres()?;
    leasing::prepare()?;
    let mut stages = Stages::default();
    if places::unattended() {
        stages.run("dependencies recorded", || {
            crate::run::output_of(cargo().args(["metadata", "--locked", "--format-version", "1"])).map(drop)
        })?;
    }
    stages.run("format", || must_run(cargo().args(["fmt", "--all", "--check"])))?;
    stages.run("lints", || {
        must_run(cargo().args(["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"]))
    })?;
    stages.run("unit tests", || {
        let nextest = places::has_program("cargo-nextest");
        let arguments: &[&str] = if nextest { &["nextest", "run"] } else { &["test", "--all-targets"] };
        must_run(cargo().args(arguments).arg("--workspace"))
    })?;
    stages.run("doc tests", || must_run(cargo().args(["test", "--quiet", "--workspace", "--doc"])))?;
    // Its own tests have built it.
    let ours = Executable::new(places::development_build());
    compare(&mut stages, &ours, &reference)?;
    for (name, stage) in leasing::STAGES {
        stages.tally(name, || stage(&ours))?;
    }
    stages.tally("package", || package::check(&ours))?;
    if places::has_program("cargo-deny") {
        stages.run("licences", || {
            must_run(cargo().args(["deny", "--offline", "check", "licenses", "bans", "sources"]))
        })?;
    } else {
        println!("licences: not checked, cargo-deny is not installed");
    }
    stages.conclude()
}

/// The stages that compare with the reference.
fn compare(stages: &mut Stages, ours: &Executable, reference: &Executable) -> Result<()> {
    let limit = std::time::Duration::from_secs(CASE_SECONDS);
    let plan = Plan {
        pair: Pair { reference: reference.clone(), ours: ours.clone(), limit },
        seeds: 0..SEEDS,
        programs: Program::ALL.to_vec(),
        until: None,
    };
    stages.tally("differential", || Ok(differential::run(&plan)))?;
    stages.tally("execution", || execution::run(reference, ours, 0..execution::SEEDS))?;
    stages.tally("feasibility", || Ok(feasibility::run(ours, 0..FILLINGS)))?;
    if let Some(shared) = places::shared() {
        stages.tally("recorded jobs", || execution::replay(ours, &shared))?;
        stages.tally("vectors", || vectors::run(ours, &shared))?;
        stages.tally("captures", || captures::run(ours, reference, &shared))?;
    } else {
        println!(
            "3 stages SKIPPED (recorded jobs, vectors, captures): ../shared (or $ALLOT_SHARED) is not there"
        );
        stages.skipped += 3;
    }
    stages.tally("instructions", || bench::instructions::check(ours))
}

#[derive(Default)]
struct Stages {
    compared: Tally,
    durations: Vec<(&'static str, f64)>,
    skipped: usize,
}

impl Stages {
    /// Runs a stage; the first that fails ends the chore.
    fn run(&mut self, name: &'static str, stage: impl FnOnce() -> Result<()>) -> Result<()> {
        println!("== {name}");
        let started = Instant::now();
        stage()?;
        self.durations.push((name, started.elapsed().as_secs_f64()));
        Ok(())
    }

    /// Runs a stage of comparisons; the chore goes on, so that all differences are seen at once.
    fn tally(&mut self, name: &'static str, stage: impl FnOnce() -> Result<Tally>) -> Result<()> {
        let mut tally = Tally::default();
        self.run(name, || {
            match stage() {
                Ok(of_stage) => tally = of_stage,
                Err(error) => tally::report_failure(format!("{name}: {error:#}")),
            }
            Ok(())
        })?;
        println!("{name}: {tally}");
        if let Some(complaint) = tally.complaint() {
            tally::report_failure(format!("{name}: {complaint}"));
            tally.failed += 1;
        }
        self.compared += tally;
        Ok(())
    }

    fn conclude(self) -> Result<()> {
        println!("== durations");
        for (name, seconds) in &self.durations {
            println!("{name:>21} {seconds:7.1} s");
        }
        let Tally { passed, failed, skipped } = self.compared;
        if skipped > 0 {
            println!("{skipped} cases were not compared: the reference crashed or took too long");
        }
        if self.skipped > 0 {
            println!("{} stages were skipped", self.skipped);
        }
        tally::print_failures();
        println!("{passed} passed, {failed} failed");
        anyhow::ensure!(failed == 0, "{failed} comparisons failed");
        Ok(())
    }
}
