//! Usage. Tests are named by the criteria of USE and CLS-12.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ambient::SeededIds;
use fleet::simulated::Happening;
use jiff::{SignedDuration, Timestamp};
use leases::ids::{HostId, LeaseId};
use leases::instance::LeaseHint;
use leases::lease::{Allocation, EndAction};
use leases::lease_type::LeaseType;
use leases::plan::{GuestOwner, GuestSize};
use leases::usage::{By, Event, Group, Query, Span, Totals};
use leases::window::Window;
use service::{HostSelector, NewFreePool, NewInstance, NewLease, Parts, Placing, Service};
use simulation::{StoreFault, World, caller};
use store::memory::MemoryStore;
use store::{Commit, Store, UsageFilter};

use crate::terms::{
    addresses, asking, at, change, dates, hosts, hosts_of, make, settings, slots, status, window, world,
};

const MINUTE_US: u128 = 60_000_000;

/// Total usage in that period.
async fn totals(world: &World, start: i64, end: i64) -> Totals {
    let query = Query { periods: vec![window(start, end)], ..Query::default() };
    let groups = world.service.usage().sums(&query).await.expect("works");
    groups.get(&Group::default()).copied().unwrap_or_default()
}

async fn events(world: &World, lease: LeaseId) -> Vec<Event> {
    let filter = UsageFilter { lease: Some(lease), ..UsageFilter::default() };
    let found = world.service.usage().events(&filter, 0, 1000).await.expect("works");
    found.into_iter().map(|(_, event)| event).collect()
}

async fn names(world: &World, lease: LeaseId) -> Vec<&'static str> {
    events(world, lease).await.iter().map(|event| event.what.name()).collect()
}

async fn start_instance(world: &mut World, lease: Option<LeaseId>) {
    let size = GuestSize { vcpus: 2, memory_mib: 1024, disk_gib: 10 };
    let new = NewInstance {
        name: "web".to_owned(),
        placing: Placing { size: Some(size), hint: lease.map(LeaseHint::Lease), ..Placing::default() },
        requeue: false,
    };
    world.service.instances().create(&caller("p"), new).await.expect("there is room");
    world.settle().await;
}

#[tokio::test]
async fn usage_a_of_every_change_of_a_lease_there_is_an_event() {
    let mut world = world(3).await;
    let lease = make(&mut world, asking(5, 60, vec![hosts(1)])).await.expect("free");
    let id = lease.lease.id;
    world.run_until(at(10)).await;
    change(&mut world, id, dates(None, Some(90))).await.expect("free");
    world.settle().await;
    let failed = hosts_of(&lease)[0];
    world.fleet.happen(Happening::HostFails(failed));
    world.run_until(at(12)).await;
    world.touched();
    world.run_until(at(91)).await;
    assert_eq!(
        names(&world, id).await,
        [
            "lease.created",
            "lease.starting",
            "lease.started",
            "lease.extended",
            "lease.reallocated",
            "lease.ending",
            "lease.ended"
        ]
    );
    let all = events(&world, id).await;
    let (first, last) = (&all[0], &all[all.len() - 1]);
    assert_eq!((first.at, first.window, &first.hosts), (at(0), Some(window(5, 60)), &vec![failed]));
    assert_eq!((first.owner.project.0.as_str(), first.lease_type.as_deref()), ("p", Some("SCHEDULE")));
    assert_eq!((last.window, last.hosts.contains(&failed)), (Some(window(5, 90)), false));
    world.fleet.recover(failed);
    world.service.leases().delete(&caller("p"), id).await.expect("over");
    world.touched();
    world.run_until(at(120)).await;
    assert_eq!(names(&world, id).await.last(), Some(&"lease.deleted"));
}

#[tokio::test]
async fn usage_a_leases_that_time_out_are_told_of_and_cost_nothing() {
    let mut world = world(2).await;
    let mut new = asking(0, 60, vec![hosts(2)]);
    new.terms = new.terms.of_type(LeaseType::BestEffort { deadline: at(20) });
    let lease = make(&mut world, new).await.expect("free");
    let id = lease.lease.id;
    world.fleet.start_guest(hosts_of(&lease)[0], GuestOwner::Other, None).expect("a free host");
    world.run_until(at(21)).await;
    assert_eq!(names(&world, id).await[..3], ["lease.created", "lease.starting", "lease.timed_out"]);
    let query = Query { periods: vec![window(0, 500)], lease: Some(id), ..Query::default() };
    assert!(world.service.usage().sums(&query).await.expect("works").is_empty());
}

#[tokio::test]
async fn usage_b_what_is_reserved_and_what_is_used_is_counted() {
    let mut world = world(3).await;
    let parts = vec![hosts(1), slots(4, 2), addresses(1)];
    let operator = simulation::operator();
    let network = fleet::simulated::Layout::public_network().id;
    let new = service::NewFloatingIp { network, address: [203, 0, 113, 200].into() };
    world.service.floating_ips().add(&operator, new).await.expect("free");
    let lease = make(&mut world, asking(0, 60, parts)).await.expect("free");
    world.run_until(at(10)).await;
    start_instance(&mut world, Some(lease.lease.id)).await;
    world.run_until(at(20)).await;
    start_instance(&mut world, None).await;
    world.run_until(at(90)).await;
    let totals = totals(&world, 10, 90).await;
    assert_eq!(totals.hosts_us, 50 * MINUTE_US);
    assert_eq!(totals.of_hosts.cores_us, 50 * 16 * MINUTE_US);
    assert_eq!(totals.of_hosts.memory_mib_us, 50 * 65_536 * MINUTE_US);
    assert_eq!((totals.slots_us, totals.of_room.cores_us), (200 * MINUTE_US, 400 * MINUTE_US));
    assert_eq!(totals.addresses_us, 50 * MINUTE_US);
    let (inside, beside) = (totals.in_leases, totals.beside_leases);
    assert_eq!((inside.started, beside.started), (1, 1));
    assert!(inside.count_us <= 50 * MINUTE_US && inside.count_us > 49 * MINUTE_US, "{inside:?}");
    assert!(beside.count_us <= 70 * MINUTE_US && beside.count_us > 69 * MINUTE_US, "{beside:?}");
    assert_eq!(inside.amounts.cores_us, 2 * inside.count_us);
    let by = By { project: true, user: true, pool: true, flavor: true, lease: true, lease_type: true };
    let query = Query { periods: vec![window(10, 90)], by, ..Query::default() };
    let groups = world.service.usage().sums(&query).await.expect("works");
    let held = groups.iter().find(|(_, totals)| totals.hosts_us > 0).expect("a host").0;
    assert_eq!(held.pool.as_deref(), Some("freepool"));
    assert_eq!(
        (held.lease, held.project.as_ref().map(|id| id.0.as_str())),
        (Some(lease.lease.id), Some("p"))
    );
}

/// Checks that the recorded usage matches the events and the schedule.
async fn check(world: &World, id: LeaseId, when: &str) {
    let all = events(world, id).await;
    let started = all.iter().find(|event| event.what.name() == "lease.started").expect("it started").at;
    let archive = world.store.export().await.expect("works");
    let spans: Vec<&Span> = archive.usage.opened.iter().filter(|span| span.lease == Some(id)).collect();
    assert!(spans.iter().all(|span| !span.open), "{when}: {spans:?}");
    let us = |from: Timestamp, to: Timestamp| to.duration_since(from).as_micros() as u128;
    let totals = totals(world, 0, 200).await;
    // Two hosts, one of which was replaced, until the end that was set at minute 20.
    assert_eq!(totals.hosts_us, 2 * us(started, at(50)), "{when}");
    assert_eq!(totals.leases_started, 1, "{when}");
    assert_eq!(totals.in_leases.started, 1, "{when}");
    let told = all.iter().map(|event| event.what.name()).collect::<BTreeSet<_>>();
    for what in ["lease.created", "lease.shortened", "lease.reallocated", "lease.ended", "instance.started"] {
        assert!(told.contains(what), "{when}: {what} is not among {told:?}");
    }
}

/// Runs the same history, in which the service dies at its `fault`th commit, before or after the commit is
/// made.
async fn history(fault: usize, kind: Option<StoreFault>) -> (World, LeaseId, u64) {
    let mut world = world(4).await;
    let lease = make(&mut world, asking(1, 60, vec![hosts(2)])).await.expect("free");
    let id = lease.lease.id;
    let begun = world.commits();
    world.store.plan(std::iter::repeat_n(None, fault).chain([kind]));
    let mut broken = false;
    let mut minute = 0;
    let mut shortened = false;
    let mut started = false;
    while minute < 70 {
        minute += 1;
        while world.next(at(minute)).await.is_some() {
            if kind.is_some() && !broken && world.commits() >= begun + fault as u64 {
                // The service loses its memory, and steps under way continue.
                world.run_until(world.now()).await;
                world.restart().await.expect("the store works");
                broken = true;
            }
        }
        if minute >= 5 && !started && status(&world, id) == "ACTIVE" {
            let new = NewInstance {
                name: "web".to_owned(),
                placing: Placing {
                    size: Some(GuestSize { vcpus: 1, memory_mib: 1, disk_gib: 1 }),
                    hint: Some(LeaseHint::Lease(id)),
                    ..Placing::default()
                },
                requeue: false,
            };
            // A client that doesn't learn the outcome checks it.
            started = world.service.instances().create(&caller("p"), new).await.is_ok()
                || !world.store.contents().await.instances.is_empty();
            world.touched();
        }
        if minute == 10 {
            let failed = *hosts_of(&world.service.leases().get(id).expect("there")).last().expect("two");
            world.fleet.happen(Happening::HostFails(failed));
        }
        if minute >= 20 && !shortened {
            // A client that doesn't learn the outcome repeats its request.
            shortened = change(&mut world, id, dates(None, Some(50))).await.is_ok();
        }
    }
    let commits = world.commits() - begun;
    (world, id, commits)
}

#[tokio::test]
async fn usage_c_records_are_complete_wherever_the_service_stops() {
    let (world, id, commits) = history(0, None).await;
    check(&world, id, "without a fault").await;
    assert!(commits > 8, "{commits}");
    for fault in 0..commits as usize {
        for kind in [StoreFault::Before, StoreFault::After] {
            let (world, id, _) = history(fault, Some(kind)).await;
            check(&world, id, &format!("{kind:?} commit {fault}")).await;
        }
    }
}

async fn open_keys(store: &dyn Store) -> Vec<String> {
    let open = store.open_usage().await.expect("works");
    open.iter().map(Span::key).collect()
}

#[tokio::test]
async fn usage_c_what_was_held_before_there_was_accounting_is_counted_from_then_on() {
    let mut world = world(3).await;
    let lease = make(&mut world, asking(0, 60, vec![hosts(2)])).await.expect("free");
    world.run_until(at(10)).await;
    start_instance(&mut world, Some(lease.lease.id)).await;
    let counted = open_keys(&*world.store).await;
    assert_eq!(counted.len(), 4, "the lease, its hosts, its instance: {counted:?}");
    let mut archive = world.store.export().await.expect("works");
    archive.usage = leases::usage::Entries::default();
    let fresh = Arc::new(MemoryStore::new());
    fresh.import(&archive).await.expect("it is empty");
    let parts = Parts {
        store: fresh.clone(),
        fleet: world.fleet.clone(),
        clock: world.clock.clone(),
        ids: Arc::new(SeededIds::new(9)),
        enforcer: None,
    };
    for _ in 0..2 {
        Service::open(parts.clone(), settings()).await.expect("works");
        assert_eq!(open_keys(&*fresh).await, counted);
    }
    let spans = fresh.export().await.expect("works").usage.opened;
    assert!(spans.iter().all(|span| !span.begins && span.window.start() == world.now()), "{spans:?}");
}

#[tokio::test]
async fn usage_b_an_early_end_stops_the_count_at_once() {
    let mut world = world(2).await;
    let lease = make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free");
    world.run_until(at(30)).await;
    world.service.leases().delete(&caller("p"), lease.lease.id).await.expect("there");
    world.touched();
    world.run_until(at(90)).await;
    let started = events(&world, lease.lease.id).await;
    let started = started.iter().find(|event| event.what.name() == "lease.started").expect("it did").at;
    let held = at(30).duration_since(started).as_micros() as u128;
    assert_eq!(totals(&world, 0, 90).await.hosts_us, held);
}

#[tokio::test]
async fn usage_b_is_counted_by_the_free_pool_that_hosts_come_from() {
    let mut world = world(2).await;
    let new = NewFreePool { name: "fast".to_owned(), extra_specs: BTreeMap::new(), end_action: None };
    let operator = simulation::operator();
    let fast = world.service.free_pools().create(&operator, new).await.expect("a new name").pool.id;
    world.service.hosts().remove(&operator, HostId(2)).await.expect("free");
    let which = HostSelector::Id(HostId(2));
    world.service.hosts().add(&operator, which, Vec::new(), fast).await.expect("in no pool");
    world.run_until(at(1)).await;
    let lease = make(&mut world, asking(1, 61, vec![hosts(2)])).await.expect("free");
    world.run_until(at(2)).await;
    for _ in 0..2 {
        start_instance(&mut world, Some(lease.lease.id)).await;
    }
    world.run_until(at(70)).await;
    let by = By { pool: true, ..By::default() };
    let query = Query { periods: vec![window(0, 70)], by, ..Query::default() };
    let groups = world.service.usage().sums(&query).await.expect("works");
    let of = |name: &str| {
        let found = groups.iter().find(|(group, _)| group.pool.as_deref() == Some(name));
        found.map(|(_, totals)| (totals.hosts_us / MINUTE_US, totals.in_leases.started))
    };
    assert_eq!((of("fast"), of("freepool")), (Some((60, 1)), Some((60, 1))), "{groups:?}");
}

#[tokio::test]
async fn usage_is_kept_as_long_as_the_operator_wants() {
    for (kept, left) in [(None, true), (Some(SignedDuration::from_hours(24)), false)] {
        let settings = service::Settings { keep_usage: kept, ..settings() };
        let mut world = crate::terms::world_with(2, settings, None, |fleet| fleet).await;
        make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free");
        world.run_until(at(3 * 24 * 60)).await;
        assert_eq!(totals(&world, 0, 90).await.hosts_us > 0, left, "{kept:?}");
    }
}

#[tokio::test]
async fn cls_12_a_lease_says_what_it_comes_to_and_what_it_has_used() {
    let mut world = world(3).await;
    let new = NewLease { end_action: Some(EndAction::DeleteGuests), ..asking(10, 70, vec![hosts(2)]) };
    let lease = make(&mut world, new).await.expect("free");
    let id = lease.lease.id;
    let usage = async |world: &World| {
        let record = world.service.leases().get(id).expect("there");
        world.service.usage().of_lease(&record).await.expect("works")
    };
    let foreseen = usage(&world).await;
    assert_eq!(foreseen.whole.hosts_us, 120 * MINUTE_US);
    assert_eq!(foreseen.whole.reserved().memory_mib_us, 120 * 65_536 * MINUTE_US);
    assert_eq!(foreseen.so_far, Totals::default());
    world.run_until(at(30)).await;
    start_instance(&mut world, Some(id)).await;
    world.run_until(at(40)).await;
    let going = usage(&world).await;
    let late = 120 * MINUTE_US - going.whole.hosts_us;
    assert!(late < 2 * MINUTE_US, "from when it was ACTIVE: {late}");
    assert_eq!(going.so_far.hosts_us, 60 * MINUTE_US - late);
    assert_eq!(going.so_far.in_leases.started, 1);
    assert!(going.so_far.in_leases.count_us > 9 * MINUTE_US);
    world.run_until(at(80)).await;
    let over = usage(&world).await;
    assert_eq!((over.whole, over.so_far.hosts_us), (over.so_far, going.whole.hosts_us));
}

#[tokio::test]
async fn a_commit_without_leases_or_instances_means_nothing_for_usage() {
    let world = world(1).await;
    let before = world.store.export().await.expect("works").usage;
    assert!(before.is_empty(), "hosts that nobody has are not counted: {before:?}");
    world.store.commit(&Commit::new(at(0))).await.expect("works");
    let all = Window::new(at(-10), at(10)).expect("forwards");
    let query = Query { periods: vec![all], ..Query::default() };
    assert!(world.service.usage().sums(&query).await.expect("works").is_empty());
}

fn is_rfc_3339(date: &serde_json::Value) -> bool {
    date.as_str().is_some_and(|date| date.ends_with('Z') && date.parse::<jiff::Timestamp>().is_ok())
}

/// Notifications about guests of leases.
async fn told_of_guests(world: &World) -> Vec<(String, serde_json::Value)> {
    let all = world
        .service
        .notifications()
        .after(None, 0, 1000)
        .await
        .expect("works")
        .into_iter()
        .map(|told| told.content);
    let of_guests = all.filter(|told| told.event_type.starts_with("lease.instance."));
    let read = |told: &str| serde_json::from_str(told).expect("JSON");
    of_guests.map(|told| (told.event_type, read(&told.payload))).collect()
}

#[tokio::test]
async fn usage_b_guests_that_a_cloud_starts_in_a_lease_count_as_they_are_seen() {
    let mut world = world(2).await;
    let lease = make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free").lease.clone();
    world.run_until(at(10)).await;
    let Allocation::Hosts(has) = &lease.reservations[0].allocation else { panic!("hosts") };
    let host = *has.first().expect("one");
    let starts = |runs_for| Happening::GuestStarts { host, owner: GuestOwner::Lease(lease.id), runs_for };
    world.fleet.happen(starts(Some(SignedDuration::from_mins(20))));
    world.fleet.happen(starts(None));
    world.touched();
    world.run_until(at(20)).await;
    let told = told_of_guests(&world).await;
    assert_eq!(told.len(), 2, "{told:?}");
    for (event, payload) in &told {
        assert_eq!(event, "lease.instance.started");
        assert_eq!(payload["lease_id"], lease.id.to_string());
        assert_eq!(payload["reservation_id"], lease.reservations[0].id.to_string());
        assert_eq!(payload["project_id"], "p");
        assert!(is_rfc_3339(&payload["started_at"]), "{payload}");
    }
    // A restarted service continues the count.
    world.restart().await.expect("it starts");
    world.run_until(at(40)).await;
    let ended = told_of_guests(&world).await.split_off(2);
    assert_eq!(ended.len(), 1, "{ended:?}");
    assert_eq!(ended[0].0, "lease.instance.ended");
    assert!(is_rfc_3339(&ended[0].1["ended_at"]), "{ended:?}");
    // The lease ends ten minutes earlier, and its last guest is gone soon after.
    change(&mut world, lease.id, dates(None, Some(50))).await.expect("shorter");
    world.run_until(at(90)).await;
    assert_eq!(told_of_guests(&world).await.len(), 4, "each came and went once");
    let used = totals(&world, 0, 90).await.in_leases;
    assert_eq!(used.started, 2);
    let minutes = used.count_us / MINUTE_US;
    assert!(
        (59..=61).contains(&minutes),
        "20 and 40 minutes, each seen half a minute late at most: {minutes}"
    );
    let happened = names(&world, lease.id).await;
    let of_guests: Vec<_> = happened.into_iter().filter(|name| name.starts_with("instance.")).collect();
    let often = |name| of_guests.iter().filter(|other| **other == name).count();
    assert_eq!((often("instance.started"), often("instance.deleted"), of_guests.len()), (2, 2, 4));
    assert!(world.store.open_usage().await.expect("works").is_empty());
}
