//! Size limits of transactions: requests beyond them are rejected before they are decided, and all other work
//! continues in parts.

use std::collections::{BTreeMap, BTreeSet};

use fleet::simulated::{Layout, Model};
use fleet::{Inventory, Isolation};
use futures::future::join_all;
use leases::host::Host;
use leases::housekeeping::HousekeepingRules;
use leases::ids::HostId;
use leases::maintenance::MaintenanceWish;
use leases::project::ProjectId;
use leases::terms::ReservationTerms;
use service::{
    HostUpdate, LeaseChanges, LeaseFilter, NewLease, NewMaintenance, NewSeries, ServiceError, Settings,
};
use simulation::{Setup, StoreFault, World, caller, operator};
use store::{Commit, HostRecord, Store, TooLarge, Version, Wording, Write, WriteLimits};

use crate::terms::{
    asking, at, between, change, dates, hosts, hosts_of, make, minutes, settings, status, window, world,
    world_with,
};

fn worded(count: usize, length: usize, terms: &ReservationTerms) -> NewLease {
    let wording = Wording { resource_properties: Some("x".repeat(length).into()), ..Wording::default() };
    NewLease { wording: vec![wording; count], ..asking(0, 30, vec![terms.clone(); count]) }
}

fn series(lease: NewLease, times: i64) -> NewSeries {
    let windows = (0..times).map(|number| window(60 * number, 60 * number + 30)).collect();
    NewSeries { lease, windows, skips: false }
}

async fn made(world: &World, new: &NewSeries) -> Result<usize, ServiceError> {
    let made = world.service.leases().create_series(&caller("p"), new, None).await;
    made.map(|series| series.leases.len()).map_err(|missing| *missing.error)
}

fn too_large<T>(answer: Result<T, ServiceError>) -> TooLarge {
    match answer {
        Err(ServiceError::TooLarge(why)) => why,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("accepted"),
    }
}

#[tokio::test]
async fn text_of_a_lease_is_bounded_whatever_the_request() {
    let mut world = world(8).await;
    let new = worded(5, 16_000, &hosts(1));
    let text = |why| matches!(why, TooLarge::LeaseText { size: 80_000.., limit: 65_536 });
    assert!(text(too_large(make(&mut world, new.clone()).await)));
    assert!(text(too_large(world.service.leases().preview(&caller("p"), &new).await)));
    assert!(text(too_large(made(&world, &series(new, 2)).await)));
    let lease = make(&mut world, worded(4, 16_000, &hosts(1))).await.expect("it fits");
    // A change adds to the existing text.
    let longer = Wording { hypervisor_properties: Some("x".repeat(16_000).into()), ..Wording::default() };
    let wording = BTreeMap::from([(lease.lease.reservations[0].id, longer)]);
    let changes = LeaseChanges { asked_at: at(0), changes: dates(None, None), wording };
    let changed = world.service.leases().update(&caller("p"), lease.lease.id, changes).await;
    assert!(text(too_large(changed)));
    change(&mut world, lease.lease.id, dates(None, Some(40))).await.expect("it has no more text than before");
}

#[tokio::test]
async fn a_series_that_writes_more_than_a_transaction_is_rejected_before_it_is_decided() {
    let writes = WriteLimits { bytes: 500_000, ..WriteLimits::default() };
    let world = world_with(1, Settings { writes, ..settings() }, None, |fleet| fleet).await;
    let why = too_large(made(&world, &series(worded(4, 250, &hosts(1)), 200)).await);
    assert!(matches!(why, TooLarge::Bytes { size: 500_000..600_000, limit: 500_000 }), "{why}");
    let world = self::world(1).await;
    // There is only one host, so a decision would be a refusal.
    let new = series(asking(0, 30, vec![hosts(400)]), 60);
    let why = too_large(made(&world, &new).await);
    assert!(matches!(why, TooLarge::Rows { size: 24_000.., limit: 20_000 }), "{why}");
    let preview = world.service.leases().preview_series(&caller("p"), &new).await;
    assert!(matches!(*preview.expect_err("too large").error, ServiceError::TooLarge(_)));
    assert_eq!(world.service.leases().all(&LeaseFilter::default()).len(), 0);
}

#[tokio::test]
async fn ordinary_requests_are_decided() {
    let mut world = world(1).await;
    // A year of weekly leases of 100 hosts, with an expression of a few words.
    let refused = made(&world, &series(worded(1, 200, &hosts(100)), 52)).await;
    assert!(matches!(refused, Err(ServiceError::Refused(_))), "{refused:?}");
    // All leases have the same text, which is stored once.
    let refused = made(&world, &series(worded(4, 16_000, &hosts(1)), 200)).await;
    assert!(matches!(refused, Err(ServiceError::Refused(_))), "{refused:?}");
    let refused = make(&mut world, asking(0, 30, vec![hosts(1000)])).await;
    assert!(matches!(refused, Err(ServiceError::Refused(_))), "{refused:?}");
    make(&mut world, asking(0, 30, vec![between(1, 1_000_000)])).await.expect("as many as there are");
}

#[tokio::test]
async fn what_a_request_writes_in_the_end_is_bounded_too() {
    let writes = WriteLimits { rows: 60, ..WriteLimits::default() };
    let mut world = world_with(100, Settings { writes, ..settings() }, None, |fleet| fleet).await;
    let why = too_large(make(&mut world, asking(0, 30, vec![between(1, 100)])).await);
    assert!(matches!(why, TooLarge::Rows { limit: 60, .. }), "{why}");
    let lease = make(&mut world, asking(10, 30, vec![hosts(50)])).await.expect("it fits").lease.id;
    let settings = Settings { writes: WriteLimits { rows: 10, ..writes }, ..settings() };
    world.restart_with(settings).await.expect("the store works");
    world.service.leases().delete(&caller("p"), lease).await.expect("never refused");
}

/// A fleet with this many hosts, recorded only with their names.
async fn fleet_of(count: u32, settings: Settings) -> World {
    let layout = Layout::uniform(1, count, &Model::of_size(16, 65_536, 1000));
    let setup = Setup { seed: 1, begins: at(0), layout, settings, enforcer: None };
    let world = World::new(setup, |fleet| fleet).await.expect("an empty store");
    let machines = world.wait_for(world.fleet.machines()).await.expect("it works");
    let mut commit = Commit::new(at(0));
    let adopted = join_all(machines.iter().map(|machine| world.fleet.adopt(machine.id)));
    assert!(world.wait_for(adopted).await.iter().all(Result::is_ok));
    for machine in machines {
        let host = Host::new(machine.id, &machine.name, 0, 0, 0);
        let record = HostRecord { host, version: Version::FIRST, created_at: at(0), updated_at: None };
        commit.writes.push(Write::Host { record: Box::new(record), expected: None });
    }
    world.store.commit(&commit).await.expect("an empty store");
    world.store.measure().await;
    world
}

fn check_sizes(world: &World, limits: WriteLimits, least: usize) {
    let sizes = world.store.sizes();
    assert!(sizes.len() >= least, "{} commits", sizes.len());
    for size in sizes {
        assert_eq!(limits.check(size), Ok(()));
    }
}

#[tokio::test]
async fn a_fleet_of_10_000_hosts_is_recorded_and_maintained_in_parts_that_go_on_after_a_crash() {
    let writes = WriteLimits { rows: 4000, ..WriteLimits::default() };
    let operators = ProjectId("operators".into());
    let housekeeping =
        HousekeepingRules { maintenance_project: Some(operators), ..HousekeepingRules::default() };
    let mut world = fleet_of(10_000, Settings { writes, housekeeping, ..settings() }).await;
    world.touched();
    world.settle().await;
    let seen = world.service.hosts().all();
    assert!(seen.len() == 10_000 && seen.iter().all(|record| record.host.vcpus == 16));
    check_sizes(&world, writes, 3);
    let (length, margin) = (minutes(30), minutes(10));
    let wish = MaintenanceWish { length, margin, not_before: at(60), before: at(500) };
    let hosts = (1..=10_000).map(|number: u64| number.to_string()).collect();
    let new = NewMaintenance { hosts, free_pool: None, wish };
    world.store.plan([None, None, None, Some(StoreFault::Before)]);
    world.service.maintenance().book(&operator(), &new).await.expect_err("it breaks off");
    let some = world.service.leases().all(&LeaseFilter::default()).len();
    assert!(0 < some && some < 10_000, "{some}");
    world.restart().await.expect("the store works");
    let booked = world.service.maintenance().book(&operator(), &new).await.expect("it goes on");
    let leases = world.service.leases().all(&LeaseFilter::default());
    let maintained: BTreeSet<HostId> =
        leases.iter().flat_map(|record| crate::terms::hosts_of(record)).collect();
    assert_eq!((booked.len(), leases.len(), maintained.len()), (10_000, 10_000, 10_000));
    check_sizes(&world, writes, 10);
}

#[tokio::test]
async fn leases_that_start_together_start_in_parts_of_a_transaction() {
    let writes = WriteLimits::default();
    let mut world = fleet_of(20_000, Settings { writes, ..settings() }).await;
    world.touched();
    world.settle().await;
    let mut leases = Vec::new();
    for _ in 0..20 {
        leases.push(make(&mut world, asking(10, 60, vec![hosts(1000)])).await.expect("free").lease.id);
    }
    world.run_until(at(20)).await;
    assert!(leases.iter().all(|id| status(&world, *id) == "ACTIVE"));
    world.restart().await.expect("the store works");
    world.run_until(at(70)).await;
    assert!(leases.iter().all(|id| status(&world, *id) == "TERMINATED"));
    check_sizes(&world, writes, 4);
    assert_eq!(world.fleet.violations(), []);
}

#[tokio::test]
async fn leases_leave_a_host_that_is_closed_or_removed_in_parts_of_a_transaction() {
    let writes = WriteLimits { rows: 40, ..WriteLimits::default() };
    let mut world = world_with(2, Settings { writes, ..settings() }, None, |fleet| fleet).await;
    let mut on_first = 0;
    for number in 1..=60 {
        let lease =
            make(&mut world, asking(10 * number, 10 * number + 5, vec![hosts(1)])).await.expect("free");
        on_first += usize::from(hosts_of(&lease) == [HostId(1)]);
    }
    assert!(on_first > 40, "{on_first}");
    let there = |world: &World, host| {
        let leases = world.service.leases().all(&LeaseFilter::default());
        leases.iter().filter(|record| hosts_of(record).contains(&host)).count()
    };
    world.store.measure().await;
    let closed = HostUpdate { reservable: Some(false), ..HostUpdate::default() };
    world.service.hosts().update(&operator(), HostId(1), closed).await.expect("never refused");
    world.settle().await;
    assert_eq!((there(&world, HostId(1)), there(&world, HostId(2))), (0, 60));
    check_sizes(&world, writes, 4);
    let opened = HostUpdate { reservable: Some(true), ..HostUpdate::default() };
    world.service.hosts().update(&operator(), HostId(1), opened).await.expect("never refused");
    world.settle().await;
    world.store.plan([None, None, Some(StoreFault::Before)]);
    world.service.hosts().remove_from_pool(&operator(), HostId(2)).await.expect_err("it breaks off");
    let left = there(&world, HostId(2));
    assert!(0 < left && left < 60, "{left}");
    world.restart().await.expect("the store works");
    world.service.hosts().remove_from_pool(&operator(), HostId(2)).await.expect("never refused");
    assert_eq!((there(&world, HostId(1)), there(&world, HostId(2))), (60, 0));
    assert!(world.service.hosts().get(HostId(2)).is_none());
    check_sizes(&world, writes, 8);
}

#[tokio::test]
async fn a_series_is_deleted_in_one_transaction_or_in_parts_of_the_allowed_size() {
    let mut world = world(10).await;
    for (rows, least, most) in [(20_000, 1, 1), (150, 2, 5)] {
        let new = series(asking(0, 30, vec![hosts(10)]), 20);
        let made = world.service.leases().create_series(&caller("p"), &new, None).await;
        let id = made.expect("free").id;
        let writes = WriteLimits { rows, ..WriteLimits::default() };
        world.restart_with(Settings { writes, ..settings() }).await.expect("the store works");
        world.store.measure().await;
        world.service.leases().delete_series(&caller("p"), id).await.expect("there");
        assert!(world.service.leases().all(&LeaseFilter::default()).is_empty());
        check_sizes(&world, writes, least);
        assert!(world.store.sizes().len() <= most, "{:?}", world.store.sizes());
    }
}
