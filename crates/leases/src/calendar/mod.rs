//! Who has which host, or how much of it, and which address, when.
//!
//! The calendar is built from leases and kept up to date lease by lease. It looks forward only: bookings are cut
//! off at the instant they are entered, because nobody can be given the past. It is fast to search, not the
//! last word: the store that commits a lease checks again.
//!
//! Two bookings of a whole host that overlap cannot be entered ([`Conflict`]), nor a whole-host booking over
//! shares of the host. Whether shares fit a host's capacity depends on the host and is
//! [`crate::admission`]'s to check, with [`Calendar::peak_use`].

mod page;
mod slot;

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use thiserror::Error;

pub use self::page::Booking;
use self::page::Page;
pub use self::slot::{Fit, Slot, SlotSearch};
use crate::ids::{FloatingIpId, HostId, LeaseId, ReservationId};
use crate::lease::{Allocation, Lease};
use crate::resources::Resources;
use crate::window::Window;

/// Something is taken already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Conflict {
    /// A host.
    #[error("host {host} is taken by lease {by}")]
    Host {
        /// The host.
        host: HostId,
        /// Who has it.
        by: LeaseId,
    },
    /// An address.
    #[error("floating IP {ip} is taken by lease {by}")]
    FloatingIp {
        /// The address.
        ip: FloatingIpId,
        /// Who has it.
        by: LeaseId,
    },
}

/// Who has what when.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calendar {
    hosts: BTreeMap<HostId, Page>,
    floating_ips: BTreeMap<FloatingIpId, Page>,
    /// Where each lease has bookings, so that they can be taken out.
    places: BTreeMap<LeaseId, Places>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Places {
    hosts: BTreeSet<HostId>,
    floating_ips: BTreeSet<FloatingIpId>,
}

impl Calendar {
    /// The calendar of these leases from `now` on.
    pub fn from_leases<'a>(
        leases: impl IntoIterator<Item = &'a Lease>,
        now: Timestamp,
    ) -> Result<Self, Conflict> {
        let mut calendar = Self::default();
        for lease in leases {
            calendar.put(lease, now)?;
        }
        Ok(calendar)
    }

    /// Enters what a lease keeps from others, instead of what it had. On a conflict nothing changes.
    pub fn put(&mut self, lease: &Lease, now: Timestamp) -> Result<(), Conflict> {
        let window = lease.window.since(now);
        if !lease.keeps_resources() || window.is_empty() {
            self.remove(lease.id);
            return Ok(());
        }
        self.check(lease, &window)?;
        self.remove(lease.id);
        for reservation in &lease.reservations {
            self.enter(lease, reservation.id, window);
        }
        Ok(())
    }

    /// Takes out everything that a lease has.
    pub fn remove(&mut self, lease: LeaseId) {
        let Some(places) = self.places.remove(&lease) else { return };
        for host in places.hosts {
            if let Some(page) = self.hosts.get_mut(&host) {
                page.remove(lease);
                if page.is_empty() {
                    self.hosts.remove(&host);
                }
            }
        }
        for ip in places.floating_ips {
            if let Some(page) = self.floating_ips.get_mut(&ip) {
                page.remove(lease);
                if page.is_empty() {
                    self.floating_ips.remove(&ip);
                }
            }
        }
    }

    /// What stands in the way of a lease: other leases, or its own reservations among themselves.
    fn check(&self, lease: &Lease, window: &Window) -> Result<(), Conflict> {
        let (mut whole, mut shared, mut ips) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for reservation in &lease.reservations {
            match &reservation.allocation {
                Allocation::Hosts(hosts) => {
                    for &host in hosts {
                        let other = self.hosts.get(&host).and_then(|p| p.first(window, Some(lease.id)));
                        let own = (!whole.insert(host) || shared.contains(&host)).then_some(lease.id);
                        if let Some(by) = other.map(|booking| booking.lease).or(own) {
                            return Err(Conflict::Host { host, by });
                        }
                    }
                }
                Allocation::Slots(slots) => {
                    for &host in slots.keys() {
                        let other = self.hosts.get(&host).and_then(|p| p.first_whole(window, Some(lease.id)));
                        let own = whole.contains(&host).then_some(lease.id);
                        if let Some(by) = other.map(|booking| booking.lease).or(own) {
                            return Err(Conflict::Host { host, by });
                        }
                        shared.insert(host);
                    }
                }
                Allocation::FloatingIps(wanted) => {
                    for &ip in wanted {
                        let other = self.floating_ips.get(&ip).and_then(|p| p.first(window, Some(lease.id)));
                        let own = (!ips.insert(ip)).then_some(lease.id);
                        if let Some(by) = other.map(|booking| booking.lease).or(own) {
                            return Err(Conflict::FloatingIp { ip, by });
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Enters a reservation that was checked.
    fn enter(&mut self, lease: &Lease, reservation: ReservationId, window: Window) {
        let Some(reservation) = lease.reservation(reservation) else { return };
        let booking = |used| Booking { lease: lease.id, reservation: reservation.id, used };
        let places = self.places.entry(lease.id).or_default();
        match &reservation.allocation {
            Allocation::Hosts(hosts) => {
                for &host in hosts {
                    self.hosts.entry(host).or_default().insert(window, booking(None));
                    places.hosts.insert(host);
                }
            }
            Allocation::Slots(slots) => {
                let size = reservation.terms.slots().map(|terms| terms.size).unwrap_or_default();
                for (&host, &count) in slots {
                    let mut used = Resources::default();
                    used.add(count, &size);
                    self.hosts.entry(host).or_default().insert(window, booking(Some(used)));
                    places.hosts.insert(host);
                }
            }
            Allocation::FloatingIps(ips) => {
                for &ip in ips {
                    self.floating_ips.entry(ip).or_default().insert(window, booking(None));
                    places.floating_ips.insert(ip);
                }
            }
        }
    }

    /// Whether nobody has the host, or a part of it, at any instant of the window. The bookings of `without`
    /// do not count, here and below: a lease that is changed does not stand in its own way (spec W15).
    pub fn host_free(&self, host: HostId, window: &Window, without: Option<LeaseId>) -> bool {
        self.hosts.get(&host).is_none_or(|page| page.first(window, without).is_none())
    }

    /// Whether nobody has the whole host at any instant of the window.
    pub fn host_open_to_slots(&self, host: HostId, window: &Window, without: Option<LeaseId>) -> bool {
        self.hosts.get(&host).is_none_or(|page| page.first_whole(window, without).is_none())
    }

    /// Whether nobody has the address at any instant of the window.
    pub fn floating_ip_free(&self, ip: FloatingIpId, window: &Window, without: Option<LeaseId>) -> bool {
        self.floating_ips.get(&ip).is_none_or(|page| page.first(window, without).is_none())
    }

    /// The highest use, resource by resource, that the host's slots are put to at the same instant of the
    /// window. What is used all through the window fits if it fits beside this (spec W2, W16).
    pub fn peak_use(&self, host: HostId, window: &Window, without: Option<LeaseId>) -> Resources {
        self.hosts.get(&host).map(|page| page.peak_use(window, without)).unwrap_or_default()
    }

    /// Times within `within` when nobody has any of the host, in order.
    pub fn free_gaps(&self, host: HostId, within: &Window, without: Option<LeaseId>) -> Vec<Window> {
        match self.hosts.get(&host) {
            Some(page) => page.gaps(*within, without).collect(),
            None if within.is_empty() => Vec::new(),
            None => vec![*within],
        }
    }

    /// How well the window, with a margin for cleaning, fits the gap that it lies in. None if there is none.
    ///
    /// `within` bounds gaps that no booking bounds; the past should not be in it.
    pub fn fit(
        &self,
        host: HostId,
        window: &Window,
        search: &SlotSearch,
        without: Option<LeaseId>,
    ) -> Option<Fit> {
        let wanted = window.widened(search.cleaning);
        if !self.host_free(host, &wanted, without) {
            return None;
        }
        let gap = match self.hosts.get(&host) {
            Some(page) => page.gaps(search.within, without).find(|gap| gap.overlaps(window))?,
            None => search.within,
        };
        Some(Fit::new(&gap, window, host))
    }

    /// The earliest time when `count` of these hosts are free together for `length`, and which to take then.
    pub fn earliest_slot(
        &self,
        hosts: &[HostId],
        count: usize,
        length: SignedDuration,
        search: &SlotSearch,
    ) -> Option<Slot> {
        slot::earliest(self, hosts, count, length, search)
    }

    /// The bookings of a host in the order of their starts, with the windows they are for.
    pub fn bookings(&self, host: HostId) -> impl Iterator<Item = (Window, &Booking)> {
        self.hosts.get(&host).into_iter().flat_map(Page::bookings)
    }

    /// The bookings of a floating IP in the order of their starts, with the windows they are for.
    pub fn floating_ip_bookings(&self, ip: FloatingIpId) -> impl Iterator<Item = (Window, &Booking)> {
        self.floating_ips.get(&ip).into_iter().flat_map(Page::bookings)
    }

    /// The hosts that the lease has something of.
    pub fn hosts_of(&self, lease: LeaseId) -> impl Iterator<Item = HostId> + '_ {
        self.places.get(&lease).into_iter().flat_map(|places| places.hosts.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at, lease, minutes, window};

    fn search(from: i64, until: i64, cleaning: i64) -> SlotSearch {
        SlotSearch { within: window(from, until), cleaning: minutes(cleaning) }
    }

    #[test]
    fn an_overlapping_booking_of_a_host_cannot_be_entered_and_changes_nothing() {
        let mut calendar = Calendar::from_leases(&[lease(1, window(0, 60), &[1, 2])], at(0)).expect("free");
        let before = calendar.clone();
        let refused = calendar.put(&lease(2, window(59, 90), &[2, 3]), at(0));
        assert_eq!(refused, Err(Conflict::Host { host: HostId(2), by: LeaseId(1) }));
        assert_eq!(calendar, before);
        assert_eq!(calendar.put(&lease(2, window(60, 90), &[2, 3]), at(0)), Ok(()));
    }

    #[test]
    fn a_changed_lease_does_not_stand_in_its_own_way() {
        let mut calendar = Calendar::from_leases(&[lease(1, window(0, 60), &[1])], at(0)).expect("free");
        assert_eq!(calendar.put(&lease(1, window(30, 90), &[1]), at(0)), Ok(()));
        assert!(calendar.host_free(HostId(1), &window(0, 30), None));
        assert!(!calendar.host_free(HostId(1), &window(0, 31), None));
        assert!(calendar.host_free(HostId(1), &window(0, 31), Some(LeaseId(1))));
    }

    #[test]
    fn one_lease_cannot_have_a_host_twice() {
        let mut twice = lease(1, window(0, 60), &[1]);
        let second = Lease { reservations: twice.reservations.clone(), ..lease(1, window(0, 60), &[1]) };
        twice.reservations.extend(second.reservations);
        let refused = Calendar::from_leases(&[twice], at(0));
        assert_eq!(refused, Err(Conflict::Host { host: HostId(1), by: LeaseId(1) }));
    }

    #[test]
    fn the_past_of_a_lease_is_not_in_the_calendar() {
        let calendar = Calendar::from_leases(&[lease(1, window(0, 60), &[1])], at(20)).expect("free");
        let windows: Vec<_> = calendar.bookings(HostId(1)).map(|(window, _)| window).collect();
        assert_eq!(windows, [window(20, 60)]);
    }

    #[test]
    fn a_removed_lease_leaves_no_trace() {
        let mut calendar = Calendar::from_leases(&[lease(1, window(0, 60), &[1, 2])], at(0)).expect("free");
        calendar.remove(LeaseId(1));
        assert_eq!(calendar, Calendar::default());
    }

    #[test]
    fn a_window_fits_a_small_gap_better_than_a_large_one() {
        let booked = [
            lease(1, window(0, 10), &[1, 2]),
            lease(2, window(30, 40), &[1]),
            lease(3, window(90, 99), &[2]),
        ];
        let calendar = Calendar::from_leases(&booked, at(0)).expect("free");
        let fit = |host| calendar.fit(HostId(host), &window(10, 20), &search(0, 1000, 0), None);
        assert!(fit(1) < fit(2) && fit(2) < fit(3));
        assert_eq!(calendar.fit(HostId(1), &window(10, 20), &search(0, 1000, 1), None), None);
    }

    #[test]
    fn gaps_lie_between_bookings_and_inside_the_horizon() {
        let booked = [lease(1, window(10, 20), &[1]), lease(2, window(20, 30), &[1])];
        let calendar = Calendar::from_leases(&booked, at(0)).expect("free");
        let gaps = calendar.free_gaps(HostId(1), &window(0, 50), None);
        assert_eq!(gaps, [window(0, 10), window(30, 50)]);
        assert_eq!(calendar.free_gaps(HostId(1), &window(12, 28), None), []);
        assert_eq!(calendar.free_gaps(HostId(2), &window(0, 50), None), [window(0, 50)]);
    }

    #[test]
    fn the_earliest_slot_waits_for_enough_hosts_and_prefers_small_gaps() {
        let booked = [
            lease(1, window(0, 60), &[1]),
            lease(2, window(0, 90), &[2, 3]),
            lease(3, window(130, 150), &[3]),
            lease(4, window(0, 500), &[4]),
        ];
        let calendar = Calendar::from_leases(&booked, at(0)).expect("free");
        let hosts = [1, 2, 3, 4].map(HostId);
        let slot = calendar.earliest_slot(&hosts, 2, minutes(30), &search(0, 1000, 0)).expect("one");
        assert_eq!((slot.window, slot.hosts), (window(90, 120), vec![HostId(2), HostId(3)]));
        let cleaned = calendar.earliest_slot(&hosts, 3, minutes(30), &search(0, 1000, 7)).expect("one");
        assert_eq!(cleaned.window, window(157, 187), "after 97 host 3 is not free for 30 + 7 minutes");
        assert_eq!(calendar.earliest_slot(&hosts, 4, minutes(30), &search(0, 520, 0)), None);
        assert_eq!(calendar.earliest_slot(&hosts, 5, minutes(30), &search(0, 1000, 0)), None);
    }
}
