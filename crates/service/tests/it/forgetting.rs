//! Leases that ended long ago are removed from memory, lists and the store, but their usage is kept.

use fleet::simulated::{Layout, Model};
use jiff::SignedDuration;
use leases::ids::LeaseId;
use leases::project::ProjectId;
use leases::status::LeaseStatus;
use leases::usage::Query;
use service::{IdempotencyKey, LeaseFilter, NotFound, ServiceError, Settings};
use simulation::{Setup, World, caller};
use store::{AuditFilter, Commit, Holder, LeaseRecord, Store, UsageFilter, Version, Write};

use crate::terms::{asking, at, hosts, make, settings, status, window};

const KEPT: SignedDuration = SignedDuration::from_hours(4);

fn forgetting(kept: Option<SignedDuration>) -> Settings {
    Settings { keep_leases: kept, ..settings() }
}

async fn world(services: usize, kept: Option<SignedDuration>) -> World {
    let layout = Layout::uniform(1, 3, &Model::of_size(16, 65_536, 1000));
    let setup =
        Setup { seed: 1, begins: at(0), layout: layout.clone(), settings: forgetting(kept), enforcer: None };
    let clocks = vec![SignedDuration::ZERO; services];
    let mut world = World::shared(setup, &clocks, |fleet| fleet).await.expect("opens");
    world.take_on(&layout).await.expect("taken on");
    world.settle().await;
    world
}

/// Commits copies of a lease with these numbers and this status, bypassing the service.
async fn put(world: &mut World, like: &LeaseRecord, numbers: std::ops::Range<u128>, status: LeaseStatus) {
    let record = |number| {
        let mut record = LeaseRecord { version: Version::FIRST, ..like.clone() };
        record.lease.id = LeaseId(number);
        record.lease.reservations.clear();
        record.wording.clear();
        record.lease.status = status;
        record
    };
    let writes = numbers.map(|number| Write::Lease { record: Box::new(record(number)), expected: None });
    let commit = Commit { writes: writes.collect(), ..Commit::new(world.now()) };
    world.store_of(0).commit(&commit).await.expect("the store works");
    world.service.refresh().await.expect("the store works");
    world.touched();
}

#[tokio::test]
async fn a_lease_that_ended_long_ago_is_gone_as_if_it_was_deleted_and_its_usage_stays() {
    let mut world = world(1, Some(KEPT)).await;
    let key = IdempotencyKey { key: "k".to_owned(), fingerprint: "f".to_owned() };
    let asked = || asking(0, 60, vec![hosts(1)]);
    let made = world.service.leases().create(&caller("p"), asked(), Some(key.clone())).await.expect("free");
    let id = made.lease.lease.id;
    let going = make(&mut world, asking(0, 60 * 24, vec![hosts(1)])).await.expect("free").lease.id;
    world.touched();
    world.run_until(at(60 + 239)).await;
    assert_eq!((status(&world, id), status(&world, going)), ("TERMINATED", "ACTIVE"));
    let query = Query { periods: vec![window(0, 60 * 24)], lease: Some(id), ..Query::default() };
    let used = world.service.usage().sums(&query).await.expect("works");
    assert!(!used.is_empty());

    world.run_until(at(60 + 280)).await;
    assert_eq!((status(&world, id), status(&world, going)), ("gone", "ACTIVE"));
    let all = world.service.leases().all(&LeaseFilter::default());
    assert_eq!(all.iter().map(|record| record.lease.id).collect::<Vec<_>>(), [going]);
    assert_eq!(world.service.usage().sums(&query).await.expect("works"), used);
    let filter = UsageFilter { lease: Some(id), ..UsageFilter::default() };
    let events = world.service.usage().events(&filter, 0, 100).await.expect("works");
    assert_eq!(events.last().map(|(_, event)| event.what.name()), Some("lease.deleted"));
    let told = world.service.notifications().after(None, 0, 1000).await.expect("works");
    let mut of_it = told.iter().filter(|told| told.content.lease == Some(id));
    assert_eq!(of_it.next_back().map(|told| told.content.event_type.as_str()), Some("lease.delete"));
    // The deletion has no audit record, because no user did it.
    let filter = AuditFilter { object: Some(id.to_string()), ..AuditFilter::default() };
    let audit = world.service.audit().page(&filter, None, 100).await.expect("works");
    assert_eq!(audit.iter().map(|(_, record)| record.action.as_str()).collect::<Vec<_>>(), ["lease.create"]);
    // Repeating the request doesn't create another lease.
    let again = world.service.leases().create(&caller("p"), asked(), Some(key)).await;
    assert!(matches!(again, Err(ServiceError::NotFound(NotFound::Lease(gone))) if gone == id), "{again:?}");
    // The lease doesn't come back.
    world.restart().await.expect("opens");
    assert_eq!(world.service.leases().all(&LeaseFilter::default()).len(), 1);
}

#[tokio::test]
async fn without_a_limit_leases_are_kept() {
    let mut world = world(1, None).await;
    let id = make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free").lease.id;
    world.run_until(at(60 * 24 * 20)).await;
    assert_eq!(status(&world, id), "TERMINATED");
}

#[tokio::test]
async fn nothing_is_forgotten_that_is_not_over() {
    let mut world = world(1, Some(KEPT)).await;
    let lease =
        make(&mut world, asking(60 * 24 * 30, 60 * 24 * 30 + 60, vec![hosts(1)])).await.expect("free");
    let begins = [LeaseStatus::Pending, LeaseStatus::Error];
    for (status, number) in begins.into_iter().zip([1000, 2000]) {
        put(&mut world, &lease, number..number + 1, status).await;
    }
    world.run_until(at(60 * 24 * 10)).await;
    assert_eq!(status(&world, lease.lease.id), "PENDING");
    assert!(world.service.leases().get(LeaseId(1000)).is_some());
    // This lease failed and its end was never carried out, so its owner must still see it.
    assert!(world.service.leases().get(LeaseId(2000)).is_some());
}

#[tokio::test]
async fn many_that_ended_long_ago_are_forgotten_a_part_at_a_time_and_leases_start_on_time_meanwhile() {
    let mut world = world(1, Some(KEPT)).await;
    let over = make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free").lease.id;
    world.run_until(at(61)).await;
    let over = world.service.leases().get(over).expect("it is over");
    assert_eq!(over.lease.status, LeaseStatus::Terminated);
    put(&mut world, &over, 1..2001, LeaseStatus::Terminated).await;
    let due = make(&mut world, asking(60 + 240, 60 + 290, vec![hosts(1)])).await.expect("free").lease.id;
    world.run_until(at(60 + 239)).await;
    let count = |world: &World| world.service.leases().all(&LeaseFilter::default()).len();
    assert_eq!(count(&world), 2002);
    let (mut before, mut started) = (count(&world), false);
    while let Some(_happened) = world.next(at(60 + 280)).await {
        let now = count(&world);
        assert!(before - now <= 200, "{} at once", before - now);
        before = now;
        started |= status(&world, due) == "ACTIVE" && world.now() < at(60 + 241);
    }
    assert!(started);
    assert_eq!(count(&world), 1);
}

#[tokio::test]
async fn a_project_keeps_its_last_ten_thousand_leases_that_are_over() {
    let mut world = world(1, Some(SignedDuration::from_hours(24 * 90))).await;
    let over = make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free").lease.id;
    world.run_until(at(61)).await;
    let over = world.service.leases().get(over).expect("it is over");
    let mut others = LeaseRecord::clone(&over);
    others.lease.owner.project = ProjectId("others".into());
    put(&mut world, &over, 1..10_003, LeaseStatus::Terminated).await;
    put(&mut world, &others, 20_000..20_100, LeaseStatus::Terminated).await;
    world.run_until(at(90)).await;
    let all = world.service.leases().all(&LeaseFilter::default());
    let of = |project: &str| all.iter().filter(|record| record.lease.owner.project.0 == *project).count();
    assert_eq!((of("p"), of("others")), (10_000, 100));
}

#[tokio::test]
async fn of_several_services_one_forgets_and_the_others_learn_of_it() {
    let mut world = world(2, Some(KEPT)).await;
    let id = make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free").lease.id;
    world.run_until(at(60 + 300)).await;
    for service in 0..2 {
        world.service_of(service).refresh().await.expect("the store works");
        assert!(world.service_of(service).leases().get(id).is_none(), "service {service}");
    }
    let told = world.service.notifications().after(None, 0, 1000).await.expect("works");
    let gone = told.iter().filter(|told| told.content.event_type == "lease.delete");
    assert_eq!(gone.count(), 1, "once");
}

#[tokio::test]
async fn a_clock_that_was_set_back_forgets_nothing_and_goes_on_later() {
    let mut world = world(1, Some(KEPT)).await;
    let id = make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free").lease.id;
    world.run_until(at(61)).await;
    let over = world.service.leases().get(id).expect("it is over");
    // As if the clock had been ahead when the lease ended.
    let mut later = LeaseRecord { version: over.version.next(), ..LeaseRecord::clone(&over) };
    later.updated_at = Some(at(60 * 24));
    let writes = vec![Write::Lease { record: Box::new(later), expected: Some(over.version) }];
    world.store_of(0).commit(&Commit { writes, ..Commit::new(at(61)) }).await.expect("the store works");
    world.service.refresh().await.expect("the store works");
    world.run_until(at(60 * 24)).await;
    assert_eq!(status(&world, id), "TERMINATED");
    world.run_until(at(60 * 29)).await;
    assert_eq!(status(&world, id), "gone");
}

#[tokio::test]
async fn whoever_does_not_lead_forgets_nothing() {
    let mut world = world(1, Some(KEPT)).await;
    let id = make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free").lease.id;
    world.run_until(at(60)).await;
    let (other, now) = (Holder("other".to_owned()), world.now());
    // By then, this service's own term is over.
    let later = now + SignedDuration::from_hours(1);
    assert!(world.store_of(0).lead("tidying", &other, later, later + KEPT * 2).await.expect("works"));
    world.run_until(at(60 + 300)).await;
    assert_eq!(status(&world, id), "TERMINATED");
}
