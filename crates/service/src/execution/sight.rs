//! Age of the observation of all hosts, for decisions that promise hosts now.

use jiff::{SignedDuration, Timestamp};
use leases::lease::Lease;

use super::look::Look;
use super::pause::Pause;

/// Maximum age of an observation for a decision. So decisions cause at most one look in this time.
const FRESH: SignedDuration = SignedDuration::from_secs(1);
/// Minimum interval between looks, in multiples of their duration, so that decisions can't keep a slow fleet
/// busy.
const REST: i32 = 2;

/// Age of the observation of hosts, for decisions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sight {
    /// From the start of the last observation of all hosts until it is too old.
    pub seen: Option<Pause>,
    /// Pause after a failed look before the next one for decisions.
    pub failed: Option<Pause>,
    /// A decision waits for a look that has not begun.
    pub wanted: bool,
}

impl Sight {
    /// Notes the end of a look at all hosts.
    pub fn note(&mut self, look: &Look, answered: bool, now: Timestamp) {
        if answered {
            let took = now.duration_since(look.began);
            // Looks can end in another order than they began, and the clock can be set back.
            if self.seen.is_none_or(|seen| seen.begin() <= look.began || now < seen.begin()) {
                // A look at the whole fleet asks for more than a look for decisions.
                let lasts = if look.all { FRESH } else { FRESH.max(took.saturating_mul(REST)) };
                self.seen = Some(Pause::of(look.began, lasts));
            }
            self.failed = None;
        } else {
            self.failed = Some(Pause::of(now, FRESH));
        }
    }
}

/// Age of the observation that a decision is based on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Observation {
    /// Time of the observation, if a newer one was needed but the fleet didn't answer.
    pub stale_since: Option<Timestamp>,
}

impl Observation {
    /// Sets the reason of a lease that was decided on an old observation. The plan of its start replaces it.
    pub fn mark(self, lease: &mut Lease) {
        if let Some(since) = self.stale_since.filter(|_| !lease.keeps_reason()) {
            lease.reason =
                Some(format!("{STALE} {}; hosts are checked again at the start", to_second(since)));
        }
    }
}

/// Start of the message about such decisions. The time follows.
pub(super) const STALE: &str = "the fleet does not answer, this was decided by what was observed at";

pub(super) fn to_second(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}
