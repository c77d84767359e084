//! When enough hosts are free together, and which of them to take.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use jiff::{SignedDuration, Timestamp};

use super::bookings::Calendar;
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
    fn new(gap: &Window, window: &Window, host: HostId) -> Self {
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

impl Calendar {
    /// How well the window, with cleaning time around it, fits the gap that it lies in. None if there is none.
    ///
    /// `within` bounds gaps that no booking bounds; the past should not be in it.
    pub fn fit(
        &self,
        host: HostId,
        window: &Window,
        within: &Window,
        without: Option<LeaseId>,
    ) -> Option<Fit> {
        // Few of all hosts have bookings that do not count; to leave some out takes longer.
        let without = without.filter(|lease| self.has_booked(*lease, host));
        let gap = match self.hosts.get(&host) {
            Some(page) => page.gap_around(window, &window.widened(self.cleaning_time), within, without)?,
            None => *within,
        };
        Some(Fit::new(&gap, window, host))
    }

    /// The earliest time within `within` when `count` of these hosts are free together for `length`, with
    /// cleaning time around it, and which to take then. Bookings of the lease `without` do not count. None as well once
    /// the budget is used up.
    pub fn earliest_slot(
        &self,
        hosts: &[HostId],
        count: usize,
        length: SignedDuration,
        within: &Window,
        without: Option<LeaseId>,
        budget: &Budget,
    ) -> Option<Slot> {
        earliest(self, hosts, count, length, within, (without, budget))
    }

    /// The earliest times within `within`, so many at most and none of which overlaps another, when `count` of these
    /// hosts are free together for `length`, with cleaning time around it. Fewer once the budget is used up.
    pub fn earliest_windows(
        &self,
        hosts: &[HostId],
        count: usize,
        length: SignedDuration,
        within: &Window,
        (most, budget): (usize, &Budget),
    ) -> Vec<Window> {
        earliest_windows(self, hosts, count, length, within, (most, budget))
    }
}

/// The first slot of so many hosts within a time.
fn earliest(
    calendar: &Calendar,
    hosts: &[HostId],
    count: usize,
    length: SignedDuration,
    within: &Window,
    (without, budget): (Option<LeaseId>, &Budget),
) -> Option<Slot> {
    let mut sweep = Sweep::new(calendar, hosts, count, length, within, (without, budget))?;
    let window = Window::starting(sweep.next(within.start())?, length);
    Some(Slot { window, hosts: best(sweep.open, &window, count) })
}

/// The first so many slots, none of which overlaps another. Each is as early as it can be after those before it.
fn earliest_windows(
    calendar: &Calendar,
    hosts: &[HostId],
    count: usize,
    length: SignedDuration,
    within: &Window,
    (most, budget): (usize, &Budget),
) -> Vec<Window> {
    let Some(mut sweep) = Sweep::new(calendar, hosts, count, length, within, (None, budget)) else {
        return Vec::new();
    };
    let (mut found, mut from) = (Vec::new(), within.start());
    while found.len() < most
        && let Some(start) = sweep.next(from)
    {
        let window = Window::starting(start, length);
        from = window.end();
        found.push(window);
    }
    found
}

/// Sweeps over the chances by the instant from which they exist; those that have passed leave through a heap.
///
/// Each host's gaps are looked at only as far as the sweep has come, so that a slot that is near is found soon.
struct Sweep<'a, I> {
    /// The chances of each host, in order.
    sources: Vec<I>,
    /// The next chance of each.
    coming: BinaryHeap<Reverse<(Timestamp, usize, Chance)>>,
    /// Those that have come, and have not passed.
    open: BinaryHeap<Reverse<Chance>>,
    count: usize,
    budget: &'a Budget,
}

impl<'a> Sweep<'a, ()> {
    /// Nothing if there is nothing to be found, or once the budget is used up.
    fn new(
        calendar: &'a Calendar,
        hosts: &[HostId],
        count: usize,
        length: SignedDuration,
        within: &'a Window,
        (without, budget): (Option<LeaseId>, &'a Budget),
    ) -> Option<Sweep<'a, impl Iterator<Item = Chance>>> {
        if count == 0 || count > hosts.len() || length <= SignedDuration::ZERO {
            return None;
        }
        if !budget.spend(OPENING * hosts.len() as u64) {
            return None;
        }
        let of_host = |host: &HostId| chances(calendar, *host, length, within, (without, budget));
        let mut sources: Vec<_> = hosts.iter().map(of_host).collect();
        let first = |(source, chances): (usize, &mut _)| next_of(chances, source);
        let coming = sources.iter_mut().enumerate().filter_map(first).collect();
        Some(Sweep { sources, coming, open: BinaryHeap::new(), count, budget })
    }
}

impl<I: Iterator<Item = Chance>> Sweep<'_, I> {
    /// The first instant from that one on, which is none before those asked for so far, at which enough hosts are free.
    fn next(&mut self, from: Timestamp) -> Option<Timestamp> {
        let mut now = from;
        loop {
            // All that begin until then are there to choose from.
            while let Some(Reverse((begins, ..))) = self.coming.peek()
                && *begins <= now
                && let Some(Reverse((_, source, chance))) = self.coming.pop()
            {
                if !self.budget.spend(CHANCE) {
                    return None;
                }
                self.open.push(Reverse(chance));
                self.coming.extend(next_of(&mut self.sources[source], source));
            }
            while self.open.peek().is_some_and(|Reverse(first)| first.until < now) {
                self.open.pop();
            }
            if self.open.len() >= self.count {
                return Some(now);
            }
            let Reverse((next, ..)) = self.coming.peek()?;
            now = *next;
        }
    }
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
