//! Budgets of work for decisions, so that no request delays other requests.
//!
//! A [`Budget`] counts units of work, not seconds, so the same request gets the same decision on a slow
//! machine and on a fast one. A unit is about 10 ns: comparing with a value costs a few units, screening a
//! host costs 80. The caller of a decision creates a budget and passes it in
//! [`Admission::budget`](crate::admission::Admission::budget). Loops charge it as they work and stop early
//! once it is used up. The partial result is discarded: the decision is
//! [`Refusal::TooCostly`](crate::admission::Refusal::TooCostly), never a wrong "not enough hosts".
//!
//! The caller can also learn how a long decision proceeds: a budget [with pauses](Budget::with_pauses) calls a
//! function after every [`SLICE`] of work, which can let other decisions go first.
//!
//! A decision also stops early if its client has disconnected: another thread calls [`Budget::cancel`], and
//! the decision is [`Refusal::Canceled`](crate::admission::Refusal::Canceled), which isn't sent to any
//! client.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Default limit per decision. At 10 ns per unit, the costliest decision takes about 0.3 s of computing. With
/// 10,000 hosts, a reservation of hosts costs 0.8 million units, a reservation of instances 1.3 million, and
/// each value in an expression 0.04 million (`cargo run --release -p leases --example costs`).
pub const DEFAULT_UNITS: u64 = 30_000_000;

/// Units between two pauses, about 20 ms of computing.
pub const SLICE: u64 = 2_000_000;

/// Reason why a decision stopped early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Stop {
    /// It exceeded its budget.
    #[error("The request takes more work to decide than it may: ask for less at once")]
    Exhausted,
    /// No client is waiting for it anymore.
    #[error("The request was canceled")]
    Canceled,
}

/// Limit on the work of a decision, and the work done so far.
#[derive(Debug)]
pub struct Budget {
    limit: u64,
    spent: AtomicU64,
    canceled: AtomicBool,
    /// Whether work is counted. Without counting, threads that share the budget don't contend for it.
    counts: bool,
    pause: Option<Pause>,
}

/// Called with the units spent so far.
struct Pause(Box<dyn Fn(u64) + Send + Sync>);

impl fmt::Debug for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pause")
    }
}

/// An unlimited budget shared by many decisions. It doesn't count, and must not be canceled.
pub static UNLIMITED: Budget = Budget {
    limit: u64::MAX,
    spent: AtomicU64::new(0),
    canceled: AtomicBool::new(false),
    counts: false,
    pause: None,
};

impl Budget {
    pub const fn new(units: u64) -> Self {
        Self {
            limit: units,
            spent: AtomicU64::new(0),
            canceled: AtomicBool::new(false),
            counts: true,
            pause: None,
        }
    }

    /// Calls `pause` with the units spent so far after every [`SLICE`] of work, on the thread that works.
    pub fn with_pauses(units: u64, pause: impl Fn(u64) + Send + Sync + 'static) -> Self {
        Self { pause: Some(Pause(Box::new(pause))), ..Self::new(units) }
    }

    /// An unlimited budget that counts.
    pub const fn unlimited() -> Self {
        Self::new(u64::MAX)
    }

    /// Charges `units`. Returns whether to continue: `false` if the budget is exceeded or was canceled.
    #[must_use = "loops end when this is false"]
    pub fn spend(&self, units: u64) -> bool {
        if !self.counts {
            return true;
        }
        let before = self.spent.fetch_add(units, Ordering::Relaxed);
        // The counter can't overflow: no decision lives long enough to charge that often.
        let spent = before.saturating_add(units);
        if let Some(Pause(pause)) = &self.pause
            && spent / SLICE > before / SLICE
        {
            pause(spent);
        }
        spent <= self.limit && !self.canceled.load(Ordering::Relaxed)
    }

    /// Charges work that is already done, without a check whether to continue.
    pub fn charge(&self, units: u64) {
        let _ = self.spend(units);
    }

    /// Units charged so far.
    pub fn spent(&self) -> u64 {
        self.spent.load(Ordering::Relaxed)
    }

    /// Maximum number of units.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Units left.
    pub fn left(&self) -> u64 {
        self.limit.saturating_sub(self.spent())
    }

    /// Whether 1/`parts` of the limit was charged. Passes over many entries then don't start another entry.
    pub fn used_part_of(&self, parts: u64) -> bool {
        self.spent() >= (self.limit() / parts.max(1)).max(1)
    }

    pub fn exhausted(&self) -> bool {
        self.spent() > self.limit
    }

    /// Makes the decision stop early because no client is waiting for it. Can be called from any thread.
    pub fn cancel(&self) {
        self.canceled.store(true, Ordering::Relaxed);
    }

    pub fn canceled(&self) -> bool {
        self.canceled.load(Ordering::Relaxed)
    }

    /// Reason why the decision stops early, if it does. Cancellation takes precedence over an exhausted
    /// budget.
    pub fn stopped(&self) -> Option<Stop> {
        if self.canceled() { Some(Stop::Canceled) } else { self.exhausted().then_some(Stop::Exhausted) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_budget_is_exhausted_once_more_is_charged_than_there_was() {
        let budget = Budget::new(10);
        assert!(budget.spend(4) && budget.spend(6), "all of it may be used");
        assert_eq!((budget.left(), budget.stopped()), (0, None));
        assert!(budget.used_part_of(1) && Budget::new(10).left() == 10 && !Budget::new(10).used_part_of(20));
        assert!(!budget.spend(1));
        assert_eq!((budget.spent(), budget.stopped()), (11, Some(Stop::Exhausted)));
        assert!(!budget.spend(0), "and stays exhausted");
    }

    #[test]
    fn what_is_canceled_is_not_exhausted() {
        let budget = Budget::unlimited();
        assert!(budget.spend(1_000_000));
        budget.cancel();
        assert!(!budget.spend(1));
        assert_eq!((budget.exhausted(), budget.stopped()), (false, Some(Stop::Canceled)));
    }

    #[test]
    fn a_budget_pauses_after_every_slice() {
        let pauses = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&pauses);
        let budget = Budget::with_pauses(u64::MAX, move |spent| {
            count.fetch_add(spent, Ordering::Relaxed);
        });
        for _ in 0..5 {
            assert!(budget.spend(SLICE / 2));
        }
        assert_eq!(pauses.load(Ordering::Relaxed), SLICE + 2 * SLICE);
    }

    #[test]
    fn the_shared_budget_counts_nothing() {
        assert!(UNLIMITED.spend(u64::MAX) && UNLIMITED.spend(u64::MAX));
        assert_eq!((UNLIMITED.spent(), UNLIMITED.stopped()), (0, None));
    }
}
