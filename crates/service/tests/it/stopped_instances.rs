//! Preempted instances that are stopped and kept.

use fleet::simulated::{Between, Timing};
use leases::ids::GuestId;
use leases::preemption::{Class, EndState};
use service::{NewInstance, Placing};
use simulation::{World, caller};

use crate::preemptible::{allowing, new, state, told};
use crate::terms::{asking, at, hosts, make, minutes, status, world_with};

/// A world where preempted instances of class `batch` are stopped and kept, and one such instance.
async fn keeping_world(requeue: bool) -> (World, GuestId) {
    let mut settings = allowing();
    settings.preemption.classes = vec![Class::new("batch", minutes(1), EndState::Stop).expect("a class")];
    let quick = Timing { shut_down: Between::secs(20, 20), ..Timing::IMMEDIATE };
    let mut world = Box::pin(world_with(1, settings, None, |fleet| fleet.with_timing(quick))).await;
    let placing = Placing { class: Some("batch".to_owned()), ..new(Some(true)).placing };
    let made =
        world.service.instances().create(&caller("p"), NewInstance { placing, requeue, ..new(None) }).await;
    let id = made.expect("room").instance.id;
    world.touched();
    world.run_until(at(1)).await;
    (world, id)
}

#[tokio::test]
async fn pre_stop_one_is_kept_when_it_has_made_way_and_its_owner_starts_it_again() {
    let (mut world, id) = keeping_world(false).await;
    let running = world.service.instances().start(&caller("p"), id).await.expect_err("it runs");
    assert!(
        running.to_string().contains("is ACTIVE: one can be started that is SHELVED_OFFLOADED"),
        "{running}"
    );
    let lease = make(&mut world, asking(30, 60, vec![hosts(1)])).await.expect("it is preempted").lease.id;
    world.run_until(at(31)).await;
    assert_eq!((status(&world, lease), state(&world, id)), ("ACTIVE", "SHELVED_OFFLOADED"));
    assert_eq!(world.fleet.kept(), [id]);
    let events: Vec<String> = told(&world).await.into_iter().map(|(event, _)| event).collect();
    assert_eq!(events, ["instance.departure.planned", "instance.preempted"]);
    let next = world.service.instances().start(&caller("p"), id).await.expect("it is kept").instance.clone();
    world.touched();
    assert_eq!((next.status.name(), next.resumes, state(&world, id)), ("QUEUED", Some(id), "gone"));
    world.run_until(at(32)).await;
    assert_eq!(state(&world, next.id), "QUEUED", "there is no room yet");
    world.run_until(at(62)).await;
    assert_eq!((state(&world, next.id), world.fleet.kept()), ("ACTIVE", vec![]));
    let now = world.service.instances().get(next.id).expect("it runs").instance.clone();
    assert_eq!((now.resumes, now.class), (None, next.class));
    // Deleting the instance also deletes its kept disks and record.
    let again = make(&mut world, asking(90, 120, vec![hosts(1)])).await.expect("it is preempted").lease.id;
    world.run_until(at(91)).await;
    assert_eq!((status(&world, again), world.fleet.kept()), ("ACTIVE", vec![next.id]));
    world.service.instances().delete(&caller("p"), next.id).await.expect("there");
    world.touched();
    world.run_until(at(92)).await;
    assert_eq!((state(&world, next.id), world.fleet.kept()), ("gone", vec![]));
}

#[tokio::test]
async fn pre_stop_one_that_is_kept_goes_on_by_itself_if_it_is_to_be_started_again() {
    let (mut world, id) = keeping_world(true).await;
    make(&mut world, asking(30, 60, vec![hosts(1)])).await.expect("it is preempted");
    world.run_until(at(31)).await;
    let instances = world.service.instances().all(None, None);
    let [waiting] = &instances[..] else { panic!("{instances:?}") };
    assert_eq!((waiting.instance.status.name(), waiting.instance.resumes), ("QUEUED", Some(id)));
    assert_eq!(world.fleet.kept(), [id]);
    let next = waiting.instance.id;
    world.run_until(at(62)).await;
    assert_eq!((state(&world, next), world.fleet.kept()), ("ACTIVE", vec![]));
    // A queued instance that is deleted leaves nothing behind.
    make(&mut world, asking(90, 120, vec![hosts(1)])).await.expect("it is preempted");
    world.run_until(at(91)).await;
    let last = world.service.instances().all(None, None)[0].instance.clone();
    assert_eq!((last.status.name(), last.resumes), ("QUEUED", Some(next)));
    world.service.instances().delete(&caller("p"), last.id).await.expect("there");
    world.touched();
    world.run_until(at(92)).await;
    assert_eq!((state(&world, last.id), world.fleet.kept()), ("gone", vec![]));
}

#[tokio::test]
async fn pre_stop_one_of_which_nothing_is_kept_says_so_and_is_not_lost() {
    let (mut world, id) = keeping_world(false).await;
    let host = world.service.instances().get(id).expect("it runs").instance.host;
    make(&mut world, asking(30, 60, vec![hosts(1)])).await.expect("it is preempted");
    world.run_until(at(31)).await;
    // It was removed outside the service.
    let key = fleet::OperationKey::of(leases::plan::Action::DestroyGuest(host, id), u64::MAX, None);
    fleet::Guests::destroy(&*world.fleet, host, id, &key).await.expect("done");
    let next = world.service.instances().start(&caller("p"), id).await.expect("it is said to be").instance.id;
    world.touched();
    world.run_until(at(90)).await;
    let failed = world.service.instances().get(next).expect("it is there").instance.clone();
    let reason = format!("it could not be started: nothing is kept of instance {id}");
    let said = failed.reason.as_deref().map(leases::reason::for_operator);
    assert_eq!((failed.status.name(), said), ("ERROR", Some(reason.as_str())));
}
