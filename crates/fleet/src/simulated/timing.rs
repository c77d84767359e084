//! How long things take on simulated machines.

use jiff::{SignedDuration, Timestamp};
use rand::Rng;
use rand::rngs::SmallRng;

/// That much later, or the end of time.
pub(super) fn later(instant: Timestamp, by: SignedDuration) -> Timestamp {
    instant.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// A time that is drawn between two limits, both included, to the millisecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Between {
    /// Not less.
    pub least: SignedDuration,
    /// Not more.
    pub most: SignedDuration,
}

impl Between {
    /// No time at all.
    pub const ZERO: Self = Self { least: SignedDuration::ZERO, most: SignedDuration::ZERO };

    /// Between so many milliseconds and so many.
    pub const fn millis(least: i64, most: i64) -> Self {
        Self { least: SignedDuration::from_millis(least), most: SignedDuration::from_millis(most) }
    }

    /// Between so many seconds and so many.
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

/// How long what takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// From a call to its effect, and the answer.
    pub call: Between,
    /// A question about the fleet.
    pub question: Between,
    /// From the start of a guest to when it is seen on its host.
    pub boot: Between,
    /// From the request to shut down to when a guest is gone.
    pub shut_down: Between,
    /// The deletion of a guest, which is answered with [`crate::Outcome::Pending`] meanwhile.
    pub deletion: Between,
    /// An image of one guest, likewise.
    pub snapshot: Between,
    /// From switching a machine on until it works.
    pub power_on: Between,
    /// How fast the memory of a guest that migrates is copied, MiB per second; 0: at once.
    pub migration_mib_per_second: u32,
}

impl Timing {
    /// Everything at once.
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

    /// Like a rack of machines with a good network. Some guests do not shut down within a minute.
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
