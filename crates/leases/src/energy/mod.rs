//! Switching hosts off that nobody needs, and on again in time (EN).
//!
//! [`plan`] says how many hosts of each free pool are needed when, which may be off from when to when, and which are
//! to be switched now. What is decided is part of the host's record ([`Power`]), so that all services that share a
//! store know it; [`settle`] says what becomes of it when the host is looked at, [`step`] what is to be done to the
//! machine. [`readiness`] says when a host that is off could be had, so that no lease is promised a start that its
//! host cannot keep. [`report`] sums up what was saved, and used.
//!
//! Never switched off are hosts with guests of anybody, hosts of leases that are going on or start too soon, hosts
//! that are not in the free pool or do not work, and so many spare hosts of each pool as the operator wants.

mod consumption;
mod figures;
mod plan;
mod pool_report;
mod power;
pub(crate) mod record;
mod report;
mod slack;
mod staging;
#[cfg(test)]
mod tests;

use jiff::SignedDuration;

pub use self::consumption::Metered;
pub use self::figures::{BUSY_WATTS, Draw, Figures, IDLE_WATTS, NEVER, OFF_WATTS, SAVING, may_be_off};
pub use self::plan::{EnergyPlan, Ground, Need, PoolPlan, Rest, Switch, plan};
pub use self::pool_report::{PoolReport, Sleep};
pub use self::power::{Alarm, Settled, Slept, settle, step};
pub use self::record::{Power, PowerState};
pub use self::report::report;
pub use self::staging::readiness;

/// Operator settings for switching hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerRules {
    /// How long a host counts as booting at least, whatever was measured; and of hosts that were never measured.
    pub shortest_boot: SignedDuration,
    /// How much earlier than it must be a host is there.
    pub margin: SignedDuration,
    /// How many hosts of each pool stay on although nobody needs them.
    pub spare_hosts: u32,
    /// A host is switched off only if it can stay off for so long.
    pub shortest_rest: SignedDuration,
    /// How often a host is switched off within a day at most.
    pub rests_a_day: u32,
    /// How many hosts boot at the same time at most.
    pub boots_at_once: u32,
    /// How far ahead is planned.
    pub horizon: SignedDuration,
    /// After how long it is given up to switch a host off.
    pub longest_shutdown: SignedDuration,
}

impl Default for PowerRules {
    /// Boots of five minutes, two minutes of margin, one spare host, an hour of rest at least, three times a day.
    fn default() -> Self {
        Self {
            shortest_boot: SignedDuration::from_mins(5),
            margin: SignedDuration::from_mins(2),
            spare_hosts: 1,
            shortest_rest: SignedDuration::from_hours(1),
            rests_a_day: 3,
            boots_at_once: 10,
            horizon: SignedDuration::from_hours(24 * 7),
            longest_shutdown: SignedDuration::from_mins(10),
        }
    }
}

impl PowerRules {
    /// The same, by which no host may be off: those that are off are woken, no more at once than otherwise.
    #[must_use]
    pub fn all_on(self) -> Self {
        Self { spare_hosts: u32::MAX, ..self }
    }

    /// How many hosts may boot at once; at least one.
    pub(crate) fn boots_at_once(&self) -> usize {
        self.boots_at_once.max(1) as usize
    }
}
