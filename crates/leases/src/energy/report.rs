//! Sums of energy saved and used.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::consumption::{self, Metered};
use super::pool_report::{PoolReport, Sleep};
use crate::ids::{FreePoolId, HostId};
use crate::window::Window;

/// Energy saved and used in `period`, by pool. `hosts` are the hosts of the inventory; `held` lists times
/// when hosts were leased or ran guests.
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
