//! Several services that share a store.

use std::collections::BTreeSet;

use fleet::simulated::{Between, Layout, Model, Timing};
use jiff::SignedDuration;
use jiff::Timestamp;
use leases::ids::{HostId, LeaseId};
use leases::plan::GuestOwner;
use service::{LeaseFilter, OpenError, ServiceError, Task};
use simulation::{Happened, Setup, World, caller};
use store::StoreError;

use crate::preemptible;
use crate::terms::{asking, at, hosts, hosts_of, settings, status};

fn setup(hosts: u32) -> Setup {
    let layout = Layout::uniform(1, hosts, &Model::of_size(16, 65_536, 1000));
    Setup { seed: 1, begins: at(0), layout, settings: settings(), enforcer: None }
}

/// Two services whose clocks agree, with `hosts` hosts.
pub async fn two(hosts: u32) -> World {
    two_of(setup(hosts)).await
}

async fn two_of(setup: Setup) -> World {
    let layout = setup.layout.clone();
    let mut world = World::shared(setup, &[SignedDuration::ZERO; 2], |fleet| fleet).await.expect("opens");
    world.take_on(&layout).await.expect("taken on");
    world.settle().await;
    world
}

#[tokio::test]
async fn a_service_decides_on_what_another_has_committed() {
    let world = two(1).await;
    let first = world.service_of(0).leases().create(&caller("p"), asking(10, 20, vec![hosts(1)]), None).await;
    let first = first.expect("free").lease;
    let second =
        world.service_of(1).leases().create(&caller("q"), asking(15, 25, vec![hosts(1)]), None).await;
    assert!(matches!(second, Err(ServiceError::Refused(_))), "{second:?}");
    assert_eq!(world.service_of(1).leases().all(&LeaseFilter::default()).len(), 1);
    world.service_of(1).leases().delete(&caller("p"), first.lease.id).await.expect("deleted");
    world.service_of(0).refresh().await.expect("the store works");
    assert_eq!(status(&world, first.lease.id), "gone");
}

#[tokio::test]
async fn an_instance_whose_lifetime_is_over_leaves_though_the_service_that_started_it_is_gone() {
    let mut settings = preemptible::allowing();
    settings.plan_rules.max_lifetime = Some(SignedDuration::from_mins(60));
    let mut world = two_of(Setup { settings, ..setup(1) }).await;
    let new = preemptible::new(Some(true));
    let started = world.service_of(0).instances().create(&caller("p"), new).await;
    let id = started.expect("room").instance.id;
    world.touched_one(0);
    world.run_until(at(5)).await;
    world.kill(0);
    world.run_until(at(55)).await;
    let runs = |world: &World| world.service_of(1).instances().get(id).is_some();
    assert!(runs(&world), "it has time");
    world.run_until(at(70)).await;
    assert!(!runs(&world), "it has run for an hour");
    assert_eq!(world.fleet.violations(), []);
}

#[tokio::test]
async fn of_two_who_want_the_same_host_at_once_one_gets_it() {
    for project in ["p", "q"] {
        let world = two(1).await;
        // Both decide before either commits.
        world.store_of(0).set_slow(true);
        world.store_of(1).set_slow(true);
        let ask = |service: usize| {
            let service = world.service_of(service).clone();
            async move { service.leases().create(&caller(project), asking(10, 20, vec![hosts(1)]), None).await }
        };
        let (a, b) = tokio::join!(ask(0), ask(1));
        assert_eq!(usize::from(a.is_ok()) + usize::from(b.is_ok()), 1, "{a:?} {b:?}");
        let refused = if a.is_ok() { b } else { a };
        assert!(matches!(refused, Err(ServiceError::Refused(_))), "{refused:?}");
    }
}

#[tokio::test]
async fn an_outage_is_waited_for_no_longer_because_more_happens_meanwhile() {
    let world = two(1).await;
    world.store_of(0).set_down(true);
    let service = world.service_of(0);
    let first = service.execution().cycle().await;
    // As if steps ended one after another.
    for _ in 0..10 {
        let next = service.execution().cycle().await;
        assert!(next.failed);
        assert_eq!(next.wake_at, first.wake_at);
    }
    assert_eq!(first.wake_at.duration_since(world.now()), SignedDuration::from_secs(1));
}

#[tokio::test]
async fn a_lease_starts_on_time_though_the_service_that_made_it_is_cut_off() {
    let mut world = two(1).await;
    world.without_news();
    let made = world.service_of(0).leases().create(&caller("p"), asking(10, 20, vec![hosts(1)]), None).await;
    let id = made.expect("free").lease.lease.id;
    world.store_of(0).set_down(true);
    world.run_until(at(10)).await;
    let seen = world.service_of(1).leases().get(id).expect("it knows");
    assert_eq!(seen.lease.status.name(), "ACTIVE");
    assert_eq!(world.service_of(1).statistics().last_start_delay_ms, 0);
    world.store_of(0).set_down(false);
    world.run_until(at(21)).await;
    assert_eq!(status(&world, id), "TERMINATED");
}

#[tokio::test]
async fn a_service_with_a_wrong_clock_does_not_start() {
    let bound = settings().longest_clock_skew;
    for skew in [bound, -bound] {
        World::shared(setup(1), &[SignedDuration::ZERO, skew], |fleet| fleet).await.expect("just right");
    }
    let more = bound + SignedDuration::from_millis(1);
    for skew in [more, -more] {
        let refused = World::shared(setup(1), &[SignedDuration::ZERO, skew], |fleet| fleet).await;
        let error = refused.err();
        assert!(matches!(error, Some(OpenError::Store(StoreError::ClockSkew { .. }))), "{error:?}");
    }
}

/// Two services, a lease that starts at minute 10, and a fleet in which each call takes `seconds`.
async fn two_with_slow_steps(clocks: [SignedDuration; 2], seconds: i64) -> (World, LeaseId) {
    let setup = setup(1);
    let layout = setup.layout.clone();
    let timing = Timing { call: Between::secs(seconds, seconds), ..Timing::IMMEDIATE };
    let world = World::shared(setup, &clocks, |fleet| fleet.with_timing(timing)).await;
    let mut world = world.expect("opens");
    world.take_on(&layout).await.expect("taken on");
    world.settle().await;
    let made = world.service_of(0).leases().create(&caller("p"), asking(10, 60, vec![hosts(1)]), None).await;
    let id = made.expect("free").lease.lease.id;
    world.settle().await;
    (world, id)
}

/// The service that begins the next step, and the time at which it does.
async fn next_step(world: &mut World) -> (usize, Timestamp) {
    let until = at(30);
    while let Some(happened) = world.next(until).await {
        if let Happened::Cycled(tasks) = happened
            && tasks.iter().any(|task| matches!(task, Task::Step(_)))
        {
            return (world.turn(), world.now());
        }
    }
    panic!("no step is begun")
}

#[tokio::test]
async fn a_step_of_a_service_that_was_killed_is_taken_over_within_fifteen_seconds() {
    let bound = settings().longest_clock_skew;
    let second = SignedDuration::from_secs;
    for clocks in [[SignedDuration::ZERO; 2], [bound, -bound], [-bound, bound]] {
        for seconds_into_the_step in [0, 2, 7, 59] {
            let (mut world, id) = two_with_slow_steps(clocks, 60).await;
            let (at_it, begun) = next_step(&mut world).await;
            world.run_until(begun + second(seconds_into_the_step)).await;
            let killed = world.now();
            world.kill(at_it);
            let (next, taken_over) = next_step(&mut world).await;
            assert_ne!(next, at_it);
            let late = taken_over.duration_since(killed);
            assert!(late <= second(15), "{clocks:?} {seconds_into_the_step}: {late}");
            world.run_until(at(30)).await;
            assert_eq!(
                world.service_of(next).leases().get(id).expect("it knows").lease.status.name(),
                "ACTIVE"
            );
        }
    }
}

#[tokio::test]
async fn a_step_that_takes_long_is_carried_out_by_one_service() {
    let bound = settings().longest_clock_skew;
    for clocks in [[SignedDuration::ZERO; 2], [bound, -bound]] {
        let (mut world, id) = two_with_slow_steps(clocks, 60).await;
        let mut steps = Vec::new();
        while let Some(happened) = world.next(at(30)).await {
            let Happened::Cycled(tasks) = happened else { continue };
            let begun = tasks.iter().filter_map(|task| match task {
                Task::Step(step) => Some(step.claim.action),
                _ => None,
            });
            steps.extend(begun);
        }
        assert_eq!(status(&world, id), "ACTIVE");
        let each: BTreeSet<_> = steps.iter().collect();
        assert_eq!(each.len(), steps.len(), "{steps:?}");
    }
}

#[tokio::test]
async fn a_service_that_is_cut_off_stops_its_step_before_another_one_begins_it() {
    let (mut world, id) = two_with_slow_steps([SignedDuration::ZERO; 2], 60).await;
    let (at_it, begun) = next_step(&mut world).await;
    let second = SignedDuration::from_secs;
    world.run_until(begun + second(20)).await;
    world.store_of(at_it).set_down(true);
    // Fails if both services carry out the step at the same time.
    world.run_until(begun + second(26)).await;
    let (next, taken_over) = next_step(&mut world).await;
    assert!(next != at_it && taken_over <= begun + second(35), "{taken_over}");
    world.store_of(at_it).set_down(false);
    world.run_until(at(30)).await;
    assert_eq!(status(&world, id), "ACTIVE");
    let failed = world.store.contents().await.history.failures;
    assert!(failed.is_empty(), "a claim that was lost is no failure: {failed:?}");
}

/// Makes a service observe all hosts.
async fn look(world: &World, service: usize) {
    let service = world.service_of(service);
    for task in service.execution().cycle().await.tasks {
        if matches!(task, Task::Look(_)) {
            let seen = service.execution().perform(task).await;
            service.execution().note(seen);
        }
    }
}

#[tokio::test]
async fn services_that_have_seen_different_guests_do_not_move_a_lease_back_and_forth() {
    let mut world = two(2).await;
    world.without_news();
    let made = world.service_of(0).leases().create(&caller("p"), asking(5, 60, vec![hosts(1)]), None).await;
    let lease = made.expect("free").lease;
    let first = hosts_of(&lease)[0];
    let second = HostId(3 - first.0);

    world.clock.set(at(4));
    world.fleet.start_guest(first, GuestOwner::Other, Some(SignedDuration::from_secs(30))).expect("free");
    look(&world, 0).await;
    world.clock.set(at(4) + SignedDuration::from_secs(40));
    world.fleet.start_guest(second, GuestOwner::Other, None).expect("free");
    look(&world, 1).await;

    world.clock.set(at(5));
    let mut hosts = Vec::new();
    for turn in 0..10 {
        let service = world.service_of(turn % 2);
        service.execution().cycle().await;
        let lease = service.leases().get(lease.lease.id).expect("it was made");
        hosts.push(hosts_of(&lease)[0]);
    }
    assert_eq!(hosts, [second; 10], "only the first service has seen both a guest and the lease");

    world.run_until(at(6)).await;
    let lease = world.service_of(0).leases().get(lease.lease.id).expect("it was made");
    assert_eq!((hosts_of(&lease)[0], lease.lease.status.name()), (first, "ACTIVE"));
}
