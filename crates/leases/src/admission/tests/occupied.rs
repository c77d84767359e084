//! Hosts with guests that can't be removed. Leases of any type that start at once get other hosts.

use super::*;
use crate::filters::HostFilter;
use crate::host_facts::Guests;
use crate::hunt::Hunt;
use crate::ids::GuestId;
use crate::offer::OfferKind;
use crate::plan::{Guest, GuestOwner, Observed, ObservedHost, Place};
use crate::testing::lease;

impl Cloud {
    /// A cloud with guests on these hosts that can't be removed.
    fn occupied(hosts: u64, occupied: &[u64]) -> Self {
        let mut cloud = Self::new(hosts);
        cloud.facts.occupied = occupied.iter().map(|host| HostId(*host)).collect::<BTreeSet<_>>().into();
        let guest = |host: &u64| Guest::new(GuestId(u128::from(*host)), GuestOwner::Other);
        let seen = |host: &u64| ObservedHost { guests: vec![guest(host)], ..ObservedHost::free() };
        let seen = occupied.iter().map(|host| (HostId(*host), seen(host))).collect();
        cloud.facts.guests = Guests::from(Observed { hosts: seen, ..Observed::default() }).into();
        cloud
    }

    /// Hosts of a lease that starts at this minute.
    fn hosts_from(&self, start: i64, asked: ReservationTerms) -> Result<Vec<u64>, Refusal> {
        let given = self.decide(window(start, start + 60), vec![asked])?;
        Ok(given[0].hosts().iter().map(|host| host.0).collect())
    }

    fn healed(&self, lease: &Lease, now: i64) -> Option<Vec<u64>> {
        let healed = self.admission(now).heal(lease, HealingInterval(None))?;
        Some(healed.reservations[0].allocation.hosts().iter().map(|host| host.0).collect())
    }
}

fn starting(lease: &Lease) -> Lease {
    let mut lease = lease.clone();
    lease.status = LeaseStatus::Starting;
    lease.events.start = EventStatus::InProgress;
    lease
}

fn guests_left_out(refusal: Refusal) -> Option<usize> {
    let Refusal::NotEnough { resource: Resource::Hosts(report), .. } = refusal else { return None };
    report.removed.get(&HostFilter::Guests).copied()
}

#[test]
fn a_scheduled_lease_from_now_on_gets_empty_hosts_or_is_refused() {
    let cloud = Cloud::occupied(3, &[1, 2]);
    assert_eq!(cloud.hosts_from(0, hosts(1, 1)), Ok(vec![3]));
    assert_eq!(cloud.hosts_from(0, hosts(1, 3)), Ok(vec![3]));
    // A lease that starts within the maximum wait of an immediate one also counts as starting at once.
    assert_eq!(cloud.hosts_from(1, hosts(1, 1)), Ok(vec![3]));
    for start in [0, 1] {
        let refused = cloud.hosts_from(start, hosts(2, 2)).expect_err("one host is empty");
        assert_eq!(guests_left_out(refused), Some(2));
    }
}

#[test]
fn a_lease_for_later_prefers_empty_hosts_and_gets_others_if_it_needs_them() {
    let cloud = Cloud::occupied(4, &[1, 3]);
    assert_eq!(cloud.hosts_from(60, hosts(1, 1)), Ok(vec![2]));
    assert_eq!(cloud.hosts_from(60, hosts(2, 2)), Ok(vec![2, 4]));
    assert_eq!(cloud.hosts_from(60, hosts(3, 3)), Ok(vec![1, 2, 4]));
}

#[test]
fn a_lease_that_may_lie_anywhere_in_a_window_waits_only_if_it_has_to() {
    let start = |cloud: &Cloud, count| {
        let terms = Terms::new(window(0, 10), None, vec![hosts(count, count)]).expect("terms");
        let terms = terms.anywhere_in(window(0, 60)).expect("long enough");
        let grant = cloud.admission(0).grant(&owner().project, &terms).expect("there is time");
        grant.terms.window().start()
    };
    let cloud = Cloud::occupied(2, &[1]);
    assert_eq!(start(&cloud, 1), at(0));
    assert_eq!(start(&cloud, 2), at(0) + cloud.rules.deadlines.immediate);
}

#[test]
fn availability_and_proposed_times_count_occupied_hosts_from_when_they_can_be_given() {
    let cloud = Cloud::occupied(3, &[1]);
    let admission = cloud.admission(0);
    let asked = hosts(3, 3);
    let found = admission.availability(&owner().project, &asked, window(0, 60)).expect("asked rightly");
    let later = at(0) + cloud.rules.deadlines.immediate;
    let step = |start, end| Window::new(start, end).expect("forwards");
    assert_eq!((found.total, found.steps), (3, vec![(step(at(0), later), 2), (step(later, at(60)), 3)]));
    let times = admission.earliest_windows(&owner().project, &asked, window(0, 60), (minutes(10), 1));
    assert_eq!(times, Ok(vec![step(later, later + minutes(10))]));
}

#[test]
fn alternatives_to_a_lease_from_now_on_have_empty_hosts() {
    let mut cloud = Cloud::occupied(3, &[1]);
    cloud.calendar = cloud.calendar.with_leases(&[lease(1, window(0, 30), &[2])], at(0)).expect("free");
    let terms = Terms::new(window(0, 60), None, vec![hosts(2, 2)]).expect("terms");
    let offers = cloud.admission(0).offers(&owner().project, &terms, at(600));
    let found: Vec<_> = offers
        .iter()
        .map(|offer| (offer.kind, offer.grant.terms.window().start(), offer.grant.allocations[0].hosts()))
        .collect();
    let of = |ids: &[u64]| ids.iter().map(|id| HostId(*id)).collect::<BTreeSet<_>>();
    assert_eq!(
        found,
        [(OfferKind::LaterStart, at(30), of(&[2, 3])), (OfferKind::FewerHosts, at(0), of(&[3]))]
    );
}

#[test]
fn a_blocked_start_gets_another_host_as_soon_as_one_is_free_and_keeps_its_own_until_then() {
    let waiting = lease(1, window(5, 60), &[1]);
    let enter = |cloud: &mut Cloud, leases: &[Lease]| {
        cloud.calendar = Calendar::default().with_leases(leases, at(0)).expect("free");
    };
    let mut cloud = Cloud::occupied(2, &[1]);
    enter(&mut cloud, &[waiting.clone(), lease(2, window(0, 30), &[2])]);
    assert_eq!(cloud.healed(&starting(&waiting), 5), None, "there is no other");
    enter(&mut cloud, std::slice::from_ref(&waiting));
    assert_eq!(cloud.healed(&starting(&waiting), 5), Some(vec![2]));
    assert_eq!(cloud.healed(&waiting, 4), Some(vec![2]), "the guest will not be gone in a minute");
    assert_eq!(cloud.healed(&waiting, 0), None, "the guest may be gone in five minutes");
    assert_eq!(cloud.healed(&started(&waiting), 5), None, "it has its host");
    // Both hosts are occupied, so no other allocation is better.
    let mut cloud = Cloud::occupied(2, &[1, 2]);
    enter(&mut cloud, std::slice::from_ref(&waiting));
    assert_eq!(cloud.healed(&starting(&waiting), 5), None);
}

#[test]
fn a_host_that_a_starting_lease_holds_is_not_given_up() {
    let waiting = starting(&lease(1, window(0, 60), &[1]));
    let mut cloud = Cloud::occupied(2, &[1]);
    cloud.calendar = cloud.calendar.with_leases([&waiting], at(0)).expect("free");
    let held = ObservedHost {
        place: Place::Held(waiting.reservations[0].id),
        guests: vec![Guest::new(GuestId(1), GuestOwner::Other)],
        ..ObservedHost::free()
    };
    let observed = Observed { hosts: [(HostId(1), held)].into(), ..Observed::default() };
    cloud.facts.guests = Guests::from(observed).into();
    assert_eq!(cloud.healed(&waiting, 0), None);
}

#[test]
fn a_running_lease_gets_an_empty_host_instead_of_a_failed_one_and_keeps_an_occupied_one() {
    let running = started(&lease(1, window(0, 60), &[1, 4]));
    let mut cloud = Cloud::occupied(4, &[1, 2]);
    cloud.calendar = cloud.calendar.with_leases([&running], at(0)).expect("free");
    cloud.inventory.host_mut(HostId(4)).expect("there").health = Health::Failed;
    assert_eq!(cloud.healed(&running, 10), Some(vec![1, 3]));
    let extended = cloud.update(&running, &ends(90), 10).expect("nobody else has its hosts");
    assert_eq!(extended.reservations[0].allocation, ids([1, 4]));
}

#[test]
fn a_changed_lease_that_starts_at_once_leaves_occupied_hosts_if_there_are_others() {
    let waiting = lease(1, window(1, 60), &[1]);
    let mut cloud = Cloud::occupied(2, &[1]);
    cloud.calendar = cloud.calendar.with_leases([&waiting], at(0)).expect("free");
    let changed = cloud.update(&waiting, &ends(90), 0).expect("host 2 is free");
    assert_eq!(changed.reservations[0].allocation, ids([2]));
    cloud.calendar = cloud.calendar.with_leases([&lease(2, window(0, 90), &[2])], at(0)).expect("free");
    let kept = cloud.update(&waiting, &ends(90), 0).expect("it keeps its own");
    assert_eq!(kept.reservations[0].allocation, ids([1]));
}

#[test]
fn a_lease_that_is_moved_to_start_at_once_gets_empty_hosts_or_is_refused() {
    let waiting = lease(1, window(60, 120), &[1]);
    let now = Changes { start: Some(at(0)), ..Changes::default() };
    let mut cloud = Cloud::occupied(2, &[1]);
    cloud.calendar = cloud.calendar.with_leases([&waiting], at(0)).expect("free");
    let moved = cloud.update(&waiting, &now, 0).expect("host 2 is free");
    assert_eq!(moved.reservations[0].allocation, ids([2]));
    cloud.calendar = cloud.calendar.with_leases([&lease(2, window(0, 90), &[2])], at(0)).expect("free");
    assert_eq!(guests_left_out(cloud.update(&waiting, &now, 0).expect_err("none is empty")), Some(1));
}

#[test]
fn a_lease_that_hunts_is_moved_to_start_at_once_and_keeps_an_occupied_host() {
    let lease_type = LeaseType::BestEffort { deadline: at(600) };
    let waiting = Lease { lease_type, ..lease(1, window(60, 120), &[1]) };
    let mut cloud = Cloud::occupied(1, &[1]);
    cloud.calendar = cloud.calendar.with_leases([&waiting], at(0)).expect("free");
    let now = Changes { start: Some(at(0)), ..Changes::default() };
    assert_eq!(guests_left_out(cloud.update(&waiting, &now, 0).expect_err("it doesn't hunt")), Some(1));
    cloud.rules.hunting.enabled = true;
    let moved = cloud.update(&waiting, &now, 0).expect("its guests are moved away");
    assert_eq!(moved.reservations[0].allocation, ids([1]));
}

#[test]
fn an_accepted_offer_holds_on_occupied_hosts_only_without_empty_ones() {
    let offered = lease(1, window(0, 60), &[1]);
    let hosts = |occupied: &[u64]| {
        let cloud = Cloud::occupied(2, occupied);
        cloud.admission(0).accepted(&offered, at(0)).expect("an offer is a promise").reservations[0]
            .allocation
            .hosts()
    };
    assert_eq!(hosts(&[1]), BTreeSet::from([HostId(2)]));
    assert_eq!(hosts(&[1, 2]), BTreeSet::from([HostId(1)]));
}

#[test]
fn a_starting_lease_that_asks_for_fewer_hosts_gives_a_blocked_one_back() {
    let scheduled = starting(&lease(1, window(0, 60), &[1, 2, 3]));
    let best_effort = Lease { lease_type: LeaseType::BestEffort { deadline: at(60) }, ..scheduled.clone() };
    for waiting in [&scheduled, &best_effort] {
        let mut cloud = Cloud::occupied(3, &[2]);
        cloud.rules.hunting.enabled = true;
        cloud.calendar = cloud.calendar.with_leases([waiting], at(0)).expect("free");
        let changed = |lease: &Lease, count| cloud.update(lease, &change(lease, range(count, count)), 1);
        let fewer = changed(waiting, 2).expect("two hosts are empty");
        assert_eq!(fewer.reservations[0].allocation, ids([1, 3]));
        let refused = changed(waiting, 1).expect_err("it keeps empty hosts");
        assert_eq!(refused, Refusal::WouldGiveBackHosts { held: 2, most: 1 });
        let hunting = waiting.clone().hunting(Some(Hunt::default()));
        let refused = changed(&hunting, 2).expect_err("its hosts are planned together");
        assert_eq!(refused, Refusal::WouldGiveBackHosts { held: 3, most: 2 });
    }
}

#[test]
fn a_lease_is_not_moved_to_an_occupied_host_if_it_starts_at_once() {
    let mut other = lease(1, window(1, 60), &[1]);
    let mut cloud = Cloud::occupied(2, &[2]);
    cloud.calendar = cloud.calendar.with_leases([&other], at(0)).expect("free");
    let replanned = |cloud: &Cloud, other: &Lease, start| {
        let asked = vec![on_hosts(1, 1, named("node1"))];
        let terms = Terms::new(window(start, start + 60), None, asked).expect("terms");
        let project = owner().project;
        let admission = cloud.admission(0);
        let lack = admission.decide(&project, &terms).expect_err("host 1 is taken");
        let decide = |admission: &Admission<'_>| {
            let given = admission.decide(&project, &terms)?;
            Ok(Lease::new(new_lease(9, 1), terms.clone(), given, None))
        };
        let wanted = Wanted::for_new(&project, &terms);
        let replanned = admission.replan([other], at(0), (&wanted, &lack), decide, |lease| lease);
        replanned.map(|replanned| replanned.moved[0].reservations[0].allocation.clone())
    };
    assert_eq!(replanned(&cloud, &other, 5), None);
    other.window = window(10, 60);
    cloud.calendar = Calendar::default().with_leases([&other], at(0)).expect("free");
    assert_eq!(replanned(&cloud, &other, 10), Some(ids([2])));
}
