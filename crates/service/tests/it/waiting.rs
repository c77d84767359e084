//! The waitlist (CLS-10, HK).

use std::sync::Arc;

use service::{Created, Done, IdempotencyKey, LeaseFilter, NewLease, ServiceError, Task};
use simulation::{World, caller};
use store::LeaseRecord;

use crate::terms::{asking, at, conflict, hosts, make, settings, status, window, world, world_with};

async fn wait(world: &mut World, new: NewLease) -> Result<Arc<LeaseRecord>, ServiceError> {
    make(world, NewLease { waits: true, ..new }).await
}

async fn told(world: &World, lease: &LeaseRecord) -> Vec<String> {
    let told = world.service.notifications().after(None, 0, 100).await.expect("the store works");
    told.into_iter()
        .filter(|told| told.content.lease == Some(lease.lease.id))
        .map(|told| told.content.event_type)
        .collect()
}

#[tokio::test]
async fn cls_10_g_a_refused_request_waits_its_turn_and_is_told_when_it_is_served() {
    let mut world = world(1).await;
    let first = make(&mut world, asking(30, 60, vec![hosts(1)])).await.expect("free");
    let one = wait(&mut world, asking(30, 60, vec![hosts(1)])).await.expect("waits");
    let two = wait(&mut world, asking(40, 70, vec![hosts(1)])).await.expect("waits");
    let places: Vec<_> =
        world.service.waitlist().all(None).iter().map(|(place, record)| (*place, record.lease.id)).collect();
    assert_eq!(places, [(1, one.lease.id), (2, two.lease.id)]);
    assert_eq!(world.service.leases().all(&LeaseFilter::default()).len(), 1, "it is no lease yet");
    world.service.leases().delete(&caller("p"), first.lease.id).await.expect("deleted");
    world.touched();
    world.settle().await;
    let served = world.service.leases().get(one.lease.id).expect("it was the first");
    assert_eq!((served.lease.window, served.lease.reservations[0].allocation.amount()), (window(30, 60), 1));
    assert!(world.service.leases().get(two.lease.id).is_none(), "in order");
    assert_eq!(told(&world, &one).await, ["lease.waitlist.added", "lease.create", "lease.waitlist.served"]);
    world.run_until(at(31)).await;
    assert_eq!(status(&world, one.lease.id), "ACTIVE");
    world.run_until(at(41)).await;
    assert!(world.service.waitlist().get(two.lease.id).is_none(), "it is too late for it");
    assert_eq!(told(&world, &two).await, ["lease.waitlist.added", "lease.waitlist.expired"]);
}

/// The duration of a pass over the waitlist depends on the waiting requests.
#[tokio::test]
async fn w3_leases_start_while_it_is_gone_over_who_waits() {
    let mut world = world(2).await;
    let starts = make(&mut world, asking(10, 60, vec![hosts(1)])).await.expect("free");
    let all = make(&mut world, asking(100, 160, vec![hosts(2)])).await.expect("free");
    let waits = wait(&mut world, asking(100, 160, vec![hosts(1)])).await.expect("waits");
    world.settle().await;
    world.service.leases().delete(&caller("p"), all.lease.id).await.expect("deleted");
    world.clock.set(at(10));
    let mut passes = Vec::new();
    for _ in 0..20 {
        for task in world.service.execution().cycle().await.tasks {
            if task == Task::Pass {
                passes.push(task);
            } else {
                let done = world.wait_for(world.service.execution().perform(task)).await;
                world.service.execution().note(done);
            }
        }
    }
    assert_eq!(status(&world, starts.lease.id), "ACTIVE");
    assert!(world.service.leases().get(waits.lease.id).is_none());
    assert_eq!(passes, [Task::Pass], "there is one at a time");
    let done = world.service.execution().perform(Task::Pass).await;
    assert!(matches!(done, Done::Passed(true)));
    assert!(world.service.leases().get(waits.lease.id).is_some());
}

#[tokio::test]
async fn cls_10_g_who_can_be_served_is_not_held_up_by_who_cannot() {
    let mut world = world(2).await;
    let first = make(&mut world, asking(30, 60, vec![hosts(2)])).await.expect("free");
    let large = wait(&mut world, asking(30, 60, vec![hosts(2)])).await.expect("waits");
    let small = wait(&mut world, asking(30, 60, vec![hosts(1)])).await.expect("waits");
    let change = leases::admission::HostsChange { min: Some(1), max: Some(1), ..Default::default() };
    let change = crate::terms::of_first(&first, leases::admission::TermsChange::Hosts(change));
    crate::terms::change(&mut world, first.lease.id, change).await.expect("fewer");
    world.settle().await;
    assert!(world.service.leases().get(small.lease.id).is_some());
    assert!(world.service.waitlist().get(large.lease.id).is_some());
}

#[tokio::test]
async fn cls_10_g_a_flexible_request_waits_for_any_time_in_its_window() {
    let mut world = world(1).await;
    let first = make(&mut world, asking(0, 200, vec![hosts(1)])).await.expect("free");
    let new = asking(0, 40, vec![hosts(1)]);
    let terms = new.terms.clone().anywhere_in(window(30, 180)).expect("long enough");
    let waits = wait(&mut world, NewLease { terms, ..new }).await.expect("waits");
    world.run_until(at(100)).await;
    assert!(world.service.waitlist().get(waits.lease.id).is_some());
    world.service.leases().delete(&caller("p"), first.lease.id).await.expect("deleted");
    world.touched();
    world.run_until(at(103)).await;
    assert_eq!(status(&world, waits.lease.id), "ACTIVE");
}

#[tokio::test]
async fn cls_10_g_what_can_be_had_does_not_wait_and_what_is_wrong_does_not_either() {
    let mut world = world(1).await;
    let made = wait(&mut world, asking(30, 60, vec![hosts(1)])).await.expect("free");
    assert!(world.service.leases().get(made.lease.id).is_some());
    world.run_until(at(40)).await;
    assert!(wait(&mut world, asking(30, 60, vec![hosts(1)])).await.is_err(), "in the past");
    let few = service::Settings { waitlist_limit: 1, ..settings() };
    let mut world = world_with(1, few, None, |fleet| fleet).await;
    make(&mut world, asking(30, 60, vec![hosts(1)])).await.expect("free");
    wait(&mut world, asking(30, 60, vec![hosts(1)])).await.expect("waits");
    let text = conflict(wait(&mut world, asking(30, 60, vec![hosts(1)])).await);
    assert!(text.contains("1 requests of the project are on the waitlist already"), "{text}");
}

#[tokio::test]
async fn cls_10_g_a_request_can_be_withdrawn_and_survives_a_restart() {
    let mut world = world(1).await;
    let first = make(&mut world, asking(30, 60, vec![hosts(1)])).await.expect("free");
    let one = wait(&mut world, asking(30, 60, vec![hosts(1)])).await.expect("waits");
    let two = wait(&mut world, asking(30, 60, vec![hosts(1)])).await.expect("waits");
    world.restart().await.expect("opens");
    world.service.waitlist().withdraw(&caller("p"), one.lease.id).await.expect("it waits");
    world.service.leases().delete(&caller("p"), first.lease.id).await.expect("deleted");
    world.touched();
    world.settle().await;
    assert!(
        world.service.leases().get(one.lease.id).is_none()
            && world.service.leases().get(two.lease.id).is_some()
    );
}

#[tokio::test]
async fn cls_10_g_a_repeated_request_waits_once() {
    let mut world = world(1).await;
    make(&mut world, asking(30, 60, vec![hosts(1)])).await.expect("free");
    let key = IdempotencyKey { key: "k".to_owned(), fingerprint: "f".to_owned() };
    let new = NewLease { waits: true, ..asking(30, 60, vec![hosts(1)]) };
    let mut ids = Vec::new();
    for repeated in [false, true] {
        let created = world.service.leases().create(&caller("p"), new.clone(), Some(key.clone())).await;
        let Created { lease, repeated: was } = created.expect("waits");
        assert_eq!(was, repeated);
        ids.push(lease.lease.id);
    }
    assert_eq!(ids[0], ids[1]);
    assert_eq!(world.service.waitlist().all(None).len(), 1);
}
