//! Energy report of a free pool, and the sleeps it is made from.

use jiff::SignedDuration;

use crate::ids::{FreePoolId, HostId};
use crate::window::Window;

/// A period during which a host was off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sleep {
    pub host: HostId,
    /// Free pool of the host at that time.
    pub pool: FreePoolId,
    /// From the time it was off to the time it was switched on.
    pub window: Window,
    /// Power saved compared with idling, in milliwatts.
    pub saved_milliwatts: u32,
    /// Power drawn while off, in milliwatts.
    pub off_milliwatts: u32,
    /// Whether the host has been switched on again.
    pub over: bool,
    /// Duration of the boot that ended the sleep; `None` if unknown.
    pub boot: Option<SignedDuration>,
    /// The host didn't come up in time.
    pub failed: bool,
}

/// Energy saved and used in a pool. Times are sums over its hosts; energy is in milliwatt-seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolReport {
    pub off_seconds: u64,
    /// Savings compared with leaving the hosts idle.
    pub saved_milliwatt_seconds: u128,
    /// Energy drawn by hosts that were off.
    pub used_milliwatt_seconds: u128,
    /// Time during which hosts were leased or ran guests.
    pub busy_seconds: u64,
    pub busy_milliwatt_seconds: u128,
    /// Time during which hosts were on without being busy.
    pub idle_seconds: u64,
    pub idle_milliwatt_seconds: u128,
    /// Number of hosts with unknown idle draw. Their idle time adds no energy to the sums.
    pub hosts_not_metered: u64,
    /// Number of times a host was switched off.
    pub switched_off: u64,
    /// Number of times a host was switched on again.
    pub switched_on: u64,
    /// Number of times a host didn't come up when it was switched on.
    pub failed: u64,
    pub longest_boot: Option<SignedDuration>,
}

impl PoolReport {
    /// Total energy used while busy, idle and off, in milliwatt-seconds.
    pub fn total_milliwatt_seconds(&self) -> u128 {
        self.busy_milliwatt_seconds + self.idle_milliwatt_seconds + self.used_milliwatt_seconds
    }
}
