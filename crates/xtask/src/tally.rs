//! Counts of checks, printed as one line that people and programs can read.

use std::fmt;
use std::ops::AddAssign;
use std::sync::Mutex;

use anyhow::{Result, bail};

/// How many failures are shown in full; the rest are only counted.
pub const MOST_SHOWN: usize = 12;

/// What failed in this run, to be said again at its end: of a long log, the end is what is read and kept.
static FAILURES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Prints a failure, and keeps it for [`print_failures`].
pub fn report_failure(text: impl Into<String>) {
    let text = text.into();
    println!("{text}");
    FAILURES.lock().expect("no thread panics while it writes").push(text);
}

/// Prints once more all that failed in this run.
pub fn print_failures() {
    for failure in FAILURES.lock().expect("no thread panics while it writes").iter() {
        println!("FAILED: {failure}");
    }
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
}
