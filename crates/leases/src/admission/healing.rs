//! Healing of leases whose hosts fail, and of leases that lack something (API-healing, W20).
//!
//! A failed host is replaced if another one is available. Otherwise the reservation does without it, and is
//! marked as degraded once it has less than it was promised. Missing resources are added as soon as some are
//! free, and then the flag is cleared, which Blazar never does. Only leases in the near future are healed:
//! until later ones start, hosts may recover.
//!
//! A lease that has not started gets other hosts instead of closed ones as soon as there are any, and keeps
//! the closed ones until then. The same applies to a lease that starts at once and hosts with guests that
//! can't be removed.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::{Admission, Refusal, Replanned, Rules, Search, Wanted};
use crate::calendar::{Calendar, Fit};
use crate::host::{Health, Inventory};
use crate::host_facts::HostFacts;
use crate::hunt::may_hunt;
use crate::ids::{HostId, LeaseId};
use crate::lease::{Allocation, Lease, Reservation};
use crate::plan::Place;
use crate::resources::Resources;
use crate::status::{LeaseStatus, ReservationStatus};
use crate::terms::{Affinity, HostsTerms, ReservationTerms, SlotsTerms};
use crate::window::Window;

/// Leases that run or start within this time from now are healed. `None` means all leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct HealingInterval(pub Option<SignedDuration>);

impl HealingInterval {
    /// Whether leases with this window are healed now.
    pub fn includes(self, window: &Window, now: Timestamp) -> bool {
        let soon = self.0.map_or(Window::ALWAYS.since(now), |interval| Window::starting(now, interval));
        window.overlaps(&soon)
    }
}

/// Sort key: leases that have started come first, then those with the earliest start.
pub fn healing_order(lease: &Lease) -> (bool, Timestamp, LeaseId) {
    (lease.status == LeaseStatus::Pending, lease.window.start(), lease.id)
}

/// Heals leases one after another in [order](healing_order), and keeps the calendar up to date. Returns the
/// changed leases.
///
/// A powered-off host is used if there is no other, even if it can't be ready at once.
pub fn heal_all<'a>(
    calendar: &mut Calendar,
    inventory: &Inventory,
    rules: &Rules,
    facts: &HostFacts<'_>,
    leases: impl IntoIterator<Item = &'a Lease>,
    interval: HealingInterval,
    now: Timestamp,
) -> Vec<Lease> {
    let mut queue: Vec<&Lease> = leases.into_iter().collect();
    queue.sort_by_key(|lease| healing_order(lease));
    let mut healed = Vec::new();
    for lease in queue {
        let admission = Admission::new(calendar, inventory, rules, facts, now);
        let Some(lease) = admission.heal(lease, interval) else { continue };
        let entered = calendar.put(&lease, now);
        debug_assert_eq!(entered, Ok(()), "healing takes what is free");
        if entered.is_ok() {
            healed.push(lease);
        }
    }
    healed
}

impl Admission<'_> {
    /// Replaces failed hosts of a lease and adds missing ones, as far as possible. If the lease has not
    /// started, closed and blocked hosts are replaced as well. `None` if nothing changes.
    pub fn heal(&self, lease: &Lease, interval: HealingInterval) -> Option<Lease> {
        let mut healed = lease.clone();
        let alive =
            matches!(lease.status, LeaseStatus::Pending | LeaseStatus::Starting | LeaseStatus::Active);
        if alive && interval.includes(&lease.window, self.now) {
            let search = self.exchange(lease, None);
            let ill = |r: &Reservation| {
                let fails = || r.allocation.hosts().into_iter().any(|host| self.failed(host));
                r.missing_resources || fails() || search.falls_short(r)
            };
            if lease.reservations.iter().any(ill) {
                let to_heal: Vec<bool> = lease.reservations.iter().map(ill).collect();
                search.heal_all(healed.reservations.iter_mut().zip(to_heal));
            }
        }
        if lease.status == LeaseStatus::Pending {
            let has = lease.reservations.iter().flat_map(|reservation| reservation.allocation.hosts());
            let closed = |host: &HostId| self.inventory.host(*host).is_some_and(|host| !host.reservable);
            self.leave(&mut healed, has.filter(closed).collect(), |lease| self.has_to_leave(lease));
        }
        let blocked = self.blocked_hosts(&healed);
        if !blocked.is_empty() {
            self.leave(&mut healed, blocked, |lease| !self.blocked_hosts(lease).is_empty());
        }
        self.settled_or_none((healed != *lease).then_some(healed))
    }

    /// Whole hosts of a lease that starts at once but has to wait for guests that can't be removed. Empty for
    /// a lease that hunts, because its hunt moves the guests.
    pub(super) fn blocked_hosts(&self, lease: &Lease) -> BTreeSet<HostId> {
        let hunts = self.rules.hunting.enabled && may_hunt(lease);
        if self.keeps_blocked_hosts || hunts { BTreeSet::new() } else { self.hosts_with_guests(lease) }
    }

    /// The whole hosts that a lease which starts at once doesn't hold yet, and that have guests that can't be removed.
    pub(super) fn hosts_with_guests(&self, lease: &Lease) -> BTreeSet<HostId> {
        let waits = matches!(lease.status, LeaseStatus::Pending | LeaseStatus::Starting);
        if !waits || !self.starts_at_once(lease.window.start()) {
            return BTreeSet::new();
        }
        let occupied = &self.facts.occupied;
        let of_reservation = lease.reservations.iter().flat_map(|reservation| {
            let hosts = match &reservation.allocation {
                Allocation::Hosts(hosts) => Some(hosts.iter().copied()),
                Allocation::Slots(_) | Allocation::FloatingIps(_) => None,
            };
            let held = Place::Held(reservation.id);
            hosts.into_iter().flatten().filter(move |host| occupied.contains(host)).filter(move |host| {
                self.facts.guests.observed.hosts.get(host).is_none_or(|seen| seen.place != held)
            })
        });
        of_reservation.collect()
    }

    /// Replaces `hosts` in the lease one by one, as far as replacements are available. If the lease is still
    /// `misplaced`, tries to replace all of its hosts at once.
    fn leave(&self, lease: &mut Lease, hosts: BTreeSet<HostId>, misplaced: impl Fn(&Lease) -> bool) {
        for host in hosts {
            let mut after = lease.clone();
            let with_host = |reservation: &Reservation| reservation.allocation.hosts().contains(&host);
            let to_heal: Vec<bool> = lease.reservations.iter().map(with_host).collect();
            self.exchange(lease, Some(host)).heal_all(after.reservations.iter_mut().zip(to_heal));
            if after.has_as_much_as(lease) {
                *lease = after;
            }
        }
        if misplaced(lease)
            && let Some(after) = self.as_much_elsewhere(lease)
            && !misplaced(&after)
        {
            *lease = after;
        }
    }

    pub fn has_to_leave(&self, lease: &Lease) -> bool {
        let mut hosts = lease.reservations.iter().flat_map(|reservation| reservation.allocation.hosts());
        hosts.any(|host| self.inventory.host(host).is_none_or(|host| !host.reservable))
    }

    /// The lease with as many hosts as before. Its reservations can swap hosts.
    fn as_much_elsewhere(&self, lease: &Lease) -> Option<Lease> {
        let mut after = lease.clone();
        let given = self.given_anew(&Wanted::as_many(lease)).ok()?;
        for (reservation, given) in after.reservations.iter_mut().zip(given) {
            reservation.allocation = given.allocation;
        }
        after.has_as_much_as(lease).then_some(after)
    }

    /// Heals a lease by moving some of the `others` to different hosts. The lease lacks whole hosts, or it
    /// has not started and has hosts that are closed or were removed. `None` if moves don't help.
    pub fn heal_by_moves<'a>(
        &self,
        lease: &Lease,
        interval: HealingInterval,
        others: impl IntoIterator<Item = &'a Lease>,
        settled: Timestamp,
    ) -> Option<Replanned<Lease>> {
        let leaves = lease.status == LeaseStatus::Pending && !lease.degraded() && self.has_to_leave(lease);
        let hosts = lease.reservations.iter().flat_map(|reservation| reservation.allocation.hosts());
        let rest = self.without_failed_hosts(lease);
        let (hosts, wanted) = if leaves {
            (hosts.collect(), Wanted::for_lease(&Wanted::as_many(lease)))
        } else {
            let failed = hosts.filter(|host| self.failed(*host)).collect();
            (failed, Wanted::for_lease(&rest))
        };
        let lack = Refusal::WouldLoseHosts(hosts);
        let decide = |admission: &Admission<'_>| {
            let is_healed = |healed: &Lease| {
                if leaves {
                    healed.has_as_much_as(lease) && !admission.has_to_leave(healed)
                } else {
                    !healed.lacks_hosts() && healed.has_at_least(&rest)
                }
            };
            admission.heal(lease, interval).filter(is_healed).ok_or_else(|| lack.clone())
        };
        self.replan(others, settled, (&wanted, &lack), decide, |lease| lease)
    }

    fn without_failed_hosts(&self, lease: &Lease) -> Lease {
        let mut lease = lease.clone();
        for reservation in &mut lease.reservations {
            match &mut reservation.allocation {
                Allocation::Hosts(hosts) => hosts.retain(|host| !self.failed(*host)),
                Allocation::Slots(slots) => slots.retain(|host, _| !self.failed(*host)),
                Allocation::FloatingIps(_) => {}
            }
        }
        lease
    }

    /// A search for replacements of failed hosts and of the host `leaving`. The lease keeps its other
    /// resources.
    fn exchange<'s>(&'s self, lease: &'s Lease, leaving: Option<HostId>) -> Search<'s> {
        let mut search = Search::new(self.on_behalf_of(lease), lease.window, Some(lease.id));
        (search.patient, search.leaving) = (true, leaving);
        for reservation in &lease.reservations {
            search.take(&reservation.terms, &reservation.allocation);
        }
        search
    }

    fn failed(&self, host: HostId) -> bool {
        self.inventory.host(host).is_none_or(|host| host.health == Health::Failed)
    }
}

impl Search<'_> {
    /// Heals the reservations that are flagged.
    fn heal_all<'r>(mut self, reservations: impl Iterator<Item = (&'r mut Reservation, bool)>) {
        for (reservation, to_heal) in reservations {
            if to_heal {
                self.heal(reservation);
            }
        }
    }

    fn loses(&self, host: HostId) -> bool {
        self.leaving == Some(host) || self.admission.failed(host)
    }

    /// Heals one reservation. Its resources are already marked as taken; new ones are marked here.
    fn heal(&mut self, reservation: &mut Reservation) {
        let before = reservation.allocation.hosts();
        let (allocation, missing) = match (&reservation.terms, &reservation.allocation) {
            (ReservationTerms::Hosts(terms), Allocation::Hosts(held)) => {
                let hosts = self.heal_hosts(terms, held);
                let missing = self.counting(hosts.iter().copied(), terms) < terms.min() as usize;
                (Allocation::Hosts(hosts), missing)
            }
            (terms, Allocation::Slots(held)) => {
                let Some(asked) = terms.slots() else { return };
                let slots = self.heal_slots(&asked, held);
                let missing = self.counting_slots(&slots, &asked) < asked.amount.into();
                (Allocation::Slots(slots), missing)
            }
            // Addresses don't fail, and an allocation always has the type of its terms.
            _ => return,
        };
        if reservation.status == ReservationStatus::Active && allocation.hosts() != before {
            reservation.resources_changed = true;
        }
        reservation.missing_resources = missing;
        reservation.allocation = allocation;
    }

    /// The working hosts and one replacement for each failed host, as far as available, and at least the
    /// minimum if possible. If the reservation must survive failures, as many hosts count as before.
    fn heal_hosts(&mut self, terms: &HostsTerms, held: &BTreeSet<HostId>) -> BTreeSet<HostId> {
        let wanted = self.counting(held.iter().copied(), terms).max(terms.min() as usize);
        let mut hosts = held.clone();
        hosts.retain(|host| !self.loses(*host));
        let (free, _) = self.free_hosts(terms);
        let free = self.like(free, terms, &hosts);
        let mut hosts = self.joined(&hosts, &free, wanted, terms, &BTreeSet::new());
        // If a failure can't be survived, at least have enough hosts until it happens.
        let others: Vec<Fit> = free.into_iter().filter(|fit| !hosts.contains(&fit.host)).collect();
        hosts.extend(self.best(&others, wanted.saturating_sub(hosts.len()), &BTreeSet::new()));
        self.taken.whole.extend(&hosts);
        hosts
    }

    /// Whether the current hosts are too few to survive the failure that the reservation must survive.
    fn falls_short(&self, reservation: &Reservation) -> bool {
        match (&reservation.terms, &reservation.allocation) {
            (ReservationTerms::Hosts(terms), Allocation::Hosts(held))
                if terms.properties.survives.is_some() =>
            {
                self.counting(held.iter().copied(), terms) < terms.min() as usize
            }
            (terms, Allocation::Slots(held)) => terms.slots().is_some_and(|asked| {
                asked.survives.is_some() && self.counting_slots(held, &asked) < asked.amount.into()
            }),
            _ => false,
        }
    }

    /// Slots on working hosts, and replacements elsewhere for the missing ones, as far as there is room.
    fn heal_slots(&mut self, asked: &SlotsTerms<'_>, held: &BTreeMap<HostId, u32>) -> BTreeMap<HostId, u32> {
        let mut slots = held.clone();
        slots.retain(|host, _| !self.loses(*host));
        let apart = asked.affinity == Affinity::DistinctHosts;
        if apart {
            // No new slots on hosts where the reservation already has one. They can't be allocated as whole
            // hosts in any case.
            self.taken.whole.extend(slots.keys());
        }
        let beside = asked.survives.map(|domain| self.slots_beside(&slots, asked, domain));
        self.add_slots(&mut slots, beside.unwrap_or_default(), &asked.size);
        // If a failure can't be survived, at least have enough slots until it happens.
        let missing = asked.amount.saturating_sub(slots.values().sum());
        let plain = SlotsTerms { survives: None, ..asked.clone() };
        let others = self.slots_at_most(missing, &plain);
        self.add_slots(&mut slots, others, &asked.size);
        if apart {
            self.taken.whole.retain(|host| !slots.contains_key(host));
        }
        slots
    }

    fn add_slots(
        &mut self,
        slots: &mut BTreeMap<HostId, u32>,
        more: BTreeMap<HostId, u32>,
        size: &Resources,
    ) {
        for (host, count) in more {
            self.taken.shared.entry(host).or_default().add(count, size);
            *slots.entry(host).or_insert(0) += count;
        }
    }

    fn slots_at_most(&self, amount: u32, asked: &SlotsTerms<'_>) -> BTreeMap<HostId, u32> {
        if amount == 0 {
            return BTreeMap::new();
        }
        let none = BTreeMap::new();
        let some = |amount| self.slots(0, &SlotsTerms { amount, ..asked.clone() }, &none, false);
        match some(amount) {
            Ok(slots) => slots,
            // Half of a group that must share one host is useless. The owner sees it as missing.
            Err(Refusal::NotEnough { found, .. }) if asked.affinity != Affinity::OneHost && found > 0 => {
                some(u32::try_from(found).unwrap_or(amount)).unwrap_or_default()
            }
            Err(_) => none,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::NewLease;
    use crate::requirement::Requirement;
    use crate::terms::{InstanceSize, InstancesTerms, Terms};
    use crate::testing::{at, inventory, lease, minutes, new_lease, window};

    struct Cloud {
        inventory: Inventory,
        calendar: Calendar,
        leases: Vec<Lease>,
    }

    impl Cloud {
        fn new(hosts: u64, leases: Vec<Lease>) -> Self {
            let calendar = Calendar::default().with_leases(&leases, at(0)).expect("free");
            Self { inventory: inventory(hosts), calendar, leases }
        }

        fn health(&mut self, host: u64, health: Health) {
            self.inventory.host_mut(HostId(host)).expect("there").health = health;
        }

        /// Heals, and returns the number of changed leases.
        fn heal(&mut self, now: i64, interval: Option<i64>) -> usize {
            self.heal_knowing(&HostFacts::nothing(), now, interval)
        }

        fn heal_knowing(&mut self, facts: &HostFacts<'_>, now: i64, interval: Option<i64>) -> usize {
            let interval = HealingInterval(interval.map(minutes));
            let rules = Rules::default();
            let (calendar, inventory) = (&mut self.calendar, &self.inventory);
            let healed = heal_all(calendar, inventory, &rules, facts, &self.leases, interval, at(now));
            for lease in &healed {
                self.leases.iter_mut().filter(|old| old.id == lease.id).for_each(|old| *old = lease.clone());
            }
            healed.len()
        }

        fn hosts(&self, lease: usize) -> Vec<u64> {
            self.leases[lease].reservations[0].allocation.hosts().iter().map(|host| host.0).collect()
        }
    }

    fn active(mut lease: Lease) -> Lease {
        lease.status = LeaseStatus::Active;
        lease.reservations[0].status = ReservationStatus::Active;
        lease
    }

    #[test]
    fn w20_a_failed_host_is_exchanged_and_the_owner_can_see_it() {
        let mut cloud = Cloud::new(3, vec![active(lease(1, window(0, 60), &[1, 2]))]);
        cloud.health(2, Health::Failed);
        assert_eq!(cloud.heal(10, None), 1);
        assert_eq!(cloud.hosts(0), [1, 3]);
        assert!(cloud.leases[0].reservations[0].resources_changed && !cloud.leases[0].degraded());
        assert_eq!(cloud.heal(10, None), 0, "there is nothing left to heal");
    }

    #[test]
    fn w20_what_is_missing_is_filled_in_when_there_is_something_and_the_flag_is_cleared() {
        let mut cloud = Cloud::new(2, vec![lease(1, window(0, 60), &[1, 2])]);
        cloud.health(2, Health::Failed);
        assert_eq!(cloud.heal(0, None), 1);
        assert_eq!((cloud.hosts(0), cloud.leases[0].degraded()), (vec![1], true));
        cloud.health(2, Health::Up);
        assert_eq!(cloud.heal(0, None), 1);
        assert_eq!((cloud.hosts(0), cloud.leases[0].degraded()), (vec![1, 2], false));
        assert!(!cloud.leases[0].reservations[0].resources_changed, "it had not started");
    }

    #[test]
    fn it_takes_hosts_last_that_are_offered_to_others_or_that_somebody_stays_on() {
        let avoided = BTreeSet::from([HostId(2)]);
        let offer = lease(9, window(0, 60), &[3]);
        let offered = Calendar::default().with_leases([&offer], at(0)).expect("free");
        let facts = HostFacts { avoided: &avoided, offered: &offered, ..HostFacts::nothing() };
        let mut cloud = Cloud::new(4, vec![active(lease(1, window(0, 60), &[1]))]);
        for (failed, instead) in [(1, 4), (4, 3), (3, 2)] {
            cloud.health(failed, Health::Failed);
            assert_eq!(cloud.heal_knowing(&facts, 10, None), 1);
            assert_eq!(cloud.hosts(0), [instead]);
        }
    }

    #[test]
    fn only_what_happens_soon_is_healed() {
        let mut cloud = Cloud::new(2, vec![lease(1, window(100, 160), &[1])]);
        cloud.health(1, Health::Failed);
        assert_eq!(cloud.heal(0, Some(60)), 0);
        assert_eq!(cloud.heal(41, Some(60)), 1);
        assert_eq!(cloud.hosts(0), [2]);
    }

    #[test]
    fn a_silent_host_is_not_a_failed_one() {
        let mut cloud = Cloud::new(2, vec![lease(1, window(0, 60), &[1])]);
        cloud.health(1, Health::Unknown);
        assert_eq!(cloud.heal(0, None), 0);
    }

    #[test]
    fn the_lease_that_has_started_is_healed_before_one_that_has_not() {
        let pending = lease(1, window(20, 60), &[1]);
        let mut cloud = Cloud::new(3, vec![pending, active(lease(2, window(0, 60), &[2]))]);
        cloud.health(1, Health::Failed);
        cloud.health(2, Health::Failed);
        assert_eq!(cloud.heal(10, None), 2);
        assert_eq!((cloud.hosts(0), cloud.hosts(1)), (vec![], vec![3]));
        assert!(cloud.leases[0].degraded() && !cloud.leases[1].degraded());
    }

    #[test]
    fn a_lease_that_has_not_started_gets_others_instead_of_closed_hosts_as_soon_as_there_are_any() {
        let runs = active(lease(2, window(0, 60), &[3]));
        let mut cloud = Cloud::new(4, vec![lease(1, window(20, 60), &[1, 2]), runs]);
        for host in 1..=4 {
            cloud.inventory.host_mut(HostId(host)).expect("there").reservable = false;
        }
        assert_eq!(cloud.heal(0, Some(10)), 0, "there are no others");
        let open = |cloud: &mut Cloud, host| {
            cloud.inventory.host_mut(HostId(host)).expect("there").reservable = true;
        };
        open(&mut cloud, 4);
        assert_eq!(cloud.heal(0, Some(10)), 1, "also if it starts later than what is healed");
        assert_eq!(
            (cloud.hosts(0), cloud.hosts(1)),
            (vec![2, 4], vec![3]),
            "one for one, and what runs stays"
        );
        assert!(!cloud.leases[0].degraded());
        assert_eq!(cloud.heal(0, None), 0);
        open(&mut cloud, 1);
        assert_eq!(cloud.heal(0, None), 1);
        assert_eq!(cloud.hosts(0), [1, 4]);
    }

    #[test]
    fn slots_leave_a_closed_host_all_together_or_not_at_all() {
        let mut cloud = Cloud::new(3, vec![slots(3, Affinity::Any, &[(1, 2), (2, 1)])]);
        cloud.inventory.host_mut(HostId(1)).expect("there").reservable = false;
        cloud.inventory.host_mut(HostId(3)).expect("there").reservable = false;
        assert_eq!(cloud.heal(0, None), 0, "there is room for one of the two");
        assert_eq!(slots_of(&cloud), [(1, 2), (2, 1)]);
        cloud.inventory.host_mut(HostId(3)).expect("there").reservable = true;
        assert_eq!(cloud.heal(0, None), 1);
        assert_eq!(slots_of(&cloud), [(2, 2), (3, 1)]);
    }

    fn slots(amount: u32, affinity: Affinity, on: &[(u64, u32)]) -> Lease {
        let size = InstanceSize::new(8, 1024, 1).expect("a size");
        let amount = amount.try_into().expect("some");
        let asked = InstancesTerms {
            size,
            amount,
            affinity,
            requirement: Requirement::NONE,
            survives: None,
            extras: None,
        };
        let asked = vec![ReservationTerms::Instances(asked)];
        let terms = Terms::new(window(0, 60), None, asked).expect("terms");
        let new: NewLease = new_lease(1, 1);
        let on = on.iter().map(|(host, count)| (HostId(*host), *count)).collect();
        Lease::new(new, terms, vec![Allocation::Slots(on)], None)
    }

    fn slots_of(cloud: &Cloud) -> Vec<(u64, u32)> {
        match &cloud.leases[0].reservations[0].allocation {
            Allocation::Slots(slots) => slots.iter().map(|(host, count)| (host.0, *count)).collect(),
            other => panic!("not slots: {other:?}"),
        }
    }

    #[test]
    fn slots_of_a_failed_host_move_and_the_others_stay() {
        let mut cloud = Cloud::new(3, vec![slots(3, Affinity::Any, &[(1, 2), (2, 1)])]);
        cloud.health(1, Health::Failed);
        assert_eq!(cloud.heal(0, None), 1);
        assert_eq!(slots_of(&cloud), [(2, 2), (3, 1)]);
        assert!(!cloud.leases[0].degraded());
    }

    #[test]
    fn slots_that_are_to_be_apart_stay_apart() {
        let mut cloud = Cloud::new(3, vec![slots(2, Affinity::DistinctHosts, &[(1, 1), (2, 1)])]);
        cloud.health(1, Health::Failed);
        cloud.heal(0, None);
        assert_eq!(slots_of(&cloud), [(2, 1), (3, 1)]);
        cloud.health(3, Health::Failed);
        cloud.heal(0, None);
        assert_eq!((slots_of(&cloud), cloud.leases[0].degraded()), (vec![(2, 1)], true));
    }

    #[test]
    fn room_for_some_of_the_missing_slots_is_used() {
        let mut cloud = Cloud::new(2, vec![slots(4, Affinity::Any, &[(1, 2), (2, 2)])]);
        cloud.health(1, Health::Failed);
        assert_eq!(cloud.heal(0, None), 1);
        assert_eq!((slots_of(&cloud), cloud.leases[0].degraded()), (vec![(2, 2)], true));
        cloud.health(1, Health::Up);
        assert_eq!(cloud.heal(0, None), 1);
        assert_eq!((slots_of(&cloud), cloud.leases[0].degraded()), (vec![(1, 2), (2, 2)], false));
    }
}
