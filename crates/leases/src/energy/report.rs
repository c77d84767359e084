//! What was saved, and used.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::consumption::{self, Metered};
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

/// What was saved and used in that time, pool by pool. `hosts` are those that there are, and `held` says when hosts were
/// leased or guests ran there.
pub fn report(
    sleeps: &[Sleep],
    hosts: &[Metered],
    held: &[(HostId, Window)],
    period: Window,
) -> BTreeMap<FreePoolId, PoolReport> {
    let mut pools: BTreeMap<FreePoolId, PoolReport> = BTreeMap::new();
    for sleep in sleeps {
        let within = sleep.window.since(period.start()).before(period.end());
        let touches = |at: Timestamp| period.contains(at);
        let (begins, ends) = (touches(sleep.window.start()), sleep.over && touches(sleep.window.end()));
        if !sleep.window.overlaps(&period) && !begins && !ends {
            continue;
        }
        let pool = pools.entry(sleep.pool).or_default();
        let millis = u128::try_from(within.length().as_millis()).unwrap_or(0);
        pool.off_seconds += u64::try_from(millis / 1000).unwrap_or(u64::MAX);
        pool.saved_milliwatt_seconds += u128::from(sleep.saved_milliwatts) * millis / 1000;
        pool.used_milliwatt_seconds += u128::from(sleep.off_milliwatts) * millis / 1000;
        pool.switched_off += u64::from(begins);
        if ends {
            pool.switched_on += 1;
            pool.failed += u64::from(sleep.failed);
            pool.longest_boot = pool.longest_boot.max(sleep.boot);
        }
    }
    consumption::add(&mut pools, hosts, sleeps, held, period);
    pools
}
