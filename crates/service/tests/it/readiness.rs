//! Readiness is answered within its time limit, by one probe for all callers.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::join_all;
use jiff::SignedDuration;
use service::NotReady;
use tokio::time::Instant;

use crate::terms::world;

/// Age from which an answer isn't reused.
const SECOND: SignedDuration = SignedDuration::from_secs(1);

/// Whether the store answered. The loop doesn't run in these tests.
fn answered(ready: &Result<(), NotReady>) -> bool {
    matches!(ready, Err(NotReady::LoopStopped))
}

fn unanswered(ready: &Result<(), NotReady>) -> bool {
    matches!(ready, Err(NotReady::NoAnswer))
}

#[tokio::test(start_paused = true)]
async fn a_silent_store_is_probed_once_for_all_and_again_when_it_has_answered() {
    let world = world(1).await;
    let service = &world.service;
    assert!(answered(&service.ready().await));
    world.clock.advance(SECOND);
    let before = world.store.checks();
    world.store.set_silent(true);
    let ready = join_all((0..100).map(|_| service.ready())).await;
    assert!(ready.iter().all(unanswered), "{ready:?}");
    assert_eq!(service.ready().await.expect_err("silent").to_string(), "the store did not answer within 2 s");
    // In simulated time: once the limit has passed, later calls don't wait for it again.
    let asked = Instant::now();
    for _ in 0..100 {
        assert!(unanswered(&service.ready().await));
    }
    assert!(asked.elapsed() < Duration::from_secs(2));
    assert_eq!(world.store.checks(), before + 1);
    world.store.set_silent(false);
    while unanswered(&service.ready().await) {
        tokio::task::yield_now().await;
    }
    assert!(answered(&service.ready().await));
}

#[tokio::test(start_paused = true)]
async fn a_probe_outlives_its_caller_and_tells_the_next_one() {
    let world = world(1).await;
    world.store.set_silent(true);
    assert!(world.service.ready().now_or_never().is_none(), "the caller goes away");
    let service = Arc::clone(&world.service);
    let next = tokio::spawn(async move { service.ready().await });
    while world.store.checks() == 0 {
        tokio::task::yield_now().await;
    }
    world.store.set_silent(false);
    assert!(answered(&next.await.expect("no panic")));
    assert_eq!(world.store.checks(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_used_again_for_a_second() {
    let world = world(1).await;
    for seconds in 1..=3 {
        for _ in 0..100 {
            assert!(answered(&world.service.ready().await));
        }
        assert_eq!(world.store.checks(), seconds, "one probe a second, however often somebody asks");
        world.clock.advance(SECOND);
    }
}
