//! What was saved and used in a pool, and when hosts were off.

use jiff::SignedDuration;

use crate::ids::{FreePoolId, HostId};
use crate::window::Window;

/// A time that a host was off for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sleep {
    /// Which host.
    pub host: HostId,
    /// The free pool that it was in.
    pub pool: FreePoolId,
    /// From when it was off to when it was switched on.
    pub window: Window,
    /// What that saved, compared with an idle host, in milliwatts.
    pub saved_milliwatts: u32,
    /// What it drew all the same, in milliwatts.
    pub off_milliwatts: u32,
    /// Whether it is over.
    pub over: bool,
    /// How long it took to boot afterwards, if that is known.
    pub boot: Option<SignedDuration>,
    /// It did not come up in time.
    pub failed: bool,
}

/// What was saved and used in a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolReport {
    /// How long hosts were off, all together, in seconds.
    pub off_seconds: u64,
    /// What that saved, in milliwatt-seconds.
    pub saved_milliwatt_seconds: u128,
    /// What hosts that were off drew, in milliwatt-seconds.
    pub used_milliwatt_seconds: u128,
    /// How long hosts were leased or carried guests, all together, in seconds.
    pub busy_seconds: u64,
    /// What they drew then, in milliwatt-seconds.
    pub busy_milliwatt_seconds: u128,
    /// How long hosts were on beside that, all together, in seconds.
    pub idle_seconds: u64,
    /// What they drew then, in milliwatt-seconds.
    pub idle_milliwatt_seconds: u128,
    /// Of how many hosts nobody has said what they draw when they are idle: what they use is not in the sums.
    pub hosts_not_metered: u64,
    /// How often a host was switched off.
    pub switched_off: u64,
    /// How often one was switched on again.
    pub switched_on: u64,
    /// How often one did not come up then.
    pub failed: u64,
    /// The longest boot.
    pub longest_boot: Option<SignedDuration>,
}

impl PoolReport {
    /// What hosts used in all, in milliwatt-seconds: at work, idle and off.
    pub fn total_milliwatt_seconds(&self) -> u128 {
        self.busy_milliwatt_seconds + self.idle_milliwatt_seconds + self.used_milliwatt_seconds
    }
}
