//! Hosts that are leased where nobody has to leave, or as few as can be (spec PRE-06).

use super::*;
use crate::ids::GuestId;
use crate::instance::{Cause, Departure, Instance, InstanceKind};
use crate::plan::{Guest, GuestOwner, GuestSize, Observed, ObservedHost};

/// One of so many CPUs that has run on that host since then.
fn preemptible(id: u128, host: u64, vcpus: u32, since: i64) -> Instance {
    let size = GuestSize { vcpus, memory_mib: 1024, disk_gib: 10 };
    let kind = InstanceKind::Preemptible;
    Instance::new(GuestId(id), "batch".to_owned(), owner(), kind, size, HostId(host)).running(at(since))
}

/// The hosts of a new lease, if what starts until minute 15 minds who is there.
fn given(cloud: &Cloud, observed: &Observed, there: &[Instance], start: i64, count: u32) -> Vec<u64> {
    let losses = Losses::new(observed, there, at(0), at(15));
    let hosts = HostsNow { losses: Some(&losses), ..HostsNow::default() };
    let admission = Admission { hosts, ..cloud.admission(0) };
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
    // Nobody is spared for whom it is too late.
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
