//! Refused requests that were counted and are not in the store yet.
//!
//! A refusal changes nothing, so there is no commit that could contain its count. Counts are kept in memory,
//! and the loop writes them, many at a time. A service that crashes loses the counts that it hasn't written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use leases::project::ProjectId;
use leases::shortage::{Shortage, beginning_of_day};
use sha2::{Digest as _, Sha256};
use store::RefusalRecord;

use crate::types::Caller;

/// Maximum number of requests of a project that are counted per day, so that a single project doesn't
/// dominate the statistics.
const OF_PROJECT: usize = 1000;
/// Maximum number of requests that are counted per day, in about 6 MB of memory.
const OF_ALL: usize = 100_000;
/// Maximum number of records that wait to be written.
pub(crate) const UNWRITTEN: usize = 10_000;
/// Maximum number of characters of a kind, without the hash of a longer one.
const KIND: usize = 200;

/// Identifies a request, so that its repetitions are not counted.
type RequestHash = [u8; 32];

/// Counts of refused requests.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<Counted>);

#[derive(Debug, Default)]
struct Counted {
    /// Beginning of the day on which `requests` were counted.
    day: Timestamp,
    requests: BTreeMap<ProjectId, BTreeSet<RequestHash>>,
    /// Number of all `requests`.
    number: usize,
    unwritten: BTreeMap<(ProjectId, Timestamp, Shortage), u64>,
}

impl Refusals {
    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request for a lease that would start at `start`, unless it repeats one of the same day: a
    /// request by the same user for the same kind and number, starting on the same day.
    pub fn count(&self, caller: &Caller, now: Timestamp, start: Timestamp, shortage: Shortage, needed: u64) {
        let shortage = Shortage { kind: shortened(shortage.kind), ..shortage };
        let Shortage { resource_type, kind, .. } = &shortage;
        let request = (&caller.user.0, resource_type, kind, needed, beginning_of_day(start));
        let request = Sha256::digest(format!("{request:?}")).into();
        self.counted().count(&caller.project, beginning_of_day(now), request, shortage);
    }

    /// Removes and returns at most `most` unwritten records.
    pub fn take(&self, most: usize) -> Vec<RefusalRecord> {
        let mut counted = self.counted();
        let records = std::iter::from_fn(|| counted.unwritten.pop_first()).take(most);
        records
            .map(|((project, day, shortage), refused)| RefusalRecord { project, day, shortage, refused })
            .collect()
    }
}

impl Counted {
    fn count(&mut self, project: &ProjectId, day: Timestamp, request: RequestHash, shortage: Shortage) {
        if self.day != day {
            self.day = day;
            self.requests.clear();
            self.number = 0;
        }
        let key = (project.clone(), day, shortage);
        let is_full = self.unwritten.len() >= UNWRITTEN && !self.unwritten.contains_key(&key);
        if is_full || self.number >= OF_ALL {
            return;
        }
        let requests = self.requests.entry(project.clone()).or_default();
        if requests.len() < OF_PROJECT && requests.insert(request) {
            self.number += 1;
            *self.unwritten.entry(key).or_default() += 1;
        }
    }
}

/// A kind with its first [`KIND`] characters. Longer kinds that differ stay different by their hashes.
fn shortened(kind: String) -> String {
    let end = kind.char_indices().nth(KIND).map(|(end, _)| end);
    let Some(end) = end else { return kind };
    let hash = format!("{:x}", Sha256::digest(&kind));
    format!("{}... (sha256:{})", &kind[..end], &hash[..16])
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use leases::project::UserId;

    use super::*;

    fn caller(user: &str, project: &str) -> Caller {
        Caller {
            user: UserId(user.to_owned()),
            project: ProjectId(project.to_owned()),
            request_id: String::new(),
            administrator: false,
        }
    }

    fn of_kind(kind: &str, missing: u32) -> Shortage {
        Shortage { resource_type: "physical:host".to_owned(), kind: kind.to_owned(), missing: Some(missing) }
    }

    fn at(hour: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_hours(hour)
    }

    /// Counts in the unwritten records.
    fn numbers(refusals: &Refusals) -> Vec<u64> {
        refusals.take(usize::MAX).iter().map(|record| record.refused).collect()
    }

    #[test]
    fn repetitions_of_a_day_are_counted_once() {
        let refusals = Refusals::default();
        let (ann, bob) = (caller("ann", "p"), caller("bob", "p"));
        let count = |who: &Caller, hour, start, kind: &str, needed| {
            refusals.count(who, at(hour), at(start), of_kind(kind, 1), needed);
        };
        for minute in 0..3 {
            count(&ann, 1 + minute, 30 + minute, "gpu=a100", 2);
        }
        assert_eq!(numbers(&refusals), [1], "a dry run, the request, and the request again");
        count(&ann, 9, 30, "gpu=a100", 2);
        assert!(numbers(&refusals).is_empty(), "also after it is written");
        count(&bob, 9, 30, "gpu=a100", 2);
        count(&ann, 9, 30, "gpu=a100", 3);
        count(&ann, 9, 50, "gpu=a100", 2);
        count(&caller("ann", "q"), 9, 30, "gpu=a100", 2);
        count(&ann, 9, 30, "gpu=h100", 2);
        assert_eq!(numbers(&refusals), [3, 1, 1], "another user, number, day, project or kind");
        count(&ann, 24, 30, "gpu=a100", 2);
        assert_eq!(numbers(&refusals), [1], "the next day");
    }

    #[test]
    fn no_project_outweighs_all_others() {
        let refusals = Refusals::default();
        for number in 0..2 * OF_PROJECT as u64 {
            refusals.count(&caller("u", "flood"), at(1), at(2), of_kind("", 1), number);
        }
        refusals.count(&caller("u", "other"), at(1), at(2), of_kind("", 1), 1);
        assert_eq!(numbers(&refusals), [OF_PROJECT as u64, 1]);
    }

    #[test]
    fn memory_is_bounded() {
        let refusals = Refusals::default();
        for number in 0..UNWRITTEN as u64 + 10 {
            let project = format!("p{}", number % 20);
            refusals.count(&caller("u", &project), at(1), at(2), of_kind(&number.to_string(), 1), 1);
        }
        assert_eq!(refusals.take(3).len(), 3);
        assert_eq!(numbers(&refusals).len(), UNWRITTEN - 3);
        for number in 0..OF_ALL + 10 {
            refusals.counted().count(&ProjectId(number.to_string()), at(24), [0; 32], of_kind("", 1));
            if number % 1000 == 0 {
                numbers(&refusals);
            }
        }
        assert_eq!(refusals.counted().number, OF_ALL);
    }

    #[test]
    fn long_kinds_are_cut_and_stay_different() {
        let long = |end: &str| shortened("é".repeat(KIND) + end);
        assert_eq!(long(""), "é".repeat(KIND));
        assert_ne!(long("a"), long("b"));
        assert!(long("a").starts_with(&"é".repeat(KIND)) && long("a").chars().count() < KIND + 40);
    }
}
