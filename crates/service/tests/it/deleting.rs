//! Deleting leases.

use std::time::Duration;

use fleet::simulated::{Between, Timing};
use leases::plan::GuestOwner;
use service::{NotFound, ServiceError, Settings};
use simulation::{StoreFault, caller};
use tokio::sync::watch;

use crate::terms::{asking, at, hosts, hosts_of, make, settings, status, world, world_with};

#[tokio::test]
async fn a_lease_that_has_not_started_is_gone_at_once() {
    let mut world = world(1).await;
    let lease = make(&mut world, asking(10, 20, vec![hosts(1)])).await.expect("free");
    world.service.leases().delete(&caller("p"), lease.lease.id).await.expect("deleted");
    assert_eq!(status(&world, lease.lease.id), "gone");
    make(&mut world, asking(10, 20, vec![hosts(1)])).await.expect("free again");
    let again = world.service.leases().delete(&caller("p"), lease.lease.id).await;
    assert!(matches!(again, Err(ServiceError::NotFound(NotFound::Lease(_)))));
}

#[tokio::test]
async fn a_lease_that_is_over_is_gone_at_once() {
    let mut world = world(1).await;
    let lease = make(&mut world, asking(0, 20, vec![hosts(1)])).await.expect("free");
    world.run_until(at(21)).await;
    world.service.leases().delete(&caller("p"), lease.lease.id).await.expect("deleted");
    assert_eq!(status(&world, lease.lease.id), "gone");
}

#[tokio::test]
async fn w4_a_lease_can_be_deleted_while_it_starts_and_while_it_ends() {
    let slow = Timing { call: Between::secs(5, 5), ..Timing::IMMEDIATE };
    for second in 1..40 {
        let mut world = world_with(2, settings(), None, |fleet| fleet.with_timing(slow)).await;
        let begins = world.now().as_second();
        let minute = (begins - crate::terms::NOON) / 60 + 1;
        let lease = make(&mut world, asking(minute, minute + 1, vec![hosts(2)])).await.expect("free");
        let then = at(minute) + jiff::SignedDuration::from_secs(second * 3);
        world.run_until(then).await;
        world.service.leases().delete(&caller("p"), lease.lease.id).await.expect("accepted in any state");
        world.touched();
        world.run_until(then + crate::terms::minutes(5)).await;
        assert_eq!(status(&world, lease.lease.id), "gone", "deleted {second} * 3 s after its start");
        assert_eq!(world.held(hosts_of(&lease)), 0);
    }
}

#[tokio::test]
async fn the_guests_of_a_deleted_lease_go_with_it() {
    let mut world = world(1).await;
    let lease = make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free");
    world.run_until(at(1)).await;
    let host = hosts_of(&lease)[0];
    world.fleet.start_guest(host, GuestOwner::Lease(lease.lease.id), None).expect("it holds the host");
    world.service.leases().delete(&caller("p"), lease.lease.id).await.expect("accepted");
    assert_eq!(status(&world, lease.lease.id), "DELETING");
    world.touched();
    world.run_until(at(2)).await;
    assert_eq!(status(&world, lease.lease.id), "gone");
    assert!(world.fleet.look(host).is_some_and(|seen| seen.guests.is_empty()));
}

#[tokio::test]
async fn a_deletion_waits_for_the_hosts_to_be_taken_back() {
    let patient = Settings { delete_wait: Duration::from_mins(10), ..settings() };
    let mut world = world_with(1, patient, None, |fleet| fleet).await;
    let lease = make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free");
    world.run_until(at(1)).await;
    let (stop, stopped) = watch::channel(false);
    let running = tokio::spawn(world.service.clone().run(stopped));
    world.service.leases().delete(&caller("p"), lease.lease.id).await.expect("deleted");
    assert_eq!(status(&world, lease.lease.id), "gone");
    stop.send_replace(true);
    running.await.expect("no panic");
}

#[tokio::test]
async fn deleting_again_after_an_answer_was_lost_is_no_error_while_it_goes_on() {
    let mut world = world(1).await;
    let lease = make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free");
    world.run_until(at(1)).await;
    world.store.plan([Some(StoreFault::After)]);
    let lost = world.service.leases().delete(&caller("p"), lease.lease.id).await;
    assert!(matches!(lost, Err(ServiceError::Store(_))));
    world.service.leases().delete(&caller("p"), lease.lease.id).await.expect("it is being deleted");
    world.touched();
    world.run_until(at(2)).await;
    assert_eq!(status(&world, lease.lease.id), "gone");
}
