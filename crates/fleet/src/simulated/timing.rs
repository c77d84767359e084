//! Durations of operations on simulated machines.

use jiff::{SignedDuration, Timestamp};
use rand::Rng;
use rand::rngs::SmallRng;

/// Adds a duration; the maximum on overflow.
pub(super) fn later(instant: Timestamp, by: SignedDuration) -> Timestamp {
    instant.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// A random duration between two limits, both included, in whole milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Between {
    pub least: SignedDuration,
    pub most: SignedDuration,
}

impl Between {
    pub const ZERO: Self = Self { least: SignedDuration::ZERO, most: SignedDuration::ZERO };

    pub const fn millis(least: i64, most: i64) -> Self {
        Self { least: SignedDuration::from_millis(least), most: SignedDuration::from_millis(most) }
    }

    pub const fn secs(least: i64, most: i64) -> Self {
        Self { least: SignedDuration::from_secs(least), most: SignedDuration::from_secs(most) }
    }

    pub(super) fn draw(self, rng: &mut SmallRng) -> SignedDuration {
        if self.most <= self.least {
            return self.least.max(SignedDuration::ZERO);
        }
        let millis = |time: SignedDuration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        SignedDuration::from_millis(rng.random_range(millis(self.least)..=millis(self.most)))
            .max(SignedDuration::ZERO)
    }
}

/// Durations of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// From a call to its effect and response.
    pub call: Between,
    /// A query about the fleet.
    pub question: Between,
    /// From the start of a guest until it is observed on its host.
    pub boot: Between,
    /// From the request to shut down until the guest is gone.
    pub shut_down: Between,
    /// Deletion of a guest. The call returns [`crate::Outcome::Pending`] until then.
    pub deletion: Between,
    /// Image of one guest. The call returns [`crate::Outcome::Pending`] until then.
    pub snapshot: Between,
    /// From switching a machine on until it works.
    pub power_on: Between,
    /// Speed at which the memory of a migrating guest is copied, MiB per second. 0 means at once.
    pub migration_mib_per_second: u32,
}

impl Timing {
    pub const IMMEDIATE: Self = Self {
        call: Between::ZERO,
        question: Between::ZERO,
        boot: Between::ZERO,
        shut_down: Between::ZERO,
        deletion: Between::ZERO,
        snapshot: Between::ZERO,
        power_on: Between::ZERO,
        migration_mib_per_second: 0,
    };

    /// A rack of machines with a good network. Some guests take more than a minute to shut down.
    pub const LIFELIKE: Self = Self {
        call: Between::millis(20, 400),
        question: Between::millis(5, 60),
        boot: Between::secs(3, 20),
        shut_down: Between::secs(2, 80),
        deletion: Between::millis(500, 4000),
        snapshot: Between::secs(10, 90),
        power_on: Between::secs(90, 240),
        migration_mib_per_second: 1000,
    };
}

impl Default for Timing {
    fn default() -> Self {
        Self::IMMEDIATE
    }
}
