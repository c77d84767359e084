//! When to switch hosts on so that no more than so many boot at once, and all are there in time.

use std::collections::{BTreeMap, BinaryHeap};

use jiff::{SignedDuration, Timestamp};

use super::{Draw, PowerRules, PowerState};
use crate::calendar::Calendar;
use crate::host::{Host, Inventory};
use crate::ids::HostId;
use crate::window::{earlier, later};

/// A host that has to be there at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Boot {
    /// When it has to be there.
    pub by: Timestamp,
    /// Which.
    pub host: HostId,
    /// How long it takes.
    pub takes: SignedDuration,
}

/// When hosts are switched on.
#[derive(Debug)]
pub(super) struct Staged {
    /// The latest time for each host.
    pub from: BTreeMap<HostId, Timestamp>,
    /// The first use of each of the places at which hosts boot, as far as they are used.
    first_uses: BinaryHeap<Timestamp>,
}

impl Staged {
    /// As late as possible, so many at once: the last first, each at the place that is free the longest.
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

    /// How many places are not used before that time.
    pub fn free_until(&self, until: Timestamp) -> usize {
        self.first_uses.iter().filter(|first| **first >= until).count()
    }
}

/// When hosts could be had that are not on: each in its turn, if it were woken now; and so that nobody who was promised
/// one of them has to wait for it. Only hosts that are not on are there.
///
/// Those that are to be on soon come first. Of the others, however many are asked for at once, each has a place in the
/// queue, so that all that are promised for when they can be had can be kept. A host that is wanted later than all
/// of them could be switched on one after another does not stand in anybody's way.
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

/// Who is wanted soon comes first; then who draws least.
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

/// When the next lease of the host begins; now if one is going on.
pub(super) fn next_use(calendar: &Calendar, host: HostId, now: Timestamp) -> Option<Timestamp> {
    let coming = calendar.bookings(host).filter(|(window, _)| window.end() > now);
    coming.map(|(window, _)| window.start().max(now)).min()
}
