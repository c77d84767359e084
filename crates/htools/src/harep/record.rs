//! One repair, as a tag of its instance tells of it (HT-harep).

use std::fmt::Write;

use super::policy::{PREFIX, RepairType};
use crate::execute::JobId;
use crate::number::read_int;

/// How a repair ended. The order decides which of several tags of one repair counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RepairResult {
    /// It was needed, but more destructive than allowed.
    NotPermitted,
    /// All jobs succeeded.
    Success,
    /// Some job did not.
    Failure,
}

impl RepairResult {
    const ALL: [Self; 3] = [Self::NotPermitted, Self::Success, Self::Failure];

    fn name(self) -> &'static str {
        match self {
            Self::NotPermitted => "enoperm",
            Self::Success => "success",
            Self::Failure => "failure",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|result| result.name() == name)
    }
}

/// A repair: `pending:TYPE:ID:TIME:JOBS` while jobs run, `result:TYPE:ID:TIME:RESULT:JOBS` afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// What kind of repair.
    pub(super) kind: RepairType,
    /// Its name; all tags of a repair have the same.
    pub(super) id: String,
    /// When the tag was made, seconds since 1970.
    pub(super) time: i64,
    /// Its jobs.
    pub(super) jobs: Vec<JobId>,
    /// How it ended.
    pub(super) result: Option<RepairResult>,
    /// The tag.
    pub(super) tag: String,
}

impl Record {
    /// A record and its tag.
    pub(super) fn new(
        kind: RepairType,
        id: String,
        time: i64,
        jobs: Vec<JobId>,
        result: Option<RepairResult>,
    ) -> Self {
        let mut tag = PREFIX.to_owned();
        tag.push_str(if result.is_some() { "result" } else { "pending" });
        // Writing to a string cannot fail.
        let _ = write!(tag, ":{}:{id}:{time}:", kind.name());
        if let Some(result) = result {
            let _ = write!(tag, "{}:", result.name());
        }
        let numbers: Vec<String> = jobs.iter().map(ToString::to_string).collect();
        tag.push_str(&numbers.join("+"));
        Self { kind, id, time, jobs, result, tag }
    }

    /// Reads a tag; nothing if it is none of a repair, or malformed.
    pub(super) fn parse(tag: &str) -> Option<Self> {
        let parts: Vec<&str> = tag.strip_prefix(PREFIX)?.split(':').collect();
        let (kind, id, time, result, jobs) = match *parts.as_slice() {
            ["pending", kind, id, time, jobs] => (kind, id, time, None, jobs),
            ["result", kind, id, time, result, jobs] => {
                (kind, id, time, Some(RepairResult::from_name(result)?), jobs)
            }
            _ => return None,
        };
        Some(Self {
            kind: RepairType::from_name(kind)?,
            id: id.to_owned(),
            time: read_int("", time).ok()?,
            jobs: parse_jobs(jobs)?,
            result,
            tag: tag.to_owned(),
        })
    }
}

fn parse_jobs(text: &str) -> Option<Vec<JobId>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    let job = |text| u64::try_from(read_int("", text).ok()?).ok().map(JobId);
    text.split('+').map(job).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for result in [None, Some(RepairResult::Failure), Some(RepairResult::NotPermitted)] {
            for jobs in [vec![], vec![JobId(7)], vec![JobId(7), JobId(8)]] {
                let record = Record::new(RepairType::Failover, "a-b".to_owned(), 12, jobs, result);
                assert_eq!(Record::parse(&record.tag), Some(record));
            }
        }
    }

    #[test]
    fn malformed_tags_are_none_of_a_repair() {
        for words in [
            "pending:nonsense:a:5:1",
            "pending:failover:a:z:1",
            "pending:failover:a:5:z",
            "pending:failover:a:5:-1",
            "pending:failover:a:5:1+",
            "pending:failover:a:5",
            "pending:failover:a:5:1:2",
            "result:failover:a:5:1",
            "result:failover:a:5:done:1",
            "result:failover:a:5:success:1:1",
            "failover",
            "",
        ] {
            assert_eq!(Record::parse(&format!("{PREFIX}{words}")), None, "{words}");
        }
        assert_eq!(Record::parse("pending:failover:a:5:1"), None);
    }
}
