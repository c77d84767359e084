//! Named checks: each has a sentence that states what must hold, and is counted.

use anyhow::Result;

use crate::tally::{MOST_SHOWN, Tally, report_failure};

/// The checks of a stage.
#[derive(Debug)]
pub struct Cases {
    stage: String,
    tally: Tally,
}

impl Cases {
    pub fn new(stage: impl Into<String>) -> Self {
        Self { stage: stage.into(), tally: Tally::default() }
    }

    /// Runs a check. If it fails, prints its sentence and the error, and returns `None`. The result of a
    /// passed check is for later checks, which can't run without it.
    pub fn check<T>(&mut self, sentence: &str, check: impl FnOnce() -> Result<T>) -> Option<T> {
        let found = check();
        self.tally.count(found.is_ok());
        match found {
            Ok(found) => Some(found),
            Err(error) => {
                if self.tally.failed <= MOST_SHOWN {
                    let why = indented(&format!("{error:#}"));
                    report_failure(format!("{}: NOT SO: {sentence}\n    {why}", self.stage));
                }
                None
            }
        }
    }

    /// Counts of the checks so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }
}

fn indented(text: &str) -> String {
    text.trim_end().replace('\n', "\n    ")
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[test]
    fn a_check_that_fails_is_counted_and_does_not_end_the_stage() {
        let mut cases = Cases::new("x");
        assert_eq!(cases.check("two and two are four", || Ok(4)), Some(4));
        assert_eq!(cases.check("two and two are five", || -> Result<()> { bail!("they are four") }), None);
        assert_eq!(cases.tally(), Tally { passed: 1, failed: 1, skipped: 0 });
    }
}
