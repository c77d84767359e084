//! Progress of an instance's repairs: a state machine driven by its tags (HT-harep).

use std::collections::BTreeMap;

use thiserror::Error;

use super::record::{Record, RepairResult};
use crate::execute::{JobId, JobStatus};
use crate::report::shown;

/// Repair state of an instance. The final table uses this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    /// A repair failed. An operator must look into it.
    Failed,
    /// No repair is pending.
    Healthy,
    /// The instance needs a repair that isn't allowed.
    NeedsRepair,
    /// Repair jobs are running.
    Pending,
}

impl State {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Failed => "Failure",
            Self::Healthy => "Healthy",
            Self::NeedsRepair => "Needs repair",
            Self::Pending => "Pending repair",
        }
    }

    /// State after a record found in tags. A repair that was not permitted counts as healthy, so that the
    /// next run checks again.
    fn found(result: Option<RepairResult>) -> Self {
        match result {
            None => Self::Pending,
            Some(RepairResult::Failure) => Self::Failed,
            Some(RepairResult::Success | RepairResult::NotPermitted) => Self::Healthy,
        }
    }
}

/// A repair was started before the previous one ended. No run of this program does that.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("found tag {}, but older pending tag {}exists.", shown(.newer), shown(.older))]
pub(super) struct Unfinished {
    older: String,
    newer: String,
}

/// Change of an instance's tags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TagChange {
    pub(super) add: String,
    /// Tags to remove after adding `add`, newest first.
    pub(super) remove: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct History {
    state: State,
    /// Latest repair.
    last: Option<Record>,
    /// Tags of earlier repairs, newest first.
    stale: Vec<String>,
}

impl History {
    pub(super) fn from_tags(tags: &[String]) -> Result<Self, Unfinished> {
        let mut history = Self { state: State::Healthy, last: None, stale: Vec::new() };
        for record in repairs(tags) {
            history.follow(record)?;
        }
        Ok(history)
    }

    /// Adds the next repair found in the tags. After a failure, later repairs are ignored.
    fn follow(&mut self, record: Record) -> Result<(), Unfinished> {
        match (self.state, &self.last) {
            (State::Failed, _) => return Ok(()),
            (State::Pending, Some(last)) => {
                return Err(Unfinished { older: last.tag.clone(), newer: record.tag });
            }
            _ => {}
        }
        self.state = State::found(record.result);
        if let Some(before) = self.last.replace(record) {
            self.stale.insert(0, before.tag);
        }
        Ok(())
    }

    pub(super) fn state(&self) -> State {
        self.state
    }

    /// Jobs of the pending repair; `None` if no repair is pending.
    pub(super) fn pending(&self) -> Option<&[JobId]> {
        self.last.as_ref().filter(|_| self.state == State::Pending).map(|record| record.jobs.as_slice())
    }

    /// Ends the pending repair if all its jobs are finished.
    pub(super) fn conclude(&mut self, statuses: &[JobStatus], now: i64) -> Option<TagChange> {
        let pending = self.last.as_ref().filter(|_| self.state == State::Pending)?;
        if statuses.iter().any(|status| !status.finished()) {
            return None;
        }
        let succeeded = statuses.iter().all(|status| *status == JobStatus::Success);
        let result = if succeeded { RepairResult::Success } else { RepairResult::Failure };
        let record = Record::new(pending.kind, pending.id.clone(), now, pending.jobs.clone(), Some(result));
        self.state = State::found(Some(result));
        Some(self.replace(record))
    }

    /// Records a repair that was just started, or was not permitted.
    pub(super) fn note(&mut self, record: Record) -> TagChange {
        self.state = match record.result {
            Some(RepairResult::NotPermitted) => State::NeedsRepair,
            result => State::found(result),
        };
        self.replace(record)
    }

    /// Replaces all earlier records with this one.
    fn replace(&mut self, record: Record) -> TagChange {
        let add = record.tag.clone();
        let before = self.last.replace(record).map(|record| record.tag);
        TagChange { add, remove: before.into_iter().chain(self.stale.drain(..)).collect() }
    }
}

/// Repairs recorded in tags, one record each, in order of their start.
fn repairs(tags: &[String]) -> Vec<Record> {
    let mut by_id: BTreeMap<String, Vec<Record>> = BTreeMap::new();
    for record in tags.iter().filter_map(|tag| Record::parse(tag)) {
        by_id.entry(record.id.clone()).or_default().push(record);
    }
    let mut repairs: Vec<(i64, Record)> = by_id
        .into_values()
        .filter_map(|records| {
            let begun = records.iter().map(|record| record.time).min()?;
            // A result takes precedence over a pending record, and among equals the latest wins.
            let last = records.into_iter().max_by_key(|record| (record.result, record.time))?;
            Some((begun, last))
        })
        .collect();
    // The sort is stable: repairs started in the same second stay in order of their identifiers.
    repairs.sort_by_key(|(begun, _)| *begun);
    repairs.into_iter().map(|(_, record)| record).collect()
}

#[cfg(test)]
mod tests {
    use super::super::policy::PREFIX;
    use super::super::policy::RepairType;
    use super::*;

    fn tags(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| format!("{PREFIX}{word}")).collect()
    }

    fn history(words: &[&str]) -> History {
        History::from_tags(&tags(words)).unwrap()
    }

    #[test]
    fn the_last_repair_says_where_an_instance_stands() {
        for (words, state) in [
            (&[][..], State::Healthy),
            (&["failover"], State::Healthy),
            (&["pending:failover:a:1:7"], State::Pending),
            (&["result:failover:a:1:success:7"], State::Healthy),
            (&["result:failover:a:1:enoperm:"], State::Healthy),
            (&["result:failover:a:1:failure:7"], State::Failed),
            (&["result:failover:a:1:success:7", "pending:migrate:b:2:8"], State::Pending),
            (&["pending:migrate:b:2:8", "result:failover:a:1:enoperm:"], State::Pending),
        ] {
            assert_eq!(history(words).state(), state, "{words:?}");
        }
    }

    #[test]
    fn a_failure_stays() {
        let words =
            ["result:failover:a:1:failure:7", "pending:migrate:b:2:8", "result:migrate:c:3:success:9"];
        assert_eq!(history(&words).state(), State::Failed);
    }

    #[test]
    fn of_one_repair_the_gravest_result_counts() {
        let found = |words| history(words).state();
        assert_eq!(found(&["pending:failover:a:9:7", "result:failover:a:5:success:7"]), State::Healthy);
        assert_eq!(found(&["result:failover:a:5:failure:7", "result:failover:a:9:success:7"]), State::Failed);
    }

    #[test]
    fn a_repair_after_an_unfinished_one_is_an_error() {
        let words = ["result:failover:b:2:success:8", "pending:failover:a:1:7"];
        let error = History::from_tags(&tags(&words)).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "found tag \"{PREFIX}{}\", but older pending tag \"{PREFIX}{}\"exists.",
                words[0], words[1]
            )
        );
    }

    #[test]
    fn a_repair_ends_when_all_its_jobs_have() {
        let pending = history(&["pending:failover:a:1:7+8"]);
        assert_eq!(pending.pending(), Some(&[JobId(7), JobId(8)][..]));
        let end = |statuses: &[JobStatus]| {
            let mut history = pending.clone();
            let change = history.conclude(statuses, 99);
            (history.state(), change.map(|change| change.add))
        };
        let tag = |result| Some(format!("{PREFIX}result:failover:a:99:{result}:7+8"));
        assert_eq!(end(&[JobStatus::Success, JobStatus::Running]), (State::Pending, None));
        assert_eq!(end(&[JobStatus::Error, JobStatus::Queued]), (State::Pending, None));
        assert_eq!(end(&[JobStatus::Success, JobStatus::Success]), (State::Healthy, tag("success")));
        assert_eq!(end(&[JobStatus::Success, JobStatus::Canceled]), (State::Failed, tag("failure")));
    }

    #[test]
    fn a_repair_without_jobs_has_succeeded() {
        let mut history = history(&["pending:failover:a:1:"]);
        assert!(history.conclude(&[], 99).is_some());
        assert_eq!(history.state(), State::Healthy);
    }

    #[test]
    fn tags_of_repairs_before_go_the_newest_first() {
        let words = ["result:migrate:b:2:success:7", "pending:failover:c:3:9", "result:migrate:a:1:enoperm:"];
        let mut history = history(&words);
        let change = history.conclude(&[JobStatus::Success], 99).unwrap();
        assert_eq!(change.remove, tags(&[words[1], words[0], words[2]]));
        let change = history.note(Record::new(RepairType::Failover, "d".to_owned(), 100, vec![], None));
        assert_eq!(change.remove, tags(&["result:failover:c:99:success:9"]));
        assert_eq!(history.state(), State::Pending);
    }

    #[test]
    fn what_is_not_permitted_is_needed() {
        let mut history = history(&[]);
        let result = Some(RepairResult::NotPermitted);
        let change = history.note(Record::new(RepairType::Failover, "d".to_owned(), 5, vec![], result));
        assert_eq!(change.add, format!("{PREFIX}result:failover:d:5:enoperm:"));
        assert_eq!(history.state(), State::NeedsRepair);
    }
}
