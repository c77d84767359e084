//! Bookings of one host or address.

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::ids::{LeaseId, ReservationId};
use crate::resources::Resources;
use crate::window::Window;

/// A booking of a whole host, a share of one, or an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Booking {
    pub lease: LeaseId,
    pub reservation: ReservationId,
    /// Resources that its slots use. `None` for a whole host or an address.
    pub used: Option<Box<Resources>>,
}

/// Bookings in order of their starts. A booking of the whole host or address overlaps no other.
///
/// Windows are stored apart from the rest, because searches read little else.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Page {
    windows: Vec<Window>,
    /// For each position, the latest end of the windows up to it. Searches skip bookings that end before they
    /// begin.
    all_over: Vec<Timestamp>,
    bookings: Vec<Booking>,
}

impl Page {
    pub(super) fn bookings(&self) -> impl ExactSizeIterator<Item = (Window, &Booking)> {
        self.windows.iter().copied().zip(&self.bookings)
    }

    /// Enters a booking that was checked for conflicts.
    pub(super) fn insert(&mut self, window: Window, booking: Booking) {
        debug_assert!(
            match &booking.used {
                None => self.first(&window, None).is_none(),
                Some(_) => self.first_whole(&window, None).is_none(),
            },
            "{booking:?} overlaps another"
        );
        let mut position = self.windows.partition_point(|other| other.start() < window.start());
        // Bookings with the same start are in order of their reservations, so that a page doesn't depend on
        // the order of calls.
        while self.windows.get(position).is_some_and(|other| other.start() == window.start())
            && self.bookings[position].reservation < booking.reservation
        {
            position += 1;
        }
        reserve_one(&mut self.windows);
        self.windows.insert(position, window);
        reserve_one(&mut self.bookings);
        self.bookings.insert(position, booking);
        reserve_one(&mut self.all_over);
        self.update_all_over(position);
    }

    /// Removes all bookings of these leases. Returns whether the page is empty then.
    pub(super) fn remove(&mut self, leases: &BTreeSet<LeaseId>) -> bool {
        let stays: Vec<bool> = self.bookings.iter().map(|booking| !leases.contains(&booking.lease)).collect();
        let Some(first) = stays.iter().position(|stays| !stays) else { return self.bookings.is_empty() };
        let mut staying = stays.iter().copied();
        self.windows.retain(|_| staying.next().unwrap_or(true));
        let mut staying = stays.into_iter();
        self.bookings.retain(|_| staying.next().unwrap_or(true));
        self.update_all_over(first);
        self.bookings.is_empty()
    }

    /// Recomputes `all_over` from a position on.
    fn update_all_over(&mut self, position: usize) {
        self.all_over.truncate(position);
        let mut last = self.all_over.last().copied().unwrap_or(Timestamp::MIN);
        self.all_over.extend(self.windows[position..].iter().map(|window| {
            last = last.max(window.end());
            last
        }));
    }

    /// Positions of bookings that overlap the window, in order of their starts. The lease `without` doesn't
    /// count.
    fn overlapping(&self, window: Window, without: Option<LeaseId>) -> impl Iterator<Item = usize> {
        let over = self.all_over.partition_point(|end| *end <= window.start());
        let before_end = self.windows.partition_point(|other| other.start() < window.end());
        (over..before_end.max(over)).filter(move |&position| {
            self.windows[position].overlaps(&window)
                && without.is_none_or(|lease| self.bookings[position].lease != lease)
        })
    }

    /// Bookings that overlap the window, in order of their starts.
    pub(super) fn bookings_in(&self, window: Window) -> impl Iterator<Item = (Window, &Booking)> {
        let positions = self.overlapping(window, None);
        positions.map(|position| (self.windows[position], &self.bookings[position]))
    }

    /// Number of bookings that [`Self::overlapping`] examines.
    pub(super) fn near(&self, window: &Window) -> usize {
        let over = self.all_over.partition_point(|end| *end <= window.start());
        self.windows.partition_point(|other| other.start() < window.end()).saturating_sub(over)
    }

    pub(super) fn first(&self, window: &Window, without: Option<LeaseId>) -> Option<&Booking> {
        self.overlapping(*window, without).next().map(|position| &self.bookings[position])
    }

    pub(super) fn first_whole(&self, window: &Window, without: Option<LeaseId>) -> Option<&Booking> {
        let mut bookings = self.overlapping(*window, without).map(|position| &self.bookings[position]);
        bookings.find(|booking| booking.used.is_none())
    }

    /// Peak simultaneous use. Sweeps over starts and ends, and handles ends first at the same instant because
    /// a window doesn't contain its end.
    pub(super) fn peak_use(&self, window: &Window, without: Option<LeaseId>) -> Resources {
        let mut turns = Vec::new();
        for position in self.overlapping(*window, without) {
            if let Some(used) = &self.bookings[position].used {
                turns.push((self.windows[position].start(), true, used));
                turns.push((self.windows[position].end(), false, used));
            }
        }
        turns.sort_by_key(|(instant, begins, _)| (*instant, *begins));
        let (mut now, mut peak) = (Resources::default(), Resources::default());
        let mut turns = turns.into_iter().peekable();
        while let Some((instant, begins, used)) = turns.next() {
            if instant >= window.end() {
                break;
            }
            if begins {
                now.add(1, used);
            } else {
                now.subtract(1, used);
            }
            // Uses that end before the window starts don't count, nor do states of zero duration.
            let lasts_until = turns.peek().map_or(instant, |(next, ..)| *next);
            if lasts_until > window.start() && lasts_until > instant {
                peak.raise_to(&now);
            }
        }
        peak
    }

    /// The gap within `within` around the window, ignoring bookings of the lease `without`. `None` if another
    /// booking overlaps `clear`, which contains the window.
    pub(super) fn gap_around(
        &self,
        window: &Window,
        clear: &Window,
        within: &Window,
        without: Option<LeaseId>,
    ) -> Option<Window> {
        let later = self.windows.partition_point(|other| other.start() < window.end());
        let counts = |position: &usize| without.is_none_or(|lease| self.bookings[*position].lease != lease);
        let last_end = match without {
            None => self.all_over[..later].last().copied(),
            Some(_) => (0..later).filter(counts).map(|position| self.windows[position].end()).max(),
        };
        let next_start =
            (later..self.windows.len()).find(counts).map(|position| self.windows[position].start());
        if last_end.is_some_and(|end| end > clear.start())
            || next_start.is_some_and(|start| start < clear.end())
        {
            return None;
        }
        let from = last_end.map_or(within.start(), |end| end.max(within.start()));
        let until = next_start.map_or(within.end(), |start| start.min(within.end()));
        Window::new(from, until).ok().filter(|gap| gap.overlaps(window))
    }

    /// Gaps within `within`, ignoring bookings of the lease `without`.
    pub(super) fn gaps(&self, within: Window, without: Option<LeaseId>) -> impl Iterator<Item = Window> {
        let mut busy = self.overlapping(within, without).map(|position| self.windows[position]);
        let (mut free_from, end) = (Some(within.start()), within.end());
        std::iter::from_fn(move || {
            loop {
                let from = free_from?;
                let (until, next) = match busy.next() {
                    Some(window) => (window.start(), Some(window.end().max(from))),
                    None => (end, None),
                };
                free_from = next;
                if from < until {
                    return Window::new(from, until).ok();
                }
            }
        })
    }
}

/// Makes room for one more element. Large fleets have many short lists, and doubling these would leave a
/// third of their memory unused.
fn reserve_one<T>(list: &mut Vec<T>) {
    if list.len() == list.capacity() {
        list.reserve_exact(1 + list.len() / 8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::window;

    fn share(number: u128, start: i64, end: i64, vcpus: u64) -> (Window, Booking) {
        let used = Some(Resources { vcpus, ..Resources::default() });
        let booking =
            Booking { lease: LeaseId(number), reservation: ReservationId(number), used: used.map(Box::new) };
        (window(start, end), booking)
    }

    fn page(bookings: impl IntoIterator<Item = (Window, Booking)>) -> Page {
        let mut page = Page::default();
        bookings.into_iter().for_each(|(window, booking)| page.insert(window, booking));
        page
    }

    #[test]
    fn w16_neighbours_do_not_add_up() {
        let page = page([share(1, 0, 10, 8), share(2, 10, 20, 8)]);
        assert_eq!(page.peak_use(&window(0, 20), None).vcpus, 8);
        assert_eq!(page.peak_use(&window(9, 11), None).vcpus, 8);
    }

    #[test]
    fn w2_what_overlaps_adds_up_in_the_window_only() {
        let page = page([share(1, 0, 10, 8), share(2, 5, 20, 4), share(3, 15, 30, 2)]);
        assert_eq!(page.peak_use(&window(0, 30), None).vcpus, 12);
        assert_eq!(page.peak_use(&window(10, 30), None).vcpus, 6, "the first is over by then");
        assert_eq!(page.peak_use(&window(20, 30), None).vcpus, 2);
        assert_eq!(page.peak_use(&window(0, 30), Some(LeaseId(1))).vcpus, 6);
    }

    #[test]
    fn a_long_window_is_found_behind_short_ones() {
        let mut page = page([share(1, 0, 100, 1), share(2, 5, 10, 1), share(3, 20, 30, 1)]);
        let first =
            |page: &Page, start, end| page.first(&window(start, end), None).map(|booking| booking.lease);
        assert_eq!(first(&page, 50, 60), Some(LeaseId(1)));
        assert!(!page.remove(&BTreeSet::from([LeaseId(1)])));
        assert_eq!(first(&page, 50, 60), None);
        assert_eq!(first(&page, 10, 20), None);
        assert_eq!(first(&page, 9, 21), Some(LeaseId(2)));
        assert_eq!(first(&page, 29, 60), Some(LeaseId(3)));
    }

    #[test]
    fn gaps_skip_what_overlaps() {
        let page = page([share(1, 0, 30, 1), share(2, 5, 10, 1), share(3, 40, 50, 1)]);
        let gaps: Vec<_> = page.gaps(window(0, 60), None).collect();
        assert_eq!(gaps, [window(30, 40), window(50, 60)]);
        let without_first: Vec<_> = page.gaps(window(0, 60), Some(LeaseId(1))).collect();
        assert_eq!(without_first, [window(0, 5), window(10, 40), window(50, 60)]);
    }

    #[test]
    fn the_gap_around_a_window_is_the_one_of_all_gaps_that_it_lies_in() {
        let page = page([
            share(1, 0, 30, 1),
            share(2, 5, 10, 1),
            share(3, 40, 50, 1),
            share(1, 60, 65, 1),
            share(4, 80, 90, 1),
        ]);
        let within = window(3, 100);
        for without in [None, Some(LeaseId(1)), Some(LeaseId(3)), Some(LeaseId(9))] {
            for (start, end) in (0..100).flat_map(|start| (start + 1..=100).map(move |end| (start, end))) {
                for cleaning in [0, 3] {
                    let (asked, clear) = (window(start, end), window(start - cleaning, end + cleaning));
                    let free = page.first(&clear, without).is_none();
                    let expected =
                        free.then(|| page.gaps(within, without).find(|gap| gap.overlaps(&asked))).flatten();
                    let found = page.gap_around(&asked, &clear, &within, without);
                    assert_eq!(found, expected, "{start} to {end} without {without:?}");
                }
            }
        }
    }
}
