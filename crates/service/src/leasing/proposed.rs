//! What a request is to become.

use std::sync::Arc;

use store::{LeaseRecord, Write};

/// A lease that is to be made, or a request that is to wait.
pub(crate) struct Proposed {
    /// As it would be.
    pub record: LeaseRecord,
    /// What is written before it: offers to its owner are withdrawn.
    pub first: Vec<Write>,
    /// Leases that get other hosts for it, as they were and as they are to be.
    pub moved: Vec<(Arc<LeaseRecord>, LeaseRecord)>,
}
