//! The loop itself.

use simulation::caller;
use tokio::sync::watch;

use crate::terms::{asking, at, hosts, make, status, world};

/// Lets other tasks go on until something is so.
async fn until(mut so: impl FnMut() -> bool) {
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
    world.service.delete_lease(&caller("p"), lease.lease.id).await.expect("accepted");
    until(|| status(&world, lease.lease.id) == "gone").await;
    stop.send_replace(true);
    running.await.expect("no panic");
    assert!(world.service.ready().await.is_err());
}

#[tokio::test]
async fn an_idle_loop_sleeps() {
    let world = world(2).await;
    let (stop, stopped) = watch::channel(false);
    let running = tokio::spawn(world.service.clone().run(stopped));
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let cycles = world.service.statistics().cycles;
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.service.statistics().cycles, cycles);
    drop(stop);
    running.await.expect("no panic");
}
