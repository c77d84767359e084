//! The bookings of one host, or of one address.

use crate::ids::{LeaseId, ReservationId};
use crate::resources::Resources;
use crate::window::Window;

/// A booking of a host, whole or in part, or of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// From when to when.
    pub window: Window,
    /// For which lease.
    pub lease: LeaseId,
    /// For which of its reservations.
    pub reservation: ReservationId,
    /// What its slots use, or none if it has the whole.
    pub used: Option<Resources>,
}

/// Entries in the order of their starts. Entries of the whole overlap no other entry.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Page {
    entries: Vec<Entry>,
}

impl Page {
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Enters what was checked to be free.
    pub(super) fn insert(&mut self, entry: Entry) {
        debug_assert!(
            match entry.used {
                None => self.first(&entry.window, None).is_none(),
                Some(_) => self.first_whole(&entry.window, None).is_none(),
            },
            "{entry:?} overlaps a booking"
        );
        // By reservation among equals, so that a page does not depend on the order of arrival.
        let key = |e: &Entry| (e.window.start(), e.reservation);
        let position = self.entries.partition_point(|other| key(other) < key(&entry));
        self.entries.insert(position, entry);
    }

    pub(super) fn remove(&mut self, lease: LeaseId) {
        self.entries.retain(|entry| entry.lease != lease);
    }

    /// Entries of other leases than `without` that overlap the window, by start.
    fn overlapping(&self, window: &Window, without: Option<LeaseId>) -> impl Iterator<Item = &Entry> {
        let before_end = self.entries.partition_point(|entry| entry.window.start() < window.end());
        self.entries[..before_end]
            .iter()
            .filter(move |entry| entry.window.overlaps(window) && Some(entry.lease) != without)
    }

    pub(super) fn first(&self, window: &Window, without: Option<LeaseId>) -> Option<&Entry> {
        self.overlapping(window, without).next()
    }

    pub(super) fn first_whole(&self, window: &Window, without: Option<LeaseId>) -> Option<&Entry> {
        self.overlapping(window, without).find(|entry| entry.used.is_none())
    }

    /// The highest simultaneous use: a sweep over starts and ends, ends first where they coincide, because a
    /// window does not contain its end.
    pub(super) fn peak_use(&self, window: &Window, without: Option<LeaseId>) -> Resources {
        let mut turns = Vec::new();
        for entry in self.overlapping(window, without) {
            if let Some(used) = &entry.used {
                turns.push((entry.window.start(), true, used));
                turns.push((entry.window.end(), false, used));
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
            // What is over when the window starts does not count, nor does a state that lasts no time.
            let lasts_until = turns.peek().map_or(instant, |(next, ..)| *next);
            if lasts_until > window.start() && lasts_until > instant {
                peak.raise_to(&now);
            }
        }
        peak
    }

    /// Times within `within` that no entry of another lease than `without` overlaps.
    pub(super) fn gaps(&self, within: &Window, without: Option<LeaseId>) -> impl Iterator<Item = Window> {
        let mut busy = self.overlapping(within, without).map(|entry| entry.window);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::window;

    fn share(number: u128, start: i64, end: i64, vcpus: u64) -> Entry {
        Entry {
            window: window(start, end),
            lease: LeaseId(number),
            reservation: ReservationId(number),
            used: Some(Resources { vcpus, ..Resources::default() }),
        }
    }

    fn page(entries: impl IntoIterator<Item = Entry>) -> Page {
        let mut page = Page::default();
        entries.into_iter().for_each(|entry| page.insert(entry));
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
    fn gaps_skip_what_overlaps() {
        let page = page([share(1, 0, 30, 1), share(2, 5, 10, 1), share(3, 40, 50, 1)]);
        let gaps: Vec<_> = page.gaps(&window(0, 60), None).collect();
        assert_eq!(gaps, [window(30, 40), window(50, 60)]);
        let without_first: Vec<_> = page.gaps(&window(0, 60), Some(LeaseId(1))).collect();
        assert_eq!(without_first, [window(0, 5), window(10, 40), window(50, 60)]);
    }
}
