//! Whether what was decided without the write lock can be committed although others have committed leases meanwhile.
//!
//! Whoever asks for much would otherwise be overtaken again and again, and at last be decided for with the write lock,
//! for which everybody waits.

use std::sync::Arc;

use jiff::Timestamp;
use leases::admission::still_fit;
use leases::lease::Lease;
use store::LeaseRecord;

use crate::decider::Decider;
use crate::state::State;

/// A lease that is to be made or changed: as it was when it was decided, and as it is to be.
pub(crate) type Decision<'a> = (Option<&'a LeaseRecord>, &'a LeaseRecord);

impl Decider {
    /// Whether leases that were decided together may become so by what leases there are now. All else must be as it was
    /// when it was decided.
    pub(crate) fn still_hold(&self, state: &State, decisions: &[Decision<'_>], now: Timestamp) -> bool {
        let unchanged = |before: &LeaseRecord| {
            state.leases.get(before.lease.id).is_some_and(|record| record.version == before.version)
        };
        let leases: Vec<&Lease> = decisions.iter().map(|(_, after)| &after.lease).collect();
        decisions.iter().all(|(before, _)| before.is_none_or(unchanged))
            // Of hunts it matters what other hunts do, and of requests that wait how many there are.
            && leases.iter().all(|lease| lease.standing.is_firm() && lease.hunt.is_none())
            && still_fit(&state.calendar, &state.inventory, &leases, now)
            && self.within_limits(state, decisions)
    }

    /// Whether their projects may have them, beside all others and beside each other.
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
