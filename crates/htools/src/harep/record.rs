//! A repair as recorded in a tag of its instance (HT-harep).

use std::fmt::Write;

use super::policy::{PREFIX, RepairType};
use crate::execute::JobId;
use crate::number::read_int;

/// Result of a repair. If a repair has several tags, the largest result in this order counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RepairResult {
    /// The repair was needed but more destructive than allowed.
    NotPermitted,
    /// All jobs succeeded.
    Success,
    /// At least one job failed or was canceled.
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

/// A repair, with the tag `pending:TYPE:ID:TIME:JOBS` while its jobs run, then
/// `result:TYPE:ID:TIME:RESULT:JOBS`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) kind: RepairType,
    /// Identifier, shared by all tags of a repair.
    pub(super) id: String,
    /// Creation time of the tag, in seconds since 1970.
    pub(super) time: i64,
    pub(super) jobs: Vec<JobId>,
    /// `None` while the repair is pending.
    pub(super) result: Option<RepairResult>,
    /// The whole tag, with the prefix.
    pub(super) tag: String,
}

impl Record {
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

    /// Parses a tag. `None` if it isn't about a repair or is malformed.
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
