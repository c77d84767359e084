//! Preemptible instances. Tests are named by the features of PRE.

use std::sync::Arc;

use fleet::simulated::{Between, SimulatedFleet, Timing};
use jiff::{SignedDuration, Timestamp};
use leases::admission::NoHost;
use leases::ids::GuestId;
use leases::instance::{Cause, Departure, InstanceKind};
use leases::lease_type::LeaseType;
use leases::plan::{GuestOwner, GuestSize};
use leases::preemption::{Class, EndState, Mark, Marked};
use leases::project::ProjectId;
use leases::quota::UsageLimit;
use service::{HostQuestion, NewInstance, NewLease, Placing, ServiceError, Settings};
use simulation::{World, caller};
use store::InstanceRecord;

use crate::terms::{
    asking, at, change, dates, hosts, hosts_of, make, minutes, settings, slots, status, world_with,
};

/// Settings that allow preemptible instances. Guests have a minute to leave, and are asked to leave two
/// minutes before a lease starts.
pub fn allowing() -> Settings {
    let mut settings = settings();
    settings.preemption.allowed = true;
    settings.plan_rules.clear_ahead = Some(minutes(2));
    settings
}

async fn world(hosts: u32) -> World {
    let quick = Timing { shut_down: Between::secs(20, 20), ..Timing::IMMEDIATE };
    world_with(hosts, allowing(), None, |fleet| fleet.with_timing(quick)).await
}

pub fn new(preemptible: Option<bool>) -> NewInstance {
    NewInstance {
        name: "batch".to_owned(),
        placing: Placing {
            size: Some(GuestSize { vcpus: 8, memory_mib: 1024, disk_gib: 10 }),
            marked: Marked(Vec::from_iter(preemptible.map(|says| (Mark::Hint, says)))),
            ..Placing::default()
        },
        requeue: false,
    }
}

pub async fn start(world: &mut World) -> Result<Arc<InstanceRecord>, ServiceError> {
    let started = world.service.instances().create(&caller("p"), new(Some(true))).await;
    world.touched();
    started
}

/// The status of an instance, or "gone".
pub fn state(world: &World, id: GuestId) -> &'static str {
    world.service.instances().get(id).map_or("gone", |record| record.instance.status.name())
}

#[tokio::test]
async fn pre_02_every_instance_has_one_kind_and_keeps_it() {
    let mut world = world(3).await;
    let lease = make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free");
    world.run_until(at(1)).await;
    let preemptible = start(&mut world).await.expect("room");
    let regular = world.service.instances().create(&caller("p"), new(None)).await.expect("room");
    let hint = Some(leases::instance::LeaseHint::Lease(lease.lease.id));
    let plain = new(None);
    let reserved = NewInstance { placing: Placing { hint, ..plain.placing.clone() }, ..plain };
    let reserved = world.service.instances().create(&caller("p"), reserved).await.expect("room");
    world.touched();
    world.settle().await;
    let kinds = [&preemptible, &regular, &reserved].map(|record| {
        let record = world.service.instances().get(record.instance.id).expect("it runs");
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
    // Two fit on the host that is never leased, then come two on the host of the latest lease.
    for _ in 0..2 {
        let first = start(&mut world).await.expect("room");
        assert!(!taken.contains(&first.instance.host));
        assert_eq!(world.service.instances().safe_until(&first.instance), None);
    }
    for _ in 0..2 {
        let next = start(&mut world).await.expect("room");
        assert_eq!(next.instance.host, taken[2]);
        assert_eq!(
            world.service.instances().safe_until(&next.instance),
            Some(at(298)),
            "it is asked to leave then"
        );
    }
    // The next host isn't free for ten minutes plus two to leave.
    let refused = start(&mut world).await;
    assert!(matches!(refused, Err(ServiceError::NoHost(_))), "{refused:?}");
}

#[tokio::test]
async fn pre_04_an_external_scheduler_is_told_which_hosts_may_have_it_and_until_when() {
    let mut world = world(4).await;
    let mut leased = Vec::new();
    for start in [0, 5, 300] {
        let lease = make(&mut world, asking(start, 600, vec![hosts(1)])).await.expect("free");
        leased.push(lease);
    }
    world.run_until(at(1)).await;
    let name = |id| world.service.hosts().get(id).expect("taken on").host.name.clone();
    let [active, soon, late] = [0, 1, 2].map(|number: usize| name(hosts_of(&leased[number])[0]));
    let all: Vec<String> = world.service.hosts().all().iter().map(|host| host.host.name.clone()).collect();
    let free = all.iter().find(|host| ![&active, &soon, &late].contains(host)).expect("four").clone();
    let elsewhere = "elsewhere".to_owned();
    let ask = async |placing: Placing| {
        let hosts = [&active, &soon, &late, &free, &elsewhere].map(Clone::clone).to_vec();
        let question =
            HostQuestion { project: ProjectId("p".into()), instance: None, placing, hosts: Some(hosts) };
        let answer = world.service.instances().hosts_for(&question).await.expect("an answer");
        let verdicts = answer.hosts.into_iter().map(|(_, verdict)| verdict.map_err(|why| why.to_string()));
        (answer.kind.name(), verdicts.collect::<Vec<_>>())
    };
    let no = |why: &str| Err(why.to_owned());
    let taken = || no("a lease has it, or is about to");
    let reserved = || no("it is reserved");
    assert_eq!(
        ask(new(None).placing).await,
        ("regular", vec![taken(), reserved(), reserved(), Ok(None), Ok(None)])
    );
    let foreign = || no("it is not managed here");
    let verdicts = vec![taken(), no("a lease of it starts too soon"), Ok(Some(at(298))), Ok(None), foreign()];
    assert_eq!(ask(new(Some(true)).placing).await, ("preemptible", verdicts));
    let hint = Some(leases::instance::LeaseHint::Lease(leased[0].lease.id));
    let theirs = || no("it is not the reservation's");
    let verdicts = vec![Ok(Some(at(600))), theirs(), theirs(), theirs(), foreign()];
    assert_eq!(ask(Placing { hint, ..new(None).placing }).await, ("reserved", verdicts));
    let large = GuestSize { vcpus: 17, memory_mib: 1, disk_gib: 1 };
    let (_, verdicts) = ask(Placing { size: Some(large), ..new(None).placing }).await;
    assert_eq!(verdicts[3], no("it has no room"));
}

#[tokio::test]
async fn where_the_free_pool_is_closed_only_what_is_marked_may_run_there() {
    let settings = Settings { open_pool: false, preemptible_by_project: false, ..allowing() };
    let world = world_with(1, settings, None, |fleet| fleet).await;
    let name = world.service.hosts().all()[0].host.name.clone();
    let ask = async |placing: Placing| {
        let hosts = Some(vec![name.clone(), "elsewhere".to_owned()]);
        let question = HostQuestion { project: ProjectId("p".into()), instance: None, placing, hosts };
        let answer = world.service.instances().hosts_for(&question).await.expect("an answer");
        answer.hosts.into_iter().map(|(_, verdict)| verdict.is_ok()).collect::<Vec<_>>()
    };
    assert_eq!(ask(Placing::default()).await, [false, true]);
    assert_eq!(ask(new(Some(true)).placing).await, [true, false]);
    let Ok(pattern) = "p".parse();
    let listed = world.service.preemptible_projects().add(&caller("p"), pattern).await;
    assert!(matches!(listed, Err(ServiceError::Conflict(_))), "{listed:?}");
}

#[tokio::test]
async fn pre_06_for_a_lease_of_room_only_as_many_leave_as_it_takes() {
    let mut world = world(1).await;
    let first = start(&mut world).await.expect("room").instance.id;
    world.run_until(at(5)).await;
    let second = start(&mut world).await.expect("room").instance.id;
    world.run_until(at(6)).await;
    // Each has 8 of 16 CPUs.
    let lease =
        make(&mut world, asking(30, 60, vec![slots(3, 2)])).await.expect("they are preempted").lease.id;
    world.run_until(at(7)).await;
    let departure = |id| world.service.instances().get(id).expect("it runs").instance.departure;
    assert_eq!((departure(first), departure(second).map(|known| known.asked_at)), (None, Some(at(28))));
    world.run_until(at(30) + SignedDuration::from_secs(1)).await;
    assert_eq!(status(&world, lease), "ACTIVE");
    assert_eq!((state(&world, first), state(&world, second)), ("ACTIVE", "gone"));
    // A lease that starts immediately has to wait for the instance, and gives that as its reason.
    let lease = make(&mut world, asking(30, 60, vec![slots(1, 4)])).await.expect("it is preempted").lease.id;
    world.run_until(at(30) + SignedDuration::from_secs(5)).await;
    let record = world.service.leases().get(lease).expect("there");
    let reason = record.lease.reason.as_deref().unwrap_or_default();
    assert_eq!(leases::reason::for_operator(reason), "preemptible instances on host r1-h01 are leaving");
    world.run_until(at(32)).await;
    assert_eq!((status(&world, lease), state(&world, first)), ("ACTIVE", "gone"));
    assert_eq!(world.fleet.violations(), []);
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
    let first_event = |world: &World| {
        let lease = world.service.leases().get(lease.lease.id).expect("there");
        let event = lease.lease.events()[0];
        (event.kind.name(), event.at, event.status.name())
    };
    assert_eq!(first_event(&world), ("before_start_lease", at(28), "IN_PROGRESS"));
    world.run_until(at(29)).await;
    assert_eq!((asked(&world), status(&world, lease.lease.id)), (None, "PENDING"));
    assert_eq!(first_event(&world), ("before_start_lease", at(28), "DONE"));
    world.run_until(at(30) + SignedDuration::from_secs(1)).await;
    assert_eq!((state(&world, instance.instance.id), status(&world, lease.lease.id)), ("gone", "ACTIVE"));
    assert_eq!(world.fleet.violations(), []);
}

/// Time at which the owner is told that the instance will be deleted.
fn gone_by(world: &World, id: GuestId) -> Option<Timestamp> {
    let instance = world.service.instances().get(id)?.instance.clone();
    Some(instance.departure?.for_owner(world.service.instances().notice(&instance)).gone_by)
}

#[tokio::test]
async fn pre_07_nobody_is_told_of_a_time_in_the_past() {
    let stubborn = Timing { shut_down: Between::secs(3600, 3600), ..Timing::IMMEDIATE };
    let mut world = world_with(1, allowing(), None, |fleet| fleet.with_timing(stubborn)).await;
    let (instance, host) = {
        let started = start(&mut world).await.expect("room");
        (started.instance.id, started.instance.host)
    };
    world.run_until(at(10)).await;
    make(&mut world, asking(11, 60, vec![hosts(1)])).await.expect("it is preempted");
    world.run_until(at(10) + SignedDuration::from_secs(1)).await;
    let told = gone_by(&world, instance).expect("it leaves");
    assert!(told >= at(11), "it has a minute from {} on: {told}", at(10));
    world.run_until(told - SignedDuration::from_secs(1)).await;
    assert_eq!((state(&world, instance), gone_by(&world, instance)), ("ACTIVE", Some(told)));
    world.run_until(told + SignedDuration::from_secs(5)).await;
    assert_eq!(world.fleet.look(host).expect("taken on").guests, []);
    assert_eq!(world.fleet.violations(), []);
}

#[tokio::test]
async fn pre_07_who_does_not_leave_is_deleted_when_its_grace_is_over_and_not_before() {
    let stubborn = Timing { shut_down: Between::secs(3600, 3600), ..Timing::IMMEDIATE };
    let mut world = world_with(1, allowing(), None, |fleet| fleet.with_timing(stubborn)).await;
    let lease = make(&mut world, asking(30, 60, vec![hosts(1)])).await.expect("free");
    let instance = start(&mut world).await.expect("room");
    assert_eq!(gone_by(&world, instance.instance.id), Some(at(29)), "its owner is told when it is deleted");
    world.run_until(at(29) - SignedDuration::from_secs(1)).await;
    assert_eq!(state(&world, instance.instance.id), "ACTIVE");
    world.run_until(at(29) + SignedDuration::from_secs(5)).await;
    assert_eq!(world.fleet.look(instance.instance.host).expect("taken on").guests, []);
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
    let lease = make(&mut world, at_once(asking(0, 60, vec![hosts(1)]))).await.expect("it is preempted");
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
    world.service.leases().delete(&caller("p"), lease.lease.id).await.expect("there");
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
        let made = world.service.instances().create(&caller("p"), new(asked)).await.expect("room");
        assert_eq!(made.instance.kind, kind);
    }
}

#[tokio::test]
async fn pre_requeue_another_one_takes_the_place_of_who_has_made_way_as_soon_as_there_is_room() {
    let mut world = world(1).await;
    let refused = NewInstance { requeue: true, ..new(None) };
    let refused = world.service.instances().create(&caller("p"), refused).await;
    assert!(matches!(refused, Err(ServiceError::Invalid(_))), "{refused:?}");
    let stays = NewInstance { requeue: true, ..new(Some(true)) };
    let first = world.service.instances().create(&caller("p"), stays).await.expect("room").instance.id;
    let leaves = start(&mut world).await.expect("room").instance.id;
    make(&mut world, asking(30, 90, vec![hosts(1)])).await.expect("they are preempted");
    world.run_until(at(31)).await;
    assert_eq!((state(&world, first), state(&world, leaves)), ("gone", "gone"));
    let instances = world.service.instances().all(None, None);
    let [waiting] = &instances[..] else { panic!("{instances:?}") };
    let id = waiting.instance.id;
    assert_eq!((state(&world, id), &waiting.instance.name[..]), ("QUEUED", "batch"));
    let told = world.service.notifications().after(None, 0, 1000).await.expect("the store works");
    let told = told.iter().filter(|told| told.content.event_type == "instance.preempted");
    let names: Vec<bool> = told.map(|told| told.content.payload.contains(&id.to_string())).collect();
    assert_eq!(names.iter().filter(|named| **named).count(), 1, "one of both is told who comes after it");
    world.run_until(at(89)).await;
    assert_eq!(state(&world, id), "QUEUED");
    world.run_until(at(91)).await;
    assert_eq!(state(&world, id), "ACTIVE");
    // It is requeued again, until its owner deletes it.
    make(&mut world, asking(110, 190, vec![hosts(1)])).await.expect("it is preempted");
    world.run_until(at(111)).await;
    let instances = world.service.instances().all(None, None);
    let again =
        instances.iter().map(|record| record.instance.id).find(|other| *other != id).expect("it waits");
    world.service.instances().delete(&caller("p"), again).await.expect("there");
    assert_eq!(state(&world, again), "gone");
    assert_eq!(world.fleet.violations(), []);
}

#[tokio::test]
async fn pre_10_who_has_as_many_as_it_may_gets_no_more_of_that_kind() {
    let mut settings = allowing();
    settings.quotas.preemptible.vcpus = Some(15);
    settings.quotas.regular.instances = Some(1);
    let mut world = world_with(4, settings, None, |fleet| fleet).await;
    start(&mut world).await.expect("it may");
    let over = start(&mut world).await.expect_err("16 CPUs").to_string();
    let said = "Quota exceeded for preemptible instances: 8 of 15 vCPUs are in use, and 8 more are asked for";
    assert_eq!(over, said);
    world.service.instances().create(&caller("p"), new(None)).await.expect("these are counted apart");
    let over = world.service.instances().create(&caller("p"), new(None)).await;
    assert!(matches!(over, Err(ServiceError::OverQuota(_))), "{over:?}");
    world.service.instances().create(&caller("q"), new(None)).await.expect("somebody else's");
}

#[tokio::test]
async fn pre_10_a_regular_instance_displaces_preemptible_ones_of_its_project() {
    let mut world = world(1).await;
    let first = start(&mut world).await.expect("room").instance.id;
    world.run_until(at(5)).await;
    let second = start(&mut world).await.expect("room").instance.id;
    world.run_until(at(6)).await;
    let others = world.service.instances().create(&caller("q"), new(None)).await;
    assert!(matches!(others, Err(ServiceError::NoHost(_))), "somebody else's stay: {others:?}");
    let regular = world.service.instances().create(&caller("p"), new(None)).await.expect("there is room");
    let regular = regular.instance.id;
    world.touched();
    let departure = world.service.instances().get(second).expect("it has time").instance.departure;
    assert_eq!(departure, Some(Departure::at_once(Cause::OwnProject, at(6), SignedDuration::from_mins(1))));
    world.run_until(at(6) + SignedDuration::from_secs(10)).await;
    assert_eq!((state(&world, second), state(&world, regular)), ("ACTIVE", "BUILD"));
    world.run_until(at(8)).await;
    assert_eq!(
        [first, second, regular].map(|id| state(&world, id).to_owned()),
        ["ACTIVE", "gone", "ACTIVE"].map(str::to_owned)
    );
    let told: Vec<String> = told(&world).await.into_iter().map(|(event, _)| event).collect();
    assert_eq!(told, ["instance.departure.planned", "instance.preempted"]);
    assert_eq!(world.fleet.violations(), []);
}

/// The search for instances to displace uses the budget that the search for free capacity has left.
#[tokio::test]
async fn who_could_be_displaced_at_too_high_a_cost_is_not_said_to_be_nobody() {
    let mut stopped = 0;
    for decision_work in (100..4000).step_by(50) {
        let mut world = world_with(1, Settings { decision_work, ..allowing() }, None, |fleet| fleet).await;
        if start(&mut world).await.is_err() || start(&mut world).await.is_err() {
            continue;
        }
        world.run_until(at(6)).await;
        match world.service.instances().create(&caller("p"), new(None)).await {
            Ok(_) => {}
            Err(ServiceError::NoHost(NoHost::Stopped(_))) => stopped += 1,
            Err(error) => panic!("with {decision_work} units: {error}"),
        }
    }
    assert!(stopped > 0, "no budget ended while it was looked for who could be displaced");
}

/// Notifications about instances: event type, and the time at which the instance is asked to leave.
pub async fn told(world: &World) -> Vec<(String, Option<String>)> {
    let notifications = world.service.notifications().after(None, 0, 1000).await.expect("the store works");
    let of_instances = notifications
        .into_iter()
        .map(|told| told.content)
        .filter(|told| told.event_type.starts_with("instance."));
    of_instances
        .map(|told| {
            let payload: serde_json::Value = serde_json::from_str(&told.payload).expect("JSON");
            assert!(payload["host"].is_null() && payload["instance_id"].is_string(), "{payload}");
            assert_eq!(told.project, ProjectId("p".into()));
            (told.event_type, payload["departure"]["asked_at"].as_str().map(str::to_owned))
        })
        .collect()
}

#[tokio::test]
async fn pre_notice_owners_are_told_when_their_instances_are_preempted_and_when_they_need_not() {
    let mut world = world(1).await;
    let instance = start(&mut world).await.expect("room").instance.clone();
    world.run_until(at(1)).await;
    assert_eq!((instance.departure, told(&world).await), (None, vec![]));
    let departure =
        |world: &World| world.service.instances().get(instance.id).expect("it runs").instance.departure;
    let lease = make(&mut world, asking(60, 90, vec![hosts(1)])).await.expect("it is preempted").lease.id;
    world.run_until(at(2)).await;
    assert_eq!(departure(&world), Some(Departure::for_lease(at(58), at(60))));
    change(&mut world, lease, dates(Some(40), Some(90))).await.expect("it is preempted");
    world.run_until(at(3)).await;
    assert_eq!(departure(&world), Some(Departure::for_lease(at(38), at(40))));
    world.service.leases().delete(&caller("p"), lease).await.expect("there");
    world.touched();
    world.run_until(at(4)).await;
    assert_eq!(departure(&world), None);
    make(&mut world, asking(10, 90, vec![hosts(1)])).await.expect("it is preempted");
    world.run_until(at(11)).await;
    assert_eq!(state(&world, instance.id), "gone");
    let minute = |minute: i64| at(minute).to_string();
    let planned = |at| ("instance.departure.planned".to_owned(), Some(minute(at)));
    let expected = [
        planned(58),
        planned(38),
        ("instance.departure.withdrawn".to_owned(), None),
        planned(8),
        ("instance.preempted".to_owned(), Some(minute(8))),
    ];
    assert_eq!(told(&world).await, expected);
}

#[tokio::test]
async fn an_instance_whose_lifetime_is_over_leaves_with_notice_though_the_service_restarts() {
    let mut settings = allowing();
    settings.plan_rules.max_lifetime = Some(minutes(60));
    let quick = Timing { shut_down: Between::secs(20, 20), ..Timing::IMMEDIATE };
    let mut world = world_with(1, settings, None, |fleet| fleet.with_timing(quick)).await;
    let id = start(&mut world).await.expect("room").instance.id;
    world.run_until(at(5)).await;
    let instances = world.service.instances();
    let known = instances.get(id).expect("it runs").instance.clone();
    let ends_at = known.launched_at.expect("it runs") + minutes(60);
    let asked_at = ends_at - minutes(1);
    assert_eq!((known.departure, instances.deadline(&known)), (None, Some(ends_at)));
    let leaves = Departure { asked_at, gone_by: ends_at, cause: Cause::Lifetime, moves_to: None };
    assert_eq!(instances.departure(&known), Some(leaves));
    assert_eq!(instances.safe_until(&known), Some(asked_at));
    let facts = instances.facts(id).await.expect("the fleet answers").expect("it is known");
    assert_eq!(facts.departure.map(|known| (known.asked_at, known.gone_by)), Some((asked_at, ends_at)));
    world.restart().await.expect("the store works");
    world.run_until(asked_at - SignedDuration::from_secs(1)).await;
    let planned = told(&world).await;
    assert_eq!(state(&world, id), "ACTIVE");
    assert_eq!(planned.len(), 1, "once, when it runs: {planned:?}");
    assert_eq!(planned[0].0, "instance.departure.planned");
    let announced = planned[0].1.as_ref().expect("a date").parse::<Timestamp>().expect("a date");
    assert!(asked_at.duration_since(announced) < SignedDuration::from_secs(1), "{planned:?}");
    world.run_until(ends_at + minutes(1)).await;
    assert_eq!(state(&world, id), "gone");
    let events: Vec<String> = told(&world).await.into_iter().map(|(event, _)| event).collect();
    let planned = "instance.departure.planned";
    assert_eq!(events, [planned, planned, "instance.preempted"], "it runs, it is asked to leave, it is gone");
    assert_eq!(world.fleet.violations(), []);
}

#[tokio::test]
async fn owners_are_told_of_a_new_or_lower_lifetime_when_their_instances_are_asked_to_leave() {
    for limit_before in [None, Some(minutes(120))] {
        let mut settings = allowing();
        settings.plan_rules.max_lifetime = limit_before;
        let quick = |fleet: SimulatedFleet| fleet.with_timing(Timing::IMMEDIATE);
        let mut world = world_with(1, settings.clone(), None, quick).await;
        let id = start(&mut world).await.expect("room").instance.id;
        world.run_until(at(50)).await;
        let known = world.service.instances().get(id).expect("it runs").instance.clone();
        let ends_at = known.launched_at.expect("it runs") + minutes(60);
        let before = told(&world).await;
        assert_eq!(before.len(), usize::from(limit_before.is_some()), "{before:?}");
        settings.plan_rules.max_lifetime = Some(minutes(60));
        world.restart_with(settings).await.expect("the store works");
        world.run_until(ends_at + minutes(1)).await;
        assert_eq!(state(&world, id), "gone");
        let told = told(&world).await;
        let [(asked, asked_at), (preempted, _)] = &told[before.len()..] else { panic!("two more: {told:?}") };
        assert_eq!([asked, preempted], ["instance.departure.planned", "instance.preempted"]);
        let asked_at = asked_at.as_ref().expect("a date").parse::<Timestamp>().expect("a date");
        assert!((ends_at - minutes(1)).duration_since(asked_at).abs() < minutes(1), "{asked_at}");
    }
}

#[tokio::test]
async fn the_earlier_of_lease_and_lifetime_is_shown_and_announced() {
    let mut settings = allowing();
    settings.plan_rules.max_lifetime = Some(minutes(60));
    let mut world = world_with(1, settings, None, |fleet| fleet.with_timing(Timing::IMMEDIATE)).await;
    let late = make(&mut world, asking(300, 330, vec![hosts(1)])).await.expect("free").lease.id;
    let id = start(&mut world).await.expect("room").instance.id;
    world.run_until(at(5)).await;
    let cause = |world: &World| {
        let instances = world.service.instances();
        instances.departure(&instances.get(id).expect("it runs").instance).map(|known| known.cause)
    };
    assert_eq!((cause(&world), told(&world).await.len()), (Some(Cause::Lifetime), 1));
    let soon = make(&mut world, asking(30, 40, vec![hosts(1)])).await.expect("it is preempted").lease.id;
    world.run_until(at(6)).await;
    assert_eq!((cause(&world), told(&world).await.len()), (Some(Cause::Lease), 2));
    for lease in [soon, late] {
        world.service.leases().delete(&caller("p"), lease).await.expect("there");
    }
    world.touched();
    world.run_until(at(7)).await;
    assert_eq!(cause(&world), Some(Cause::Lifetime));
    let events: Vec<String> = told(&world).await.into_iter().map(|(event, _)| event).collect();
    assert_eq!(events, ["instance.departure.planned"; 3], "it is never safe for longer than its lifetime");
}

#[tokio::test]
async fn pre_01_what_preemptible_instances_ran_and_lost_is_accounted_for() {
    let mut world = world(2).await;
    make(&mut world, asking(60, 90, vec![hosts(2)])).await.expect("free");
    let preempted = start(&mut world).await.expect("room").instance.id;
    let deleted = start(&mut world).await.expect("room").instance.id;
    world.run_until(at(30)).await;
    world.service.instances().delete(&caller("p"), deleted).await.expect("there");
    world.touched();
    world.run_until(at(70)).await;
    assert_eq!((state(&world, preempted), state(&world, deleted)), ("gone", "gone"));
    let period = leases::window::Window::new(at(0), at(70)).expect("forwards");
    let whose = ProjectId("p".into());
    let usage = world.service.usage().preemptible(period, Some(&whose)).await.expect("the store works");
    assert_eq!((usage.begun, usage.preempted), (2, 1));
    // The first instance ran until minute 30. The second was asked to leave in minute 58, and is gone at the
    // next observation.
    let (minute, second) = (60_000_000_u128, 1_000_000_u128);
    let (one, other) = (30 * minute, 58 * minute + 30 * second);
    let near = |figure: u128, expected: u128| figure.abs_diff(expected) < 5 * second;
    assert!(near(usage.ran_us, one + other), "{usage:?}");
    assert!(near(usage.lost_us, other), "{usage:?}");
    assert_eq!(usage.cores_us, 8 * usage.ran_us);
    assert_eq!(usage.capacity_cores_us, 2 * 16 * 70 * minute);
    let others = ProjectId("q".into());
    let none = world.service.usage().preemptible(period, Some(&others)).await.expect("the store works");
    assert_eq!((none.begun, none.preempted, none.ran_us, none.lost_us), (0, 0, 0, 0));
}

#[tokio::test]
async fn pre_07_an_instance_of_a_class_has_its_notice_also_before_a_lease_that_starts_at_once() {
    let mut settings = allowing();
    settings.preemption.classes = vec![Class::new("batch", minutes(5), EndState::Delete).expect("a class")];
    settings.plan_rules.longest_notice = minutes(5);
    settings.plan_rules.clear_ahead = Some(minutes(6));
    // No guest shuts down by itself.
    let stubborn = Timing { shut_down: Between::secs(3600, 3600), ..Timing::IMMEDIATE };
    let mut world = world_with(1, settings, None, |fleet| fleet.with_timing(stubborn)).await;
    let of = |class: &str| {
        let plain = new(None);
        let placing = Placing { class: Some(class.to_owned()), ..new(Some(true)).placing };
        NewInstance { placing, ..plain }
    };
    let unknown =
        world.service.instances().create(&caller("p"), of("gold")).await.expect_err("there is none");
    assert_eq!(unknown.to_string(), "There is no class 'gold' of preemptible instances; there are: batch");
    let regular = Placing { class: Some("batch".to_owned()), ..new(Some(false)).placing };
    let regular = NewInstance { placing: regular, ..new(None) };
    let regular =
        world.service.instances().create(&caller("p"), regular).await.expect_err("it is not preempted");
    assert_eq!(regular.to_string(), "An instance of class 'batch' is preemptible, and this one is not");
    let batch = world.service.instances().create(&caller("p"), of("batch")).await.expect("room").instance.id;
    let plain = start(&mut world).await.expect("room").instance.id;
    world.run_until(at(1)).await;
    let planned =
        make(&mut world, asking(30, 60, vec![hosts(1)])).await.expect("they are preempted").lease.id;
    world.run_until(at(2)).await;
    let asked = |world: &World, id| {
        let departure = world.service.instances().get(id).and_then(|record| record.instance.departure);
        departure.map(|departure| departure.asked_at)
    };
    assert_eq!((asked(&world, batch), asked(&world, plain)), (Some(at(24)), Some(at(28))));
    world.service.leases().delete(&caller("p"), planned).await.expect("there");
    world.touched();
    let lease = make(&mut world, asking(2, 60, vec![hosts(1)])).await.expect("they are preempted").lease.id;
    world.run_until(at(6)).await;
    assert_eq!((state(&world, plain), state(&world, batch)), ("gone", "ACTIVE"));
    assert_ne!(status(&world, lease), "ACTIVE", "it waits for who was promised five minutes");
    world.run_until(at(8)).await;
    assert_eq!((status(&world, lease), state(&world, batch)), ("ACTIVE", "gone"));
}

#[tokio::test]
async fn pre_10_who_has_used_what_may_be_used_in_a_window_starts_no_more_until_some_of_it_is_past() {
    let mut settings = allowing();
    settings.quotas.preemptible_usage = Some(UsageLimit { core_hours: 16, window: minutes(240) });
    let mut world = world_with(2, settings, None, |fleet| fleet.with_timing(Timing::IMMEDIATE)).await;
    let first = start(&mut world).await.expect("room").instance.id;
    world.run_until(at(110)).await;
    let second = start(&mut world).await.expect("14 of 16 core-hours are used").instance.id;
    world.run_until(at(121)).await;
    let over = start(&mut world).await;
    assert!(matches!(over, Err(ServiceError::OverUsage(_))), "{over:?}");
    world.service.instances().create(&caller("q"), new(Some(true))).await.expect("others may");
    world.service.instances().create(&caller("p"), new(None)).await.expect("those that stay do not count");
    assert_eq!((state(&world, first), state(&world, second)), ("ACTIVE", "ACTIVE"));
    for id in [first, second] {
        world.service.instances().delete(&caller("p"), id).await.expect("there");
    }
    world.touched();
    world.run_until(at(300)).await;
    start(&mut world).await.expect("most of it is longer ago");
}
