//! How much work a decision may cost, so that no request keeps others waiting.
//!
//! A [`Budget`] counts units of work, not seconds: the same request is decided the same on a slow machine and on a fast
//! one. A unit is some 10 ns: to compare with a value costs a few, to screen a host 80. Whoever asks for a decision makes
//! a budget and hands it over in [`Admission::budget`](crate::admission::Admission::budget); loops charge it where the
//! work happens and end early once it is used up. What was half decided by then is thrown away: the decision is
//! [`Refusal::TooCostly`](crate::admission::Refusal::TooCostly), never a wrong "not enough hosts".
//!
//! The same way a decision ends early whose client has gone: another thread calls [`Budget::cancel`], and the decision is
//! [`Refusal::Canceled`](crate::admission::Refusal::Canceled), which nobody is there to read.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// So many units a decision may cost by default: the costliest takes about 0.3 s of computing then, at 10 ns a unit. Among
/// 10,000 hosts a reservation of hosts costs 0.8 million units, one of instances 1.3 million, and each value that an
/// expression compares with 0.04 million (`cargo run --release -p leases --example costs`).
pub const DEFAULT_UNITS: u64 = 30_000_000;

/// Why a decision ends before it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Stop {
    /// It costs more than it may.
    #[error("The request takes more work to decide than it may: ask for less at once")]
    Exhausted,
    /// Nobody waits for it any more.
    #[error("The request was canceled")]
    Canceled,
}

/// How much work a decision may cost, and what it has cost so far.
#[derive(Debug)]
pub struct Budget {
    limit: u64,
    spent: AtomicU64,
    canceled: AtomicBool,
    /// Whether anything is counted. Where nothing is, threads that share the budget do not get in each other's way.
    counts: bool,
}

/// A budget without limit that many decisions share: it does not count, and nobody should cancel it.
pub static UNLIMITED: Budget =
    Budget { limit: u64::MAX, spent: AtomicU64::new(0), canceled: AtomicBool::new(false), counts: false };

impl Budget {
    /// So many units.
    pub const fn new(units: u64) -> Self {
        Self { limit: units, spent: AtomicU64::new(0), canceled: AtomicBool::new(false), counts: true }
    }

    /// As many units as it takes. They are counted.
    pub const fn unlimited() -> Self {
        Self::new(u64::MAX)
    }

    /// Charges so many units. Says whether to go on: not if that is more than was left, or if the decision was canceled.
    #[must_use = "loops end when this is false"]
    pub fn spend(&self, units: u64) -> bool {
        if !self.counts {
            return true;
        }
        let before = self.spent.fetch_add(units, Ordering::Relaxed);
        // Far from the end of numbers: no decision lives long enough to charge that often.
        before.saturating_add(units) <= self.limit && !self.canceled.load(Ordering::Relaxed)
    }

    /// Charges what was done already, after which nothing ends early.
    pub fn charge(&self, units: u64) {
        let _ = self.spend(units);
    }

    /// How many units were charged.
    pub fn spent(&self) -> u64 {
        self.spent.load(Ordering::Relaxed)
    }

    /// How many units may be charged in all.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// How many units are left.
    pub fn left(&self) -> u64 {
        self.limit.saturating_sub(self.spent())
    }

    /// Whether one part of so many was charged: passes over many entries begin no other one then.
    pub fn used_part_of(&self, parts: u64) -> bool {
        self.spent() >= (self.limit() / parts.max(1)).max(1)
    }

    /// Whether more was charged than may be.
    pub fn exhausted(&self) -> bool {
        self.spent() > self.limit
    }

    /// Has the decision end early, since nobody waits for it any more. From any thread.
    pub fn cancel(&self) {
        self.canceled.store(true, Ordering::Relaxed);
    }

    /// Whether [`Self::cancel`] was called.
    pub fn canceled(&self) -> bool {
        self.canceled.load(Ordering::Relaxed)
    }

    /// Why the decision ends early, if it does. One that was canceled counts as canceled, whatever it has cost.
    pub fn stopped(&self) -> Option<Stop> {
        if self.canceled() { Some(Stop::Canceled) } else { self.exhausted().then_some(Stop::Exhausted) }
    }
}

#[cfg(test)]
mod tests {
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
    fn the_shared_budget_counts_nothing() {
        assert!(UNLIMITED.spend(u64::MAX) && UNLIMITED.spend(u64::MAX));
        assert_eq!((UNLIMITED.spent(), UNLIMITED.stopped()), (0, None));
    }
}
