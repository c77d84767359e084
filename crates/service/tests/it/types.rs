//! Leases that start immediately or as soon as possible. Tests are named by the criteria of CLS.

use fleet::simulated::Happening;
use leases::lease_type::LeaseType;
use leases::plan::GuestOwner;
use service::NewLease;
use simulation::operator;

use crate::terms::{asking, at, change, dates, hosts, hosts_of, make, minutes, status, window, world};

fn best_effort(new: NewLease, deadline: i64) -> NewLease {
    NewLease { terms: new.terms.of_type(LeaseType::BestEffort { deadline: at(deadline) }), ..new }
}

fn immediate(new: NewLease, deadline: i64) -> NewLease {
    NewLease { terms: new.terms.of_type(LeaseType::Immediate { deadline: at(deadline) }), ..new }
}

#[tokio::test]
async fn cls_02_b_a_host_with_somebodys_guest_is_not_had_at_once() {
    let mut world = world(2).await;
    let lease = make(&mut world, immediate(asking(0, 60, vec![hosts(1)]), 1)).await.expect("two are free");
    let other = if hosts_of(&lease)[0].0 == 1 { 2 } else { 1 };
    let other = leases::ids::HostId(other);
    world.settle().await;
    assert_eq!(status(&world, lease.lease.id), "ACTIVE");
    world.fleet.start_guest(other, GuestOwner::Other, None).expect("a free host");
    world.run_until(at(2)).await;
    assert!(make(&mut world, immediate(asking(2, 60, vec![hosts(1)]), 3)).await.is_err());
    assert!(
        make(&mut world, asking(2, 60, vec![hosts(1)])).await.is_err(),
        "neither is one that has this date"
    );
    assert!(make(&mut world, asking(4, 60, vec![hosts(1)])).await.is_ok(), "the guest may be gone by then");
}

#[tokio::test]
async fn cls_02_a_an_immediate_lease_that_does_not_start_in_time_is_gone() {
    let mut world = world(2).await;
    let lease = make(&mut world, immediate(asking(0, 60, vec![hosts(2)]), 1)).await.expect("free");
    // The guest starts between the decision and the fence.
    world.fleet.start_guest(hosts_of(&lease)[0], GuestOwner::Other, None).expect("a free host");
    world.run_until(at(0) + minutes(1) - jiff::SignedDuration::from_secs(1)).await;
    assert_eq!(status(&world, lease.lease.id), "STARTING");
    world.run_until(at(2)).await;
    assert_eq!(status(&world, lease.lease.id), "gone");
    assert!(make(&mut world, asking(4, 60, vec![hosts(2)])).await.is_ok(), "nothing is kept of it");
}

#[tokio::test]
async fn cls_03_j_a_best_effort_lease_starts_when_others_end() {
    let mut world = world(2).await;
    let first = make(&mut world, asking(0, 30, vec![hosts(2)])).await.expect("free");
    let waits = make(&mut world, best_effort(asking(0, 60, vec![hosts(1)]), 45)).await.expect("in time");
    assert_eq!(waits.lease.window, window(30, 90));
    assert_eq!(waits.lease.state().name(), "IN-PROGRESS");
    assert!(make(&mut world, best_effort(asking(0, 60, vec![hosts(1)]), 30)).await.is_err(), "too late");
    world.run_until(at(31)).await;
    assert_eq!(status(&world, first.lease.id), "TERMINATED");
    assert_eq!(status(&world, waits.lease.id), "ACTIVE");
}

#[tokio::test]
async fn a_best_effort_lease_that_waits_moves_forward_when_others_give_up() {
    let mut world = world(2).await;
    let first = make(&mut world, asking(0, 300, vec![hosts(2)])).await.expect("free");
    let waits = make(&mut world, best_effort(asking(0, 60, vec![hosts(1)]), 400)).await.expect("in time");
    let next = make(&mut world, best_effort(asking(0, 60, vec![hosts(2)]), 400)).await.expect("in time");
    assert_eq!((waits.lease.window, next.lease.window), (window(300, 360), window(360, 420)));
    world.run_until(at(10)).await;
    change(&mut world, first.lease.id, dates(None, Some(10))).await.expect("it may end");
    world.run_until(at(12)).await;
    assert_eq!(status(&world, waits.lease.id), "ACTIVE");
    let next = world.service.leases().get(next.lease.id).expect("there");
    assert_eq!(next.lease.window, window(70, 130));
    let told = world.service.notifications().after(None, 0, 100).await.expect("the store works");
    let moved =
        told.iter().filter(|n| n.content.event_type == "lease.update").filter_map(|n| n.content.lease);
    assert!(moved.collect::<Vec<_>>().contains(&waits.lease.id));
}

#[tokio::test]
async fn cls_03_f_a_best_effort_lease_that_times_out_keeps_nothing() {
    let mut world = world(2).await;
    let lease = make(&mut world, best_effort(asking(0, 60, vec![hosts(2)]), 20)).await.expect("free");
    world.fleet.start_guest(hosts_of(&lease)[0], GuestOwner::Other, None).expect("a free host");
    world.run_until(at(19)).await;
    assert_eq!(status(&world, lease.lease.id), "STARTING");
    world.run_until(at(21)).await;
    let timed_out = world.service.leases().get(lease.lease.id).expect("there");
    assert_eq!((timed_out.lease.status.name(), timed_out.lease.state().name()), ("ERROR", "TIMEDOUT"));
    assert_eq!(world.held(hosts_of(&lease)), 0);
    assert!(make(&mut world, asking(23, 60, vec![hosts(2)])).await.is_ok());
}

/// By then, its hosts are leased again or no longer exist.
#[tokio::test]
async fn cls_03_f_a_lease_that_has_timed_out_is_over_at_its_end_whatever_became_of_its_hosts() {
    let mut world = world(3).await;
    let lease = make(&mut world, best_effort(asking(0, 60, vec![hosts(2)]), 20)).await.expect("free");
    let [lost, leased] = hosts_of(&lease)[..] else { panic!("two hosts") };
    let guest = world.fleet.start_guest(lost, GuestOwner::Other, None).expect("a free host");
    world.run_until(at(21)).await;
    assert_eq!(status(&world, lease.lease.id), "ERROR");
    world.fleet.happen(Happening::GuestEnds(guest));
    world.run_until(at(22)).await;
    world.service.hosts().remove(&operator(), lost).await.expect("nobody has it");
    let next = make(&mut world, asking(30, 120, vec![hosts(2)])).await.expect("nobody has them");
    assert!(hosts_of(&next).contains(&leased));
    world.run_until(at(61)).await;
    let over = world.service.leases().get(lease.lease.id).expect("there");
    assert!(over.lease.over() && over.lease.state().name() == "TIMEDOUT", "{:?}", over.lease);
    assert_eq!(status(&world, next.lease.id), "ACTIVE");
}

#[tokio::test]
async fn cls_03_g_a_lease_that_waits_can_be_deleted() {
    let mut world = world(1).await;
    make(&mut world, asking(0, 30, vec![hosts(1)])).await.expect("free");
    let waits = make(&mut world, best_effort(asking(0, 60, vec![hosts(1)]), 45)).await.expect("in time");
    world.service.leases().delete(&simulation::caller("p"), waits.lease.id).await.expect("accepted");
    world.touched();
    world.run_until(at(40)).await;
    assert_eq!(status(&world, waits.lease.id), "gone");
}

#[tokio::test]
async fn cls_04_d_a_timeout_survives_a_restart() {
    let mut world = world(1).await;
    let lease = make(&mut world, best_effort(asking(0, 60, vec![hosts(1)]), 20)).await.expect("free");
    world.fleet.start_guest(hosts_of(&lease)[0], GuestOwner::Other, None).expect("a free host");
    world.run_until(at(10)).await;
    world.clock.set(at(30));
    world.restart().await.expect("it starts");
    world.run_until(at(31)).await;
    let timed_out = world.service.leases().get(lease.lease.id).expect("there");
    assert_eq!(timed_out.lease.state().name(), "TIMEDOUT");
}

#[tokio::test]
async fn a_start_after_the_timeout_is_refused() {
    let mut world = world(1).await;
    make(&mut world, asking(0, 30, vec![hosts(1)])).await.expect("free");
    let waits = make(&mut world, best_effort(asking(0, 60, vec![hosts(1)]), 45)).await.expect("in time");
    let refused = change(&mut world, waits.lease.id, dates(Some(45), Some(100))).await;
    assert!(matches!(refused, Err(service::ServiceError::Refused(_))), "{refused:?}");
    assert!(change(&mut world, waits.lease.id, dates(Some(40), Some(100))).await.is_ok());
}

#[tokio::test]
async fn cls_05_what_is_free_now_is_what_guests_leave() {
    let mut world = world(2).await;
    let guest = world.fleet.start_guest(leases::ids::HostId(1), GuestOwner::Preemptible, None);
    assert!(guest.is_some(), "a free host");
    world.run_until(at(1)).await;
    let mut asked = leases::terms::HostsTerms::new(1, 2).expect("a range");
    std::sync::Arc::make_mut(&mut asked.properties).memory_mib = Some(65_536);
    let asked = asking(1, 60, vec![leases::terms::ReservationTerms::Hosts(asked)]);
    let now = make(&mut world, immediate(asked.clone(), 5)).await.expect("one has all its memory");
    assert_eq!(hosts_of(&now), [leases::ids::HostId(2)]);
    assert!(make(&mut world, NewLease { terms: later(asked.terms.clone()), ..asked }).await.is_ok());
}

/// The same terms with a start at minute 600.
fn later(terms: leases::terms::Terms) -> leases::terms::Terms {
    terms.starting(at(600))
}

#[tokio::test]
async fn cls_01_a_as_many_are_accepted_as_there_are_hosts_for_the_whole_window() {
    let mut world = world(2).await;
    let mut accepted = 0;
    for start in [0, 10, 20, 30, 40] {
        accepted += usize::from(make(&mut world, asking(start, 60, vec![hosts(1)])).await.is_ok());
    }
    assert_eq!(accepted, 2, "each of them wants a host at minute 40");
    assert!(make(&mut world, asking(60, 70, vec![hosts(2)])).await.is_ok(), "both are free after that");
}

#[tokio::test]
async fn cls_01_c_a_request_that_is_rejected_leaves_no_trace() {
    let mut world = world(2).await;
    let contents = world.store.contents().await;
    assert!(make(&mut world, asking(5, 60, vec![hosts(1), hosts(2)])).await.is_err());
    let told = world.service.notifications().after(None, 0, 100).await.expect("the store works");
    assert!(told.iter().all(|told| !told.content.event_type.starts_with("lease")), "{told:?}");
    assert_eq!(world.store.contents().await.leases, contents.leases);
    assert!(make(&mut world, asking(5, 60, vec![hosts(2)])).await.is_ok(), "nothing is kept of it");
}

#[tokio::test]
async fn cls_01_e_hosts_are_chosen_again_before_the_start_if_the_terms_hold() {
    let mut world = world(3).await;
    let lease = make(&mut world, asking(30, 60, vec![hosts(2)])).await.expect("free");
    let failed = hosts_of(&lease)[0];
    world.fleet.fail(failed);
    world.run_until(at(31)).await;
    let now = world.service.leases().get(lease.lease.id).expect("there");
    assert_eq!((now.lease.status.name(), now.lease.degraded()), ("ACTIVE", false));
    assert!(!hosts_of(&now).contains(&failed));
    assert_eq!((hosts_of(&now).len(), world.held(hosts_of(&now))), (2, 2));
}
