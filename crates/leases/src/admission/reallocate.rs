//! Reallocation of a lease's reservations after a change.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::assignment::Part;
use super::{Admission, HealingInterval, Refusal, Resource, Search, order};
use crate::host::Health;
use crate::ids::{FloatingIpId, HostId, ReservationId};
use crate::lease::{Allocation, Lease, Reservation};
use crate::lease_type::LeaseType;
use crate::offer::OfferKind;
use crate::standing::Standing;
use crate::status::LeaseStatus;
use crate::terms::{FloatingIpsTerms, HostsTerms, ReservationTerms, SlotsTerms};
use crate::window::Window;

/// Cost to copy the calendar of a host.
const COPYING: u64 = 10;

impl Admission<'_> {
    /// New allocations for the reservations of a lease that changes from `before` to `updated`.
    pub(super) fn given_again(&self, before: &Lease, updated: &Lease) -> Result<Vec<Reservation>, Refusal> {
        self.remembering(|admission| admission.given_what_it_needs(before, updated))
    }

    fn given_what_it_needs(&self, before: &Lease, updated: &Lease) -> Result<Vec<Reservation>, Refusal> {
        let admission = self.on_behalf_of(before).lasting(self.time_left(updated));
        let attempt = Attempt { admission, before, updated };
        let given = match attempt.keeping_apart(&BTreeMap::new()) {
            // One by one, a reservation can take a host that another one needs.
            Err(refusal @ Refusal::NotEnough { .. }) if attempt.started() => {
                attempt.growing_together().ok_or(refusal)
            }
            // As if the lease were new: its reservations can take over hosts from each other.
            Err(Refusal::NotEnough { .. }) if !attempt.started() => match attempt.starting_over(false) {
                // The request asks for less than was granted. If a host has failed since, healing replaces
                // it.
                Err(Refusal::NotEnough { .. }) if !attempt.asks_more() => Ok(updated.reservations.clone()),
                // A change never makes the lease worse off: it can keep its hosts that are closed or don't
                // work.
                Err(refusal @ Refusal::NotEnough { .. }) => {
                    attempt.starting_over(true).ok().filter(|given| attempt.is_in_time(given)).ok_or(refusal)
                }
                given => given,
            },
            given => given,
        };
        self.settled_of(updated, given)
    }
}

impl Admission<'_> {
    /// The lease of an accepted offer that was made at `made_at`. It gets the offered hosts, unless one has
    /// failed since, or a guest blocks the start there while other hosts are free.
    pub fn accepted(&self, offered: &Lease, made_at: Timestamp) -> Result<Lease, Refusal> {
        let window = self.accepted_window(offered, made_at)?;
        let before_end = offered.before_end.map(|at| at.max(window.start()));
        let firm = Lease { standing: Standing::Firm, window, before_end, ..offered.clone() };
        if self.stands(&firm) {
            let blocked = !self.blocked_hosts(&firm).is_empty();
            let healed = blocked.then(|| self.heal(&firm, HealingInterval(None))).flatten();
            return Ok(healed.filter(|healed| healed.has_as_much_as(&firm)).unwrap_or(firm));
        }
        let reservations = self.given_anew(&firm)?;
        Ok(Lease { reservations, ..firm })
    }

    /// The window of an accepted offer. If its start has passed, it starts now and ends as offered, unless the
    /// request was for exactly that start.
    fn accepted_window(&self, offered: &Lease, made_at: Timestamp) -> Result<Window, Refusal> {
        let start = offered.window.start();
        if start >= self.now || offered.lease_type != LeaseType::Schedule {
            return Ok(offered.window);
        }
        let is_later = matches!(offered.standing, Standing::Offered { kind: OfferKind::LaterStart, .. });
        if start > made_at && !is_later {
            return Err(Refusal::OfferedStartPassed(start));
        }
        Ok(offered.window.since(self.now))
    }

    /// Allocates hosts again for a lease that has not started. It prefers its current hosts but needn't keep
    /// them.
    pub(super) fn given_anew(&self, lease: &Lease) -> Result<Vec<Reservation>, Refusal> {
        let admission = self.on_behalf_of(lease);
        let given = Attempt { admission, before: lease, updated: lease }.starting_over(false);
        self.settled_of(lease, given)
    }

    /// Whether the lease can keep exactly its current resources: no host has failed, and no booking
    /// conflicts.
    pub(super) fn stands(&self, lease: &Lease) -> bool {
        let works = |host| self.inventory.host(host).is_some_and(|host| host.health != Health::Failed);
        // The next lines copy the calendar.
        self.budget.charge(COPYING * self.inventory.hosts().len() as u64);
        lease.reservations.iter().flat_map(|r| r.allocation.hosts()).all(works)
            && self.calendar.clone().put(lease, self.now).is_ok()
    }
}

/// The reallocation of a changed lease.
struct Attempt<'a> {
    admission: Admission<'a>,
    before: &'a Lease,
    updated: &'a Lease,
}

impl<'a> Attempt<'a> {
    fn started(&self) -> bool {
        self.before.status != LeaseStatus::Pending
    }

    /// Whether part of the new window is outside of the old one.
    fn longer(&self) -> bool {
        !self.before.window.covers(&self.updated.window)
    }

    /// Whether the hosts should work and be empty by the new start. If the start is earlier, there is less
    /// time for that.
    fn is_in_time(&self, given: &[Reservation]) -> bool {
        let start = self.updated.window.start();
        if start >= self.before.window.start() {
            return true;
        }
        let inventory = self.admission.inventory;
        let works = |host| inventory.host(host).is_some_and(|host| host.health == Health::Up);
        let moved = Lease { reservations: given.to_vec(), ..self.updated.clone() };
        self.admission.blocked_hosts(&moved).is_empty()
            && (self.admission.recovery().is_some_and(|recovery| start >= recovery)
                || given.iter().flat_map(|reservation| reservation.allocation.hosts()).all(works))
    }

    fn changed(&self, position: usize) -> bool {
        self.before.reservations[position].terms != self.updated.reservations[position].terms
    }

    fn asks_more(&self) -> bool {
        self.longer() || (0..self.updated.reservations.len()).any(|position| self.changed(position))
    }

    fn search(&self) -> Search<'a> {
        let search = Search::new(self.admission, self.updated.window, Some(self.before.id));
        search.leaving_required(self.updated.reservations.iter().map(|reservation| &reservation.terms))
    }

    /// A search in which everything that the lease has counts as taken.
    fn search_elsewhere(&self) -> Search<'a> {
        let mut search = self.search();
        for old in &self.before.reservations {
            search.take(&old.terms, &old.allocation);
        }
        search
    }

    /// More hosts for all growing reservations at once, so that no reservation takes a host that another one
    /// needs. `None` if there is no such assignment, or only one reservation.
    fn growing_together(&self) -> Option<Vec<Reservation>> {
        if self.updated.reservations.len() < 2 {
            return None;
        }
        let search = self.search_elsewhere();
        let (mut growing, mut ways) = (Vec::new(), Vec::new());
        for (position, reservation) in self.updated.reservations.iter().enumerate() {
            if let (ReservationTerms::Hosts(terms), Allocation::Hosts(held)) =
                (&reservation.terms, &reservation.allocation)
                && self.changed(position)
            {
                let (free, _) = search.free_hosts(terms);
                let free = search.like(free, terms, held);
                let hosts = free.into_iter().map(|fit| fit.host);
                growing.push((position, held));
                ways.push(search.ways_to_grow(hosts, terms, held));
            }
        }
        search.assignments(&ways, &self.parts()).find_map(|assigned| {
            let more =
                growing.iter().zip(assigned).map(|((position, held), hosts)| (*position, &hosts - held));
            self.keeping_apart(&more.collect()).ok()
        })
    }

    fn parts(&self) -> Vec<Part<'a>> {
        let part = |r: &'a Reservation| Part { terms: &r.terms, held: Some(&r.allocation) };
        self.updated.reservations.iter().map(part).collect()
    }

    /// The updated reservations. If a lease that is starting asks for fewer hosts, it [gives back](Lease::can_give_back) those
    /// that guests block.
    fn without_blocked_hosts(&self) -> Vec<Reservation> {
        let mut reservations = self.updated.reservations.clone();
        if self.before.status != LeaseStatus::Starting {
            return reservations;
        }
        let mut blocked = self.admission.hosts_with_guests(self.before);
        blocked.retain(|host| self.before.can_give_back(*host));
        for reservation in &mut reservations {
            if let (ReservationTerms::Hosts(terms), Allocation::Hosts(hosts)) =
                (&reservation.terms, &mut reservation.allocation)
                && terms.properties.survives.is_none()
            {
                let excess = hosts.len().saturating_sub(terms.max() as usize);
                let given_back: Vec<HostId> = hosts.intersection(&blocked).take(excess).copied().collect();
                hosts.retain(|host| !given_back.contains(host));
            }
        }
        reservations
    }

    /// Serves each reservation without hosts that another one has or is assigned.
    fn keeping_apart(
        &self,
        assigned: &BTreeMap<usize, BTreeSet<HostId>>,
    ) -> Result<Vec<Reservation>, Refusal> {
        let mut reservations = self.without_blocked_hosts();
        let mut search = self.search_elsewhere();
        search.taken.whole.extend(assigned.values().flatten());
        let mut order: Vec<usize> = (0..reservations.len()).collect();
        // Reservations with assigned hosts come last. They leave enough hosts for the rest.
        order.sort_by_key(|position| assigned.contains_key(position));
        for position in order {
            let reservation = &mut reservations[position];
            let case = Case { position, started: self.started(), changed: self.changed(position) };
            if case.started && !case.changed && !self.longer() {
                continue;
            }
            let old = &self.before.reservations[position];
            search.give_back(&old.terms, &old.allocation);
            if let Some(assigned) = assigned.get(&position) {
                search.taken.whole.retain(|host| !assigned.contains(host));
            }
            search.reallocate(reservation, case)?;
            search.take(&reservation.terms, &reservation.allocation);
        }
        Ok(reservations)
    }

    /// Serves all reservations again, regardless of current allocations. Current hosts are preferred, and
    /// with `keeps_own` they can be kept in any state.
    fn starting_over(&self, keeps_own: bool) -> Result<Vec<Reservation>, Refusal> {
        self.in_turn(keeps_own).or_else(|refusal| {
            let mut reservations = self.updated.reservations.clone();
            let mut search = Search { keeps_own, ..self.search() };
            let given = search.give_together(&self.parts()).ok_or(refusal)?;
            for (reservation, allocation) in reservations.iter_mut().zip(given) {
                reservation.allocation = allocation;
                reservation.missing_resources = false;
            }
            Ok(reservations)
        })
    }

    /// Serves the reservations one by one, hardest first.
    fn in_turn(&self, keeps_own: bool) -> Result<Vec<Reservation>, Refusal> {
        let mut reservations = self.updated.reservations.clone();
        let mut search = Search { keeps_own, ..self.search() };
        let asked: Vec<&ReservationTerms> = self.updated.reservations.iter().map(|r| &r.terms).collect();
        for position in order::hardest_first(&search, &asked) {
            let case = Case { position, started: false, changed: self.changed(position) };
            let reservation = &mut reservations[position];
            search.reallocate(reservation, case)?;
            search.take(&reservation.terms, &reservation.allocation);
        }
        Ok(reservations)
    }
}

/// The state of a reservation that is reallocated.
#[derive(Clone, Copy, Debug)]
struct Case {
    position: usize,
    /// The lease has started, so it keeps its resources.
    started: bool,
    /// The terms have changed, not only the window.
    changed: bool,
}

impl Search<'_> {
    fn reallocate(&self, reservation: &mut Reservation, case: Case) -> Result<(), Refusal> {
        let allocation = match (&reservation.terms, &reservation.allocation) {
            (ReservationTerms::Hosts(terms), Allocation::Hosts(held)) if case.started => {
                Allocation::Hosts(self.more_hosts(terms, held, case)?)
            }
            (ReservationTerms::Hosts(terms), Allocation::Hosts(held)) => {
                Allocation::Hosts(self.hosts(case.position, terms, held)?)
            }
            (ReservationTerms::Instances(terms), Allocation::Slots(held)) => {
                Allocation::Slots(self.same_slots(reservation.id, &terms.slots(), held, case)?)
            }
            (ReservationTerms::Flavor(terms), Allocation::Slots(held)) => {
                Allocation::Slots(self.same_slots(reservation.id, &terms.slots(), held, case)?)
            }
            (ReservationTerms::FloatingIps(terms), Allocation::FloatingIps(held)) => {
                Allocation::FloatingIps(self.same_floating_ips(reservation.id, terms, held, case)?)
            }
            // An allocation always has the type of its terms.
            (_, kept) => kept.clone(),
        };
        if !case.started && !self.keeps_own {
            // It got everything in its terms, on working hosts.
            reservation.missing_resources = false;
        }
        reservation.allocation = allocation;
        Ok(())
    }

    /// Hosts of a started reservation, with more if its terms now ask for more.
    fn more_hosts(
        &self,
        terms: &HostsTerms,
        held: &BTreeSet<HostId>,
        case: Case,
    ) -> Result<BTreeSet<HostId>, Refusal> {
        let unlike = self.unlike(held, terms);
        let unsuited = self.admission.unsuited(terms);
        let keeps = |host: &HostId| {
            let matches = || {
                let found = self.admission.inventory.host(*host);
                let suits = found.is_some_and(|host| unsuited(host).is_none());
                suits && !unlike.contains(host)
            };
            self.host_free(*host) && (!case.changed || matches())
        };
        let counted = self.counting(held.iter().copied(), terms);
        if counted > terms.max() as usize {
            return Err(Refusal::WouldGiveBackHosts { held: counted as u64, most: terms.max().into() });
        }
        let lost: Vec<HostId> = held.iter().copied().filter(|host| !keeps(host)).collect();
        if !lost.is_empty() {
            return Err(Refusal::WouldLoseHosts(lost));
        }
        if !case.changed {
            return Ok(held.clone());
        }
        let (free, report) = self.free_hosts(terms);
        let others: Vec<_> =
            self.like(free, terms, held).into_iter().filter(|fit| !held.contains(&fit.host)).collect();
        let hosts = self.joined(held, &others, terms.max() as usize, terms, held);
        let found = self.counting(hosts.iter().copied(), terms);
        if found < terms.min() as usize {
            let (needed, found) = (terms.min().into(), found as u64);
            let resource = Resource::Hosts(report);
            return Err(Refusal::NotEnough { position: case.position, resource, needed, found });
        }
        Ok(hosts)
    }

    /// Slots under new terms. A started reservation keeps each of its slots in place.
    fn same_slots(
        &self,
        id: ReservationId,
        asked: &SlotsTerms<'_>,
        held: &BTreeMap<HostId, u32>,
        case: Case,
    ) -> Result<BTreeMap<HostId, u32>, Refusal> {
        if case.started && !case.changed {
            let fits = |(host, count): (&HostId, &u32)| self.still_fits(*host, *count, asked);
            let lost: Vec<HostId> =
                held.iter().filter(|slots| !fits(*slots)).map(|(host, _)| *host).collect();
            return if lost.is_empty() { Ok(held.clone()) } else { Err(Refusal::WouldLoseHosts(lost)) };
        }
        let slots = self.slots(case.position, asked, held, case.started)?;
        let kept = |(host, count): (&HostId, &u32)| slots.get(host).is_some_and(|now| now >= count);
        if case.started && !held.iter().all(kept) {
            return Err(Refusal::WouldLoseSlots(id));
        }
        Ok(slots)
    }

    /// Addresses under new terms. A started reservation keeps its own.
    fn same_floating_ips(
        &self,
        id: ReservationId,
        terms: &FloatingIpsTerms,
        held: &BTreeSet<FloatingIpId>,
        case: Case,
    ) -> Result<BTreeSet<FloatingIpId>, Refusal> {
        let calendar = self.admission.calendar;
        let free = |ip: &FloatingIpId| calendar.floating_ip_free(*ip, &self.window, self.own);
        if case.started && !held.iter().all(free) {
            let why = "a started reservation keeps its addresses, and they are not free";
            return Err(Refusal::FloatingIps { reservation: id, why });
        }
        if case.started && !case.changed {
            return Ok(held.clone());
        }
        let ips = self.floating_ips(case.position, terms, held)?;
        if case.started && !held.is_subset(&ips) {
            let why = "a started reservation keeps its addresses";
            return Err(Refusal::FloatingIps { reservation: id, why });
        }
        Ok(ips)
    }
}
