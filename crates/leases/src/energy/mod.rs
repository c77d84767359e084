//! Power saving: switches off hosts that aren't needed, and back on in time (EN).
//!
//! [`plan`] computes how many hosts of each free pool are needed over time, which hosts can be off and when,
//! and which to switch now. Decisions are part of the host's record ([`Power`]), so all services that share a
//! store see them. [`settle`] updates that record from an observation of the host; [`step`] chooses the next
//! action on the machine. [`readiness`] tells when a host that is off will be available, so no lease is
//! promised a start that its host can't make. [`report`] sums up energy saved and used.
//!
//! These hosts are never switched off: hosts with any guest, hosts of leases that are running or start too
//! soon, hosts that are outside the free pool or not working, and the operator's number of spare hosts per
//! pool.

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
pub use self::power::{Alarm, Settled, Slept, next_switch_on, settle, step};
pub use self::record::{Power, PowerState};
pub use self::report::report;
pub use self::staging::readiness;

/// Operator settings for switching hosts on and off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerRules {
    /// Minimum boot time to plan with. Used for hosts without measurements and as a floor for measured ones.
    pub shortest_boot: SignedDuration,
    /// Safety margin: hosts are on this long before they are needed.
    pub margin: SignedDuration,
    /// Unneeded hosts that stay on in each pool.
    pub spare_hosts: u32,
    /// Minimum time off for which switching a host off is worthwhile.
    pub shortest_rest: SignedDuration,
    /// Maximum number of times a host is switched off within 24 hours.
    pub rests_a_day: u32,
    /// Maximum number of hosts booting at the same time.
    pub boots_at_once: u32,
    /// Planning horizon.
    pub horizon: SignedDuration,
    /// Timeout for shutting a host down.
    pub longest_shutdown: SignedDuration,
}

impl Default for PowerRules {
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
    /// The same settings, except that no host can be off. Hosts that are off are woken, still at most
    /// `boots_at_once` at a time.
    #[must_use]
    pub fn all_on(self) -> Self {
        Self { spare_hosts: u32::MAX, ..self }
    }

    /// Maximum number of simultaneous boots; at least 1, whatever is configured.
    pub(crate) fn boots_at_once(&self) -> usize {
        self.boots_at_once.max(1) as usize
    }
}
