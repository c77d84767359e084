//! Energy used by hosts while busy, idle and off.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{Figures, PoolReport, Sleep};
use crate::ids::{FreePoolId, HostId};
use crate::window::Window;

/// A host in the report, with its power draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metered {
    pub host: HostId,
    pub pool: FreePoolId,
    /// Start of the host's existence in the inventory; earlier time isn't counted.
    pub since: Timestamp,
    pub figures: Figures,
}

impl Metered {
    /// Busy and idle draw in milliwatts. An unknown idle draw is 0; an unknown busy draw is the idle draw.
    fn milliwatts(&self) -> (u32, u32) {
        let idle = self.figures.idle_milliwatts.unwrap_or(0);
        (self.figures.busy_milliwatts.unwrap_or(idle), idle)
    }
}

/// Adds the energy that hosts used while they were on. `held` lists times when hosts were leased or ran
/// guests. Overlapping times count once, and a host that is off isn't busy.
pub(super) fn add(
    pools: &mut BTreeMap<FreePoolId, PoolReport>,
    hosts: &[Metered],
    sleeps: &[Sleep],
    held: &[(HostId, Window)],
    period: Window,
) {
    let by_host = |windows: &mut dyn Iterator<Item = (HostId, Window)>| {
        let mut by_host: BTreeMap<HostId, Vec<Window>> = BTreeMap::new();
        windows.for_each(|(host, window)| by_host.entry(host).or_default().push(window));
        by_host
    };
    let mut off = by_host(&mut sleeps.iter().map(|sleep| (sleep.host, sleep.window)));
    let mut held = by_host(&mut held.iter().copied());
    for host in hosts {
        let present = period.since(host.since);
        if present.is_empty() {
            continue;
        }
        let times = |of: &mut BTreeMap<HostId, Vec<Window>>| {
            union(of.remove(&host.host).unwrap_or_default(), present)
        };
        let (off, held) = (times(&mut off), times(&mut held));
        let on_us = micros(&[present]) - micros(&off);
        let busy_us = micros(&held) - common_micros(&held, &off);
        let idle_us = on_us - busy_us;
        let (busy_milliwatts, idle_milliwatts) = host.milliwatts();
        let pool = pools.entry(host.pool).or_default();
        pool.busy_seconds += seconds(busy_us);
        pool.idle_seconds += seconds(idle_us);
        pool.busy_milliwatt_seconds += u128::from(busy_milliwatts) * busy_us / 1_000_000;
        pool.idle_milliwatt_seconds += u128::from(idle_milliwatts) * idle_us / 1_000_000;
        pool.hosts_not_metered += u64::from(host.figures.idle_milliwatts.is_none());
    }
}

fn seconds(micros: u128) -> u64 {
    u64::try_from(micros / 1_000_000).unwrap_or(u64::MAX)
}

/// Union of the windows within `within`, sorted and disjoint.
fn union(mut windows: Vec<Window>, within: Window) -> Vec<Window> {
    windows.sort_unstable_by_key(Window::start);
    let mut union: Vec<Window> = Vec::new();
    for window in windows.into_iter().map(|window| window.since(within.start()).before(within.end())) {
        match union.last_mut() {
            Some(last) if window.start() <= last.end() => {
                let end = last.end().max(window.end());
                *last = Window::starting(last.start(), end.duration_since(last.start()));
            }
            _ if window.is_empty() => {}
            _ => union.push(window),
        }
    }
    union
}

fn micros(windows: &[Window]) -> u128 {
    windows.iter().map(|window| u128::try_from(window.length().as_micros()).unwrap_or(0)).sum()
}

/// Length of the intersection; both slices must be sorted and disjoint.
fn common_micros(some: &[Window], others: &[Window]) -> u128 {
    let (mut some, mut others) = (some.iter().peekable(), others.iter().peekable());
    let mut common = 0;
    while let (Some(one), Some(other)) = (some.peek(), others.peek()) {
        common += micros(&[one.since(other.start()).before(other.end())]);
        if one.end() <= other.end() {
            some.next();
        } else {
            others.next();
        }
    }
    common
}
