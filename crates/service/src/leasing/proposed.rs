//! What a request is to become.

use std::sync::Arc;

use store::{LeaseRecord, Write};

use crate::execution::sight::Observation;

/// A lease that is to be made, or a request that is to wait.
pub(crate) struct Proposed {
    /// As it would be.
    pub record: LeaseRecord,
    /// Writes before its own: if it accepts an offer, the offers of that refusal are withdrawn.
    pub first: Vec<Write>,
    /// Leases that get other hosts for it, as they were and as they are to be.
    pub moved: Vec<(Arc<LeaseRecord>, LeaseRecord)>,
}

impl Proposed {
    /// The same, decided on that observation.
    pub fn decided_on(mut self, observation: Observation) -> Self {
        if self.record.lease.standing.is_firm() {
            observation.mark(&mut self.record.lease);
        }
        self
    }
}
