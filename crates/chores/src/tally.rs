//! Counts of checks, printed as one line that people and programs can read.

use std::fmt;
use std::ops::AddAssign;
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, bail};

/// How many failures are shown in full; the rest are only counted.
pub const MOST_SHOWN: usize = 12;

/// What failed in this run, to be said again at its end: of a long log, the end is what is read and kept.
static FAILURES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Prints a failure, and keeps it for [`print_failures`].
pub fn report_failure(text: impl Into<String>) {
    let text = text.into();
    println!("{text}");
    listed(&FAILURES).push(text);
}

/// Prints once more all that failed in this run, after a mark.
pub(crate) fn print_failures(mark: &str) {
    for failure in listed(&FAILURES).iter() {
        println!("{mark}{failure}");
    }
}

/// What could not be checked in this run, and why: to be said at its end as well.
static SKIPS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Says what could not be checked and why, and keeps it for [`print_skips`]. Counting it is the caller's part.
pub(crate) fn report_skip(text: impl Into<String>) {
    let text = text.into();
    println!("{text}");
    listed(&SKIPS).push(text);
}

/// Prints once more all that could not be checked in this run, after a mark.
pub(crate) fn print_skips(mark: &str) {
    for skip in listed(&SKIPS).iter() {
        println!("{mark}{skip}");
    }
}

/// A check that panics fails by itself, and takes nothing of the list with it.
fn listed(list: &Mutex<Vec<String>>) -> MutexGuard<'_, Vec<String>> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many checks ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Equal.
    pub passed: usize,
    /// Different.
    pub failed: usize,
    /// Not compared, and said so.
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

    /// Reads what [`Display`](fmt::Display) writes.
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

    /// What is wrong beside single failures: nothing, or too little, was compared.
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

    /// Prints the line; an error if a check failed, or if too little was checked.
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
