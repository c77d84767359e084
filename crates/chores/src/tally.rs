//! Counts of checks, printed as one line for people and programs.

use std::fmt;
use std::ops::AddAssign;
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, bail};

/// Maximum number of failures that are shown in full. Further ones are only counted.
pub const MOST_SHOWN: usize = 12;

/// Failures of this run, to be repeated at its end, because the end of a long log is the part that is read
/// and kept.
static FAILURES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Prints a failure, and keeps it for [`print_failures`].
pub fn report_failure(text: impl Into<String>) {
    let text = text.into();
    println!("{text}");
    listed(&FAILURES).push(text);
}

/// Prints all failures of this run again, each after `mark`.
pub(crate) fn print_failures(mark: &str) {
    for failure in listed(&FAILURES).iter() {
        println!("{mark}{failure}");
    }
}

/// Skipped checks of this run, with reasons, to be repeated at its end too.
static SKIPS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Prints a skipped check and its reason, and keeps it for [`print_skips`]. The caller must count it.
pub(crate) fn report_skip(text: impl Into<String>) {
    let text = text.into();
    println!("{text}");
    listed(&SKIPS).push(text);
}

/// Prints all skipped checks of this run again, each after `mark`.
pub(crate) fn print_skips(mark: &str) {
    for skip in listed(&SKIPS).iter() {
        println!("{mark}{skip}");
    }
}

/// Ignores poisoning: a check that panics fails on its own, and leaves the list intact.
fn listed(list: &Mutex<Vec<String>>) -> MutexGuard<'_, Vec<String>> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Numbers of checks by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub passed: usize,
    pub failed: usize,
    /// Checks that could not be made, and were reported as such.
    pub skipped: usize,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 {
            write!(f, ", {} skipped", self.skipped)?;
        }
        Ok(())
    }
}

impl FromStr for Tally {
    type Err = anyhow::Error;

    /// Parses the output of [`Display`](fmt::Display).
    fn from_str(line: &str) -> Result<Self> {
        let mut tally = Self::default();
        for part in line.split(", ") {
            let (count, what) = part.split_once(' ').with_context(|| format!("no counts: '{line}'"))?;
            let count = count.parse().with_context(|| format!("no count: '{part}'"))?;
            match what {
                "passed" => tally.passed = count,
                "failed" => tally.failed = count,
                "skipped" => tally.skipped = count,
                _ => bail!("no count: '{part}'"),
            }
        }
        Ok(tally)
    }
}

impl Tally {
    /// Counts one check.
    pub fn count(&mut self, passed: bool) {
        if passed {
            self.passed += 1;
        } else {
            self.failed += 1;
        }
    }

    /// Problem other than failed checks: nothing was compared, or more than a quarter as many cases were
    /// skipped as compared.
    pub fn complaint(&self) -> Option<&'static str> {
        let compared = self.passed + self.failed;
        if compared == 0 {
            Some("nothing was compared")
        } else if self.skipped * 4 > compared {
            Some("too many cases were not compared")
        } else {
            None
        }
    }

    /// Prints the counts. Fails if a check failed, or if too little was checked.
    pub fn conclude(self, what: &str) -> Result<()> {
        println!("{what}: {self}");
        if self.failed > 0 {
            bail!("{what}: {} failed", self.failed);
        }
        if let Some(complaint) = self.complaint() {
            bail!("{what}: {complaint}");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipping_does_not_read_as_passing() {
        let tally = |passed, skipped| Tally { passed, failed: 0, skipped };
        assert!(tally(0, 0).conclude("x").is_err());
        assert!(tally(10, 5).conclude("x").is_err());
        assert!(tally(10, 2).conclude("x").is_ok());
    }

    #[test]
    fn counts_are_read_as_they_are_written() {
        for tally in [Tally { passed: 7, failed: 1, skipped: 0 }, Tally { passed: 0, failed: 0, skipped: 3 }]
        {
            assert_eq!(tally.to_string().parse::<Tally>().unwrap(), tally);
        }
        for wrong in ["", "replicas: 1 passed, 0 failed", "1 passed, none failed", "1 tried"] {
            assert!(wrong.parse::<Tally>().is_err(), "{wrong}");
        }
    }
}
