//! Preemptible instances. Tests are named by the features of spec §6.

use std::sync::Arc;

use fleet::simulated::{Between, Timing};
use jiff::SignedDuration;
use leases::ids::GuestId;
use leases::instance::InstanceKind;
use leases::lease_type::LeaseType;
use leases::plan::{GuestOwner, GuestSize};
use service::{NewInstance, NewLease, OtherInstances, ServiceError, Settings};
use simulation::{World, caller};
use store::InstanceRecord;

use crate::terms::{asking, at, hosts, hosts_of, make, minutes, settings, status, world_with};

/// A service that allows them: guests have a minute to leave, and are asked to two minutes before a lease starts.
fn allowing() -> Settings {
    let mut settings = settings();
    settings.preemption.allowed = true;
    settings.plan_rules.clear_ahead = Some(minutes(2));
    settings
}

async fn world(hosts: u32) -> World {
    let quick = Timing { shut_down: Between::secs(20, 20), ..Timing::IMMEDIATE };
    world_with(hosts, allowing(), None, |fleet| fleet.with_timing(quick)).await
}

fn new(preemptible: Option<bool>) -> NewInstance {
    NewInstance {
        name: "batch".to_owned(),
        size: Some(GuestSize { vcpus: 8, memory_mib: 1024, disk_gib: 10 }),
        hint: None,
        preemptible,
        others: OtherInstances::default(),
    }
}

async fn start(world: &mut World) -> Result<Arc<InstanceRecord>, ServiceError> {
    let started = world.service.create_instance(&caller("p"), new(Some(true))).await;
    world.touched();
    started
}

/// The status of an instance, or "gone".
fn state(world: &World, id: GuestId) -> &'static str {
    world.service.instance(id).map_or("gone", |record| record.instance.status.name())
}

#[tokio::test]
async fn pre_02_every_instance_has_one_kind_and_keeps_it() {
    let mut world = world(3).await;
    let lease = make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free");
    world.run_until(at(1)).await;
    let preemptible = start(&mut world).await.expect("room");
    let regular = world.service.create_instance(&caller("p"), new(None)).await.expect("room");
    let hint = Some(leases::instance::LeaseHint::Lease(lease.lease.id));
    let reserved = NewInstance { hint, ..new(None) };
    let reserved = world.service.create_instance(&caller("p"), reserved).await.expect("room");
    world.touched();
    world.settle().await;
    let kinds = [&preemptible, &regular, &reserved].map(|record| {
        let record = world.service.instance(record.instance.id).expect("it runs");
        let seen = world.fleet.look(record.instance.host).expect("taken on").guests;
        let seen = seen.into_iter().find(|guest| guest.id == record.instance.id).expect("it runs");
        (record.instance.kind.name(), seen.owner)
    });
    let expected = [
        ("preemptible", GuestOwner::Preemptible),
        ("regular", GuestOwner::Other),
        ("reserved", GuestOwner::Lease(lease.lease.id)),
    ];
    assert_eq!(kinds, expected);
}

#[tokio::test]
async fn pre_04_they_run_where_the_next_lease_is_furthest_away_and_never_in_one() {
    let mut world = world(4).await;
    let active = make(&mut world, asking(0, 600, vec![hosts(1)])).await.expect("free");
    let soon = make(&mut world, asking(11, 600, vec![hosts(1)])).await.expect("free");
    let late = make(&mut world, asking(300, 600, vec![hosts(1)])).await.expect("free");
    world.run_until(at(1)).await;
    let taken = [&active, &soon, &late].map(|lease| hosts_of(lease)[0]);
    // Two find room on the host that nobody has leased, and then there is that of the latest lease.
    for _ in 0..2 {
        let first = start(&mut world).await.expect("room");
        assert!(!taken.contains(&first.instance.host));
        assert_eq!(world.service.safe_until(&first.instance), None);
    }
    for _ in 0..2 {
        let next = start(&mut world).await.expect("room");
        assert_eq!(next.instance.host, taken[2]);
        assert_eq!(world.service.safe_until(&next.instance), Some(at(298)), "it is asked to leave then");
    }
    // Ten minutes, and two to leave, are not left on the next one.
    let refused = start(&mut world).await;
    assert!(matches!(refused, Err(ServiceError::NoHost(_))), "{refused:?}");
}

#[tokio::test]
async fn pre_06_07_08_they_leave_with_notice_and_the_lease_starts_on_time() {
    let mut world = world(1).await;
    let lease = make(&mut world, asking(30, 60, vec![hosts(1)])).await.expect("free");
    let instance = start(&mut world).await.expect("room");
    world.run_until(at(28) - SignedDuration::from_secs(1)).await;
    assert_eq!(state(&world, instance.instance.id), "ACTIVE");
    let asked = |world: &World| {
        let seen = world.fleet.look(instance.instance.host).expect("taken on").guests;
        seen.iter().find(|guest| guest.id == instance.instance.id).map(|guest| guest.stopping_since.is_some())
    };
    assert_eq!(asked(&world), Some(false));
    world.run_until(at(28) + SignedDuration::from_secs(1)).await;
    assert_eq!(asked(&world), Some(true));
    world.run_until(at(29)).await;
    assert_eq!((asked(&world), status(&world, lease.lease.id)), (None, "PENDING"));
    world.run_until(at(30) + SignedDuration::from_secs(1)).await;
    assert_eq!((state(&world, instance.instance.id), status(&world, lease.lease.id)), ("gone", "ACTIVE"));
    assert_eq!(world.fleet.violations(), []);
}

#[tokio::test]
async fn pre_07_who_does_not_leave_is_deleted_when_its_grace_is_over_and_not_before() {
    let stubborn = Timing { shut_down: Between::secs(3600, 3600), ..Timing::IMMEDIATE };
    let mut world = world_with(1, allowing(), None, |fleet| fleet.with_timing(stubborn)).await;
    let lease = make(&mut world, asking(30, 60, vec![hosts(1)])).await.expect("free");
    let instance = start(&mut world).await.expect("room");
    world.run_until(at(29) - SignedDuration::from_secs(1)).await;
    assert_eq!(state(&world, instance.instance.id), "ACTIVE");
    world.run_until(at(30) + SignedDuration::from_secs(1)).await;
    assert_eq!((state(&world, instance.instance.id), status(&world, lease.lease.id)), ("gone", "ACTIVE"));
    assert_eq!(world.fleet.violations(), [], "none is deleted before its grace is over");
}

#[tokio::test]
async fn pre_09_a_start_that_meets_a_lease_either_lands_before_it_and_leaves_or_is_refused() {
    let mut world = world(1).await;
    let instance = start(&mut world).await.expect("room");
    let at_once = |lease: NewLease| NewLease {
        terms: lease.terms.of_type(LeaseType::Immediate { deadline: at(5) }),
        ..lease
    };
    let lease = make(&mut world, at_once(asking(0, 60, vec![hosts(1)]))).await.expect("it makes way");
    world.run_until(at(5)).await;
    assert_eq!(status(&world, lease.lease.id), "ACTIVE");
    let seen = world.fleet.look(instance.instance.host).expect("taken on").guests;
    assert_eq!(seen, []);
    assert_ne!(state(&world, instance.instance.id), "ACTIVE");
    assert_eq!(world.fleet.violations(), []);
}

#[tokio::test]
async fn pre_09_the_host_is_open_again_if_the_lease_is_deleted_meanwhile() {
    let mut world = world(1).await;
    let lease = make(&mut world, asking(30, 60, vec![hosts(1)])).await.expect("free");
    world.run_until(at(28) + SignedDuration::from_secs(5)).await;
    let refused = start(&mut world).await;
    assert!(matches!(refused, Err(ServiceError::NoHost(_))), "{refused:?}");
    world.service.delete_lease(&caller("p"), lease.lease.id).await.expect("there");
    world.touched();
    world.run_until(at(29)).await;
    let instance = start(&mut world).await.expect("the host is open");
    world.settle().await;
    assert_eq!(state(&world, instance.instance.id), "ACTIVE");
}

#[tokio::test]
async fn pre_15_nobody_has_any_unless_the_operator_allows_them() {
    let mut world = world_with(1, settings(), None, |fleet| fleet).await;
    let refused = start(&mut world).await;
    assert!(matches!(refused, Err(ServiceError::NotPreemptible(_))), "{refused:?}");
}

#[tokio::test]
async fn pre_03_a_instances_of_listed_projects_are_preemptible_unless_they_opt_out() {
    let mut settings = allowing();
    settings.preemption.projects.extend("p*".parse());
    let world = world_with(1, settings, None, |fleet| fleet).await;
    for (asked, kind) in [(None, InstanceKind::Preemptible), (Some(false), InstanceKind::Regular)] {
        let made = world.service.create_instance(&caller("p"), new(asked)).await.expect("room");
        assert_eq!(made.instance.kind, kind);
    }
}
