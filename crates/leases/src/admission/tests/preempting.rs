//! Preemption of instances for leases (PRE-06).

use jiff::SignedDuration;

use super::*;
use crate::ids::{GuestId, LeaseId};
use crate::instance::{Cause, Departure, Instance, InstanceKind, InstanceStatus};
use crate::lease::Reservation;
use crate::plan::{Action, Guest, GuestOwner, GuestSize, History, Mobility, Observed, ObservedHost, Place};

/// An instance with `vcpus` CPUs that has run on host 1 since then.
fn instance(id: u128, kind: InstanceKind, vcpus: u32, since: i64) -> Instance {
    let size = GuestSize { vcpus, memory_mib: 1024, disk_gib: 10 };
    let new = Instance::new(GuestId(id), "batch".to_owned(), owner(), kind, size, HostId(1));
    new.running(at(since))
}

fn preemptible(id: u128, vcpus: u32, since: i64) -> Instance {
    instance(id, InstanceKind::Preemptible, vcpus, since)
}

/// Identifier of a held offer, which isn't a lease.
const HELD: u128 = 99;

/// Instances that leave host 1, and the start of the lease for which each leaves.
fn leaving(cloud: &Cloud, instances: &[Instance]) -> Vec<(u128, i64)> {
    leaving_with(cloud, instances, Elsewhere::NOBODY)
}

/// Includes guests that were started outside of the service.
fn leaving_with(cloud: &Cloud, instances: &[Instance], elsewhere: Elsewhere<'_>) -> Vec<(u128, i64)> {
    leaving_at(cloud, 0, instances, elsewhere)
}

/// Decides at this minute. After minute 0, leases count as having their room.
fn leaving_at(
    cloud: &Cloud,
    minute: i64,
    instances: &[Instance],
    elsewhere: Elsewhere<'_>,
) -> Vec<(u128, i64)> {
    leaving_if(cloud, (minute, minute > 0), instances, elsewhere)
}

/// Decides at this minute, with leases that have their room or not.
fn leaving_if(
    cloud: &Cloud,
    (minute, has_room): (i64, bool),
    instances: &[Instance],
    elsewhere: Elsewhere<'_>,
) -> Vec<(u128, i64)> {
    let admission = cloud.admission(minute);
    let host = cloud.inventory.host(HostId(1)).expect("there");
    let needs = |id| {
        let booked = cloud.calendar.bookings(host.id).find(|(_, booking)| booking.lease == id);
        booked.filter(|_| id != LeaseId(HELD)).map(|(window, _)| Need { start: window.start(), has_room })
    };
    let leaving = admission.preempted_for_leases(host, instances, elsewhere, needs);
    leaving.into_iter().map(|(id, start)| (id.0, start.as_second() / 60)).collect()
}

#[test]
fn pre_06_for_room_on_a_host_only_as_many_leave_as_it_takes_for_the_whole_all_do() {
    let mut cloud = Cloud::new(1);
    let there = [preemptible(1, 4, -10), preemptible(2, 4, -5), preemptible(3, 8, -60)];
    assert_eq!(leaving(&cloud, &there), []);
    cloud.lease(1, window(30, 60), vec![instances(3, 1, Affinity::Any)]);
    assert_eq!(leaving(&cloud, &there), [(2, 30)], "it has run for the shortest time");
    cloud.lease(2, window(40, 60), vec![instances(3, 2, Affinity::Any)]);
    assert_eq!(leaving(&cloud, &there), [(2, 30), (3, 40)], "13 CPUs are left of 16, then 7");
    cloud.lease(3, window(90, 99), vec![hosts(1, 1)]);
    assert_eq!(leaving(&cloud, &there), [(1, 90), (2, 30), (3, 40)]);
}

#[test]
fn pre_06_a_lease_that_is_hardly_longer_than_clocks_may_differ_gets_its_room_as_well() {
    let there = [preemptible(1, 12, -10)];
    let mut short = Cloud::new(1);
    short.lease(1, window(0, 1), vec![instances(8, 1, Affinity::Any)]);
    assert_eq!(leaving(&short, &there), [(1, 0)]);
    let mut long = Cloud::new(1);
    long.lease(1, window(0, 30), vec![instances(8, 1, Affinity::Any)]);
    assert_eq!(leaving_at(&long, 28, &there, Elsewhere::NOBODY), [(1, 0)]);
    assert_eq!(leaving_at(&long, 29, &there, Elsewhere::NOBODY), [], "by another clock it may be over");
    let late = leaving_if(&long, (29, false), &there, Elsewhere::NOBODY);
    assert_eq!(
        late,
        [(1, 0)],
        "one that was asked for just before its end, as an offer may be, gets its room as well"
    );
}

#[test]
fn pre_06_a_lease_has_its_room_on_a_host_once_it_has_begun_and_was_given_all_of_it() {
    let mut cloud = Cloud::new(1);
    let room = cloud.lease(1, window(0, 30), vec![instances(2, 3, Affinity::Any)]);
    let reservation = room.reservations[0].id;
    let seen = |slots: u32, place: Place| {
        let slots = [(reservation, slots)].into();
        ObservedHost { place, slots, ..ObservedHost::free() }
    };
    let has_room = |lease: &Lease, status: LeaseStatus, seen: Option<&ObservedHost>| {
        Need::of(&Lease { status, ..lease.clone() }, HostId(1), seen).has_room
    };
    let all = seen(3, Place::FreePool);
    assert!(has_room(&room, LeaseStatus::Active, Some(&all)));
    assert!(!has_room(&room, LeaseStatus::Active, Some(&seen(2, Place::FreePool))), "its amount was raised");
    assert!(!has_room(&room, LeaseStatus::Starting, Some(&all)), "it has not begun");
    assert!(has_room(&room, LeaseStatus::Active, None), "nobody has looked: as it should be");
    let hosts = Allocation::Hosts([HostId(1)].into());
    let hosts = Reservation { allocation: hosts, ..room.reservations[0].clone() };
    let whole = Lease { reservations: vec![hosts], ..room.clone() };
    assert!(has_room(&whole, LeaseStatus::Active, Some(&seen(0, Place::Held(reservation)))));
    assert!(!has_room(&whole, LeaseStatus::Active, Some(&seen(0, Place::Fenced { verified_for: None }))));
}

#[test]
fn pre_06_nobody_leaves_for_what_is_held_for_an_offer() {
    let mut cloud = Cloud::new(1);
    let there = [preemptible(1, 8, 0)];
    cloud.lease(HELD, window(30, 60), vec![instances(9, 1, Affinity::Any)]);
    assert_eq!(leaving(&cloud, &there), []);
    cloud.lease(1, window(30, 60), vec![instances(6, 1, Affinity::Any)]);
    assert_eq!(leaving(&cloud, &there), [], "what is held takes no room from them either");
    cloud.lease(2, window(90, 99), vec![hosts(1, 1)]);
    assert_eq!(leaving(&cloud, &there), [(1, 90)]);
}

#[test]
fn pre_06_room_that_others_use_is_not_there() {
    let mut cloud = Cloud::new(1);
    let there = [preemptible(1, 4, 0), instance(2, InstanceKind::Regular, 8, 0)];
    cloud.lease(1, window(30, 60), vec![instances(4, 1, Affinity::Any)]);
    assert_eq!(leaving(&cloud, &there), []);
    cloud.lease(2, window(45, 60), vec![instances(1, 1, Affinity::Any)]);
    assert_eq!(leaving(&cloud, &there), [(1, 45)]);
}

#[test]
fn pre_10_an_instance_displaces_as_few_of_its_own_project_as_can_be_and_nobody_elses() {
    let cloud = Cloud::new(2);
    let mut there: Vec<Instance> = (1..=4).map(|id| preemptible(id, 4, -10)).collect();
    there.extend((5..=6).map(|id| Instance { host: HostId(2), ..preemptible(id, 8, -10) }));
    let mut observed = Observed::default();
    for host in [1, 2] {
        let seen = ObservedHost { guests: Vec::new(), ..ObservedHost::free() };
        observed.hosts.insert(HostId(host), seen);
    }
    guests_to_come(&mut observed, there.iter());
    let room_for = |vcpus, there: &[Instance]| {
        let size = GuestSize { vcpus, memory_mib: 1024, disk_gib: 10 };
        let found = cloud.admission(0).displacing(&owner().project, size, &observed, there);
        found.map(|(host, going)| (host.0, going.into_iter().map(|id| id.0).collect::<Vec<_>>()))
    };
    assert_eq!(room_for(8, &there), Some((2, vec![5])), "one of eight CPUs, not two of four");
    assert_eq!(room_for(4, &there), Some((1, vec![1])), "it has done less");
    assert_eq!(room_for(17, &there), None);
    there[4].owner.project = crate::project::ProjectId("another".into());
    there[5].owner.project = there[4].owner.project.clone();
    assert_eq!(room_for(8, &there), Some((1, vec![1, 2])));
}

#[test]
fn pre_06_whoever_was_asked_to_leave_is_the_one_who_leaves() {
    let mut cloud = Cloud::new(1);
    let mut there = [preemptible(1, 8, -9), preemptible(2, 8, -1)];
    cloud.lease(1, window(5, 60), vec![instances(8, 1, Affinity::Any)]);
    assert_eq!(leaving(&cloud, &there), [(2, 5)]);
    there[0].departure = Some(Departure::for_lease(at(0), at(5)));
    assert_eq!(leaving(&cloud, &there), [(1, 5)]);
}

/// A preemptible guest with `vcpus` CPUs that was started outside of the service.
fn started_elsewhere(id: u128, vcpus: u32) -> Guest {
    let size = GuestSize { vcpus, memory_mib: 1024, disk_gib: 10 };
    Guest { size, ..Guest::new(GuestId(id), GuestOwner::Preemptible) }
}

#[test]
fn pre_06_guests_that_others_have_started_are_preempted_as_well_and_only_as_many_as_it_takes() {
    let mut cloud = Cloud::new(1);
    let guests = [started_elsewhere(7, 4), started_elsewhere(8, 4), started_elsewhere(9, 0)];
    let elsewhere = Elsewhere { guests: &guests, until: at(30) };
    let there = [preemptible(1, 4, -10), instance(2, InstanceKind::Regular, 2, 0)];
    assert_eq!(leaving_with(&cloud, &there, elsewhere), []);
    cloud.lease(1, window(30, 60), vec![instances(2, 1, Affinity::Any)]);
    assert_eq!(leaving_with(&cloud, &there, elsewhere), [], "they fit beside it");
    cloud.lease(2, window(30, 60), vec![instances(1, 1, Affinity::Any)]);
    assert_eq!(leaving_with(&cloud, &there, elsewhere), [(7, 30)], "it loses nothing that anybody knows of");
    cloud.lease(3, window(30, 60), vec![instances(4, 1, Affinity::Any)]);
    assert_eq!(leaving_with(&cloud, &there, elsewhere), [(7, 30), (8, 30)]);
    cloud.lease(4, window(30, 60), vec![instances(4, 1, Affinity::Any)]);
    assert_eq!(leaving_with(&cloud, &there, elsewhere), [(1, 30), (7, 30), (8, 30)]);
    let large = [preemptible(1, 12, -10)];
    let few = Elsewhere { guests: &guests[..1], until: at(30) };
    let mut cloud = Cloud::new(1);
    cloud.lease(1, window(30, 60), vec![instances(8, 1, Affinity::Any)]);
    assert_eq!(leaving_with(&cloud, &large, few), [(1, 30)], "one is fewer than two");
}

#[test]
fn pre_06_what_owners_are_told_long_before_does_not_depend_on_guests_that_others_have_started() {
    let mut cloud = Cloud::new(1);
    let there = [preemptible(1, 8, -10)];
    cloud.lease(1, window(30, 60), vec![instances(12, 1, Affinity::Any)]);
    cloud.lease(2, window(70, 90), vec![instances(12, 1, Affinity::Any)]);
    let guests = [started_elsewhere(7, 4)];
    let until = |minute| Elsewhere { guests: &guests, until: at(minute) };
    assert_eq!(leaving_with(&cloud, &there, until(29)), [(1, 30)]);
    assert_eq!(leaving_with(&cloud, &there, until(30)), [(1, 30)], "the other one has room beside the lease");
    let small = [preemptible(1, 4, -10)];
    assert_eq!(leaving_with(&cloud, &small, until(29)), []);
    assert_eq!(leaving_with(&cloud, &small, until(30)), [(7, 30)]);
}

#[test]
fn pre_06_whoever_others_have_started_and_was_asked_to_leave_is_the_one_who_leaves() {
    let mut cloud = Cloud::new(1);
    let mut guests = [started_elsewhere(7, 8), started_elsewhere(8, 8)];
    cloud.lease(1, window(5, 60), vec![instances(8, 1, Affinity::Any)]);
    let leaving =
        |cloud: &Cloud, guests: &[Guest]| leaving_with(cloud, &[], Elsewhere { guests, until: at(5) });
    assert_eq!(leaving(&cloud, &guests), [(7, 5)]);
    guests[1].stopping_since = Some(at(4));
    assert_eq!(leaving(&cloud, &guests), [(8, 5)]);
    assert_eq!(leaving(&cloud, &guests[..1]), [], "there is room");
}

#[test]
fn pre_06_another_gap_has_what_the_guest_needs_and_is_reached_in_time() {
    let mut cloud = Cloud::new(4);
    cloud.lease(1, window(20, 60), vec![hosts(1, 1)]);
    let taken = cloud.calendar.bookings(HostId(1)).count();
    assert_eq!(taken, 1, "host 1 is the one that it has to leave");
    let departure = Some(Departure::for_lease(at(18), at(20)));
    let leaving = Instance { departure, ..preemptible(1, 4, -10) };
    let mut observed = Observed::default();
    for host in 1..=4 {
        observed.hosts.insert(HostId(host), ObservedHost { guests: Vec::new(), ..ObservedHost::free() });
    }
    let owner = GuestOwner::Preemptible;
    let mobility = Some(Mobility { apart: ["a".to_owned()].into(), ..Mobility::default() });
    let guest = Guest { size: leaving.size, mobility, ..Guest::new(leaving.id, owner) };
    let mut history = History::default();
    let goes = |cloud: &Cloud, now, least, guest: &Guest, observed: &Observed, history: &History| {
        let found = cloud.admission(now).another_gap((&leaving, guest), minutes(least), (observed, history));
        found.map(|host| host.0)
    };
    let first = goes(&cloud, 10, 10, &guest, &observed, &history);
    assert!(first.is_some_and(|host| host != 1));
    // Host 2 has a guest of the same anti-affinity group, and moves to host 3 have failed.
    let other = Guest { mobility: guest.mobility.clone(), ..Guest::new(GuestId(9), owner) };
    observed.hosts.get_mut(&HostId(2)).expect("there").guests.push(other);
    for _ in 0..3 {
        history.failed(Action::MoveGuest(HostId(1), leaving.id, HostId(3)), at(9), "no route");
    }
    assert_eq!(goes(&cloud, 10, 10, &guest, &observed, &history), Some(4));
    assert_eq!(goes(&cloud, 17, 10, &guest, &observed, &history), None, "it takes two minutes at least");
    let immobile = Guest { mobility: None, ..guest.clone() };
    assert_eq!(goes(&cloud, 10, 10, &immobile, &observed, &history), None);
    let requires = ["HW_GPU".to_owned()].into();
    let choosy = Guest { mobility: Some(Mobility { requires, ..Mobility::default() }), ..guest.clone() };
    assert_eq!(goes(&cloud, 10, 10, &choosy, &observed, &history), None, "no host has that trait");
    cloud.lease(2, window(25, 60), vec![hosts(3, 3)]);
    assert_eq!(goes(&cloud, 10, 14, &guest, &observed, &history), Some(4));
    assert_eq!(goes(&cloud, 10, 15, &guest, &observed, &history), None, "the gap is no longer than that");
    // A service with a clock that is ahead would not choose this host, but doesn't revert the choice either.
    let stands = |now| {
        let admission = cloud.admission(now);
        admission.may_go_on_to((&leaving, HostId(4)), minutes(14), (&observed, &history))
    };
    assert_eq!(goes(&cloud, 11, 14, &guest, &observed, &history), None);
    assert_eq!((stands(10), stands(11), stands(12)), (true, true, false));
}

#[test]
fn pre_06_what_goes_anyway_has_its_place_until_it_has_gone() {
    let mut cloud = Cloud::new(1);
    let departing = |cause| Some(Departure::at_once(cause, at(0), SignedDuration::from_mins(9)));
    let destroyed = Instance { status: InstanceStatus::Deleting, ..preemptible(2, 6, -10) };
    let others = [
        destroyed.clone(),
        Instance { kind: InstanceKind::Regular, ..destroyed },
        Instance { departure: departing(Cause::OwnProject), ..preemptible(2, 6, -10) },
        Instance { departure: departing(Cause::Holder), ..preemptible(2, 6, -10) },
    ];
    let goes = |cloud: &Cloud, other: &Instance| leaving(cloud, &[preemptible(1, 6, -10), other.clone()]);
    cloud.lease(1, window(30, 60), vec![instances(4, 1, Affinity::Any)]);
    for other in &others {
        assert_eq!(goes(&cloud, other), [], "there is room beside both: {other:?}");
    }
    cloud.lease(2, window(40, 60), vec![instances(5, 1, Affinity::Any)]);
    for other in &others {
        assert_eq!(goes(&cloud, other), [(2, 40)], "who goes makes room enough for who stays: {other:?}");
    }
    cloud.lease(3, window(50, 60), vec![instances(7, 1, Affinity::Any)]);
    for other in &others {
        assert_eq!(goes(&cloud, other), [(1, 50), (2, 40)], "{other:?}");
    }
}
