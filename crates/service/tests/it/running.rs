//! The execution loop.

use std::collections::BTreeSet;

use fleet::simulated::{Fault, PlannedFault, Verb};
use jiff::SignedDuration;
use leases::ids::HostId;
use simulation::{Happened, StoreFault, World, caller};
use tokio::sync::watch;

use crate::preemptible::{allowing, start};
use crate::terms::{asking, at, hosts, hosts_of, make, status, world, world_with};

/// Lets other tasks run until the condition holds.
pub async fn until(mut so: impl FnMut() -> bool) {
    for _ in 0..10_000 {
        if so() {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("it did not come to that");
}

#[tokio::test]
async fn the_loop_wakes_at_the_start_and_for_every_change_and_stops_when_told() {
    let mut world = world(2).await;
    let (stop, stopped) = watch::channel(false);
    let running = tokio::spawn(world.service.clone().run(stopped));
    until(|| world.service.statistics().cycles > 2).await;
    world.service.ready().await.expect("it runs");
    let lease = make(&mut world, asking(10, 60, vec![hosts(1)])).await.expect("free");
    let now = make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free");
    until(|| status(&world, now.lease.id) == "ACTIVE").await;
    world.clock.set(at(10));
    until(|| status(&world, lease.lease.id) == "ACTIVE").await;
    world.service.leases().delete(&caller("p"), lease.lease.id).await.expect("accepted");
    until(|| status(&world, lease.lease.id) == "gone").await;
    stop.send_replace(true);
    running.await.expect("no panic");
    assert!(world.service.ready().await.is_err());
}

#[tokio::test]
async fn the_loop_goes_on_after_a_panic_and_is_not_ready_meanwhile() {
    let mut world = world(2).await;
    let (stop, stopped) = watch::channel(false);
    let running = tokio::spawn(world.service.clone().run(stopped));
    let due = make(&mut world, asking(10, 60, vec![hosts(1)])).await.expect("free");
    let later = make(&mut world, asking(20, 60, vec![hosts(1)])).await.expect("free");
    let cycles = world.service.statistics().cycles;
    until(|| world.service.statistics().cycles > cycles + 1).await;
    // The commit with which the first lease starts will panic.
    world.store.plan([Some(StoreFault::Panic)]);
    world.clock.set(at(10));
    while world.service.ready().await.is_ok() {
        tokio::task::yield_now().await;
    }
    // After the pause that follows a panic.
    world.clock.set(at(11));
    until(|| status(&world, due.lease.id) == "ACTIVE").await;
    world.service.ready().await.expect("it runs again");
    world.clock.set(at(20));
    until(|| status(&world, later.lease.id) == "ACTIVE").await;
    stop.send_replace(true);
    running.await.expect("no panic");
}

#[tokio::test]
async fn a_step_that_panics_has_failed_and_is_tried_again() {
    let mut world = world(1).await;
    let (stop, stopped) = watch::channel(false);
    let running = tokio::spawn(world.service.clone().run(stopped));
    let lease = make(&mut world, asking(10, 60, vec![hosts(1)])).await.expect("free");
    world.fleet.plan_fault(PlannedFault::next(Verb::Hold, hosts_of(&lease)[0], Fault::Panic));
    world.clock.set(at(10));
    // The failure is noticed immediately, not only when the step's time is up.
    until(|| world.service.statistics().failing_steps == 1).await;
    world.clock.set(at(11));
    until(|| status(&world, lease.lease.id) == "ACTIVE").await;
    stop.send_replace(true);
    running.await.expect("no panic");
}

/// A single service has no conflicts, so everything that its passes decide is committed at once.
#[tokio::test]
async fn a_cycle_commits_once_whatever_its_passes_have_decided() {
    let mut world = world_with(6, allowing(), None, |fleet| fleet).await;
    for _ in 0..6 {
        start(&mut world).await.expect("room");
    }
    let first = make(&mut world, asking(0, 10, vec![hosts(2)])).await.expect("free");
    let next = make(&mut world, asking(10, 20, vec![hosts(4)])).await.expect("free");
    world.run_until(at(9)).await;
    assert_eq!(status(&world, first.lease.id), "ACTIVE");
    // Hosts fail while leases start and end, with guests in the way of both.
    world.fleet.fail(hosts_of(&next)[0]);
    let (mut most, mut changing) = (0, 0);
    loop {
        let before = world.commits();
        match world.next(at(30)).await {
            Some(Happened::Cycled(_)) => {
                let commits = world.commits() - before;
                (most, changing) = (most.max(commits), changing + u64::from(commits > 0));
            }
            Some(_) => {}
            None => break,
        }
    }
    assert_eq!([first, next].map(|lease| status(&world, lease.lease.id)), ["TERMINATED"; 2]);
    assert!(changing > 3, "leases, hosts and instances have changed");
    assert_eq!(most, 1);
}

#[tokio::test]
async fn a_host_goes_from_one_lease_to_the_next_in_the_same_instant() {
    let mut world = world(1).await;
    let (stop, stopped) = watch::channel(false);
    let running = tokio::spawn(world.service.clone().run(stopped));
    let first = make(&mut world, asking(0, 10, vec![hosts(1)])).await.expect("free");
    let second = make(&mut world, asking(10, 60, vec![hosts(1)])).await.expect("free");
    until(|| status(&world, first.lease.id) == "ACTIVE").await;
    // All hosts are observed just before the change, and not again at that instant.
    world.clock.set(at(10) - SignedDuration::from_secs(1));
    let seen = world.service.statistics().cycles;
    until(|| world.service.statistics().cycles > seen + 1).await;
    world.clock.set(at(10));
    until(|| status(&world, second.lease.id) == "ACTIVE").await;
    assert_eq!(status(&world, first.lease.id), "TERMINATED");
    drop(stop);
    running.await.expect("no panic");
}

#[tokio::test]
async fn an_idle_loop_sleeps() {
    let mut world = world(2).await;
    world.settle().await;
    let before = world.service.statistics().cycles;
    let cycles = || world.service.statistics().cycles - before;
    let (stop, stopped) = watch::channel(false);
    let running = tokio::spawn(world.service.clone().run(stopped));
    until(|| cycles() > 0).await;
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert!(cycles() < 10, "{} cycles, and there is nothing to do", cycles());
    drop(stop);
    running.await.expect("no panic");
}

#[tokio::test]
async fn what_is_heard_of_hosts_is_seen_before_all_are_looked_at_a_few_at_a_time() {
    let mut world = world(6).await;
    let failed = |world: &World| world.service.statistics().failed_hosts;
    for host in 1..=6 {
        world.fleet.fail(HostId(host));
    }
    world.settle().await;
    assert_eq!(failed(&world), 0, "nobody has looked");
    let names =
        world.service.hosts().all().into_iter().map(|record| record.host.service_name.clone()).collect();
    assert!(world.service.execution().hear_of(&names), "some wait");
    world.settle().await;
    assert_eq!(failed(&world), 4);
    assert!(!world.service.execution().hear_of(&BTreeSet::from(["nobody".to_owned()])), "no more wait");
    world.settle().await;
    assert_eq!(failed(&world), 6);
}

#[tokio::test]
async fn steps_do_not_wait_for_a_host_of_which_much_is_heard() {
    let mut world = world(1).await;
    let lease = make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free");
    let names =
        world.service.hosts().all().into_iter().map(|record| record.host.service_name.clone()).collect();
    // A user can cause any number of these by starting servers there.
    for _ in 0..1000 {
        world.service.execution().hear_of(&names);
        world.next(at(1)).await;
    }
    assert_eq!(status(&world, lease.lease.id), "ACTIVE");
}
