//! Immediate and best-effort leases (CLS-02 and CLS-03).

use super::*;
use crate::filters::HostFilter;
use crate::host_facts::Guests;
use crate::ids::GuestId;
use crate::lease::NewLease;
use crate::plan::{Guest, GuestOwner, GuestSize, Observed, ObservedHost};
use crate::testing::lease;

/// A cloud with these leases and cleaning time.
fn cloud_with(hosts: u64, cleaning: i64, leases: &[Lease]) -> Cloud {
    let calendar = Calendar::new(minutes(cleaning)).with_leases(leases, at(0)).expect("free");
    Cloud { calendar, ..Cloud::new(hosts) }
}

impl Cloud {
    /// Window and hosts of a best-effort lease.
    fn grant(&self, hosts: u32, length: i64, deadline: i64) -> Result<(Window, Vec<u64>), Refusal> {
        let terms = best_effort(hosts, window(0, length), deadline);
        let grant = self.admission(0).grant(&owner().project, &terms)?;
        Ok((grant.terms.window(), grant.allocations[0].hosts().iter().map(|host| host.0).collect()))
    }
}

fn best_effort(hosts: u32, window: Window, deadline: i64) -> Terms {
    let asked = HostsTerms::new(hosts, hosts).expect("a range");
    let terms = Terms::new(window, None, vec![ReservationTerms::Hosts(asked)]).expect("terms");
    terms.of_type(LeaseType::BestEffort { deadline: at(deadline) })
}

#[test]
fn cls_03_a_a_best_effort_lease_has_a_whole_plan_or_is_refused() {
    let taken = [lease(1, window(0, 30), &[1, 2]), lease(2, window(0, 50), &[3])];
    let cloud = cloud_with(3, 0, &taken);
    assert_eq!(cloud.grant(2, 60, 100), Ok((window(30, 90), vec![1, 2])));
    assert_eq!(cloud.grant(3, 60, 100), Ok((window(50, 110), vec![1, 2, 3])));
    let Err(Refusal::NotEnough { needed: 3, found: 0, .. }) = cloud.grant(3, 60, 50) else {
        panic!("at the deadline is too late");
    };
    assert!(cloud.grant(4, 60, 100).is_err());
}

#[test]
fn cls_03_j_it_waits_for_hosts_that_become_free_with_their_cleaning_time() {
    let cloud = cloud_with(2, 5, &[lease(1, window(0, 30), &[1, 2])]);
    assert_eq!(cloud.grant(1, 60, 100), Ok((window(35, 95), vec![1])));
    let between = cloud_with(1, 0, &[lease(1, window(0, 10), &[1]), lease(2, window(40, 60), &[1])]);
    assert_eq!(between.grant(1, 30, 100), Ok((window(10, 40), vec![1])));
    assert_eq!(between.grant(1, 31, 100), Ok((window(60, 91), vec![1])));
}

#[test]
fn cls_02_b_guests_of_others_keep_a_lease_from_starting_at_once() {
    let mut cloud = cloud_with(3, 0, &[]);
    cloud.facts.occupied = BTreeSet::from([HostId(1), HostId(3)]).into();
    assert_eq!(cloud.grant(1, 60, 100), Ok((window(0, 60), vec![2])));
    let terms = best_effort(2, window(0, 60), 100);
    let immediate = terms.clone().of_type(LeaseType::Immediate { deadline: at(1) });
    let scheduled = terms.clone().of_type(LeaseType::Schedule);
    for terms in [&terms, &immediate, &scheduled] {
        let refused = cloud.admission(0).grant(&owner().project, terms).expect_err("one is left");
        let Refusal::NotEnough { resource: crate::admission::Resource::Hosts(report), .. } = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(report.removed.get(&HostFilter::Guests), Some(&2));
    }
    let later = scheduled.starting(at(10));
    assert!(cloud.admission(0).grant(&owner().project, &later).is_ok(), "they may be gone by then");
}

#[test]
fn it_does_not_start_before_it_is_wanted_nor_after_it_has_timed_out() {
    let cloud = cloud_with(1, 0, &[]);
    let terms = best_effort(1, window(20, 50), 100);
    let granted = cloud.admission(5).grant(&owner().project, &terms).map(|grant| grant.terms.window());
    assert_eq!(granted, Ok(window(20, 50)));
    let granted = cloud.admission(40).grant(&owner().project, &terms).map(|grant| grant.terms.window());
    assert_eq!(granted, Ok(window(40, 70)), "and it lasts as long");
    let refused = cloud.admission(100).grant(&owner().project, &terms);
    assert_eq!(refused, Err(Refusal::DeadlineInPast));
    let too_late = best_effort(1, window(100, 130), 100);
    let refused = cloud.admission(5).grant(&owner().project, &too_late);
    assert_eq!(refused, Err(Refusal::StartAfterDeadline));
}

#[test]
fn several_reservations_start_together() {
    let taken = [lease(1, window(0, 30), &[1]), lease(2, window(20, 80), &[2, 3])];
    let cloud = cloud_with(3, 0, &taken);
    let one = || ReservationTerms::Hosts(HostsTerms::new(1, 1).expect("a range"));
    let terms = Terms::new(window(0, 15), None, vec![one(), one()]).expect("terms");
    let terms = terms.of_type(LeaseType::BestEffort { deadline: at(200) });
    let now = cloud.admission(0).grant(&owner().project, &terms).expect("two are free now");
    assert_eq!((now.terms.window(), now.allocations.len()), (window(0, 15), 2));
    let later = cloud.admission(10).grant(&owner().project, &terms).expect("later");
    assert_eq!(later.terms.window(), window(80, 95));
}

/// A waiting lease, entered in the calendar.
fn waiting(cloud: &mut Cloud, hosts: u32, length: i64, deadline: i64) -> Lease {
    let terms = best_effort(hosts, window(0, length), deadline);
    let grant = cloud.admission(0).grant(&owner().project, &terms).expect("enough");
    let new = NewLease { name: "waiting".to_owned(), ..new_lease(9, 1) };
    let lease = Lease::new(new, grant.terms, grant.allocations, None);
    cloud.calendar.put(&lease, at(0)).expect("free");
    lease
}

#[test]
fn a_lease_that_waits_moves_to_an_earlier_time_that_becomes_free() {
    let in_the_way = lease(1, window(0, 90), &[1, 2]);
    let mut cloud = cloud_with(2, 0, std::slice::from_ref(&in_the_way));
    let waits = waiting(&mut cloud, 1, 60, 200);
    assert_eq!(waits.window, window(90, 150));
    assert_eq!(cloud.admission(10).sooner(&waits), None, "nothing has changed");
    cloud.calendar.put(&in_the_way.deleted(at(40)), at(40)).expect("shorter");
    let moved = cloud.admission(40).sooner(&waits).expect("it can start now");
    assert_eq!((moved.window, moved.status), (window(40, 100), LeaseStatus::Pending));
    let started = Lease { status: LeaseStatus::Starting, ..waits };
    assert_eq!(cloud.admission(40).sooner(&started), None);
}

#[test]
fn a_lease_that_waits_moves_to_no_host_that_others_use_so_much_of_that_too_little_is_free() {
    let in_the_way = lease(1, window(0, 90), &[1]);
    let mut cloud = cloud_with(1, 0, std::slice::from_ref(&in_the_way));
    let mut waits = waiting(&mut cloud, 1, 60, 200);
    let ReservationTerms::Hosts(asked) = &mut waits.reservations[0].terms else { panic!("hosts") };
    std::sync::Arc::make_mut(&mut asked.properties).vcpus = Some(16);
    cloud.calendar.put(&in_the_way.deleted(at(40)), at(40)).expect("shorter");
    let size = GuestSize { vcpus: 1, memory_mib: 1024, disk_gib: 1 };
    let guest = Guest { size, ..Guest::new(GuestId(1), GuestOwner::Preemptible) };
    let seen = ObservedHost { guests: vec![guest], ..ObservedHost::free() };
    let observed = Observed { hosts: [(HostId(1), seen)].into(), ..Observed::default() };
    assert!(cloud.admission(40).sooner(&waits).is_some());
    cloud.facts.guests = Guests::from(observed).into();
    assert_eq!(cloud.admission(40).sooner(&waits), None, "as it would not have been granted");
}

#[test]
fn a_lease_that_waits_and_lost_a_host_moves_to_when_it_is_whole() {
    let mut cloud = cloud_with(2, 0, &[lease(1, window(0, 30), &[1]), lease(2, window(0, 70), &[2])]);
    let mut waits = waiting(&mut cloud, 1, 60, 200);
    assert_eq!(waits.window, window(30, 90));
    waits.reservations[0].missing_resources = true;
    cloud.inventory.remove_host(HostId(1));
    let moved = cloud.admission(10).sooner(&waits).expect("the other host");
    assert_eq!((moved.window, moved.degraded()), (window(70, 130), false));
}
