//! Decisions that ended early.

use std::sync::atomic::{AtomicU64, Ordering};

use leases::work::Stop;

/// How many decisions ended early.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    too_costly: AtomicU64,
    canceled: AtomicU64,
}

impl Ended {
    /// Because they cost more than they may, and because nobody waited for them any more.
    pub fn counts(&self) -> (u64, u64) {
        (self.too_costly.load(Ordering::Relaxed), self.canceled.load(Ordering::Relaxed))
    }

    /// Counts one more.
    pub fn count(&self, why: Stop) {
        let counter = match why {
            Stop::Exhausted => &self.too_costly,
            Stop::Canceled => &self.canceled,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
