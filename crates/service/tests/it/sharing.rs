//! Several services on one store.

use fleet::simulated::{Layout, Model};
use jiff::SignedDuration;
use service::{LeaseFilter, OpenError, ServiceError};
use simulation::{Setup, World, caller};
use store::StoreError;

use crate::terms::{asking, at, hosts, settings, status};

fn setup(hosts: u32) -> Setup {
    let layout = Layout::uniform(1, hosts, &Model::of_size(16, 65_536, 1000));
    Setup { seed: 1, begins: at(0), layout, settings: settings(), enforcer: None }
}

/// Two services whose clocks agree, and so many hosts.
pub async fn two(hosts: u32) -> World {
    let setup = setup(hosts);
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
    // As when one step after the other ends.
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
