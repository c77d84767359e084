//! Search for times at which enough hosts are free together, and the choice among these hosts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use jiff::{SignedDuration, Timestamp};

use super::bookings::Calendar;
use crate::ids::{HostId, LeaseId};
use crate::window::{Window, earlier, later};
use crate::work::Budget;

/// Cost to start with a host.
const OPENING: u64 = 20;
/// Cost to examine a gap that is long enough.
const CHANCE: u64 = 20;

/// Quality of a window's fit into its gap; less is better. Using the smallest gap first keeps long gaps whole
/// for long leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fit {
    /// Length of the gap.
    pub gap: SignedDuration,
    /// Free time left in the gap before the window. Among gaps without an end, the tightest one wins.
    pub before: SignedDuration,
    pub host: HostId,
}

impl Fit {
    fn new(gap: &Window, window: &Window, host: HostId) -> Self {
        Self { gap: gap.length(), before: window.start().duration_since(gap.start()), host }
    }
}

/// A time at which hosts are free together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    pub window: Window,
    /// Ascending.
    pub hosts: Vec<HostId>,
}

/// A gap in which a window of the requested length can start at any instant from `from` to `until`,
/// inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Chance {
    until: Timestamp,
    from: Timestamp,
    gap: Window,
    host: HostId,
}

impl Calendar {
    /// The fit of the window, with cleaning time around it, into its gap. `None` if the host isn't free then.
    ///
    /// `within` bounds gaps that no booking bounds. It should not contain the past.
    pub fn fit(
        &self,
        host: HostId,
        window: &Window,
        within: &Window,
        without: Option<LeaseId>,
    ) -> Option<Fit> {
        // Few hosts have bookings to be ignored, and ignoring some takes longer.
        let without = without.filter(|lease| self.has_booked(*lease, host));
        let gap = match self.hosts.get(&host) {
            Some(page) => page.gap_around(window, &window.widened(self.cleaning_time), within, without)?,
            None => *within,
        };
        Some(Fit::new(&gap, window, host))
    }

    /// The earliest time within `within` at which `count` of these hosts are free for `length` and cleaning
    /// time around it, with the best hosts for that time. Bookings of the lease `without` don't count. Also
    /// `None` once the budget is used up.
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

    /// The earliest times within `within` at which `count` of these hosts are free for `length` and cleaning
    /// time around it. Returns at most `most` windows, without overlap, and fewer once the budget is used up.
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

/// The earliest slot of `count` hosts.
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

/// The earliest slots of `count` hosts without overlap. Each is as early as possible after the ones before
/// it.
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

/// A sweep over chances in order of `from`. Chances that have passed leave through a heap.
///
/// The gaps of each host are only read as far as the sweep has come, so that a near slot is found soon.
struct Sweep<'a, I> {
    /// Chances of each host, in order.
    sources: Vec<I>,
    /// Next chance of each host.
    coming: BinaryHeap<Reverse<(Timestamp, usize, Chance)>>,
    /// Chances that have begun and have not passed.
    open: BinaryHeap<Reverse<Chance>>,
    count: usize,
    budget: &'a Budget,
}

impl<'a> Sweep<'a, ()> {
    /// `None` if there can't be any slot, or once the budget is used up.
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
    /// The first instant from `from` on at which enough hosts are free. `from` must not be earlier than in
    /// previous calls.
    fn next(&mut self, from: Timestamp) -> Option<Timestamp> {
        let mut now = from;
        loop {
            // Everything that begins by now is available.
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

/// The next chance of a source, as an entry of the heap that returns the earliest one first.
fn next_of(
    chances: &mut impl Iterator<Item = Chance>,
    source: usize,
) -> Option<Reverse<(Timestamp, usize, Chance)>> {
    chances.next().map(|chance| Reverse((chance.from, source, chance)))
}

/// Gaps of a host that are long enough, in order.
fn chances(
    calendar: &Calendar,
    host: HostId,
    length: SignedDuration,
    within: &Window,
    (without, budget): (Option<LeaseId>, &Budget),
) -> impl Iterator<Item = Chance> {
    let cleaning = calendar.cleaning_time;
    // Cleaning can begin before `within` and end after it.
    let cleaned = within.widened(cleaning);
    let page = calendar.hosts.get(&host);
    let booked = page.into_iter().flat_map(move |page| page.gaps(cleaned, without));
    let unbooked = (page.is_none() && !cleaned.is_empty()).then_some(cleaned);
    // Most gaps are too short, so a cheap check comes first.
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

/// The hosts that fit best, ascending.
fn best(open: BinaryHeap<Reverse<Chance>>, window: &Window, count: usize) -> Vec<HostId> {
    let mut fits: Vec<Fit> =
        open.into_iter().map(|Reverse(chance)| Fit::new(&chance.gap, window, chance.host)).collect();
    fits.sort_unstable();
    let mut hosts: Vec<HostId> = fits.into_iter().take(count).map(|fit| fit.host).collect();
    hosts.sort_unstable();
    hosts
}
