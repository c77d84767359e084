//! The power of a simulated machine.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// Power of a machine, and the time it was off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Supply {
    /// `None` if the machine is on.
    pub(super) off_since: Option<Timestamp>,
    /// End of the current boot, [`Timestamp::MAX`] if it never ends; `None` if the machine isn't booting.
    pub(super) boots_until: Option<Timestamp>,
    /// The machine won't boot until it is repaired.
    pub(super) broken: bool,
    /// Total duration that the machine was off before it was last switched on, milliseconds.
    pub(super) off_ms: i64,
}

impl Supply {
    pub(super) fn dark(&self) -> bool {
        self.off_since.is_some() || self.boots_until.is_some()
    }

    /// Makes the machine boot as usual. A boot that would never end succeeds now.
    pub(super) fn repair(&mut self) {
        if self.boots_until == Some(Timestamp::MAX) {
            self.boots_until = None;
        }
        self.broken = false;
    }

    /// Makes later boots fail.
    pub(super) fn break_boots(&mut self) {
        self.broken = true;
    }

    /// Total duration that the machine was off until `now`.
    pub(super) fn off_for(&self, now: Timestamp) -> SignedDuration {
        let now_off = self.off_since.map_or(SignedDuration::ZERO, |since| now.duration_since(since));
        SignedDuration::from_millis(self.off_ms).saturating_add(now_off)
    }
}
