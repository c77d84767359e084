//! Checks whether a decision made without the write lock can still be committed after other leases were
//! committed.
//!
//! Without this check, a large request would conflict again and again. In the end it would be decided with
//! the write lock held, and block all other commits.

use std::sync::Arc;

use jiff::Timestamp;
use leases::admission::still_fit;
use leases::lease::Lease;
use store::LeaseRecord;

use crate::decider::Decider;
use crate::state::State;

/// A lease to create or change: its record before the decision, if it existed, and after.
pub(crate) type Decision<'a> = (Option<&'a LeaseRecord>, &'a LeaseRecord);

impl Decider {
    /// Whether leases that were decided together are still valid with the leases that exist now. Everything
    /// else must be unchanged since the decision.
    pub(crate) fn still_hold(&self, state: &State, decisions: &[Decision<'_>], now: Timestamp) -> bool {
        let unchanged = |before: &LeaseRecord| {
            state.leases.get(before.lease.id).is_some_and(|record| record.version == before.version)
        };
        let leases: Vec<&Lease> = decisions.iter().map(|(_, after)| &after.lease).collect();
        decisions.iter().all(|(before, _)| before.is_none_or(unchanged))
            // A hunt depends on other hunts, and a waiting request on the number of waiting requests.
            && leases.iter().all(|lease| lease.standing.is_firm() && lease.hunt.is_none())
            && still_fit(&state.calendar, &state.inventory, &leases, now)
            && self.within_limits(state, decisions)
    }

    /// Whether the projects' limits allow these leases, together with all existing ones.
    fn within_limits(&self, state: &State, decisions: &[Decision<'_>]) -> bool {
        let mut made: Vec<Arc<LeaseRecord>> = Vec::new();
        decisions.iter().all(|(before, after)| {
            let old = before.map(|before| &before.lease);
            let allowed = self.check_stack_among(state, old, &after.lease, &made).is_ok();
            if old.is_none() {
                made.push(Arc::new(LeaseRecord::clone(after)));
            }
            allowed
        })
    }
}
