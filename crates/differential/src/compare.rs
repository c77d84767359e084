//! Comparison of two programs on the same case.

use std::fmt;
use std::time::Duration;

use anyhow::Result;
use chores::run::Executable;

use crate::generate::model::Case;
use crate::known;
use crate::outcome::{self, Outcome};

/// The two programs.
#[derive(Clone, Debug)]
pub struct Pair {
    pub reference: Executable,
    pub ours: Executable,
    /// Time limit for each program and case.
    pub limit: Duration,
}

/// Result of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    Equal,
    /// The reference exceeded the time limit.
    TooSlow,
    /// The reference crashed, which we don't imitate.
    Crashed,
    Different(Difference),
}

/// The first difference.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Exit status, stream or file.
    pub place: String,
    pub reference: String,
    pub ours: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  differs in {}", self.place)?;
        writeln!(f, "  reference: {}", self.reference)?;
        write!(f, "  ours:      {}", self.ours)
    }
}

impl Pair {
    /// Runs both programs on a case and compares their outcomes.
    pub fn compare(&self, case: &Case) -> Result<Verdict> {
        Ok(self.compare_telling(case)?.0)
    }

    /// Like [`Self::compare`], and also returns the reference's outcome. `None` if it exceeded the time
    /// limit.
    pub fn compare_telling(&self, case: &Case) -> Result<(Verdict, Option<Outcome>)> {
        let Some(reference) = outcome::of_case(&self.reference, case, self.limit)? else {
            return Ok((Verdict::TooSlow, None));
        };
        let Some(ours) = outcome::of_case(&self.ours, case, self.limit)? else {
            let ours = format!("not finished after {:?}", self.limit);
            return Ok((Verdict::Different(difference("time", "finished", &ours)), Some(reference)));
        };
        Ok((outcomes(case, &reference, &ours), Some(reference)))
    }
}

/// Compares two outcomes of a case.
pub fn outcomes(case: &Case, reference: &Outcome, ours: &Outcome) -> Verdict {
    let status = |outcome: &Outcome| {
        let stderr = String::from_utf8_lossy(&outcome.stderr);
        format!("{:?}, {}", outcome.status, stderr.lines().next().unwrap_or_default())
    };
    if known::crashed(reference) && !known::panicked(ours) && reference != ours {
        return Verdict::Crashed;
    }
    if reference.status != ours.status || known::panicked(ours) {
        return Verdict::Different(difference("exit status", &status(reference), &status(ours)));
    }
    let mut found =
        bytes("standard output", &known::normalise(&reference.stdout), &known::normalise(&ours.stdout));
    let names = |outcome: &Outcome| outcome.files.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    if found.is_none() && names(reference) != names(ours) {
        found = Some(difference("files written", &names(reference).join(" "), &names(ours).join(" ")));
    }
    for ((name, theirs), (_, ours)) in reference.files.iter().zip(&ours.files) {
        if !known::same_file(name, theirs, ours) {
            found = found.or_else(|| bytes(&format!("file {name}"), theirs, ours));
        }
    }
    if known::compares_stderr(case, reference) {
        found = found.or_else(|| bytes("standard error", &reference.stderr, &ours.stderr));
    }
    found.map_or(Verdict::Equal, Verdict::Different)
}

fn difference(place: &str, reference: &str, ours: &str) -> Difference {
    Difference { place: place.to_owned(), reference: reference.to_owned(), ours: ours.to_owned() }
}

/// First differing line of two texts.
pub fn bytes(place: &str, reference: &[u8], ours: &[u8]) -> Option<Difference> {
    if reference == ours {
        return None;
    }
    let lines = |text: &[u8]| -> Vec<String> {
        String::from_utf8_lossy(text).split('\n').map(str::to_owned).collect()
    };
    let (reference, ours) = (lines(reference), lines(ours));
    let at = reference.iter().zip(&ours).take_while(|(a, b)| a == b).count();
    let line = |lines: &[String]| lines.get(at).map_or("(ends before)".to_owned(), |l| excerpt(l));
    Some(difference(&format!("{place}, line {}", at + 1), &line(&reference), &line(&ours)))
}

/// Beginning of a long line. The saved case has the whole line.
fn excerpt(line: &str) -> String {
    const MOST: usize = 400;
    if line.chars().count() <= MOST {
        line.to_owned()
    } else {
        line.chars().take(MOST).collect::<String>() + "..."
    }
}

#[cfg(test)]
mod tests {
    use crate::generate::{self, model::Program};

    use super::*;

    fn outcome(stdout: &str) -> Outcome {
        Outcome { status: Some(0), stdout: stdout.into(), stderr: Vec::new(), files: Vec::new() }
    }

    fn compare(change: impl Fn(&mut Outcome)) -> Verdict {
        let case = generate::case(1, Program::Hbal);
        let mut ours = outcome("a\nb\n");
        change(&mut ours);
        outcomes(&case, &outcome("a\nb\n"), &ours)
    }

    #[test]
    fn finds_every_kind_of_difference() {
        assert_eq!(compare(|_| ()), Verdict::Equal);
        let changes: [fn(&mut Outcome); 6] = [
            |o| o.status = Some(1),
            |o| o.status = None,
            |o| o.stdout = b"a\nc\n".to_vec(),
            |o| o.stdout = b"a\nb".to_vec(),
            |o| o.stderr = b"x".to_vec(),
            |o| o.files.push(("saved.original".to_owned(), Vec::new())),
        ];
        for change in changes {
            assert!(matches!(compare(change), Verdict::Different(_)));
        }
    }

    #[test]
    fn names_the_line() {
        let found = bytes("standard output", b"a\nb\n", b"a\nc\n").unwrap();
        assert_eq!(found.place, "standard output, line 2");
        assert_eq!((found.reference.as_str(), found.ours.as_str()), ("b", "c"));
    }
}
