//! Counters of decisions that ended early.

use std::sync::atomic::{AtomicU64, Ordering};

use leases::work::Stop;

/// Number of decisions that ended early, by reason.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    too_costly: AtomicU64,
    canceled: AtomicU64,
}

impl Ended {
    /// Decisions that exceeded their budget, and decisions that were abandoned because the client left.
    pub fn counts(&self) -> (u64, u64) {
        (self.too_costly.load(Ordering::Relaxed), self.canceled.load(Ordering::Relaxed))
    }

    pub fn count(&self, why: Stop) {
        let counter = match why {
            Stop::Exhausted => &self.too_costly,
            Stop::Canceled => &self.canceled,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
