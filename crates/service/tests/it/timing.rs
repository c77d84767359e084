//! Starts and ends of leases.

use fleet::simulated::{Between, Timing};
use jiff::SignedDuration;
use leases::ids::HostId;
use leases::plan::{GuestOwner, Place};
use service::Done;
use simulation::{Happened, operator};

use crate::terms::{
    addresses, asking, at, change, conflict, dates, hosts, hosts_of, make, minutes, settings, slots, status,
    world, world_with,
};

#[tokio::test]
async fn a_lease_starts_and_ends_at_its_time() {
    let mut world = world(2).await;
    let lease = make(&mut world, asking(10, 20, vec![hosts(1), slots(4, 4)])).await.expect("free");
    world.run_until(at(10) - SignedDuration::from_secs(1)).await;
    assert_eq!(status(&world, lease.lease.id), "PENDING");
    world.run_until(at(10)).await;
    assert_eq!(status(&world, lease.lease.id), "ACTIVE");
    assert_eq!(world.service.statistics().last_start_delay_ms, 0);
    world.run_until(at(20)).await;
    assert_eq!(status(&world, lease.lease.id), "TERMINATED");
    for host in hosts_of(&lease) {
        let seen = world.fleet.look(host).expect("there");
        assert_eq!((seen.place, seen.slots.len()), (leases::plan::Place::FreePool, 0));
    }
}

#[tokio::test]
async fn a_clock_that_is_set_back_is_looked_at_again_soon() {
    let mut world = world(1).await;
    world.run_until(at(60)).await;
    world.clock.set(at(5));
    let cycle = world.service.execution().cycle().await;
    // A lease created after that wakes the loop only if it starts before the next observation.
    assert!(cycle.wake_at <= at(5) + settings().observe_interval, "the next look is at {}", cycle.wake_at);
}

#[tokio::test]
async fn w3_a_slow_end_delays_nobody_else() {
    let slow = Timing { deletion: Between { least: minutes(9), most: minutes(9) }, ..Timing::IMMEDIATE };
    let mut world = world_with(2, settings(), None, |fleet| fleet.with_timing(slow)).await;
    // They overlap at first, so that they get different hosts.
    let ends = make(&mut world, asking(0, 11, vec![hosts(1)])).await.expect("free");
    let starts = make(&mut world, asking(10, 60, vec![hosts(1)])).await.expect("free");
    world.run_until(at(5)).await;
    change(&mut world, ends.lease.id, dates(None, Some(10))).await.expect("allowed");
    let guest = world.fleet.start_guest(hosts_of(&ends)[0], GuestOwner::Lease(ends.lease.id), None);
    guest.expect("it holds the host");
    world.run_until(at(10)).await;
    assert_eq!((status(&world, ends.lease.id), status(&world, starts.lease.id)), ("TERMINATING", "ACTIVE"));
    world.run_until(at(20)).await;
    assert_eq!(status(&world, ends.lease.id), "TERMINATED");
}

#[tokio::test]
async fn w3_steps_that_the_fleet_is_at_leave_room_for_others() {
    let slow = Timing { deletion: Between { least: minutes(9), most: minutes(9) }, ..Timing::IMMEDIATE };
    let narrow = service::Settings { steps_at_once: 1, ..settings() };
    let mut world = world_with(3, narrow, None, |fleet| fleet.with_timing(slow)).await;
    let ends = make(&mut world, asking(0, 11, vec![hosts(2)])).await.expect("free");
    let starts = make(&mut world, asking(10, 60, vec![hosts(1)])).await.expect("free");
    world.run_until(at(5)).await;
    change(&mut world, ends.lease.id, dates(None, Some(10))).await.expect("allowed");
    for host in hosts_of(&ends) {
        world.fleet.start_guest(host, GuestOwner::Lease(ends.lease.id), None).expect("it holds the host");
    }
    world.run_until(at(11)).await;
    assert_eq!((status(&world, ends.lease.id), status(&world, starts.lease.id)), ("TERMINATING", "ACTIVE"));
}

#[tokio::test]
async fn w3_a_fleet_that_is_slow_to_say_what_is_there_holds_up_no_lease() {
    let slow = Timing { question: Between { least: minutes(1), most: minutes(1) }, ..Timing::IMMEDIATE };
    let mut world = world_with(1, settings(), None, |fleet| fleet.with_timing(slow)).await;
    world.run_until(at(10)).await;
    // The fleet is observed all the time, and each observation takes two minutes.
    assert!(world.under_way() > 0, "a look is under way");
    let lease = make(&mut world, asking(15, 60, vec![hosts(1)])).await.expect("free");
    world.run_until(at(15)).await;
    assert_eq!(status(&world, lease.lease.id), "STARTING");
    let place = world.fleet.look(hosts_of(&lease)[0]).map(|seen| seen.place);
    assert_eq!(place, Some(Place::Fenced { verified_for: None }));
    world.run_until(at(20)).await;
    assert_eq!(status(&world, lease.lease.id), "ACTIVE");
}

#[tokio::test]
async fn while_the_fleet_is_asked_whether_a_host_is_empty_others_are_served() {
    let slow = Timing { question: Between { least: minutes(1), most: minutes(1) }, ..Timing::IMMEDIATE };
    let mut world = world_with(2, settings(), None, |fleet| fleet.with_timing(slow)).await;
    world.run_until(at(10)).await;
    let (service, operator) = (world.service.clone(), operator());
    let mut removal = Box::pin(service.hosts().remove(&operator, HostId(2)));
    assert!(futures::poll!(&mut removal).is_pending(), "the fleet is asked");
    make(&mut world, asking(15, 60, vec![hosts(2)])).await.expect("nobody waits for the fleet");
    world.run_until(at(13)).await;
    let refused = conflict(removal.await);
    assert!(refused.contains("reserved"), "what was found out before the answer counts: {refused}");
}

/// Runs until `steps` steps were noted. Returns false if there were fewer.
async fn run_steps(world: &mut simulation::World, steps: usize, until: jiff::Timestamp) -> bool {
    let mut noted = 0;
    while noted < steps {
        match world.next(until).await {
            Some(Happened::Noted(Done::Step(_))) => noted += 1,
            Some(_) => {}
            None => return false,
        }
    }
    true
}

#[tokio::test]
async fn w4_a_restart_after_any_step_loses_nothing() {
    let some_time = Timing { call: Between::secs(1, 3), ..Timing::IMMEDIATE };
    let mut restarts = 0;
    for steps in 0.. {
        let mut world = world_with(2, settings(), None, |fleet| fleet.with_timing(some_time)).await;
        let begin = 1 + (world.now().as_second() - crate::terms::NOON) / 60;
        let terms = vec![hosts(1), slots(2, 8)];
        let lease = make(&mut world, asking(begin, begin + 10, terms)).await.expect("free");
        let there = run_steps(&mut world, steps, at(begin + 15)).await;
        world.restart().await.expect("opens");
        if world.now() < at(begin + 5) {
            world.run_until(at(begin + 5)).await;
            assert_eq!(status(&world, lease.lease.id), "ACTIVE", "after {steps} steps");
        }
        world.run_until(at(begin + 15)).await;
        assert_eq!(status(&world, lease.lease.id), "TERMINATED", "after {steps} steps");
        assert_eq!(world.held(hosts_of(&lease)), 0);
        restarts += 1;
        if !there {
            break;
        }
    }
    assert!(restarts > 5, "{restarts}");
}

#[tokio::test]
async fn w5_after_an_outage_ends_come_before_starts_on_the_same_host() {
    let mut world = world(1).await;
    let first = make(&mut world, asking(0, 10, vec![hosts(1)])).await.expect("free");
    let second = make(&mut world, asking(10, 60, vec![hosts(1)])).await.expect("free");
    world.run_until(at(5)).await;
    // No service runs from minute 5 to 20.
    world.clock.set(at(20));
    world.restart().await.expect("opens");
    world.settle().await;
    assert_eq!((status(&world, first.lease.id), status(&world, second.lease.id)), ("TERMINATED", "ACTIVE"));
}

#[tokio::test]
async fn preemptible_guests_leave_after_their_grace_time() {
    let stubborn =
        Timing { shut_down: Between { least: minutes(60), most: minutes(60) }, ..Timing::IMMEDIATE };
    let mut world = world_with(1, settings(), None, |fleet| fleet.with_timing(stubborn)).await;
    let host = world.service.hosts().all()[0].host.id;
    world.fleet.start_guest(host, GuestOwner::Preemptible, None).expect("in the free pool");
    let lease = make(&mut world, asking(10, 60, vec![hosts(1)])).await.expect("free");
    world.run_until(at(11) - SignedDuration::from_secs(1)).await;
    assert_eq!(status(&world, lease.lease.id), "STARTING");
    world.run_until(at(11) + SignedDuration::from_secs(1)).await;
    assert_eq!(status(&world, lease.lease.id), "ACTIVE");
    assert_eq!(world.fleet.violations(), []);
}

#[tokio::test]
async fn addresses_are_assigned_for_the_time_of_the_lease() {
    let mut world = world(1).await;
    let network = fleet::simulated::Layout::public_network();
    let new = service::NewFloatingIp { network: network.id, address: "203.0.113.200".parse().expect("one") };
    let ip = world.service.floating_ips().add(&simulation::operator(), new).await.expect("taken on");
    let lease = make(&mut world, asking(10, 20, vec![addresses(1)])).await.expect("free");
    world.run_until(at(10)).await;
    assert_eq!(world.fleet.holder_of(ip.floating_ip.id), Some(lease.lease.reservations[0].id));
    let remove = world.service.floating_ips().remove(&simulation::operator(), ip.floating_ip.id).await;
    assert!(matches!(remove, Err(service::ServiceError::Conflict(_))));
    world.run_until(at(20)).await;
    assert_eq!(world.fleet.holder_of(ip.floating_ip.id), None);
    assert_eq!(status(&world, lease.lease.id), "TERMINATED");
    world.service.floating_ips().remove(&simulation::operator(), ip.floating_ip.id).await.expect("free");
}

#[tokio::test]
async fn a_thousand_leases_start_in_the_same_second() {
    let mut world = world(1000).await;
    let mut leases = Vec::new();
    for _ in 0..1000 {
        leases.push(make(&mut world, asking(10, 20, vec![hosts(1)])).await.expect("free").lease.id);
    }
    world.run_until(at(10)).await;
    assert!(leases.iter().all(|id| status(&world, *id) == "ACTIVE"));
    world.run_until(at(20)).await;
    assert!(leases.iter().all(|id| status(&world, *id) == "TERMINATED"));
}
