//! Limits on held offers, and their counts.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use leases::project::ProjectId;

const HOUR: SignedDuration = SignedDuration::from_hours(1);

/// Limits on held offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfferLimits {
    /// Maximum number of groups held for one user at a time. 0 disables holding.
    pub at_once: usize,
    /// Maximum number of groups that a project can have held in an hour.
    pub hourly: usize,
}

impl Default for OfferLimits {
    fn default() -> Self {
        Self { at_once: 5, hourly: 60 }
    }
}

/// Number of refusals per project with held offers, in the current hour. In memory only: each service counts
/// its own.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeldOffers {
    since: Option<Timestamp>,
    of: BTreeMap<ProjectId, usize>,
}

impl HeldOffers {
    /// Count of the project in the current hour. Starts a new hour if the last one is over.
    pub fn count(&mut self, project: &ProjectId, now: Timestamp) -> usize {
        let passed = |since: Timestamp| now.duration_since(since).abs() >= HOUR;
        if self.since.is_none_or(passed) {
            *self = Self { since: Some(now), of: BTreeMap::new() };
        }
        self.of.get(project).copied().unwrap_or(0)
    }

    pub fn note(&mut self, project: &ProjectId, now: Timestamp) {
        let before = self.count(project, now);
        self.of.insert(project.clone(), before + 1);
    }
}
