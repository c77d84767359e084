//! Operator settings for handover.

use jiff::{SignedDuration, Timestamp};

use super::observed::Guest;
use super::step::Backoff;
use crate::preemption::Class;
use crate::terms::BeforeEndAction;
use crate::window::{earlier, later};

/// Operator settings for handover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanRules {
    /// Time for a preemptible guest to shut down before it is deleted, unless its class sets another.
    pub grace: SignedDuration,
    /// Longest notice of any class. The first guests are asked to leave at least this long before a lease
    /// starts.
    pub longest_notice: SignedDuration,
    /// Added to the notice of every guest, because by the clock of another service the guest might have been
    /// asked later.
    pub slack: SignedDuration,
    /// Lead time before a lease's start at which its hosts are fenced and preemptible guests are moved away
    /// or asked to leave. `None` means at the start.
    pub clear_ahead: Option<SignedDuration>,
    /// Part of `clear_ahead` reserved for moves. Guests still on the host after it are asked to leave.
    pub moving_time: SignedDuration,
    /// Delays between attempts at a failed step.
    pub backoff: Backoff,
    /// Action before the end for reservations that don't choose one.
    pub before_end: BeforeEndAction,
    /// Failed snapshot attempts before the lease continues without a snapshot.
    pub snapshot_attempts: u32,
    /// Maximum number of concurrent moves per lease.
    pub moves_at_once: usize,
    /// Time after a lease's end in which its guests can be moved away. Guests still there after it stay.
    pub longest_departure: SignedDuration,
    /// Failed attempts to start an instance before the service gives up.
    pub start_attempts: u32,
    /// Whether leases can allow preemptible instances on hosts they don't use.
    pub backfill: bool,
    /// Maximum lifetime of a preemptible guest. `None` means unlimited.
    pub max_lifetime: Option<SignedDuration>,
}

/// Clock skew tolerated between services. A service with a clock behind by less than this doesn't unfence
/// hosts fenced ahead of a start, nor revoke preemptions that were announced.
pub(crate) const FENCE_TOLERANCE: SignedDuration = SignedDuration::from_mins(1);

/// Time at which deletion of a guest due at `due` is overdue. Deletion usually takes less than a minute.
pub fn overdue_at(due: Timestamp) -> Timestamp {
    later(due, SignedDuration::from_mins(1))
}

impl PlanRules {
    /// Whether the guest should have left long ago, so no decision can rely on it leaving.
    pub fn is_stuck(&self, guest: &Guest, now: Timestamp) -> bool {
        let notice = self.longest_notice.max(self.grace).saturating_add(self.slack);
        let notice = if guest.has_shut_down { SignedDuration::ZERO } else { notice };
        guest.stopping_since.is_some_and(|since| overdue_at(later(since, notice)) <= now)
    }

    /// Time at which clearing begins for the hosts of a lease that starts at `start`.
    pub fn clears_at(&self, start: Timestamp) -> Timestamp {
        self.clear_ahead.map_or(start, |ahead| earlier(start, ahead))
    }

    /// Time for a guest of the class to shut down. Without a class, the default grace time.
    pub fn notice(&self, class: Option<&Class>) -> SignedDuration {
        class.map_or(self.grace, Class::notice)
    }

    /// Deadline for a preemptible guest launched at `launched_at` to be gone. `None` if lifetimes aren't
    /// limited.
    pub fn lifetime_ends_at(&self, launched_at: Option<Timestamp>) -> Option<Timestamp> {
        Some(later(launched_at?, self.max_lifetime?))
    }

    /// Time at which a preemptible guest with this notice, if it is still there, is asked to leave for a
    /// lease that starts at `start`.
    pub fn asks_at(&self, start: Timestamp, notice: SignedDuration) -> Timestamp {
        // A guest that needs less notice than the longest stays longer by the difference.
        let stays = self.longest_notice.max(self.grace).saturating_sub(notice).max(SignedDuration::ZERO);
        later(self.clears_at(start), self.moving_time.saturating_add(stays)).min(start)
    }

    /// A plan made at `now` must know all leases that start up to this time.
    pub fn horizon(&self, now: Timestamp) -> Timestamp {
        self.clear_ahead.map_or(now, |ahead| later(later(now, ahead), FENCE_TOLERANCE))
    }
}

impl Default for PlanRules {
    /// One minute of grace, no action before the end, two concurrent moves, one hour for moves after the end,
    /// no backfill, unlimited lifetimes.
    fn default() -> Self {
        Self {
            grace: SignedDuration::from_mins(1),
            longest_notice: SignedDuration::ZERO,
            slack: SignedDuration::ZERO,
            clear_ahead: None,
            moving_time: SignedDuration::ZERO,
            backoff: Backoff::default(),
            before_end: BeforeEndAction::None,
            snapshot_attempts: 3,
            moves_at_once: 2,
            longest_departure: SignedDuration::from_hours(1),
            start_attempts: 3,
            backfill: false,
            max_lifetime: None,
        }
    }
}
