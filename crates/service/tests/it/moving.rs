//! Pending leases move out of the way of other leases (CLS-10) in every search for hosts.

use std::sync::Arc;

use jiff::SignedDuration;
use leases::admission::{Changes, HealingInterval, Refusal};
use leases::ids::HostId;
use leases::plan::GuestOwner;
use leases::requirement::{Operator, Requirement};
use leases::terms::{HostsTerms, ReservationTerms};
use service::{HostUpdate, LeaseFilter, NewLease, NewSeries, ServiceError, Settings};
use simulation::{World, caller, operator};
use store::LeaseRecord;

use crate::terms::{
    asking, at, change, conflict, dates, hosts, hosts_of, make, minutes, settings, slots, status, window,
    world_with,
};

/// Three hosts, of which 1 and 2 have a property.
async fn world() -> World {
    world_of(3, settings()).await
}

/// `count` hosts, of which 1 and 2 have a property.
async fn world_of(count: u32, settings: Settings) -> World {
    let mut world = world_with(count, settings, None, |fleet| fleet).await;
    for host in [1, 2] {
        let gpu = HostUpdate::from(vec![("gpu".to_owned(), Some("a".to_owned()))]);
        world.service.hosts().update(&operator(), HostId(host), gpu).await.expect("never refused");
        world.touched();
    }
    world
}

fn special() -> ReservationTerms {
    special_hosts(1)
}

/// One host with the property, or up to `max`.
fn special_hosts(max: u32) -> ReservationTerms {
    let requirement = Requirement::compare(Operator::Equal, "gpu", "a").expect("well formed");
    ReservationTerms::Hosts(HostsTerms::new(1, max).expect("a range").requiring(requirement))
}

/// Creates two leases from minute 100 to 130. The first needs the property and is on host 1. The second fits
/// anywhere and is on host 2. Returns both in this order.
async fn crowded(world: &mut World) -> (Arc<LeaseRecord>, Arc<LeaseRecord>) {
    crowded_with(world, 100, 130).await
}

/// Like [`crowded`], with these dates of the lease that fits anywhere.
async fn crowded_with(world: &mut World, start: i64, end: i64) -> (Arc<LeaseRecord>, Arc<LeaseRecord>) {
    let bound = make(world, asking(100, 130, vec![special()])).await.expect("free");
    let third = Requirement::compare(Operator::Equal, "hypervisor_hostname", name_of(world, 3));
    let third = HostsTerms::new(1, 1).expect("a range").requiring(third.expect("well formed"));
    let block = make(world, asking(start, end, vec![ReservationTerms::Hosts(third)])).await.expect("free");
    let free = make(world, asking(start, end, vec![hosts(1)])).await.expect("free");
    world.service.leases().delete(&caller("p"), block.lease.id).await.expect("there");
    world.touched();
    world.settle().await;
    assert_eq!((hosts_of(&bound), hosts_of(&free)), (vec![HostId(1)], vec![HostId(2)]));
    (bound, free)
}

fn name_of(world: &World, host: u64) -> String {
    world.service.hosts().get(HostId(host)).expect("there").host.name.clone()
}

fn hosts_now(world: &World, record: &LeaseRecord) -> Vec<HostId> {
    hosts_of(&world.service.leases().get(record.lease.id).expect("there"))
}

#[tokio::test]
async fn cls_10_d_a_new_lease_gets_the_host_of_one_that_can_be_elsewhere() {
    let mut world = world().await;
    let (bound, free) = crowded(&mut world).await;
    let new = make(&mut world, asking(100, 130, vec![special()])).await.expect("the other one moves");
    assert_eq!(hosts_of(&new), [HostId(2)]);
    assert_eq!((hosts_now(&world, &bound), hosts_now(&world, &free)), (vec![HostId(1)], vec![HostId(3)]));
    world.run_until(at(101)).await;
    assert!([&bound, &free, &new].iter().all(|record| status(&world, record.lease.id) == "ACTIVE"));
}

#[tokio::test]
async fn cls_10_d_leases_that_recur_get_hosts_of_those_that_can_be_elsewhere() {
    let mut world = world().await;
    let (_, free) = crowded(&mut world).await;
    let windows = vec![window(10, 40), window(100, 130), window(110, 140)];
    let lease = asking(0, 30, vec![special()]);
    let new = NewSeries { lease, windows, skips: false };
    let refused = world.service.leases().create_series(&caller("p"), &new, None).await;
    assert_eq!(refused.expect_err("only one lease can move").window, window(110, 140));
    let new = NewSeries { windows: vec![window(10, 40), window(100, 130)], ..new };
    let made = world.service.leases().create_series(&caller("p"), &new, None).await.expect("it moves");
    world.touched();
    assert_eq!((made.leases.len(), hosts_now(&world, &free)), (2, vec![HostId(3)]));
}

#[tokio::test]
async fn cls_10_d_a_request_on_the_waitlist_gets_a_host_by_a_move() {
    let mut world = world().await;
    let (_, free) = crowded(&mut world).await;
    let third = make(&mut world, asking(100, 130, vec![hosts(1)])).await.expect("free");
    let waits = NewLease { waits: true, ..asking(100, 130, vec![special()]) };
    let waits = make(&mut world, waits).await.expect("waits");
    assert_eq!(world.service.waitlist().all(None).len(), 1);
    world.service.leases().delete(&caller("p"), third.lease.id).await.expect("there");
    world.touched();
    world.settle().await;
    assert_eq!((hosts_now(&world, &waits), hosts_now(&world, &free)), (vec![HostId(2)], vec![HostId(3)]));
}

#[tokio::test]
async fn cls_10_d_an_extension_is_made_and_its_latest_end_told_by_moves() {
    let mut world = world().await;
    crowded(&mut world).await;
    let before = make(&mut world, asking(60, 90, vec![special()])).await.expect("free");
    make(&mut world, asking(130, 150, vec![special()])).await.expect("free");
    make(&mut world, asking(130, 150, vec![special()])).await.expect("free");
    let refused = change(&mut world, before.lease.id, dates(None, Some(140))).await;
    let Err(ServiceError::Refused(Refusal::EndsTooLate { latest, taken_by, .. })) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(latest, at(130));
    assert_eq!(taken_by, Some(before.lease.name.clone()), "all leases of the project have that name");
    change(&mut world, before.lease.id, dates(None, Some(130))).await.expect("that can be had");
}

#[tokio::test]
async fn cls_10_d_leases_leave_a_closed_or_removed_host_by_moves() {
    for removed in [false, true] {
        let mut world = world().await;
        let (bound, free) = crowded(&mut world).await;
        if removed {
            let removed = world.service.hosts().remove_from_pool(&operator(), HostId(1)).await;
            removed.expect("the lease can leave");
        } else {
            let closed = HostUpdate { reservable: Some(false), ..HostUpdate::default() };
            world.service.hosts().update(&operator(), HostId(1), closed).await.expect("never refused");
        }
        world.touched();
        world.settle().await;
        assert_eq!((hosts_now(&world, &bound), hosts_now(&world, &free)), (vec![HostId(2)], vec![HostId(3)]));
        let told = world.service.notifications().after(None, 0, 100).await.expect("the store works");
        let of_moved = told.iter().filter(|notice| notice.content.lease == Some(free.lease.id));
        let types: Vec<_> = of_moved.map(|notice| notice.content.event_type.as_str()).collect();
        assert_eq!(types, ["lease.create", "lease.update"]);
        assert_eq!(world.service.leases().all(&LeaseFilter::default()).len(), 2);
    }
}

#[tokio::test]
async fn cls_10_d_leases_with_a_failed_host_get_another_one_by_moves() {
    // Before the lease starts, and while it runs.
    for minute in [50, 110] {
        let mut world = world().await;
        let (bound, free) = crowded_with(&mut world, 125, 150).await;
        world.run_until(at(minute)).await;
        world.fleet.fail(HostId(1));
        world.run_until(at(minute + 3)).await;
        assert_eq!((hosts_now(&world, &bound), hosts_now(&world, &free)), (vec![HostId(2)], vec![HostId(3)]));
        assert!(!world.service.leases().get(bound.lease.id).expect("there").lease.degraded());
        world.run_until(at(140)).await;
        assert_eq!((status(&world, bound.lease.id), status(&world, free.lease.id)), ("TERMINATED", "ACTIVE"));
        assert_eq!(world.fleet.violations(), []);
    }
}

#[tokio::test]
async fn cls_10_d_a_lease_that_enters_the_healing_interval_gets_another_host_by_moves() {
    let settings = Settings { healing_interval: HealingInterval(Some(minutes(30))), ..settings() };
    let mut world = world_of(3, settings).await;
    let (bound, free) = crowded(&mut world).await;
    world.run_until(at(20)).await;
    world.fleet.fail(HostId(1));
    world.run_until(at(68)).await;
    assert_eq!((hosts_now(&world, &bound), hosts_now(&world, &free)), (vec![HostId(1)], vec![HostId(2)]));
    world.run_until(at(73)).await;
    assert_eq!((hosts_now(&world, &bound), hosts_now(&world, &free)), (vec![HostId(2)], vec![HostId(3)]));
    let told = world.service.notifications().after(None, 0, 100).await.expect("the store works");
    let of_bound = told.iter().filter(|notice| notice.content.lease == Some(bound.lease.id));
    let types: Vec<_> = of_bound.map(|notice| notice.content.event_type.as_str()).collect();
    assert_eq!(types, ["lease.create", "lease.host_replaced"], "it never lacked a host");
}

#[tokio::test]
async fn a_host_is_not_removed_if_a_degraded_lease_would_have_fewer_hosts_without_it() {
    let mut world = world_of(5, settings()).await;
    let mut room = slots(1, 16);
    if let ReservationTerms::Instances(terms) = &mut room {
        let third = Requirement::compare(Operator::Equal, "hypervisor_hostname", name_of(&world, 3));
        terms.requirement = third.expect("well formed");
    }
    let lease = make(&mut world, asking(100, 130, vec![special_hosts(2), room])).await.expect("free");
    let all = vec![HostId(1), HostId(2), HostId(3)];
    assert_eq!(hosts_now(&world, &lease), all);
    // This lease can move, but that doesn't help.
    make(&mut world, asking(100, 130, vec![hosts(1)])).await.expect("free");
    world.run_until(at(60)).await;
    world.fleet.fail(HostId(3));
    world.run_until(at(65)).await;
    assert!(world.service.leases().get(lease.lease.id).expect("there").lease.degraded());
    let refused = conflict(world.service.hosts().remove_from_pool(&operator(), HostId(1)).await);
    assert!(refused.contains("there is no other for it"), "{refused}");
    assert!(hosts_now(&world, &lease).starts_with(&[HostId(1), HostId(2)]));
}

#[tokio::test]
async fn a_lease_leaves_an_occupied_host_although_the_clock_was_set_back_after_its_last_change() {
    let second = SignedDuration::from_secs;
    let mut world = world_with(2, settings(), None, |fleet| fleet).await;
    let lease = make(&mut world, asking(10, 60, vec![hosts(1)])).await.expect("free");
    world.run_until(at(9) + second(50)).await;
    let renamed = Changes { name: Some("other".to_owned()), ..Changes::default() };
    change(&mut world, lease.lease.id, renamed).await.expect("renamed");
    world.settle().await;
    world.clock.set(at(9) + second(5));
    world.fleet.start_guest(hosts_of(&lease)[0], GuestOwner::Other, None).expect("free");
    world.touched();
    world.run_until(at(9) + second(45)).await;
    assert_ne!(hosts_now(&world, &lease), hosts_of(&lease));
}
