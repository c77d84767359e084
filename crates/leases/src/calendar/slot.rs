//! When enough hosts are free together, and which of them to take.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use jiff::{SignedDuration, Timestamp};

use super::Calendar;
use crate::ids::HostId;
use crate::window::{Window, earlier, later};

/// Where to look for free time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotSearch {
    /// From when (usually now) until when.
    pub within: Window,
    /// How long a host must be free before and after.
    pub cleaning: SignedDuration,
}

/// How well a window fits the gap that it lies in; less is better. The order keeps the calendar usable: the
/// smallest gap is used first, so that long gaps stay whole for long leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fit {
    /// How long the gap is.
    pub gap: SignedDuration,
    /// How much of it is left free before the window: of gaps without an end, the one that ends up tightest.
    pub before: SignedDuration,
    /// Settles ties.
    pub host: HostId,
}

impl Fit {
    pub(super) fn new(gap: &Window, window: &Window, host: HostId) -> Self {
        Self { gap: gap.length(), before: window.start().duration_since(gap.start()), host }
    }
}

/// A time when hosts are free together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// When.
    pub window: Window,
    /// Which hosts, ascending.
    pub hosts: Vec<HostId>,
}

/// A gap in which a window of the wanted length can start at any instant from `from` to `until`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Chance {
    until: Timestamp,
    from: Timestamp,
    gap: Window,
    host: HostId,
}

/// Sweeps over the chances by the instant from which they exist; those that have passed leave through a heap.
pub(super) fn earliest(
    calendar: &Calendar,
    hosts: &[HostId],
    count: usize,
    length: SignedDuration,
    search: &SlotSearch,
) -> Option<Slot> {
    if count == 0 || count > hosts.len() || length <= SignedDuration::ZERO {
        return None;
    }
    let mut chances = Vec::with_capacity(hosts.len());
    for &host in hosts {
        collect_chances(calendar, host, length, search, &mut chances);
    }
    chances.sort_unstable_by_key(|chance| (chance.from, chance.host));
    let mut open: BinaryHeap<Reverse<Chance>> = BinaryHeap::new();
    for together in chances.chunk_by(|a, b| a.from == b.from) {
        let now = together[0].from;
        open.extend(together.iter().copied().map(Reverse));
        while open.peek().is_some_and(|Reverse(first)| first.until < now) {
            open.pop();
        }
        if open.len() >= count {
            let window = Window::starting(now, length);
            return Some(Slot { window, hosts: best(open, &window, count) });
        }
    }
    None
}

fn collect_chances(
    calendar: &Calendar,
    host: HostId,
    length: SignedDuration,
    search: &SlotSearch,
    chances: &mut Vec<Chance>,
) {
    let mut consider = |gap: Window| {
        // A gap that the horizon bounds, rather than a booking, needs no cleaning on that side.
        let margin = |bounded: bool| if bounded { search.cleaning } else { SignedDuration::ZERO };
        let from = later(gap.start(), margin(gap.start() > search.within.start()));
        let last_end = earlier(gap.end(), margin(gap.end() < search.within.end()));
        if last_end.duration_since(from) >= length {
            chances.push(Chance { until: earlier(last_end, length), from, gap, host });
        }
    };
    match calendar.hosts.get(&host) {
        Some(page) => page.gaps(&search.within, None).for_each(consider),
        None if search.within.is_empty() => {}
        None => consider(search.within),
    }
}

/// The best-fitting hosts, in the order of their identifiers.
fn best(open: BinaryHeap<Reverse<Chance>>, window: &Window, count: usize) -> Vec<HostId> {
    let mut fits: Vec<Fit> =
        open.into_iter().map(|Reverse(chance)| Fit::new(&chance.gap, window, chance.host)).collect();
    fits.sort_unstable();
    let mut hosts: Vec<HostId> = fits.into_iter().take(count).map(|fit| fit.host).collect();
    hosts.sort_unstable();
    hosts
}
