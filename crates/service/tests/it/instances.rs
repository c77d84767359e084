//! Instances started through the service. Tests are named by the criteria of CLS.

use std::sync::Arc;

use fleet::simulated::{
    Between, Fault, Happening, Layout, Model, PlannedFault, SimulatedFleet, Timing, Verb,
};
use jiff::SignedDuration;
use leases::admission::NoHost;
use leases::ids::{GuestId, HostId, LeaseId};
use leases::instance::{InstanceKind, InstanceStatus, LeaseHint};
use leases::lease::EndAction;
use leases::plan::{GuestOwner, GuestSize};
use service::{NewInstance, NewLease, NotFound, Placing, ServiceError};
use simulation::{Setup, World, caller};
use store::{InstanceRecord, LeaseRecord};

use crate::terms::{asking, at, between, hosts, hosts_of, make, settings, slots, status, world, world_with};

/// An instance with `gib` GiB of memory, in a lease if given.
fn new(gib: u32, lease: Option<LeaseId>) -> NewInstance {
    let size = GuestSize { vcpus: 1, memory_mib: gib * 1024, disk_gib: 10 };
    NewInstance {
        name: "web".to_owned(),
        placing: Placing { size: Some(size), hint: lease.map(LeaseHint::Lease), ..Placing::default() },
        requeue: false,
    }
}

fn with(hint: Option<LeaseHint>) -> NewInstance {
    let new = new(1, None);
    NewInstance { placing: Placing { hint, ..new.placing }, ..new }
}

async fn start(world: &mut World, new: NewInstance) -> Result<Arc<InstanceRecord>, ServiceError> {
    let started = world.service.instances().create(&caller("p"), new).await;
    world.touched();
    started
}

async fn destroy(world: &mut World, id: GuestId) {
    world.service.instances().delete(&caller("p"), id).await.expect("there");
    world.touched();
}

/// The status of an instance, or "gone".
fn state(world: &World, id: GuestId) -> &'static str {
    world.service.instances().get(id).map_or("gone", |record| record.instance.status.name())
}

fn runs(world: &World, record: &InstanceRecord) -> bool {
    let seen = world.fleet.look(record.instance.host).expect("taken on");
    seen.guests.iter().any(|guest| guest.id == record.instance.id)
}

/// A lease of `count` hosts, active until minute 60.
async fn leased(world: &mut World, count: u32, end_action: EndAction) -> Arc<LeaseRecord> {
    let lease = make(world, NewLease { end_action: Some(end_action), ..asking(0, 60, vec![hosts(count)]) })
        .await
        .expect("free");
    world.run_until(at(1)).await;
    assert_eq!(status(world, lease.lease.id), "ACTIVE");
    lease
}

fn conflict(result: Result<Arc<InstanceRecord>, ServiceError>) -> String {
    match result {
        Err(ServiceError::Conflict(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn cls_08_a_instances_run_in_a_lease_from_its_start_to_its_end() {
    let mut world = world(3).await;
    let later = make(&mut world, asking(5, 60, vec![hosts(1)])).await.expect("free");
    let early = conflict(start(&mut world, new(1, Some(later.lease.id))).await);
    assert!(early.contains("is PENDING"), "{early}");
    world.run_until(at(6)).await;
    let instance = start(&mut world, new(1, Some(later.lease.id))).await.expect("it is active");
    assert_eq!(hosts_of(&later), [instance.instance.host]);
    world.settle().await;
    assert_eq!((state(&world, instance.instance.id), runs(&world, &instance)), ("ACTIVE", true));
    let seen = world.fleet.look(instance.instance.host).expect("taken on").guests;
    assert_eq!(seen[0].owner, GuestOwner::Lease(later.lease.id));
    world.run_until(at(61)).await;
    let late = conflict(start(&mut world, new(1, Some(later.lease.id))).await);
    assert!(late.contains("is TERMINATED"), "{late}");
    assert_eq!(world.fleet.violations(), []);
}

#[tokio::test]
async fn cls_08_b_who_names_no_lease_gets_no_host_that_is_leased_now_or_later() {
    let mut world = world(3).await;
    let now = leased(&mut world, 1, EndAction::DeleteGuests).await;
    let later = make(&mut world, asking(50, 1060, vec![hosts(1)])).await.expect("free");
    let free: Vec<HostId> = (1..=3)
        .map(HostId)
        .filter(|id| !hosts_of(&now).contains(id) && !hosts_of(&later).contains(id))
        .collect();
    for _ in 0..2 {
        let instance = start(&mut world, new(30, None)).await.expect("room");
        assert_eq!(vec![instance.instance.host], free);
    }
    world.settle().await;
    let refused = start(&mut world, new(30, None)).await;
    assert!(
        matches!(&refused, Err(ServiceError::NoHost(NoHost::NoRoom { considered: 1, .. }))),
        "{refused:?}"
    );
}

#[tokio::test]
async fn cls_08_c_a_lease_of_another_project_is_refused() {
    let mut world = world(1).await;
    let lease = leased(&mut world, 1, EndAction::DeleteGuests).await;
    let id = lease.lease.id;
    let others = world.service.instances().create(&caller("q"), new(1, Some(id))).await;
    assert!(
        matches!(&others, Err(ServiceError::NotFound(NotFound::Lease(lease))) if *lease == id),
        "{others:?}"
    );
    let reservation = lease.lease.reservations[0].id;
    let hint = Some(LeaseHint::Reservation(reservation));
    let others = world.service.instances().create(&caller("q"), with(hint)).await;
    assert!(matches!(&others, Err(ServiceError::NotFound(NotFound::Reservation(_)))), "{others:?}");
    let own = start(&mut world, with(hint)).await.expect("its own");
    assert_eq!(own.instance.kind, InstanceKind::Reserved { lease: id, reservation });
}

#[tokio::test]
async fn cls_08_d_what_is_started_is_recorded_and_what_is_destroyed_is_not() {
    let mut world = world(2).await;
    let lease = leased(&mut world, 1, EndAction::DeleteGuests).await;
    let [first, second, third] = [1, 2, 3].map(|gib| new(gib, Some(lease.lease.id)));
    let first = start(&mut world, first).await.expect("room");
    let second = start(&mut world, second).await.expect("room");
    let third = start(&mut world, third).await.expect("room");
    world.settle().await;
    assert_eq!(world.service.instances().all(None, Some(lease.lease.id)).len(), 3);
    // One is deleted by its owner, one ends by itself, and one ends with its lease.
    destroy(&mut world, first.instance.id).await;
    assert_eq!(state(&world, first.instance.id), "DELETING");
    world.settle().await;
    assert_eq!((state(&world, first.instance.id), runs(&world, &first)), ("gone", false));
    world.fleet.happen(Happening::GuestEnds(second.instance.id));
    world.run_until(at(5)).await;
    assert_eq!(state(&world, second.instance.id), "gone");
    assert_eq!(state(&world, third.instance.id), "ACTIVE");
    world.run_until(at(65)).await;
    assert_eq!(state(&world, third.instance.id), "gone");
    assert_eq!((status(&world, lease.lease.id), world.fleet.violations()), ("TERMINATED", Vec::new()));
}

#[tokio::test]
async fn cls_09_an_instance_that_its_lease_keeps_is_its_owners_to_delete() {
    let mut world = world(2).await;
    let lease = leased(&mut world, 1, EndAction::KeepGuests).await;
    let instance = start(&mut world, new(1, Some(lease.lease.id))).await.expect("room");
    world.run_until(at(65)).await;
    assert_eq!((status(&world, lease.lease.id), runs(&world, &instance)), ("TERMINATED", true));
    let record = world.service.instances().get(instance.instance.id).expect("it runs");
    assert_eq!(
        (record.instance.kind, record.instance.status),
        (InstanceKind::Regular, InstanceStatus::Active)
    );
    destroy(&mut world, instance.instance.id).await;
    world.settle().await;
    assert_eq!((state(&world, instance.instance.id), runs(&world, &instance)), ("gone", false));
    assert_eq!(world.fleet.violations(), []);
}

#[tokio::test]
async fn instances_of_a_reservation_for_instances_have_its_size_and_are_as_many() {
    let mut world = world(2).await;
    let lease = make(&mut world, asking(0, 60, vec![slots(2, 4)])).await.expect("room");
    world.run_until(at(1)).await;
    let hint = Some(LeaseHint::Lease(lease.lease.id));
    let unsized_ = NewInstance { placing: Placing { hint, ..Placing::default() }, ..new(1, None) };
    let wrong = start(&mut world, with(hint)).await;
    assert!(matches!(&wrong, Err(ServiceError::Invalid(why)) if why.contains("4 vCPUs")), "{wrong:?}");
    for _ in 0..2 {
        let instance = start(&mut world, unsized_.clone()).await.expect("a slot is free");
        assert_eq!(instance.instance.size, GuestSize { vcpus: 4, memory_mib: 1, disk_gib: 1 });
    }
    let third = start(&mut world, unsized_).await;
    assert!(matches!(&third, Err(ServiceError::NoHost(NoHost::AllThere(2)))), "{third:?}");
}

#[tokio::test]
async fn a_size_has_to_be_given_where_the_reservation_gives_none() {
    let mut world = world(1).await;
    let missing = start(&mut world, NewInstance { placing: Placing::default(), ..new(1, None) }).await;
    assert!(matches!(&missing, Err(ServiceError::Invalid(why)) if why.contains("memory_mb")), "{missing:?}");
}

#[tokio::test]
async fn one_that_cannot_be_started_says_why_and_can_be_deleted() {
    let mut world = world(1).await;
    let fault = PlannedFault { times: 3, ..PlannedFault::next(Verb::Start, HostId(1), Fault::Refuse) };
    world.fleet.plan_fault(fault);
    let instance = start(&mut world, new(1, None)).await.expect("room");
    world.run_until(at(2)).await;
    let record = world.service.instances().get(instance.instance.id).expect("there");
    assert_eq!(record.instance.status, InstanceStatus::Error);
    assert!(record.instance.reason.as_deref().is_some_and(|why| why.contains("refused")), "{record:?}");
    destroy(&mut world, instance.instance.id).await;
    world.settle().await;
    assert_eq!(state(&world, instance.instance.id), "gone");
}

fn slow_to_boot(fleet: SimulatedFleet) -> SimulatedFleet {
    fleet.with_timing(Timing { boot: Between::secs(90, 90), ..Timing::IMMEDIATE })
}

#[tokio::test]
async fn one_that_boots_for_long_is_not_taken_for_gone() {
    let mut world = world_with(1, settings(), None, slow_to_boot).await;
    let instance = start(&mut world, new(1, None)).await.expect("room");
    world.run_until(at(1)).await;
    assert_eq!(state(&world, instance.instance.id), "BUILD");
    world.run_until(at(5)).await;
    assert_eq!((state(&world, instance.instance.id), runs(&world, &instance)), ("ACTIVE", true));
}

#[tokio::test]
async fn one_that_is_deleted_while_it_boots_does_not_stay() {
    let mut world = world_with(1, settings(), None, slow_to_boot).await;
    let instance = start(&mut world, new(1, None)).await.expect("room");
    world.settle().await;
    destroy(&mut world, instance.instance.id).await;
    world.run_until(at(5)).await;
    assert_eq!((state(&world, instance.instance.id), runs(&world, &instance)), ("gone", false));
}

#[tokio::test]
async fn cls_08_e_a_start_that_meets_the_end_of_its_lease_leaves_nothing_on_the_host() {
    // Number of seconds by which the start precedes the end of the lease.
    for before_end in [0, 1, 30, 80, 100] {
        let mut world = world_with(1, settings(), None, slow_to_boot).await;
        let lease = leased(&mut world, 1, EndAction::DeleteGuests).await;
        world.run_until(at(60) - SignedDuration::from_secs(before_end + 1)).await;
        let instance = start(&mut world, new(1, Some(lease.lease.id))).await.expect("still active");
        let next = world.service.leases().create(&caller("q"), asking(62, 90, vec![hosts(1)]), None).await;
        let next = next.expect("free after it").lease;
        world.touched();
        world.run_until(at(70)).await;
        assert_eq!(state(&world, instance.instance.id), "gone", "{before_end}");
        assert_eq!((status(&world, lease.lease.id), status(&world, next.lease.id)), ("TERMINATED", "ACTIVE"));
        assert_eq!(world.fleet.look(HostId(1)).expect("taken on").guests, []);
        assert_eq!(world.fleet.violations(), []);
    }
}

#[tokio::test]
async fn an_immediate_lease_does_not_count_on_a_host_where_an_instance_is_about_to_start() {
    let mut world = world(2).await;
    let instance = start(&mut world, new(1, None)).await.expect("room");
    let lease_type = leases::lease_type::LeaseType::Immediate { deadline: at(1) };
    let asked = asking(0, 60, vec![hosts(1)]);
    let lease = make(&mut world, NewLease { terms: asked.terms.of_type(lease_type), ..asked }).await;
    let lease = lease.expect("the other one is free");
    assert!(!hosts_of(&lease).contains(&instance.instance.host));
}

#[tokio::test]
async fn a_lease_with_a_date_has_hosts_with_instances_last_and_no_more_than_it_needs() {
    let mut world = world(3).await;
    let instance = start(&mut world, new(1, None)).await.expect("room");
    let host = instance.instance.host;
    let first = make(&mut world, asking(10, 20, vec![between(1, 3)])).await.expect("free");
    assert!(hosts_of(&first).len() == 2 && !hosts_of(&first).contains(&host));
    let second = make(&mut world, asking(10, 20, vec![hosts(1)])).await.expect("it may be gone by then");
    assert_eq!(hosts_of(&second), [host]);
    world.run_until(at(11)).await;
    let waits = world.service.leases().get(second.lease.id).expect("there").lease.reason.clone();
    assert!(waits.is_some_and(|why| why.contains("cannot be removed")), "it says what it waits for");
    destroy(&mut world, instance.instance.id).await;
    world.run_until(at(12)).await;
    assert_eq!(status(&world, second.lease.id), "ACTIVE");
}

#[tokio::test]
async fn a_scheduled_lease_from_now_on_gets_no_host_with_an_instance() {
    let mut world = world(2).await;
    let instance = start(&mut world, new(1, None)).await.expect("room");
    let refused = make(&mut world, asking(0, 60, vec![hosts(2)])).await.expect_err("one is empty");
    let ServiceError::Refused(refused) = refused else { panic!("{refused}") };
    assert!(refused.hint().is_some_and(|hint| hint.contains("with guests of others")), "{refused:?}");
    let lease = make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("one is empty");
    assert!(!hosts_of(&lease).contains(&instance.instance.host));
    world.run_until(at(1)).await;
    assert_eq!(status(&world, lease.lease.id), "ACTIVE");
}

#[tokio::test]
async fn a_start_that_an_instance_blocks_gets_another_host_once_one_is_free() {
    let mut world = world(2).await;
    let instance = start(&mut world, new(1, None)).await.expect("room");
    make(&mut world, asking(0, 12, vec![hosts(1)])).await.expect("one is empty");
    let blocked = make(&mut world, asking(11, 60, vec![hosts(1)])).await.expect("it may be gone by then");
    assert_eq!(hosts_of(&blocked), [instance.instance.host]);
    world.run_until(at(12) - SignedDuration::from_secs(1)).await;
    assert_eq!(status(&world, blocked.lease.id), "STARTING");
    world.run_until(at(13)).await;
    assert_eq!(status(&world, blocked.lease.id), "ACTIVE");
}

#[tokio::test]
async fn a_host_with_an_instance_is_not_given_back() {
    let mut world = world(1).await;
    let instance = start(&mut world, new(1, None)).await.expect("room");
    let refused = world.service.hosts().remove(&caller("p"), HostId(1)).await;
    assert!(matches!(refused, Err(ServiceError::Conflict(_))), "{refused:?}");
    destroy(&mut world, instance.instance.id).await;
    world.settle().await;
    world.service.hosts().remove(&caller("p"), HostId(1)).await.expect("empty");
}

#[tokio::test]
async fn of_two_who_want_the_last_room_at_once_one_gets_it() {
    let layout = Layout::uniform(1, 1, &Model::of_size(16, 65_536, 1000));
    let setup =
        Setup { seed: 1, begins: at(0), layout: layout.clone(), settings: settings(), enforcer: None };
    let mut world = World::shared(setup, &[SignedDuration::ZERO; 2], |fleet| fleet).await.expect("opens");
    world.take_on(&layout).await.expect("taken on");
    world.settle().await;
    world.store_of(0).set_slow(true);
    world.store_of(1).set_slow(true);
    let ask = |service: usize| {
        let service = world.service_of(service).clone();
        async move { service.instances().create(&caller("p"), new(40, None)).await }
    };
    let (a, b) = tokio::join!(ask(0), ask(1));
    assert_eq!(usize::from(a.is_ok()) + usize::from(b.is_ok()), 1, "{a:?} {b:?}");
    let refused = if a.is_ok() { b } else { a };
    assert!(matches!(refused, Err(ServiceError::NoHost(_))), "{refused:?}");
}
