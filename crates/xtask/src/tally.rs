//! Counts of checks, printed as one line that people and programs can read.

use std::fmt;
use std::ops::AddAssign;

use anyhow::{Result, bail};

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

    /// Prints the line; an error if a check failed, or if nothing was checked at all.
    pub fn conclude(self, what: &str) -> Result<()> {
        println!("{what}: {self}");
        if self.failed > 0 {
            bail!("{what}: {} failed", self.failed);
        }
        if self.passed == 0 {
            bail!("{what}: nothing was compared");
        }
        Ok(())
    }
}
