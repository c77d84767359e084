//! The power of a simulated machine.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// The power of a machine, and what it has saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Supply {
    /// Since when it is off, if it is.
    pub(super) off_since: Option<Timestamp>,
    /// When it has booted, if it is booting; never if it will not.
    pub(super) boots_until: Option<Timestamp>,
    /// It will not boot any more until somebody repairs it.
    pub(super) broken: bool,
    /// How long it was off until it was switched on last, milliseconds.
    pub(super) off_ms: i64,
}

impl Supply {
    pub(super) fn dark(&self) -> bool {
        self.off_since.is_some() || self.boots_until.is_some()
    }

    /// From now on it boots as it should; so it does now, if it was trying.
    pub(super) fn repair(&mut self) {
        if self.boots_until == Some(Timestamp::MAX) {
            self.boots_until = None;
        }
        self.broken = false;
    }

    /// It does not boot any more.
    pub(super) fn break_boots(&mut self) {
        self.broken = true;
    }

    /// How long it was off all together, until then.
    pub(super) fn off_for(&self, now: Timestamp) -> SignedDuration {
        let now_off = self.off_since.map_or(SignedDuration::ZERO, |since| now.duration_since(since));
        SignedDuration::from_millis(self.off_ms).saturating_add(now_off)
    }
}
