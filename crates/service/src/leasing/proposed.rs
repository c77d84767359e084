//! Outcome of deciding a request, before it is committed.

use std::sync::Arc;

use store::{LeaseRecord, Write};

use crate::execution::sight::Observation;

/// A lease to create, or a request to put on the waitlist.
pub(crate) struct Proposed {
    pub record: LeaseRecord,
    /// Writes that precede its own. If it accepts an offer, they withdraw all offers for the same refusal.
    pub first: Vec<Write>,
    /// Leases that get other hosts to make room for it, before and after.
    pub moved: Vec<(Arc<LeaseRecord>, LeaseRecord)>,
}

impl Proposed {
    /// Marks the lease with the observation that it was decided on.
    pub fn decided_on(mut self, observation: Observation) -> Self {
        if self.record.lease.standing.is_firm() {
            observation.mark(&mut self.record.lease);
        }
        self
    }
}
