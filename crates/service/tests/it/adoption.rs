//! Hosts that leave the free pool without being removed through the service.

use fleet::Isolation;
use fleet::simulated::{Fault, Faults, Happening, PlannedFault, Verb};
use jiff::SignedDuration;
use leases::free_pool::FreePool;
use leases::host::Health;
use leases::ids::HostId;
use leases::instance::InstanceStatus;
use leases::plan::{GuestOwner, GuestSize, Place};
use service::{Done, Drift, HostSelector, NewInstance, Placing, Settings, Task};
use simulation::{World, caller, operator};

use crate::terms::{asking, at, hosts, make, settings, status, world, world_with};

const ONE: HostId = HostId(1);
const TWO: HostId = HostId(2);

/// Place of the host, if it was handed to the service.
fn place(world: &World, host: HostId) -> Option<Place> {
    world.fleet.look(host).map(|seen| seen.place)
}

async fn remove(world: &World, host: HostId) {
    world.wait_for(world.service.hosts().remove(&operator(), host)).await.expect("free");
}

async fn add(world: &World, host: HostId) {
    let operator = operator();
    let added = world.service.hosts().add(&operator, HostSelector::Id(host), Vec::new(), FreePool::DEFAULT);
    world.wait_for(added).await.expect("empty");
}

#[tokio::test]
async fn a_host_that_was_added_again_stays_although_the_call_that_gave_it_back_comes_once_more() {
    for fault in [Fault::Late, Fault::Duplicate, Fault::TimeOutAfter, Fault::TimeOutBefore] {
        let mut world = world(1).await;
        world.run_until(at(2)).await;
        world.fleet.set_faults(Faults { late_by: Faults::each(0.0).late_by, ..Faults::NONE });
        world.fleet.plan_fault(PlannedFault::next(Verb::Abandon, ONE, fault));
        remove(&world, ONE).await;
        add(&world, ONE).await;
        world.touched();
        world.run_until(at(15)).await;
        assert_eq!(place(&world, ONE), Some(Place::FreePool), "{fault:?}");
        let lease = make(&mut world, asking(20, 60, vec![hosts(1)])).await.expect("it works");
        world.run_until(at(21)).await;
        assert_eq!(status(&world, lease.lease.id), "ACTIVE", "{fault:?}");
    }
}

#[tokio::test]
async fn a_host_that_was_taken_out_by_hand_is_taken_on_again_if_it_works() {
    let mut world = world(2).await;
    world.run_until(at(2)).await;
    world.fleet.fail(TWO);
    let guest = world.fleet.start_guest(ONE, GuestOwner::Preemptible, None).expect("it may be there");
    world.run_until(at(3)).await;
    for host in [ONE, TWO] {
        world.fleet.abandon(host).await.expect("in the free pool");
    }
    world.run_until(at(5)).await;
    let seen = world.fleet.look(ONE).expect("taken on again");
    assert_eq!(
        (seen.place, seen.guests.iter().map(|guest| guest.id).collect()),
        (Place::FreePool, vec![guest])
    );
    assert_eq!(place(&world, TWO), None, "somebody may repair it");
    world.fleet.recover(TWO);
    world.run_until(at(7)).await;
    assert_eq!(place(&world, TWO), Some(Place::FreePool));
    assert!(world.service.hosts().all().iter().all(|host| host.host.health == Health::Up));
}

#[tokio::test]
async fn a_host_that_cannot_be_taken_on_again_keeps_no_other_from_it() {
    let settings = Settings { steps_at_once: 4, ..settings() };
    let mut world = world_with(40, settings, None, |fleet| fleet).await;
    world.run_until(at(2)).await;
    let stranger = world.fleet.start_guest(ONE, GuestOwner::Other, None).expect("nobody keeps it out");
    for host in (1..=40).map(HostId) {
        world.fleet.abandon(host).await.expect("in the free pool");
    }
    world.run_until(at(20)).await;
    assert_eq!(place(&world, ONE), None, "somebody's guest is there");
    assert!((2..=40).all(|host| place(&world, HostId(host)) == Some(Place::FreePool)));
    world.fleet.happen(Happening::GuestEnds(stranger));
    world.run_until(at(22)).await;
    assert_eq!(place(&world, ONE), Some(Place::FreePool));
}

/// The service might have started from a backup that is older than the removal of the host.
#[tokio::test]
async fn a_host_that_was_out_when_the_service_started_is_left_to_the_operator() {
    let mut world = world(2).await;
    world.run_until(at(2)).await;
    world.fleet.abandon(ONE).await.expect("in the free pool");
    world.restart().await.expect("the store works");
    world.run_until(at(10)).await;
    assert_eq!(place(&world, ONE), None);
    let found = world.service.repairs().repair(&operator(), None).await.expect("the fleet answers");
    assert_eq!((found, place(&world, ONE)), (Vec::<Drift>::new(), Some(Place::FreePool)));
    world.fleet.abandon(ONE).await.expect("in the free pool");
    world.run_until(at(12)).await;
    assert_eq!(place(&world, ONE), None, "nobody has seen it taken on since");
}

#[tokio::test]
async fn a_host_that_is_removed_while_it_is_taken_on_again_is_given_back() {
    let mut world = world(2).await;
    world.run_until(at(2)).await;
    world.fleet.abandon(ONE).await.expect("in the free pool");
    let mut adopt = None;
    for _ in 0..10 {
        world.clock.advance(SignedDuration::from_mins(1));
        for task in world.service.execution().cycle().await.tasks {
            if matches!(task, Task::Adopt(_)) {
                adopt = Some(task);
            } else {
                let done = world.wait_for(world.service.execution().perform(task)).await;
                world.service.execution().note(done);
            }
        }
        if adopt.is_some() {
            break;
        }
    }
    let adopt = adopt.expect("it was seen to be out");
    assert_eq!(adopt, Task::Adopt(ONE));
    remove(&world, ONE).await;
    let done = world.wait_for(world.service.execution().perform(adopt)).await;
    assert!(matches!(done, Done::Adopted(ONE, Ok(_))), "{done:?}");
    world.service.execution().note(done);
    assert_eq!(place(&world, ONE), Some(Place::FreePool));
    world.touched();
    world.run_until(world.now() + SignedDuration::from_mins(3)).await;
    assert_eq!(place(&world, ONE), None);
}

#[tokio::test]
async fn who_waits_for_a_host_that_does_not_come_back_is_told() {
    let mut world = world(2).await;
    world.run_until(at(2)).await;
    let new = || {
        let size = GuestSize { vcpus: 1, memory_mib: 1024, disk_gib: 10 };
        let placing = Placing { size: Some(size), ..Placing::default() };
        NewInstance { name: "web".to_owned(), placing, requeue: false }
    };
    let mut started = Vec::new();
    for _ in 0..2 {
        let instance = world.service.instances().create(&caller("p"), new()).await.expect("room");
        started.push(instance.instance.clone());
        // Forces the second instance onto the second host.
        world.fleet.fail(instance.instance.host);
        world.run_until(at(2 + 2 * started.len() as i64)).await;
    }
    let [leaves, fails] = &started[..] else { panic!("{started:?}") };
    assert_ne!(leaves.host, fails.host);
    world.fleet.happen(Happening::HostVanishes(leaves.host));
    world.run_until(at(10)).await;
    let told = world.service.instances().get(leaves.id).expect("there").instance.clone();
    let reason = told.reason.expect("it says why");
    assert_eq!(told.status, InstanceStatus::Error);
    assert!(reason.contains("it could not be started (3 tries)"), "{reason}");
    let waits = world.service.instances().get(fails.id).expect("there").instance.status;
    assert_eq!(waits, InstanceStatus::Building, "its host may work again");
    world.fleet.recover(fails.host);
    world.run_until(at(12)).await;
    assert_eq!(
        world.service.instances().get(fails.id).expect("there").instance.status,
        InstanceStatus::Active
    );
}
