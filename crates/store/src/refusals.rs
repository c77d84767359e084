//! Requests that were refused for lack of capacity, counted by project, day and shortage.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use leases::project::ProjectId;
use leases::shortage::{Shortage, unmet};
use leases::window::Window;

/// Maximum number of records of a project. The oldest are removed first.
pub const REFUSAL_RECORDS: u32 = 1000;

/// Refused requests of a project on one day, for the same shortage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusalRecord {
    pub project: ProjectId,
    /// Beginning of the day in UTC.
    pub day: Timestamp,
    /// The requested resource, and the missing amount.
    pub shortage: Shortage,
    /// Number of requests.
    pub refused: u64,
}

/// Selects refusals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusalFilter {
    /// Only refusals of this project; `None` for all projects.
    pub project: Option<ProjectId>,
    /// Only days that begin in this window.
    pub days: Window,
}

/// Sums of refusals over days and projects, for the `kinds` kinds of requests that were refused most often.
/// Ordered by shortage.
pub fn most_refused(refusals: impl IntoIterator<Item = (Shortage, u64)>, kinds: u32) -> Vec<(Shortage, u64)> {
    let mut sums = BTreeMap::<Shortage, u64>::new();
    for (shortage, count) in refusals {
        let sum = sums.entry(shortage).or_default();
        *sum = sum.saturating_add(count);
    }
    let most = unmet(sums.clone()).into_iter().take(kinds as usize);
    let most: BTreeSet<(String, String)> = most.map(|kind| (kind.resource_type, kind.kind)).collect();
    let is_among =
        |shortage: &Shortage| most.contains(&(shortage.resource_type.clone(), shortage.kind.clone()));
    sums.into_iter().filter(|(shortage, _)| is_among(shortage)).collect()
}
