//! What was saved.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

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

/// What was saved in a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolReport {
    /// How long hosts were off, all together, in seconds.
    pub off_seconds: u64,
    /// What that saved, in milliwatt-seconds.
    pub saved_milliwatt_seconds: u128,
    /// What hosts that were off drew, in milliwatt-seconds.
    pub used_milliwatt_seconds: u128,
    /// How often a host was switched off.
    pub switched_off: u64,
    /// How often one was switched on again.
    pub switched_on: u64,
    /// How often one did not come up then.
    pub failed: u64,
    /// The longest boot.
    pub longest_boot: Option<SignedDuration>,
}

/// What was saved in that time, pool by pool.
pub fn report<'a>(
    sleeps: impl IntoIterator<Item = &'a Sleep>,
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
    pools
}
