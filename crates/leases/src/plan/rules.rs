//! Operator settings for hand-over.

use jiff::{SignedDuration, Timestamp};

use super::observed::Guest;
use super::step::Backoff;
use crate::preemption::Class;
use crate::terms::BeforeEndAction;
use crate::window::{earlier, later};

/// Operator settings for hand-over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanRules {
    /// How long a preemptible guest has to shut down before it is deleted, unless its class says otherwise.
    pub grace: SignedDuration,
    /// The longest of these times: so long before the start of a lease the first are asked to leave.
    pub longest_notice: SignedDuration,
    /// So much longer is waited for everybody: by the clock of somebody else it may have been asked later.
    pub slack: SignedDuration,
    /// How long before the start of a lease its hosts are fenced, and preemptible guests moved away or asked to leave;
    /// at the start if absent.
    pub clear_ahead: Option<SignedDuration>,
    /// How much of that is for moves: whoever is still there then is asked to leave.
    pub moving_time: SignedDuration,
    /// How failed steps are repeated.
    pub backoff: Backoff,
    /// What happens before the end where a lease does not say.
    pub before_end: BeforeEndAction,
    /// How often a snapshot is tried before the lease goes on without.
    pub snapshot_attempts: u32,
    /// How many guests are moved at once for one lease.
    pub moves_at_once: usize,
    /// How long after its end guests of a lease are moved away that are to be; who is still there then stays.
    pub longest_departure: SignedDuration,
    /// How often it is tried to start an instance before that is given up.
    pub start_attempts: u32,
    /// Whether leases may let preemptible instances on hosts that they do not use.
    pub backfill: bool,
    /// How long a preemptible guest may run; no limit if absent.
    pub max_lifetime: Option<SignedDuration>,
}

/// Whoever has a clock that is behind by less than this does not take back what was fenced ahead of a start, nor what
/// was said about who is preempted.
pub(crate) const FENCE_TOLERANCE: SignedDuration = SignedDuration::from_mins(1);

/// The instant from which a guest that was to be deleted at `due` is overdue: usually it is gone within a minute.
pub fn overdue_at(due: Timestamp) -> Timestamp {
    later(due, SignedDuration::from_mins(1))
}

impl PlanRules {
    /// Whether the guest should have left long ago, so nobody can rely on it to leave.
    pub fn is_stuck(&self, guest: &Guest, now: Timestamp) -> bool {
        let notice = self.longest_notice.max(self.grace).saturating_add(self.slack);
        let notice = if guest.has_shut_down { SignedDuration::ZERO } else { notice };
        guest.stopping_since.is_some_and(|since| overdue_at(later(since, notice)) <= now)
    }

    /// When the hosts of a lease that starts then begin to be cleared.
    pub fn clears_at(&self, start: Timestamp) -> Timestamp {
        self.clear_ahead.map_or(start, |ahead| earlier(start, ahead))
    }

    /// How long an instance has to shut down.
    pub fn notice(&self, class: Option<&Class>) -> SignedDuration {
        class.map_or(self.grace, Class::notice)
    }

    /// When a preemptible guest is gone that runs since then, if its lifetime is limited.
    pub fn lifetime_ends_at(&self, launched_at: Option<Timestamp>) -> Option<Timestamp> {
        Some(later(launched_at?, self.max_lifetime?))
    }

    /// When a preemptible guest that is still there and has so long to shut down is asked to leave for a lease that
    /// starts then.
    pub fn asks_at(&self, start: Timestamp, notice: SignedDuration) -> Timestamp {
        // Whoever needs less time than others stays so much longer.
        let stays = self.longest_notice.max(self.grace).saturating_sub(notice).max(SignedDuration::ZERO);
        later(self.clears_at(start), self.moving_time.saturating_add(stays)).min(start)
    }

    /// Leases that start until then have to be known to a plan that is made now.
    pub fn horizon(&self, now: Timestamp) -> Timestamp {
        self.clear_ahead.map_or(now, |ahead| later(later(now, ahead), FENCE_TOLERANCE))
    }
}

impl Default for PlanRules {
    /// A minute of grace, nothing before the end, two moves at once, an hour for them after the end, no backfill, no limit
    /// on lifetimes.
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
