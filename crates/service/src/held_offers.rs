//! Limits on held offers, and their counts.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use leases::project::Owner;

const HOUR: SignedDuration = SignedDuration::from_hours(1);

/// Limits on held offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfferLimits {
    /// Maximum number of groups held for one user at a time. 0 disables holding.
    pub at_once: usize,
    /// Maximum number of groups that one user can have held in an hour.
    pub hourly: usize,
}

impl Default for OfferLimits {
    fn default() -> Self {
        Self { at_once: 5, hourly: 60 }
    }
}

/// Number of refusals per user with held offers, in the current hour. In memory only: each service counts its
/// own.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeldOffers {
    since: Option<Timestamp>,
    of: HashMap<Owner, usize>,
}

impl HeldOffers {
    /// Count of the user in the current hour. Starts a new hour if the last one is over.
    pub fn count(&mut self, owner: &Owner, now: Timestamp) -> usize {
        let passed = |since: Timestamp| now.duration_since(since).abs() >= HOUR;
        if self.since.is_none_or(passed) {
            *self = Self { since: Some(now), of: HashMap::new() };
        }
        self.of.get(owner).copied().unwrap_or(0)
    }

    pub fn note(&mut self, owner: &Owner, now: Timestamp) {
        let before = self.count(owner, now);
        self.of.insert(owner.clone(), before + 1);
    }
}
