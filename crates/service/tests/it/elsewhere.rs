//! Preemptible guests started outside the service, for example by an external scheduler, on hosts where
//! leases have instance capacity (PRE-05, 06, 07 and 12).

use fleet::simulated::{Between, Fault, PlannedFault, Timing, Verb};
use jiff::SignedDuration;
use leases::ids::{GuestId, HostId};
use leases::plan::{GuestOwner, GuestSize};
use service::{NewInstance, Placing};
use simulation::{World, caller};

use crate::preemptible::{allowing, new, state, told};
use crate::terms::{asking, at, hosts, hosts_of, make, slots, status, world_with};

const HOST: HostId = HostId(1);
const SECOND: SignedDuration = SignedDuration::from_secs(1);

/// One host of 16 CPUs. Guests take `seconds` to shut down.
async fn world(seconds: i64) -> World {
    let timing = Timing { shut_down: Between::secs(seconds, seconds), ..Timing::IMMEDIATE };
    world_with(1, allowing(), None, |fleet| fleet.with_timing(timing)).await
}

/// Starts a guest outside the service.
fn started_elsewhere(world: &mut World, owner: GuestOwner) -> GuestId {
    let id = world.fleet.start_guest(HOST, owner, None).expect("it is open");
    world.touched();
    id
}

/// Number of CPUs that guests use.
fn used(world: &World) -> u32 {
    world.fleet.look(HOST).expect("taken on").guests.iter().map(|guest| guest.size.vcpus).sum()
}

/// For each of these guests that is on the host: whether it is asked to leave.
fn there(world: &World, of: &[GuestId]) -> Vec<bool> {
    let seen = world.fleet.look(HOST).expect("taken on").guests;
    let there = seen.iter().filter(|guest| of.contains(&guest.id));
    there.map(|guest| guest.stopping_since.is_some()).collect()
}

#[tokio::test]
async fn pre_06_preemptible_guests_of_others_leave_before_room_is_granted_if_it_is_needed() {
    let mut world = world(20).await;
    let size = Some(GuestSize { vcpus: 2, memory_mib: 1024, disk_gib: 10 });
    let small = NewInstance { placing: Placing { size, ..new(Some(true)).placing }, ..new(Some(true)) };
    let instance = world.service.instances().create(&caller("p"), small).await.expect("room").instance.id;
    let others = [0; 2].map(|_| started_elsewhere(&mut world, GuestOwner::Preemptible));
    world.run_until(at(1)).await;
    let left = 16 - used(&world);
    let fits = make(&mut world, asking(30, 60, vec![slots(1, left)])).await.expect("free").lease.id;
    world.run_until(at(30) + SECOND).await;
    assert_eq!(status(&world, fits), "ACTIVE");
    assert_eq!(there(&world, &others), [false, false], "nobody needs their place");
    let needs = make(&mut world, asking(90, 120, vec![slots(1, left + 1)])).await.expect("free").lease.id;
    world.run_until(at(88) - SECOND).await;
    assert_eq!(there(&world, &others), [false, false]);
    world.run_until(at(88) + SECOND).await;
    let asked = there(&world, &others);
    assert_eq!((asked.len(), asked.iter().filter(|asked| **asked).count()), (2, 1), "one is enough");
    world.run_until(at(89)).await;
    assert_eq!((there(&world, &others), status(&world, needs)), (vec![false], "PENDING"));
    world.run_until(at(90) + SECOND).await;
    assert_eq!(status(&world, needs), "ACTIVE", "it starts on time");
    assert_eq!((there(&world, &others), state(&world, instance)), (vec![false], "ACTIVE"));
    assert_eq!(told(&world).await, [], "who has an instance there is told of nothing");
    assert_eq!(world.fleet.violations(), []);
}

#[tokio::test]
async fn a_lease_gets_another_host_if_a_preemptible_guest_is_not_deleted() {
    let timing = Timing { shut_down: Between::secs(3600, 3600), ..Timing::IMMEDIATE };
    let mut world = world_with(2, allowing(), None, |fleet| fleet.with_timing(timing)).await;
    let other = HostId(2);
    let first = make(&mut world, asking(0, 20, vec![hosts(1)])).await.expect("free");
    assert_eq!(hosts_of(&first), [HOST]);
    let stuck = world.fleet.start_guest(other, GuestOwner::Preemptible, None).expect("it is open");
    let refuse = PlannedFault { times: 1000, ..PlannedFault::next(Verb::Delete, other, Fault::Refuse) };
    world.fleet.plan_fault(refuse);
    world.touched();
    let lease = make(&mut world, asking(10, 60, vec![hosts(1)])).await.expect("it is preempted");
    assert_eq!(hosts_of(&lease), [other]);
    world.run_until(at(19)).await;
    assert_eq!(status(&world, lease.lease.id), "STARTING");
    let late = make(&mut world, asking(19, 20, vec![hosts(1)])).await;
    assert!(late.is_err(), "nobody else gets the host meanwhile");
    world.run_until(at(21)).await;
    let lease = world.service.leases().get(lease.lease.id).expect("there");
    assert_eq!((hosts_of(&lease), lease.lease.status.name()), (vec![HOST], "ACTIVE"));
    let next = make(&mut world, asking(21, 60, vec![hosts(1)])).await;
    assert!(next.is_err(), "the guest {stuck} is on the other one still");
}

#[tokio::test]
async fn pre_12_room_waits_for_preemptible_guests_of_others_and_the_lease_says_so() {
    let mut world = world(3600).await;
    let other = started_elsewhere(&mut world, GuestOwner::Preemptible);
    world.run_until(at(5)).await;
    let lease = make(&mut world, asking(5, 60, vec![slots(2, 8)])).await.expect("it is preempted").lease.id;
    world.run_until(at(6) - SECOND).await;
    assert_eq!((there(&world, &[other]), status(&world, lease)), (vec![true], "STARTING"));
    let record = world.service.leases().get(lease).expect("there");
    let reason = record.lease.reason.as_deref().unwrap_or_default();
    assert_eq!(leases::reason::for_operator(reason), "preemptible instances on host r1-h01 are leaving");
    world.run_until(at(6) + SECOND).await;
    assert_eq!((there(&world, &[other]), status(&world, lease)), (vec![], "ACTIVE"));
    assert_eq!(world.fleet.violations(), [], "it had its grace");
    // A guest that arrives while the lease has its capacity is preempted as well.
    let late = started_elsewhere(&mut world, GuestOwner::Preemptible);
    world.run_until(at(10)).await;
    assert_eq!((there(&world, &[late]), status(&world, lease)), (vec![], "ACTIVE"));
    assert_eq!(world.fleet.violations(), []);
}

#[tokio::test]
async fn pre_05_guests_of_others_that_are_not_preemptible_are_not_asked_to_leave_for_room() {
    let mut world = world(20).await;
    let other = started_elsewhere(&mut world, GuestOwner::Other);
    world.run_until(at(1)).await;
    let lease = make(&mut world, asking(30, 60, vec![slots(2, 8)])).await.expect("free").lease.id;
    world.run_until(at(30) + SECOND).await;
    assert_eq!((there(&world, &[other]), status(&world, lease)), (vec![false], "ACTIVE"));
}

/// One host of 16 CPUs with a preemptible instance of 8. Deleting a guest takes two minutes.
async fn slow_to_delete() -> (World, GuestId) {
    let minutes = |minutes: i64| Between::secs(minutes * 60, minutes * 60);
    let timing = Timing { shut_down: minutes(60), deletion: minutes(2), ..Timing::IMMEDIATE };
    let mut world = world_with(1, allowing(), None, |fleet| fleet.with_timing(timing)).await;
    let made = world.service.instances().create(&caller("p"), new(Some(true))).await;
    world.run_until(at(1)).await;
    (world, made.expect("room").instance.id)
}

#[tokio::test]
async fn pre_12_room_waits_until_an_instance_has_gone_that_its_owner_deletes() {
    let (mut world, id) = slow_to_delete().await;
    world.service.instances().delete(&caller("p"), id).await.expect("there");
    world.touched();
    world.run_until(at(1) + SECOND).await;
    let fits = make(&mut world, asking(2, 60, vec![slots(1, 8)])).await.expect("free").lease.id;
    let needs = make(&mut world, asking(2, 60, vec![slots(1, 8)])).await.expect("free").lease.id;
    world.run_until(at(2) + SECOND).await;
    let statuses = [fits, needs].map(|lease| status(&world, lease));
    assert_eq!((state(&world, id), there(&world, &[id]).len(), statuses), ("DELETING", 1, ["STARTING"; 2]));
    let reason = world.service.leases().get(needs).expect("there").lease.reason.clone();
    let reason = reason.as_deref().map(leases::reason::for_operator);
    assert_eq!(reason, Some("preemptible instances on host r1-h01 are leaving"));
    world.run_until(at(3) + SECOND * 2).await;
    assert_eq!(
        (state(&world, id), status(&world, fits), status(&world, needs)),
        ("gone", "ACTIVE", "ACTIVE")
    );
    // A lease that fits next to the instance doesn't wait for its deletion.
    let (mut world, id) = slow_to_delete().await;
    world.service.instances().delete(&caller("p"), id).await.expect("there");
    let fits = make(&mut world, asking(2, 60, vec![slots(1, 8)])).await.expect("free").lease.id;
    world.run_until(at(2) + SECOND).await;
    assert_eq!((state(&world, id), status(&world, fits)), ("DELETING", "ACTIVE"));
}
