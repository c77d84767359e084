//! Preemptible instances on leased hosts that are unused (PRE-11).

use fleet::simulated::{Between, Happening, Timing};
use jiff::SignedDuration;
use leases::admission::Changes;
use leases::ids::LeaseId;
use leases::instance::{Cause, Departure, LeaseHint};
use leases::plan::GuestOwner;
use leases::project::ProjectId;
use service::{HostQuestion, NewInstance, NewLease, Placing, ServiceError};
use simulation::{World, caller};

use crate::preemptible::{allowing, new, start, state, told};
use crate::terms::{asking, at, change, hosts, hosts_of, make, minutes, status, world_with};

async fn world(hosts: u32) -> World {
    world_living(hosts, allowing().preemption.least_lifetime).await
}

/// Like [`world`], with this least lifetime of preemptible instances.
async fn world_living(hosts: u32, least_lifetime: SignedDuration) -> World {
    let mut settings = allowing();
    settings.plan_rules.backfill = true;
    settings.preemption.least_lifetime = least_lifetime;
    let quick = Timing { shut_down: Between::secs(20, 20), ..Timing::IMMEDIATE };
    world_with(hosts, settings, None, |fleet| fleet.with_timing(quick)).await
}

/// A lease of a host that can be backfilled.
fn open(start: i64, end: i64) -> NewLease {
    let asked = asking(start, end, vec![hosts(1)]);
    NewLease { terms: asked.terms.backfilled(true), ..asked }
}

/// Starts an instance in the lease.
async fn own(world: &mut World, lease: LeaseId) -> leases::ids::GuestId {
    let placing = Placing { hint: Some(LeaseHint::Lease(lease)), ..new(None).placing };
    let own = world.service.instances().create(&caller("p"), NewInstance { placing, ..new(None) }).await;
    world.touched();
    own.expect("it is the lease's host").instance.id
}

#[tokio::test]
async fn pre_11_they_run_where_a_lease_lets_them_and_stay_when_it_is_over() {
    let mut world = world(1).await;
    let lease = make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free");
    world.run_until(at(1)).await;
    let refused = start(&mut world).await;
    assert!(matches!(refused, Err(ServiceError::NoHost(_))), "nobody has let them: {refused:?}");
    let consent = Changes { backfill: Some(true), ..Changes::default() };
    assert!(change(&mut world, lease.lease.id, consent).await.expect("at any time").lease.backfill);
    let instance = start(&mut world).await.expect("room");
    let id = instance.instance.id;
    assert_eq!(
        (instance.instance.host, instance.instance.backfills),
        (hosts_of(&lease)[0], Some(lease.lease.id))
    );
    assert_eq!(
        world.service.instances().safe_until(&instance.instance),
        Some(at(1)),
        "its holder may want the host at once"
    );
    world.run_until(at(59)).await;
    assert_eq!((state(&world, id), status(&world, lease.lease.id)), ("ACTIVE", "ACTIVE"));
    world.run_until(at(62)).await;
    assert_eq!((state(&world, id), status(&world, lease.lease.id)), ("ACTIVE", "TERMINATED"));
    let instance = world.service.instances().get(id).expect("it runs").instance.clone();
    assert_eq!((instance.backfills, world.service.instances().safe_until(&instance)), (None, None));
    assert_eq!(told(&world).await, []);
    assert_eq!(world.fleet.violations(), []);
}

#[tokio::test]
async fn pre_11_the_free_pool_comes_first_and_external_schedulers_are_told_of_both() {
    let mut world = world(2).await;
    let lease = make(&mut world, open(0, 60)).await.expect("free");
    world.run_until(at(1)).await;
    let taken = hosts_of(&lease)[0];
    let question = HostQuestion {
        project: ProjectId("p".into()),
        instance: None,
        placing: new(Some(true)).placing,
        hosts: None,
    };
    let answer = world.service.instances().hosts_for(&question).await.expect("an answer");
    let until: Vec<_> = answer.hosts.into_iter().map(|(_, verdict)| verdict.expect("allowed")).collect();
    assert!(until.contains(&None) && until.contains(&Some(at(1))), "{until:?}");
    for on_free in [true, true, false, false] {
        assert_eq!(start(&mut world).await.expect("room").instance.host != taken, on_free);
    }
    let refused = start(&mut world).await;
    assert!(matches!(refused, Err(ServiceError::NoHost(_))), "{refused:?}");
    world.settle().await;
    assert_eq!(world.fleet.violations(), []);
}

#[tokio::test]
async fn pre_11_they_leave_with_notice_when_the_lease_starts_an_instance_there() {
    let mut world = world(1).await;
    let lease = make(&mut world, open(0, 60)).await.expect("free").lease.id;
    world.run_until(at(1)).await;
    let first = start(&mut world).await.expect("room").instance.id;
    let second = start(&mut world).await.expect("room").instance.id;
    world.run_until(at(20)).await;
    let own = own(&mut world, lease).await;
    world.settle().await;
    for id in [first, second] {
        let departure = world.service.instances().get(id).expect("it has time").instance.departure;
        assert_eq!(departure, Some(Departure::at_once(Cause::Holder, at(20), minutes(1))));
    }
    world.run_until(at(20) + SignedDuration::from_secs(10)).await;
    assert_eq!([first, second, own].map(|id| state(&world, id)), ["ACTIVE", "ACTIVE", "BUILD"]);
    world.run_until(at(21)).await;
    assert_eq!([first, second, own].map(|id| state(&world, id)), ["gone", "gone", "ACTIVE"]);
    let refused = start(&mut world).await;
    assert!(matches!(refused, Err(ServiceError::NoHost(_))), "the lease uses its host: {refused:?}");
    let told: Vec<String> = told(&world).await.into_iter().map(|(event, _)| event).collect();
    let both = |event: &str| told.iter().filter(|told| *told == event).count();
    assert_eq!((both("instance.departure.planned"), both("instance.preempted"), told.len()), (2, 2, 4));
    assert_eq!(world.fleet.violations(), []);
    // When the lease's instance is gone, the host can be backfilled again.
    world.service.instances().delete(&caller("p"), own).await.expect("there");
    world.touched();
    world.run_until(at(25)).await;
    start(&mut world).await.expect("room");
}

#[tokio::test]
async fn pre_11_an_instance_of_the_lease_goes_where_nobody_has_to_leave_for_it() {
    let mut world = world(2).await;
    let asked = asking(0, 60, vec![hosts(2)]);
    let asked = NewLease { terms: asked.terms.backfilled(true), ..asked };
    let lease = make(&mut world, asked).await.expect("free").lease.id;
    world.run_until(at(1)).await;
    let other = start(&mut world).await.expect("room").instance.id;
    world.settle().await;
    let own = own(&mut world, lease).await;
    world.settle().await;
    assert_eq!([other, own].map(|id| state(&world, id)), ["ACTIVE", "ACTIVE"]);
    assert_eq!(told(&world).await, []);
}

#[tokio::test]
async fn pre_11_they_leave_when_a_guest_of_the_lease_is_seen_there_and_when_it_thinks_better_of_it() {
    for thinks_better in [false, true] {
        let mut world = world(1).await;
        let lease = make(&mut world, open(0, 60)).await.expect("free");
        world.run_until(at(1)).await;
        let instance = start(&mut world).await.expect("room").instance.clone();
        world.run_until(at(5)).await;
        if thinks_better {
            let withdrawn = Changes { backfill: Some(false), ..Changes::default() };
            change(&mut world, lease.lease.id, withdrawn).await.expect("at any time");
        } else {
            let owner = GuestOwner::Lease(lease.lease.id);
            world.fleet.happen(Happening::GuestStarts { host: instance.host, owner, runs_for: None });
            world.touched();
        }
        world.run_until(at(9)).await;
        assert_eq!(state(&world, instance.id), "gone", "{thinks_better}");
        let told: Vec<String> = told(&world).await.into_iter().map(|(event, _)| event).collect();
        assert_eq!(told, ["instance.departure.planned", "instance.preempted"]);
        assert_eq!((status(&world, lease.lease.id), world.fleet.violations()), ("ACTIVE", vec![]));
    }
}

#[tokio::test]
async fn pre_11_they_have_left_when_the_next_lease_of_the_host_starts() {
    let mut world = world(1).await;
    let first = make(&mut world, open(0, 60)).await.expect("free").lease.id;
    let next = make(&mut world, asking(60, 90, vec![hosts(1)])).await.expect("free").lease.id;
    world.run_until(at(1)).await;
    let instance = start(&mut world).await.expect("room").instance.clone();
    assert_eq!(instance.departure, Some(Departure::for_lease(at(58), at(60))));
    world.run_until(at(58)).await;
    assert_eq!(state(&world, instance.id), "ACTIVE");
    world.run_until(at(60)).await;
    assert_eq!(state(&world, instance.id), "gone");
    world.run_until(at(60) + SignedDuration::from_secs(1)).await;
    assert_eq!((status(&world, first), status(&world, next)), ("TERMINATED", "ACTIVE"));
    assert_eq!(world.fleet.violations(), []);
}

#[tokio::test]
async fn pre_11_whoever_waits_to_be_started_again_may_be_on_such_a_host_as_well() {
    let mut world = world(2).await;
    make(&mut world, open(0, 60)).await.expect("free");
    world.run_until(at(1)).await;
    let again = NewInstance { requeue: true, ..new(Some(true)) };
    let first = world.service.instances().create(&caller("p"), again).await.expect("room").instance.clone();
    assert_eq!(first.backfills, None, "on the other host");
    let next = NewLease { asked_at: at(1), ..asking(30, 60, vec![hosts(1)]) };
    make(&mut world, next).await.expect("it is preempted");
    world.run_until(at(32)).await;
    let instances = world.service.instances().all(None, None);
    let [successor] = &instances[..] else { panic!("{instances:?}") };
    assert_eq!(successor.instance.status.name(), "ACTIVE");
    assert!(successor.instance.backfills.is_some() && successor.instance.host != first.host);
    assert_eq!(world.fleet.violations(), []);
}

/// Otherwise it would be started again and again at that moment.
#[tokio::test]
async fn pre_11_none_is_started_that_is_asked_to_leave_at_once() {
    let mut world = world_living(1, SignedDuration::ZERO).await;
    make(&mut world, open(0, 29)).await.expect("free");
    make(&mut world, asking(30, 60, vec![hosts(1)])).await.expect("free");
    world.run_until(at(28) - SignedDuration::from_secs(1)).await;
    let started = start(&mut world).await.expect("a second is left");
    world.run_until(at(28)).await;
    let refused = start(&mut world).await;
    assert!(matches!(refused, Err(ServiceError::NoHost(_))), "{refused:?}");
    world.run_until(at(29)).await;
    assert_eq!(state(&world, started.instance.id), "gone");
}

#[tokio::test]
async fn pre_11_nobody_is_on_hosts_of_leases_unless_the_operator_allows_that() {
    let mut world = world_with(1, allowing(), None, |fleet| fleet).await;
    make(&mut world, open(0, 60)).await.expect("free");
    world.run_until(at(1)).await;
    let refused = start(&mut world).await;
    assert!(matches!(refused, Err(ServiceError::NoHost(_))), "{refused:?}");
}
