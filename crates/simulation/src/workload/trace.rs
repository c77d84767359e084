//! Recorded workloads: the submission time, number of hosts and duration of jobs.
//!
//! Two formats are read. `.swf` is the Standard Workload Format of batch systems with 18 fields; here, the
//! requested number of processors counts hosts. `.lwf` comes from a simulator of leases: ten fields, and a
//! start after the submission makes an advance reservation. Both are text with one job per line. Errors give
//! the line number.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Number of fields in a line of each format.
const SWF_FIELDS: usize = 18;
const LWF_FIELDS: usize = 10;
/// Maximum time or duration, some three hundred years. Anything above isn't a trace.
pub(super) const MOST_SECONDS: i64 = 10_000_000_000;
/// Maximum number of hosts of a job.
const MOST_NODES: i64 = 1_000_000;

/// Start of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// As soon as possible: a best-effort job.
    WhenPossible,
    /// At that second: an advance reservation.
    At(i64),
}

/// A number of hosts for some time. Seconds count from the beginning of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Submission time.
    pub submit_s: i64,
    pub start: Start,
    /// Requested duration; at least a second.
    pub asked_s: i64,
    /// Actual run time. If it's shorter than requested, the owner returns the hosts early.
    pub runs_s: i64,
    /// Number of hosts; at least one.
    pub nodes: u32,
}

/// Jobs in order of submission.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    pub jobs: Vec<Job>,
    /// Number of recorded jobs that never ran because they were canceled while they waited.
    pub cancelled: usize,
}

/// A text isn't a valid trace.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {what}")]
pub struct TraceError {
    /// Line number, from 1.
    pub line: usize,
    pub what: Wrong,
}

/// Error in a line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Wrong {
    /// Wrong number of fields.
    #[error("{found} fields instead of {expected}")]
    Fields { expected: usize, found: usize },
    /// A field isn't a whole number.
    #[error("{field} isn't a whole number: '{value}'")]
    NoNumber { field: Field, value: String },
    /// A field isn't an amount of GiB.
    #[error("{field} isn't an amount of GiB: '{value}'")]
    NoAmount { field: Field, value: String },
    /// A number is out of range.
    #[error("{field} is {value}, and has to be between {least} and {most}")]
    OutOfRange {
        field: Field,
        value: i64,
        /// Minimum, inclusive.
        least: i64,
        /// Maximum, inclusive.
        most: i64,
    },
}

/// A field of a trace or of arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Submission time.
    Submit,
    /// Requested start.
    Start,
    /// Requested duration.
    Asked,
    /// Actual run time.
    Runs,
    /// Number of hosts.
    Nodes,
    /// Batch number.
    Batch,
    /// Number of CPUs.
    Cores,
    /// Amount of memory.
    Memory,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Submit => "the time of submission",
            Self::Start => "the start",
            Self::Asked => "the duration asked for",
            Self::Runs => "the time that it ran",
            Self::Nodes => "the number of nodes",
            Self::Batch => "the batch",
            Self::Cores => "the number of CPUs",
            Self::Memory => "the memory",
        })
    }
}

impl Trace {
    /// Parses the Standard Workload Format. Comments begin with `;`.
    pub fn from_swf(text: &str) -> Result<Self, TraceError> {
        let mut trace = Self::default();
        for line in Line::all(text).filter(|line| !line.text.starts_with(';')) {
            let words = line.words(SWF_FIELDS)?;
            let submit_s = line.number(&words, 1, Field::Submit, 0, MOST_SECONDS)?;
            let runs_s = line.number(&words, 3, Field::Runs, -1, MOST_SECONDS)?;
            let nodes = line.number(&words, 7, Field::Nodes, 1, MOST_NODES)?;
            let asked_s = line.number(&words, 8, Field::Asked, 1, MOST_SECONDS)?;
            if runs_s < 0 {
                trace.cancelled += 1;
                continue;
            }
            let nodes = nodes as u32;
            trace.jobs.push(Job { submit_s, start: Start::WhenPossible, asked_s, runs_s, nodes });
        }
        Ok(trace.in_order())
    }

    /// Parses the format of the lease simulator (`.lwf`). Comments begin with `#`.
    pub fn from_lwf(text: &str) -> Result<Self, TraceError> {
        let mut trace = Self::default();
        for line in Line::all(text).filter(|line| !line.text.starts_with('#')) {
            let words = line.words(LWF_FIELDS)?;
            let submit_s = line.number(&words, 0, Field::Submit, 0, MOST_SECONDS)?;
            let start_s = line.number(&words, 1, Field::Start, 0, MOST_SECONDS)?;
            let asked_s = line.number(&words, 2, Field::Asked, 1, MOST_SECONDS)?;
            let runs_s = line.number(&words, 3, Field::Runs, 0, MOST_SECONDS)?;
            let nodes = line.number(&words, 4, Field::Nodes, 1, MOST_NODES)? as u32;
            let start = if start_s > submit_s { Start::At(start_s) } else { Start::WhenPossible };
            trace.jobs.push(Job { submit_s, start, asked_s, runs_s, nodes });
        }
        Ok(trace.in_order())
    }

    /// Merges the jobs of another trace. Jobs submitted in the same second keep this trace's first.
    #[must_use]
    pub fn with(mut self, other: Self) -> Self {
        self.jobs.extend(other.jobs);
        self.cancelled += other.cancelled;
        self.in_order()
    }

    /// Keeps only the first `jobs` jobs.
    #[must_use]
    pub fn first(mut self, jobs: usize) -> Self {
        self.jobs.truncate(jobs);
        self
    }

    fn in_order(mut self) -> Self {
        self.jobs.sort_by_key(|job| job.submit_s);
        self
    }
}

/// A non-empty line with its number.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    number: usize,
    text: &'a str,
}

impl<'a> Line<'a> {
    pub fn all(text: &'a str) -> impl Iterator<Item = Self> {
        let lines = (1..).zip(text.lines().map(str::trim));
        lines.map(|(number, text)| Self { number, text }).filter(|line| !line.text.is_empty())
    }

    pub fn wrong(self, what: Wrong) -> TraceError {
        TraceError { line: self.number, what }
    }

    fn words(self, expected: usize) -> Result<Vec<&'a str>, TraceError> {
        self.counted(self.text.split_whitespace().collect(), expected)
    }

    /// Like [`Self::words`], split at a separator instead of white space.
    pub fn words_between(self, separator: char, expected: usize) -> Result<Vec<&'a str>, TraceError> {
        self.counted(self.text.split(separator).map(str::trim).collect(), expected)
    }

    fn counted(self, words: Vec<&'a str>, expected: usize) -> Result<Vec<&'a str>, TraceError> {
        let found = words.len();
        if found == expected { Ok(words) } else { Err(self.wrong(Wrong::Fields { expected, found })) }
    }

    pub fn number(
        self,
        words: &[&str],
        place: usize,
        field: Field,
        least: i64,
        most: i64,
    ) -> Result<i64, TraceError> {
        let word = words.get(place).copied().unwrap_or_default();
        let value =
            i64::from_str(word).map_err(|_| self.wrong(Wrong::NoNumber { field, value: word.to_owned() }))?;
        if (least..=most).contains(&value) {
            Ok(value)
        } else {
            Err(self.wrong(Wrong::OutOfRange { field, value, least, most }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWF: &str = "; a comment\n\n\
        21 2597 31 7914 512 3903 -1 64 64500 -1 1 14 -1 -1 3 -1 -1 -1\n\
        13 0 22 43 32 0.03 -1 4 64800 -1 1 96 -1 -1 3 -1 -1 -1\n\
        14 5 -1 -1 -1 -1 -1 4 600 -1 5 96 -1 -1 3 -1 -1 -1\n";
    const LWF: &str = "0 10389 8710 8710 44 1 1024 0 'NONE.img' 600\n\
        9157 9157 600 300 1 1 1024 0 'NONE.img' 600\n";

    #[test]
    fn both_formats_are_read_and_come_in_the_order_of_submission() {
        let jobs = Trace::from_swf(SWF).expect("a trace");
        assert_eq!(jobs.cancelled, 1, "one never ran");
        let batch = |submit_s, asked_s, runs_s, nodes| Job {
            submit_s,
            start: Start::WhenPossible,
            asked_s,
            runs_s,
            nodes,
        };
        assert_eq!(jobs.jobs, [batch(0, 64_800, 43, 4), batch(2597, 64_500, 7914, 64)]);
        let both = jobs.with(Trace::from_lwf(LWF).expect("a trace"));
        let reservation =
            Job { submit_s: 0, start: Start::At(10_389), asked_s: 8710, runs_s: 8710, nodes: 44 };
        let last = batch(9157, 600, 300, 1);
        assert_eq!(both.jobs, [batch(0, 64_800, 43, 4), reservation, batch(2597, 64_500, 7914, 64), last]);
        assert_eq!(both.first(1).jobs.len(), 1);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line_and_its_field() {
        let said = |read: Result<Trace, TraceError>| read.expect_err("wrong").to_string();
        assert_eq!(said(Trace::from_lwf("\n0 1 2\n")), "line 2: 3 fields instead of 10");
        assert_eq!(said(Trace::from_swf(LWF)), "line 1: 10 fields instead of 18");
        let no_number = LWF.replace("9157 9157", "9157 soon");
        let text = "line 2: the start isn't a whole number: 'soon'";
        assert_eq!(said(Trace::from_lwf(&no_number)), text);
        let nobody = LWF.replace(" 44 ", " 0 ");
        let text = "line 1: the number of nodes is 0, and has to be between 1 and 1000000";
        assert_eq!(said(Trace::from_lwf(&nobody)), text);
        let huge = SWF.replace("64500", "99999999999");
        assert!(said(Trace::from_swf(&huge)).starts_with("line 3: the duration asked for is 99999999999"));
        assert!(Trace::from_swf(&SWF.replace("43 32", "4e1 32")).is_err());
    }
}
