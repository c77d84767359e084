//! Preemptible instances that are moved to another gap instead of leaving.

use fleet::OperationKey;
use fleet::simulated::{Between, Timing};
use leases::ids::{GuestId, HostId, LeaseId};
use leases::instance::{Departure, Instance};
use leases::plan::Action;
use leases::terms::{Affinity, InstancesTerms, ReservationTerms};
use service::{Service, Settings};
use simulation::{World, caller};
use store::{Commit, InstanceRecord, Store as _, Write};

use crate::preemptible::{allowing, new, start, state, told};
use crate::terms::{asking, at, hosts, hosts_of, make, minutes, slots, status, world_with};

/// A world in which instances that would have to leave get three more minutes to move.
async fn moving_world(hosts: u32, migration_mib_per_second: u32) -> World {
    moving_world_with(hosts, migration_mib_per_second, allowing()).await
}

async fn moving_world_with(hosts: u32, migration_mib_per_second: u32, mut settings: Settings) -> World {
    settings.plan_rules.moving_time = minutes(3);
    settings.plan_rules.clear_ahead = Some(minutes(5));
    let quick = Timing { shut_down: Between::secs(20, 20), migration_mib_per_second, ..Timing::IMMEDIATE };
    world_with(hosts, settings, None, |fleet| fleet.with_timing(quick)).await
}

/// Creates a lease of the instance's host, or of capacity on it, and returns it.
async fn lease_of_its_host(
    world: &mut World,
    instance: GuestId,
    from: i64,
    asked: impl Fn() -> ReservationTerms,
) -> LeaseId {
    let host = world.service.instances().get(instance).expect("it runs").instance.host;
    let mut others = Vec::new();
    loop {
        let lease = make(world, asking(from, from + 30, vec![asked()])).await.expect("it is free");
        if hosts_of(&lease) == [host] {
            for other in others {
                world.service.leases().delete(&caller("p"), other).await.expect("there");
            }
            world.touched();
            return lease.lease.id;
        }
        others.push(lease.lease.id);
    }
}

#[tokio::test]
async fn pre_06_one_goes_to_another_gap_instead_of_leaving_if_that_is_long_enough() {
    let mut world = moving_world(2, 0).await;
    let first = start(&mut world).await.expect("room").instance.clone();
    let lease = lease_of_its_host(&mut world, first.id, 60, || hosts(1)).await;
    world.run_until(at(54)).await;
    let now = |world: &World| world.service.instances().get(first.id).expect("it runs").instance.clone();
    assert_eq!(now(&world).departure, Some(Departure::for_lease(at(58), at(60))));
    world.run_until(at(56)).await;
    let moved = now(&world);
    assert_ne!(moved.host, first.host);
    assert_eq!((moved.departure, moved.status.name()), (None, "ACTIVE"));
    world.run_until(at(61)).await;
    assert_eq!((status(&world, lease), state(&world, first.id)), ("ACTIVE", "ACTIVE"));
    let told: Vec<String> = told(&world).await.into_iter().map(|(event, _)| event).collect();
    assert_eq!(told, ["instance.departure.planned", "instance.departure.withdrawn"]);
    // The lease on its new host leaves no other gap for it, because the first host is leased until 90.
    let next = lease_of_its_host(&mut world, first.id, 80, || hosts(1)).await;
    world.run_until(at(77)).await;
    assert_eq!(now(&world).departure, Some(Departure::for_lease(at(78), at(80))));
    world.run_until(at(81)).await;
    assert_eq!((status(&world, next), state(&world, first.id)), ("ACTIVE", "gone"));
}

#[tokio::test]
async fn whoever_hears_that_an_instance_was_moved_looks_at_the_host_that_it_has_left_as_well() {
    let mut world = moving_world(2, 0).await;
    let first = start(&mut world).await.expect("room").instance.clone();
    world.settle().await;
    // The second service has observed the guest on its host, and learns of a move only from the instance's
    // record. The guest moves there and back, so it leaves each host once.
    let other = world.beside().await.expect("opens");
    some_cycles_of(&other).await;
    for fence in [100, 101] {
        world.service.execution().cycle().await;
        let before = InstanceRecord::clone(&world.service.instances().get(first.id).expect("it runs"));
        let to = HostId(3 - before.instance.host.0);
        let moved = Action::MoveGuest(before.instance.host, first.id, to);
        let key = OperationKey::of(moved, fence, None);
        fleet::perform(&*world.fleet, moved, fleet::About::default(), &key).await.expect("moved");
        let after = Instance { host: to, ..before.instance.clone() };
        let record =
            Box::new(InstanceRecord { instance: after, version: before.version.next(), ..before.clone() });
        let write = Write::Instance { record, expected: Some(before.version) };
        let commit = Commit { writes: vec![write], ..Commit::new(world.now()) };
        world.store.commit(&commit).await.expect("committed");
        // The second service's next operation does not concern that instance.
        other.instances().create(&caller("q"), new(Some(true))).await.expect("room");
        some_cycles_of(&other).await;
        assert_eq!(other.instances().get(first.id).expect("it runs").instance.host, to);
    }
}

/// Runs some cycles of a service that the world doesn't drive, with their tasks.
async fn some_cycles_of(service: &Service) {
    for _ in 0..5 {
        for task in service.execution().cycle().await.tasks {
            service.execution().note(service.execution().perform(task).await);
        }
    }
}

#[tokio::test]
async fn pre_06_all_go_to_another_gap_though_a_cycle_has_work_for_one_only() {
    let settings = Settings { decision_work: 20_000, ..allowing() };
    let mut world = moving_world_with(6, 0, settings).await;
    let mut all = Vec::new();
    for _ in 0..6 {
        all.push(start(&mut world).await.expect("room").instance.id);
    }
    let lease = make(&mut world, asking(60, 90, vec![hosts(3)])).await.expect("three hosts are free");
    let taken = hosts_of(&lease);
    world.run_until(at(61)).await;
    for id in all {
        let instance = world.service.instances().get(id).expect("it runs").instance.clone();
        assert!(!taken.contains(&instance.host));
        assert_eq!((instance.departure, instance.status.name()), (None, "ACTIVE"));
    }
}

#[tokio::test]
async fn pre_06_one_is_moved_out_of_the_way_of_room_as_well() {
    let mut world = moving_world(2, 0).await;
    let instance = start(&mut world).await.expect("room").instance.clone();
    let room = || match slots(2, 8) {
        ReservationTerms::Instances(terms) => {
            ReservationTerms::Instances(InstancesTerms { affinity: Affinity::OneHost, ..terms })
        }
        other => other,
    };
    let lease = lease_of_its_host(&mut world, instance.id, 60, room).await;
    world.run_until(at(61)).await;
    let moved = world.service.instances().get(instance.id).expect("it runs").instance.clone();
    assert_eq!((status(&world, lease), moved.status.name(), moved.departure), ("ACTIVE", "ACTIVE", None));
    assert_ne!(moved.host, instance.host);
}

#[tokio::test]
async fn pre_06_whoever_has_not_got_there_in_time_is_asked_to_leave_and_the_lease_is_on_time() {
    let mut world = moving_world(2, 1).await;
    let instance = start(&mut world).await.expect("room").instance.id;
    let lease = lease_of_its_host(&mut world, instance, 60, || hosts(1)).await;
    world.run_until(at(57)).await;
    let host = world.service.instances().get(instance).expect("it runs").instance.host;
    let guest = world.fleet.look(host).expect("taken on").guests.remove(0);
    assert!(guest.moving_to.is_some(), "a GiB takes 17 minutes");
    world.run_until(at(60)).await;
    world.settle().await;
    assert_eq!((status(&world, lease), state(&world, instance)), ("ACTIVE", "gone"));
}
