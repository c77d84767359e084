//! Stages of `cargo xtask test`, and the output of a run.
//!
//! Another process, and even another program, can run a stage for the process that counts it. So the output
//! at its end is parsed too: [`Run`] writes it, [`Ended`] reads it.

use std::process::ExitStatus;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use crate::arguments::Arguments;
use crate::run::Executable;
use crate::tally::{self, Tally};

/// Line that begins the summary of a run.
const SUMMARY: &str = "== durations";
const FAILED: &str = "FAILED: ";
const SKIPPED: &str = "SKIPPED: ";

/// Outcome of a stage with many checks.
#[derive(Debug)]
pub enum Outcome {
    Counted(Tally),
    /// The stage could not run, with the reason.
    Skipped(&'static str),
}

impl From<Tally> for Outcome {
    fn from(tally: Tally) -> Self {
        Self::Counted(tally)
    }
}

/// A stage with many checks: its name, and a function that runs it on our program.
pub type Stage<T> = (&'static str, fn(&Executable) -> Result<T>);

/// Outcome of all stages so far.
#[derive(Debug, Default)]
pub struct Run {
    tally: Tally,
    durations: Vec<(&'static str, f64)>,
}

impl Run {
    /// Runs a stage that is a single command. A failure ends the run.
    pub fn command(&mut self, name: &'static str, check: impl FnOnce() -> Result<()>) -> Result<()> {
        match self.timed(name, check) {
            Ok(()) => self.tally.passed += 1,
            Err(error) => {
                self.fail(format!("{name}: {error:#}"));
                bail!("{name} failed");
            }
        }
        Ok(())
    }

    /// Runs a stage with many checks. The run continues after an error, so that all differences are seen at
    /// once.
    pub fn checks(&mut self, name: &'static str, check: impl FnOnce() -> Result<Outcome>) {
        match self.timed(name, check) {
            Ok(Outcome::Counted(tally)) => self.count(name, tally),
            Ok(Outcome::Skipped(why)) => self.skip(name, why),
            Err(error) => self.fail(format!("{name}: {error:#}")),
        }
    }

    fn timed<T>(&mut self, name: &'static str, check: impl FnOnce() -> T) -> T {
        println!("== {name}");
        let started = Instant::now();
        let outcome = check();
        self.durations.push((name, started.elapsed().as_secs_f64()));
        outcome
    }

    /// Adds the outcome of a stage that another process has run.
    pub fn take_over(&mut self, ended: &Ended) {
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

    /// Counts a skipped check, and prints the reason.
    pub fn skip(&mut self, name: &str, why: &str) {
        tally::report_skip(format!("{name}: {why}"));
        self.tally.skipped += 1;
    }

    /// Prints the summary. Its last line consists of the counts alone, even if an error ended the run.
    pub fn conclude(self, ended: Result<()>) -> Result<()> {
        println!("{SUMMARY}");
        for (name, seconds) in &self.durations {
            println!("{name:>21} {seconds:7.1} s");
        }
        tally::print_skips(SKIPPED);
        tally::print_failures(FAILED);
        println!("{}", self.tally);
        ended?;
        ensure!(self.tally.failed == 0, "{} checks failed", self.tally.failed);
        Ok(())
    }
}

/// Runs one stage of a program. `cargo xtask test` passes `test --only STAGE --ours PATH`.
pub fn main<T: Into<Outcome>>(mut arguments: Arguments, stages: &[Stage<T>]) -> Result<()> {
    let only = arguments.text("--only")?.unwrap_or_default();
    let ours = arguments.text("--ours")?.context("test needs --ours PATH; see cargo xtask test")?;
    arguments.finish()?;
    let Some((name, check)) = stages.iter().copied().find(|(name, _)| *name == only) else {
        let names: Vec<&str> = stages.iter().map(|(name, _)| *name).collect();
        bail!("no stage of this program is called '{only}': {}", names.join(", "));
    };
    let mut run = Run::default();
    run.checks(name, || check(&Executable::new(ours)).map(Into::into));
    run.conclude(Ok(()))
}

/// Outcome of a stage that another process has run.
#[derive(Debug)]
pub struct Ended {
    /// Name of the stage.
    pub stage: &'static str,
    pub seconds: f64,
    pub status: ExitStatus,
    /// Output before the summary.
    pub output: String,
    pub failures: Vec<String>,
    /// Skipped checks, with reasons.
    pub skips: Vec<String>,
    /// `None` if the process ended before its summary.
    pub tally: Option<Tally>,
}

impl Ended {
    /// Parses the output of a run of one stage: the stage's own output, durations, skips, failures, and
    /// counts. An error message can follow on standard error.
    pub fn read(stage: &'static str, seconds: f64, status: ExitStatus, said: &str) -> Self {
        let (output, summary) = said.split_once(&format!("{SUMMARY}\n")).unwrap_or((said, ""));
        let lines: Vec<&str> = summary.lines().collect();
        let counts = lines.iter().rposition(|line| line.parse::<Tally>().is_ok());
        let (mut failures, mut skips) = (Vec::new(), Vec::new());
        let mut current: Option<&mut Vec<String>> = None;
        for line in &lines[..counts.unwrap_or(lines.len())] {
            if let Some(failure) = line.strip_prefix(FAILED) {
                failures.push(failure.to_owned());
                current = Some(&mut failures);
            } else if let Some(skip) = line.strip_prefix(SKIPPED) {
                skips.push(skip.to_owned());
                current = Some(&mut skips);
            } else if let Some(text) = current.as_deref_mut().and_then(|texts| texts.last_mut()) {
                text.push('\n');
                text.push_str(line);
            }
        }
        let tally = counts.and_then(|at| lines[at].parse().ok());
        Self { stage, seconds, status, output: output.to_owned(), failures, skips, tally }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    #[test]
    fn what_was_skipped_is_counted_and_what_failed_fails_the_run() {
        let mut run = Run::default();
        run.checks("a", || Ok(Outcome::Skipped("it is not there")));
        run.command("b", || Ok(())).unwrap();
        assert_eq!(run.tally, Tally { passed: 1, failed: 0, skipped: 1 });
        run.checks("c", || Ok(Outcome::Counted(Tally::default())));
        run.checks("d", || bail!("not to be had"));
        assert_eq!(run.tally.failed, 2, "nothing compared, and an error");
        assert!(run.command("e", || bail!("no")).is_err());
        assert!(run.conclude(Ok(())).is_err());
    }

    #[test]
    fn what_came_of_a_stage_is_read_from_what_it_printed() {
        let said = "== races\nraces: NOT SO: a\n    why\n== durations\n                races    10.0 s\n\
                    SKIPPED: b\nFAILED: races: NOT SO: a\n    3 passed, 1 failed\nFAILED: c\n7 passed, 2 failed, \
                    1 skipped\nError: 2 checks failed\n";
        let ended = Ended::read("races", 10.0, ExitStatus::from_raw(256), said);
        assert_eq!(ended.output, "== races\nraces: NOT SO: a\n    why\n");
        assert_eq!(ended.skips, ["b"]);
        assert_eq!(ended.failures, ["races: NOT SO: a\n    3 passed, 1 failed", "c"]);
        assert_eq!(ended.tally, Some(Tally { passed: 7, failed: 2, skipped: 1 }));
    }

    #[test]
    fn a_stage_that_broke_off_has_no_counts() {
        let ended = Ended::read("races", 1.0, ExitStatus::from_raw(9), "== races\nthread main panicked\n");
        assert_eq!((ended.tally, ended.output.lines().count()), (None, 2));
    }
}
