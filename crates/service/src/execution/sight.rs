//! How old the observation of all hosts is, for decisions that promise hosts now.

use jiff::{SignedDuration, Timestamp};
use leases::lease::Lease;

use super::look::Look;
use super::pause::Pause;

/// An observation that isn't older is good enough for a decision, so decisions cause at most one look in that time.
const FRESH: SignedDuration = SignedDuration::from_secs(1);
/// Where looks take long, they are at least that many times as long apart, so that decisions can't keep the fleet busy.
const REST: i32 = 2;

/// How old the observation of hosts is, for decisions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sight {
    /// From when the last observation of all hosts is, and until when it is good enough.
    pub seen: Option<Pause>,
    /// After a look that failed, until another one is begun for decisions.
    pub failed: Option<Pause>,
    /// A decision waits for a look that isn't under way.
    pub wanted: bool,
}

impl Sight {
    /// Notes the end of a look at all hosts.
    pub fn note(&mut self, look: &Look, answered: bool, now: Timestamp) {
        if answered {
            let took = now.duration_since(look.began);
            // Looks can end in another order than they began, and the clock can be set back.
            if self.seen.is_none_or(|seen| seen.begin() <= look.began || now < seen.begin()) {
                // A round asks for more than a look for decisions does.
                let lasts = if look.all { FRESH } else { FRESH.max(took.saturating_mul(REST)) };
                self.seen = Some(Pause::of(look.began, lasts));
            }
            self.failed = None;
        } else {
            self.failed = Some(Pause::of(now, FRESH));
        }
    }
}

/// The age of the observation that a decision is made on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Observation {
    /// When hosts were last observed, if the fleet should have been asked again and didn't answer.
    pub stale_since: Option<Timestamp>,
}

impl Observation {
    /// Has a lease say that it was decided on an old observation. The plan of its start replaces that.
    pub fn mark(self, lease: &mut Lease) {
        if let Some(since) = self.stale_since.filter(|_| !lease.keeps_reason()) {
            lease.reason =
                Some(format!("{STALE} {}; hosts are checked again at the start", to_second(since)));
        }
    }
}

/// What is said of such decisions, before the time.
pub(super) const STALE: &str = "the fleet does not answer, this was decided by what was observed at";

pub(super) fn to_second(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}
