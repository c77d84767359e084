//! Staggers boots so that the limit on simultaneous boots holds and all hosts are up in time.

use std::collections::{BTreeMap, BinaryHeap};

use jiff::{SignedDuration, Timestamp};

use super::{Draw, PowerRules, PowerState};
use crate::calendar::Calendar;
use crate::host::{Host, Inventory};
use crate::ids::HostId;
use crate::window::{earlier, later};

/// A boot with a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Boot {
    /// Deadline for the host to be up.
    pub by: Timestamp,
    pub host: HostId,
    /// Expected duration of the boot.
    pub takes: SignedDuration,
}

/// Schedule of boots.
#[derive(Debug)]
pub(super) struct Staged {
    /// Latest time to switch on each host.
    pub from: BTreeMap<HostId, Timestamp>,
    /// First use of each boot slot; [`Timestamp::MAX`] for an unused slot. There are as many slots as hosts
    /// can boot at once.
    first_uses: BinaryHeap<Timestamp>,
}

impl Staged {
    /// Schedules each boot as late as possible. Goes backward from the last deadline and takes the slot that
    /// stays free the longest.
    pub fn new(mut boots: Vec<Boot>, at_once: usize) -> Self {
        boots.sort_unstable();
        let mut first_uses: BinaryHeap<Timestamp> = std::iter::repeat_n(Timestamp::MAX, at_once).collect();
        let mut from = BTreeMap::new();
        for boot in boots.into_iter().rev() {
            let end = first_uses.pop().unwrap_or(Timestamp::MAX).min(boot.by);
            let start = earlier(end, boot.takes);
            first_uses.push(start);
            from.insert(boot.host, start);
        }
        Self { from, first_uses }
    }

    /// Number of boot slots without a use before `until`.
    pub fn free_until(&self, until: Timestamp) -> usize {
        self.first_uses.iter().filter(|first| **first >= until).count()
    }
}

/// Earliest availability of hosts that aren't on, assuming they are woken in batches starting now. Hosts that
/// are on are absent from the result; failed hosts have [`Timestamp::MAX`]. Leases that have already booked
/// one of these hosts aren't delayed.
///
/// Hosts that are booked soon come first in the queue. Each of the others has its own place, so the times
/// hold together: all these hosts can be promised for them at once. A host whose booking starts after the
/// whole queue is up needs no precedence.
pub fn readiness(
    inventory: &Inventory,
    calendar: &Calendar,
    rules: &PowerRules,
    now: Timestamp,
) -> BTreeMap<HostId, Timestamp> {
    let mut ready = BTreeMap::new();
    let (mut booting, mut asleep) = (0_usize, Vec::new());
    let mut longest = rules.shortest_boot;
    for host in inventory.hosts() {
        let boot_time = host.power.boot_time(rules);
        match host.power.state {
            PowerState::On => continue,
            PowerState::Failed { .. } => {
                ready.insert(host.id, Timestamp::MAX);
                continue;
            }
            PowerState::Booting { since, .. } => {
                booting += 1;
                let there = later(since, boot_time.saturating_add(rules.margin));
                ready.insert(host.id, there.max(now));
            }
            PowerState::ShuttingDown { .. } | PowerState::Off { .. } => asleep.push(host),
        }
        longest = longest.max(boot_time);
    }
    if asleep.is_empty() {
        return ready;
    }
    let turns = |boots: usize| {
        let turns = i32::try_from(boots.div_ceil(rules.boots_at_once())).unwrap_or(i32::MAX);
        later(now, longest.checked_mul(turns).unwrap_or(SignedDuration::MAX))
    };
    let all = turns(booting + asleep.len());
    asleep.sort_by_cached_key(|host| queue_key(host, calendar, rules, all, now));
    for (place, host) in asleep.into_iter().enumerate() {
        let mut there = later(turns(booting + place + 1), rules.margin);
        if let PowerState::ShuttingDown { .. } = host.power.state {
            there = later(there, rules.longest_shutdown);
        }
        ready.insert(host.id, there);
    }
    ready
}

/// Order in the queue: hosts booked soon, by the time they must be up; then the most efficient hosts.
fn queue_key(
    host: &Host,
    calendar: &Calendar,
    rules: &PowerRules,
    all: Timestamp,
    now: Timestamp,
) -> (Timestamp, Draw, HostId) {
    let wanted = next_use(calendar, host.id, now).map(|start| earlier(start, rules.margin));
    let soon = wanted.filter(|by| *by < all).unwrap_or(Timestamp::MAX);
    (soon, super::Figures::of(host).draw(host), host.id)
}

/// Start of the host's next lease; `now` if one is running.
pub(super) fn next_use(calendar: &Calendar, host: HostId, now: Timestamp) -> Option<Timestamp> {
    let coming = calendar.bookings(host).filter(|(window, _)| window.end() > now);
    coming.map(|(window, _)| window.start().max(now)).min()
}
