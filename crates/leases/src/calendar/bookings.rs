//! The calendar: bookings of hosts and addresses, entered lease by lease.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use thiserror::Error;

use super::page::{Booking, Page};
use crate::ids::{FloatingIpId, HostId, LeaseId};
use crate::lease::{Allocation, Lease, Reservation};
use crate::resources::Resources;
use crate::window::{Window, earlier};

/// A resource that is already booked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Conflict {
    #[error("host {host} is taken by lease {by}")]
    Host { host: HostId, by: LeaseId },
    #[error("floating IP {ip} is taken by lease {by}")]
    FloatingIp { ip: FloatingIpId, by: LeaseId },
}

/// All bookings.
///
/// A copy shares everything that neither copy changes. So a decision that tries moving some leases only pays
/// for those.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calendar {
    pub(super) cleaning_time: SignedDuration,
    pub(super) hosts: BTreeMap<HostId, Arc<Page>>,
    floating_ips: BTreeMap<FloatingIpId, Arc<Page>>,
    /// Resources that each lease has booked, to remove its bookings.
    places: BTreeMap<LeaseId, Arc<Places>>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Places {
    /// Ascending.
    hosts: Box<[HostId]>,
    floating_ips: Box<[FloatingIpId]>,
}

impl Places {
    fn of(lease: &Lease) -> Self {
        let (mut hosts, mut floating_ips) = (BTreeSet::new(), Vec::new());
        for reservation in &lease.reservations {
            match &reservation.allocation {
                Allocation::FloatingIps(ips) => floating_ips.extend(ips),
                allocation => hosts.extend(allocation.hosts()),
            }
        }
        Self { hosts: hosts.into_iter().collect(), floating_ips: floating_ips.into_boxed_slice() }
    }
}

impl Calendar {
    /// A calendar without bookings.
    pub(crate) const NOTHING: Self = Self {
        cleaning_time: SignedDuration::ZERO,
        hosts: BTreeMap::new(),
        floating_ips: BTreeMap::new(),
        places: BTreeMap::new(),
    };

    /// An empty calendar. Hosts must be free for `cleaning_time` before and after a lease of the whole host
    /// (API-cleaning). A negative value counts as zero.
    pub fn new(cleaning_time: SignedDuration) -> Self {
        Self { cleaning_time: cleaning_time.max(SignedDuration::ZERO), ..Self::default() }
    }

    /// Time for which a host must be free before and after a lease of the whole host.
    pub fn cleaning_time(&self) -> SignedDuration {
        self.cleaning_time
    }

    /// Enters leases like [`Self::put`].
    pub fn with_leases<'a>(
        mut self,
        leases: impl IntoIterator<Item = &'a Lease>,
        now: Timestamp,
    ) -> Result<Self, Conflict> {
        // By start, so that new bookings go to the end. Otherwise many bookings would be moved again and
        // again.
        let mut leases: Vec<&Lease> = leases.into_iter().collect();
        leases.sort_by_key(|lease| lease.window.start());
        for lease in leases {
            self.put(lease, now)?;
        }
        Ok(self)
    }

    /// Replaces the bookings of a lease by those from `now` on. On a conflict nothing changes.
    ///
    /// A lease that is over stays until its hosts are cleaned, and is never refused. Remove it with
    /// [`Self::prune`], not when the lease is forgotten.
    pub fn put(&mut self, lease: &Lease, now: Timestamp) -> Result<(), Conflict> {
        // After its end, a lease books nothing more, even while its hosts are being taken back.
        let keeps = lease.keeps_resources() && now < lease.window.end();
        let from = if keeps { now } else { earlier(now, self.cleaning_time) };
        let mut window = lease.window.since(from);
        if !keeps {
            // A lease that ended early, or by a clock ahead of ours, leaves its hosts now.
            window = window.before(now);
        }
        if window.is_empty() {
            self.remove(lease.id);
            return Ok(());
        }
        if let Err(conflict) = self.check(lease, &window) {
            if keeps {
                return Err(conflict);
            }
            self.remove(lease.id);
            return Ok(());
        }
        self.remove(lease.id);
        for reservation in &lease.reservations {
            self.enter(lease, reservation, window);
        }
        self.places.insert(lease.id, Arc::new(Places::of(lease)));
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Removes leases that have ended, once their cleaning time has passed as well.
    pub fn prune(&mut self, now: Timestamp) {
        let until = earlier(now, self.cleaning_time);
        let pages = self.hosts.values().chain(self.floating_ips.values());
        let bookings = pages.flat_map(|page| page.bookings());
        let passed: BTreeSet<LeaseId> =
            bookings.filter(|(window, _)| window.end() <= until).map(|(_, booking)| booking.lease).collect();
        for lease in passed {
            self.remove(lease);
        }
    }

    /// Removes all bookings of a lease.
    pub fn remove(&mut self, lease: LeaseId) {
        self.remove_all(&BTreeSet::from([lease]));
    }

    /// Removes all bookings of these leases. Each host is updated once, however many leases have booked it.
    pub fn remove_all(&mut self, leases: &BTreeSet<LeaseId>) {
        let places: Vec<Arc<Places>> = leases.iter().filter_map(|lease| self.places.remove(lease)).collect();
        let hosts: BTreeSet<HostId> = places.iter().flat_map(|places| &places.hosts).copied().collect();
        let ips: BTreeSet<FloatingIpId> =
            places.iter().flat_map(|places| &places.floating_ips).copied().collect();
        for host in hosts {
            take_out(&mut self.hosts, host, leases);
        }
        for ip in ips {
            take_out(&mut self.floating_ips, ip, leases);
        }
    }

    /// Enters leases like [`Self::put`], but removes all old bookings first, so that the leases can swap
    /// hosts. On a conflict some leases are missing.
    pub fn put_all<'a>(
        &mut self,
        leases: impl IntoIterator<Item = &'a Lease> + Clone,
        now: Timestamp,
    ) -> Result<(), Conflict> {
        self.remove_all(&leases.clone().into_iter().map(|lease| lease.id).collect());
        leases.into_iter().try_for_each(|lease| self.put(lease, now))
    }

    /// Finds conflicts with other leases and between the lease's own reservations.
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

    /// Enters the bookings of a reservation that has passed the check.
    fn enter(&mut self, lease: &Lease, reservation: &Reservation, window: Window) {
        let booking = |used| Booking { lease: lease.id, reservation: reservation.id, used };
        match &reservation.allocation {
            Allocation::Hosts(hosts) => {
                for &host in hosts {
                    Arc::make_mut(self.hosts.entry(host).or_default()).insert(window, booking(None));
                }
            }
            Allocation::Slots(slots) => {
                let size = reservation.terms.slots().map(|terms| terms.size).unwrap_or_default();
                for (&host, &count) in slots {
                    let mut used = Resources::default();
                    used.add(count, &size);
                    Arc::make_mut(self.hosts.entry(host).or_default())
                        .insert(window, booking(Some(Box::new(used))));
                }
            }
            Allocation::FloatingIps(ips) => {
                for &ip in ips {
                    Arc::make_mut(self.floating_ips.entry(ip).or_default()).insert(window, booking(None));
                }
            }
        }
    }

    /// Whether no part of the host is booked at any instant of the window. Here and below, bookings of the
    /// lease `without` don't count, so that a changed lease isn't in its own way (W15).
    pub fn host_free(&self, host: HostId, window: &Window, without: Option<LeaseId>) -> bool {
        self.hosts.get(&host).is_none_or(|page| page.first(window, without).is_none())
    }

    /// Whether the host isn't booked as a whole at any instant of the window.
    pub fn host_open_to_slots(&self, host: HostId, window: &Window, without: Option<LeaseId>) -> bool {
        self.hosts.get(&host).is_none_or(|page| page.first_whole(window, without).is_none())
    }

    /// Whether the address isn't booked at any instant of the window.
    pub fn floating_ip_free(&self, ip: FloatingIpId, window: &Window, without: Option<LeaseId>) -> bool {
        self.floating_ips.get(&ip).is_none_or(|page| page.first(window, without).is_none())
    }

    /// Peak simultaneous use of the host by slots in the window, for each resource. A constant use during the
    /// whole window fits if it fits beside this (W2, W16).
    pub fn peak_use(&self, host: HostId, window: &Window, without: Option<LeaseId>) -> Resources {
        self.hosts.get(&host).map(|page| page.peak_use(window, without)).unwrap_or_default()
    }

    /// Times within `within` in which no part of the host is booked, in order.
    pub fn free_gaps(&self, host: HostId, within: &Window, without: Option<LeaseId>) -> Vec<Window> {
        gaps(self.hosts.get(&host), within, without)
    }

    /// Times within `within` in which the address isn't booked, in order.
    pub fn floating_ip_gaps(&self, ip: FloatingIpId, within: &Window) -> Vec<Window> {
        gaps(self.floating_ips.get(&ip), within, None)
    }

    /// Number of bookings that a search of the window examines: slightly more than overlap it.
    pub fn near(&self, host: HostId, window: &Window) -> usize {
        self.hosts.get(&host).map_or(0, |page| page.near(window))
    }

    /// Bookings of a host in order of their starts.
    pub fn bookings(&self, host: HostId) -> impl Iterator<Item = (Window, &Booking)> {
        self.hosts.get(&host).into_iter().flat_map(|page| page.bookings())
    }

    /// Bookings of a host that overlap the window, in order of their starts.
    pub fn bookings_in(&self, host: HostId, within: Window) -> impl Iterator<Item = (Window, &Booking)> {
        self.hosts.get(&host).into_iter().flat_map(move |page| page.bookings_in(within))
    }

    /// Bookings of a floating IP in order of their starts.
    pub fn floating_ip_bookings(&self, ip: FloatingIpId) -> impl Iterator<Item = (Window, &Booking)> {
        self.floating_ips.get(&ip).into_iter().flat_map(|page| page.bookings())
    }

    pub(super) fn has_booked(&self, lease: LeaseId, host: HostId) -> bool {
        self.places.get(&lease).is_some_and(|places| places.hosts.binary_search(&host).is_ok())
    }

    /// Hosts on which the lease has bookings.
    pub fn hosts_of(&self, lease: LeaseId) -> impl Iterator<Item = HostId> + '_ {
        self.places.get(&lease).into_iter().flat_map(|places| places.hosts.iter().copied())
    }
}

/// Gaps between the bookings of a page.
fn gaps(page: Option<&Arc<Page>>, within: &Window, without: Option<LeaseId>) -> Vec<Window> {
    match page {
        Some(page) => page.gaps(*within, without).collect(),
        None if within.is_empty() => Vec::new(),
        None => vec![*within],
    }
}

/// Removes these leases from a page, and the page itself if it is empty then.
fn take_out<K: Ord>(pages: &mut BTreeMap<K, Arc<Page>>, key: K, leases: &BTreeSet<LeaseId>) {
    if let Entry::Occupied(mut page) = pages.entry(key)
        && Arc::make_mut(page.get_mut()).remove(leases)
    {
        page.remove();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at, lease, minutes, window};
    use crate::work::UNLIMITED;

    fn booked(leases: &[Lease], cleaning: i64) -> Calendar {
        Calendar::new(minutes(cleaning)).with_leases(leases, at(0)).expect("free")
    }

    #[test]
    fn an_overlapping_booking_of_a_host_cannot_be_entered_and_changes_nothing() {
        let mut calendar = booked(&[lease(1, window(0, 60), &[1, 2])], 0);
        let before = calendar.clone();
        let refused = calendar.put(&lease(2, window(59, 90), &[2, 3]), at(0));
        assert_eq!(refused, Err(Conflict::Host { host: HostId(2), by: LeaseId(1) }));
        assert_eq!(calendar, before);
        assert_eq!(calendar.put(&lease(2, window(60, 90), &[2, 3]), at(0)), Ok(()));
    }

    #[test]
    fn a_changed_lease_does_not_stand_in_its_own_way() {
        let mut calendar = booked(&[lease(1, window(0, 60), &[1])], 0);
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
        let refused = Calendar::default().with_leases(&[twice], at(0));
        assert_eq!(refused, Err(Conflict::Host { host: HostId(1), by: LeaseId(1) }));
    }

    #[test]
    fn the_past_of_a_lease_is_not_in_the_calendar() {
        let calendar =
            Calendar::default().with_leases(&[lease(1, window(0, 60), &[1])], at(20)).expect("free");
        let windows: Vec<_> = calendar.bookings(HostId(1)).map(|(window, _)| window).collect();
        assert_eq!(windows, [window(20, 60)]);
    }

    #[test]
    fn a_removed_lease_leaves_no_trace() {
        let mut calendar = booked(&[lease(1, window(0, 60), &[1, 2])], 0);
        calendar.remove(LeaseId(1));
        assert_eq!(calendar, Calendar::default());
    }

    #[test]
    fn leases_that_are_removed_together_are_removed_as_one_by_one_and_from_one_copy_only() {
        let leases = [
            lease(1, window(0, 60), &[1, 2]),
            lease(2, window(60, 90), &[2, 3]),
            lease(3, window(90, 120), &[2]),
            lease(4, window(10, 60), &[3]),
        ];
        let calendar = booked(&leases, 5);
        let mut one_by_one = calendar.clone();
        for id in [1, 3] {
            one_by_one.remove(LeaseId(id));
        }
        let mut together = calendar.clone();
        together.remove_all(&BTreeSet::from([1, 3, 9].map(LeaseId)));
        assert_eq!(together, one_by_one);
        assert_eq!(together, booked(&[leases[1].clone(), leases[3].clone()], 5));
        assert_eq!(calendar, booked(&leases, 5), "copies do not know of each other's changes");
    }

    #[test]
    fn a_window_fits_a_small_gap_better_than_a_large_one() {
        let leases = [
            lease(1, window(0, 10), &[1, 2]),
            lease(2, window(30, 40), &[1]),
            lease(3, window(90, 99), &[2]),
        ];
        let calendar = booked(&leases, 0);
        let fit = |host| calendar.fit(HostId(host), &window(10, 20), &window(0, 1000), None);
        assert!(fit(1) < fit(2) && fit(2) < fit(3));
        let cleaned = booked(&leases, 1).fit(HostId(1), &window(10, 20), &window(0, 1000), None);
        assert_eq!(cleaned, None);
    }

    #[test]
    fn gaps_lie_between_bookings_and_inside_the_horizon() {
        let calendar = booked(&[lease(1, window(10, 20), &[1]), lease(2, window(20, 30), &[1])], 0);
        let gaps = calendar.free_gaps(HostId(1), &window(0, 50), None);
        assert_eq!(gaps, [window(0, 10), window(30, 50)]);
        assert_eq!(calendar.free_gaps(HostId(1), &window(12, 28), None), []);
        assert_eq!(calendar.free_gaps(HostId(2), &window(0, 50), None), [window(0, 50)]);
    }

    #[test]
    fn the_earliest_slot_waits_for_enough_hosts_and_prefers_small_gaps() {
        let leases = [
            lease(1, window(0, 60), &[1]),
            lease(2, window(0, 90), &[2, 3]),
            lease(3, window(130, 150), &[3]),
            lease(4, window(0, 500), &[4]),
        ];
        let (calendar, cleaned) = (booked(&leases, 0), booked(&leases, 7));
        let hosts = [1, 2, 3, 4].map(HostId);
        let slot =
            calendar.earliest_slot(&hosts, 2, minutes(30), &window(0, 1000), None, &UNLIMITED).expect("one");
        assert_eq!((slot.window, slot.hosts), (window(90, 120), vec![HostId(2), HostId(3)]));
        let cleaned =
            cleaned.earliest_slot(&hosts, 3, minutes(30), &window(0, 1000), None, &UNLIMITED).expect("one");
        assert_eq!(cleaned.window, window(157, 187), "after 97 host 3 is not free for 30 + 7 minutes");
        assert_eq!(calendar.earliest_slot(&hosts, 4, minutes(30), &window(0, 520), None, &UNLIMITED), None);
        assert_eq!(calendar.earliest_slot(&hosts, 5, minutes(30), &window(0, 1000), None, &UNLIMITED), None);
    }

    #[test]
    fn hosts_are_cleaned_after_a_lease_that_is_over() {
        let mut calendar = booked(&[lease(1, window(10, 60), &[1]), lease(2, window(90, 99), &[1])], 5);
        let deleted = lease(1, window(10, 60), &[1]).deleted(at(30));
        calendar.put(&deleted, at(30)).expect("never refused");
        assert!(calendar.host_free(HostId(1), &window(30, 60), None), "it is not taken any more");
        assert_eq!(calendar.fit(HostId(1), &window(30, 60), &window(30, 1000), None), None);
        assert!(calendar.fit(HostId(1), &window(35, 60), &window(30, 1000), None).is_some());
        calendar.prune(at(34));
        assert_eq!(calendar.bookings(HostId(1)).count(), 2);
        calendar.prune(at(35));
        assert_eq!(calendar, booked(&[lease(2, window(90, 99), &[1])], 5));
    }

    #[test]
    fn hosts_are_cleaned_after_a_lease_that_has_ended_by_a_clock_that_is_ahead() {
        let mut calendar = booked(&[lease(1, window(0, 30), &[1])], 10);
        let ended = Lease { status: crate::status::LeaseStatus::Error, ..lease(1, window(0, 30), &[1]) };
        calendar.put(&ended, at(29)).expect("it gives up");
        let clear = |start, end| window(start, end).widened(minutes(10));
        assert!(!calendar.host_free(HostId(1), &clear(29, 60), None));
        assert!(calendar.host_free(HostId(1), &clear(39, 60), None));
    }

    #[test]
    fn hosts_are_cleaned_after_a_lease_that_is_still_being_taken_back() {
        let mut calendar = booked(&[lease(1, window(10, 60), &[1])], 5);
        let ending =
            Lease { status: crate::status::LeaseStatus::Terminating, ..lease(1, window(10, 60), &[1]) };
        calendar.put(&ending, at(60)).expect("it has this host already");
        assert_eq!(calendar.fit(HostId(1), &window(61, 70), &window(60, 1000), None), None);
        assert!(calendar.fit(HostId(1), &window(65, 70), &window(60, 1000), None).is_some());
    }

    #[test]
    fn a_lease_deleted_before_its_start_leaves_nothing_to_clean() {
        let mut calendar = booked(&[lease(1, window(10, 60), &[1])], 5);
        calendar.put(&lease(1, window(10, 60), &[1]).deleted(at(2)), at(2)).expect("never refused");
        assert_eq!(calendar, booked(&[], 5));
    }
}
