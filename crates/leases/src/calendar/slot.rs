//! When enough hosts are free together, and which of them to take.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use jiff::{SignedDuration, Timestamp};

use super::Calendar;
use crate::ids::{HostId, LeaseId};
use crate::window::{Window, earlier, later};
use crate::work::Budget;

/// What it costs to begin with a host.
const OPENING: u64 = 20;
/// What it costs to look at a gap that is long enough.
const CHANCE: u64 = 20;

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
///
/// Each host's gaps are looked at only as far as the sweep has come, so that a slot that is near is found soon.
pub(super) fn earliest(
    calendar: &Calendar,
    hosts: &[HostId],
    count: usize,
    length: SignedDuration,
    within: &Window,
    (without, budget): (Option<LeaseId>, &Budget),
) -> Option<Slot> {
    if count == 0 || count > hosts.len() || length <= SignedDuration::ZERO {
        return None;
    }
    if !budget.spend(OPENING * hosts.len() as u64) {
        return None;
    }
    let of_host = |host: &HostId| chances(calendar, *host, length, within, (without, budget));
    let mut sources: Vec<_> = hosts.iter().map(of_host).collect();
    let first = |(source, chances): (usize, &mut _)| next_of(chances, source);
    let mut coming: BinaryHeap<_> = sources.iter_mut().enumerate().filter_map(first).collect();
    let mut open: BinaryHeap<Reverse<Chance>> = BinaryHeap::new();
    while let Some(Reverse((now, source, chance))) = coming.pop() {
        if !budget.spend(CHANCE) {
            return None;
        }
        open.push(Reverse(chance));
        coming.extend(next_of(&mut sources[source], source));
        if coming.peek().is_some_and(|Reverse((next, ..))| *next == now) {
            // All that begin at this instant are there to choose from.
            continue;
        }
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

/// The next chance of a source, so that a heap gives the earliest of all sources first.
fn next_of(
    chances: &mut impl Iterator<Item = Chance>,
    source: usize,
) -> Option<Reverse<(Timestamp, usize, Chance)>> {
    chances.next().map(|chance| Reverse((chance.from, source, chance)))
}

/// The gaps of a host that are long enough, in order.
fn chances(
    calendar: &Calendar,
    host: HostId,
    length: SignedDuration,
    within: &Window,
    (without, budget): (Option<LeaseId>, &Budget),
) -> impl Iterator<Item = Chance> {
    let cleaning = calendar.cleaning_time;
    // Cleaning may begin before the time that is looked at, and end after it.
    let cleaned = within.widened(cleaning);
    let page = calendar.hosts.get(&host);
    let booked = page.into_iter().flat_map(move |page| page.gaps(cleaned, without));
    let unbooked = (page.is_none() && !cleaned.is_empty()).then_some(cleaned);
    // Most gaps are too short: that is found out first, and cheaply.
    let gaps = booked.chain(unbooked).filter(move |gap| {
        budget.charge(2);
        gap.length() >= length
    });
    gaps.filter_map(move |gap| {
        let (from, last_end) = (later(gap.start(), cleaning), earlier(gap.end(), cleaning));
        let long_enough = last_end.duration_since(from) >= length;
        long_enough.then(|| Chance { until: earlier(last_end, length), from, gap, host })
    })
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
