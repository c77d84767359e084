//! Leases prefer hosts where no guest, or as few as possible, must leave (PRE-06).

use super::*;
use crate::ids::GuestId;
use crate::instance::{Cause, Departure, Instance, InstanceKind};
use crate::plan::{Guest, GuestOwner, GuestSize, Observed, ObservedHost};

/// A preemptible instance with `vcpus` CPUs that has run on this host since then.
fn preemptible(id: u128, host: u64, vcpus: u32, since: i64) -> Instance {
    let size = GuestSize { vcpus, memory_mib: 1024, disk_gib: 10 };
    let kind = InstanceKind::Preemptible;
    Instance::new(GuestId(id), "batch".to_owned(), owner(), kind, size, HostId(host)).running(at(since))
}

/// Hosts of a new lease. Guests count for leases that start until minute 15.
fn given(cloud: &Cloud, observed: &Observed, there: &[Instance], start: i64, count: u32) -> Vec<u64> {
    let losses = Losses::new(observed, there, at(0), at(15)).into();
    let facts = HostFacts { losses, ..HostFacts::nothing() };
    let admission = cloud.knowing(&facts, 0);
    let terms = Terms::new(window(start, start + 60), None, vec![super::hosts(count, count)]).expect("terms");
    let given = admission.decide(&owner().project, &terms).expect("enough");
    given[0].hosts().into_iter().map(|host| host.0).collect()
}

#[test]
fn pre_06_a_lease_gets_hosts_where_nobody_has_to_leave_then_few_then_those_who_have_done_least() {
    let cloud = Cloud::new(4);
    let mut there = vec![
        preemptible(1, 1, 1, -10),
        preemptible(2, 1, 1, -10),
        preemptible(3, 2, 4, -10),
        preemptible(4, 3, 3, -10),
    ];
    let chosen = |there: &[Instance], start, count| given(&cloud, &Observed::default(), there, start, count);
    assert_eq!(chosen(&there, 0, 1), [4]);
    assert_eq!(chosen(&there, 15, 2), [3, 4], "host 3 loses 30 minutes of a CPU, host 2 loses 40");
    assert_eq!(chosen(&there, 0, 3), [2, 3, 4], "one has to leave there, from host 1 two");
    assert_eq!(chosen(&there, 16, 1), [1], "who runs now may be gone by then");
    // Instances that must leave anyway aren't spared.
    there[0].departure = Some(Departure::at_once(Cause::OwnProject, at(0), minutes(1)));
    there[1].departure = there[0].departure;
    assert_eq!(chosen(&there, 0, 2), [1, 4]);
}

#[test]
fn pre_06_guests_that_others_have_started_are_spared_as_well_unless_they_leave_already() {
    let cloud = Cloud::new(2);
    let mut guest = Guest::new(GuestId(7), GuestOwner::Preemptible);
    let chosen = |guest: &Guest| {
        let seen = ObservedHost { guests: vec![guest.clone()], ..ObservedHost::free() };
        let observed = Observed { hosts: [(HostId(1), seen)].into(), ..Observed::default() };
        given(&cloud, &observed, &[], 0, 1)
    };
    assert_eq!(chosen(&guest), [2]);
    guest.stopping_since = Some(at(0));
    assert_eq!(chosen(&guest), [1]);
    guest.stopping_since = None;
    guest.owner = GuestOwner::Other;
    assert_eq!(chosen(&guest), [1], "what others have is looked at elsewhere");
}

/// Hosts for the slots of a new lease.
fn slots_given(
    cloud: &Cloud,
    there: &[Instance],
    start: i64,
    (vcpus, amount, affinity): Slots,
) -> Vec<(u64, u32)> {
    let losses = Losses::new(&Observed::default(), there, at(0), at(15)).into();
    let facts = HostFacts { losses, ..HostFacts::nothing() };
    let admission = cloud.knowing(&facts, 0);
    let asked = vec![instances(vcpus, amount, affinity)];
    let terms = Terms::new(window(start, start + 60), None, asked).expect("terms");
    let given = admission.decide(&owner().project, &terms).expect("enough");
    let Allocation::Slots(slots) = &given[0] else { panic!("slots") };
    slots.iter().map(|(host, count)| (host.0, *count)).collect()
}

type Slots = (u32, u32, Affinity);

#[test]
fn pre_06_a_lease_of_room_goes_where_nobody_has_to_leave_if_there_is_such_a_place() {
    let mut cloud = Cloud::new(3);
    let there = [preemptible(1, 1, 12, -10), preemptible(2, 2, 4, -10)];
    let given = |cloud: &Cloud, slots: Slots| slots_given(cloud, &there, 0, slots);
    // Host 1 is shared already, so it would be first without the instance there.
    cloud.lease(1, window(0, 200), vec![on_one(1)]);
    assert_eq!(given(&cloud, (4, 1, Affinity::Any)), [(3, 1)], "none is shared but that one");
    assert_eq!(given(&cloud, (13, 1, Affinity::OneHost)), [(3, 1)]);
    assert_eq!(given(&cloud, (4, 2, Affinity::DistinctHosts)), [(2, 1), (3, 1)]);
    assert_eq!(
        given(&cloud, (4, 7, Affinity::Any)),
        [(2, 3), (3, 4)],
        "both are filled beside who runs there"
    );
    assert_eq!(slots_given(&cloud, &there, 100, (4, 1, Affinity::Any)), [(3, 1)], "later as well");
}

#[test]
fn pre_06_where_somebody_has_to_leave_for_room_it_is_where_as_few_as_can_be_have_to() {
    let cloud = Cloud::new(2);
    let there = [preemptible(1, 1, 8, -10), preemptible(2, 1, 8, -10), preemptible(3, 2, 9, -60)];
    assert_eq!(slots_given(&cloud, &there, 0, (16, 1, Affinity::Any)), [(2, 1)], "one leaves instead of two");
    assert_eq!(
        slots_given(&cloud, &there, 0, (8, 1, Affinity::Any)),
        [(1, 1)],
        "of one the one that has done less"
    );
}

#[test]
fn pre_06_room_beside_instances_that_stay_is_not_there_for_others() {
    let cloud = Cloud::new(2);
    let regular = Instance { kind: InstanceKind::Regular, ..preemptible(1, 1, 8, -10) };
    let there = [regular, preemptible(2, 1, 8, -10)];
    assert_eq!(slots_given(&cloud, &there, 0, (4, 1, Affinity::Any)), [(2, 1)]);
}

/// An instance of one CPU on this host.
fn on_one(host: u64) -> ReservationTerms {
    let ReservationTerms::Instances(terms) = instances(1, 1, Affinity::Any) else { panic!("instances") };
    ReservationTerms::Instances(InstancesTerms { requirement: named(&format!("node{host}")), ..terms })
}
