//! The service changes neither store nor fleet while the clock is wrong, or while the fleet is held for
//! leases that the store never knew.

use std::sync::Arc;

use ambient::{ManualClock, SeededIds};
use fleet::simulated::{Layout, SimulatedFleet};
use fleet::{Fleet, Inventory as _, Keeper};
use jiff::SignedDuration;
use leases::free_pool::FreePool;
use leases::ids::{HostId, LeaseId};
use leases::plan::Place;
use service::{Acceptable, Drift, NotReady, OpenError, Parts, Service, ServiceError};
use simulation::operator;
use store::memory::MemoryStore;
use store::{Store, StoreError};

use crate::terms::{asking, at, hosts, settings};

const ONE: HostId = HostId(1);

struct Site {
    clock: Arc<ManualClock>,
    fleet: Arc<SimulatedFleet>,
    service: Arc<Service>,
}

async fn open(
    clock: &Arc<ManualClock>,
    fleet: &Arc<SimulatedFleet>,
    store: Arc<dyn Store>,
) -> Result<Arc<Service>, OpenError> {
    let fleet: Arc<dyn Fleet> = fleet.clone();
    let ids = Arc::new(SeededIds::new(7));
    let parts = Parts { store, fleet, clock: clock.clone(), ids, enforcer: None };
    Service::open(parts, settings()).await
}

/// Runs some cycles with all their tasks.
async fn go_on(service: &Service) {
    for _ in 0..12 {
        for task in service.execution().cycle().await.tasks {
            let done = service.execution().perform(task).await;
            service.execution().note(done);
        }
    }
}

/// A host that is leased from noon for an hour, at a minute past noon.
async fn held(store: Arc<dyn Store>) -> (Site, LeaseId) {
    let clock = Arc::new(ManualClock::watched(at(-1)));
    let fleet = Arc::new(SimulatedFleet::new(clock.clone(), 1, &Layout::varied(1, 2)));
    let service = open(&clock, &fleet, store).await.expect("opens");
    let which = service::HostSelector::Id(ONE);
    service.hosts().add(&operator(), which, Vec::new(), FreePool::DEFAULT).await.expect("taken on");
    let lease = service.leases().create(&operator(), asking(0, 60, vec![hosts(1)]), None).await;
    let lease = lease.expect("free").lease.lease.id;
    go_on(&service).await;
    clock.advance(SignedDuration::from_mins(2));
    go_on(&service).await;
    let site = Site { clock, fleet, service };
    assert_eq!(site.status(lease), "ACTIVE");
    (site, lease)
}

impl Site {
    fn status(&self, lease: LeaseId) -> &'static str {
        self.service.leases().get(lease).expect("there").lease.status.name()
    }

    fn place(&self) -> Place {
        self.fleet.look(ONE).expect("taken on").place
    }

    async fn kinds(&self) -> Vec<&'static str> {
        self.service.repairs().drift(None).await.expect("the fleet answers").iter().map(Drift::kind).collect()
    }
}

fn suspended<T>(result: &Result<T, ServiceError>) -> bool {
    matches!(result, Err(ServiceError::Store(StoreError::Suspended(_))))
}

async fn is_suspended(service: &Arc<Service>) -> bool {
    let ready = service.ready().await;
    matches!(ready, Err(NotReady::Store(error)) if matches!(*error, StoreError::Suspended(_)))
}

#[tokio::test]
async fn a_clock_that_jumps_ends_no_lease() {
    for by in
        [SignedDuration::from_hours(1), SignedDuration::from_hours(87_600), SignedDuration::from_hours(-1)]
    {
        let (site, lease) = held(Arc::new(MemoryStore::new())).await;
        site.clock.put_wrong(by);
        go_on(&site.service).await;
        assert_eq!((site.status(lease), site.kinds().await), ("ACTIVE", vec!["wrong_clock"]));
        assert!(is_suspended(&site.service).await && matches!(site.place(), Place::Held(_)));
        let new = asking(120, 180, vec![hosts(1)]);
        assert!(suspended(&site.service.leases().create(&operator(), new, None).await));
        site.clock.put_wrong(-by);
        go_on(&site.service).await;
        assert_eq!((site.status(lease), site.kinds().await), ("ACTIVE", Vec::new()), "it is right again");
        site.clock.advance(SignedDuration::from_hours(1));
        go_on(&site.service).await;
        assert_eq!(site.status(lease), "TERMINATED", "an hour has passed");
    }
}

#[tokio::test]
async fn a_clock_that_is_accepted_counts() {
    let (site, lease) = held(Arc::new(MemoryStore::new())).await;
    site.clock.put_wrong(SignedDuration::from_hours(1));
    go_on(&site.service).await;
    assert_eq!(site.status(lease), "ACTIVE");
    site.service.accept(&operator(), Acceptable::Clock).await.expect("accepted");
    go_on(&site.service).await;
    assert_eq!((site.status(lease), site.kinds().await), ("TERMINATED", Vec::new()));
}

#[tokio::test]
async fn a_clock_that_is_far_from_the_newest_record_counts_once_it_is_accepted() {
    let year = SignedDuration::from_hours(24 * 365);
    for (off, right) in [(-year, false), (year * 10, false), (year, true)] {
        let store = Arc::new(MemoryStore::new());
        let (mut site, lease) = held(store.clone()).await;
        site.clock = Arc::new(ManualClock::watched(at(1) + off));
        site.service = open(&site.clock, &site.fleet, store).await.expect("opens, and says so");
        assert_eq!(is_suspended(&site.service).await, !right, "{off}");
        if !right {
            go_on(&site.service).await;
            assert_eq!((site.status(lease), site.kinds().await), ("ACTIVE", vec!["wrong_clock"]), "{off}");
            site.service.accept(&operator(), Acceptable::Clock).await.expect("accepted");
            // Answers about readiness can be one second old.
            site.clock.advance(SignedDuration::from_secs(1));
            assert!(!is_suspended(&site.service).await);
        }
    }
}

#[tokio::test]
async fn an_empty_store_touches_nothing_that_a_fleet_holds_before_it_is_told_to() {
    // With a driver that records which store its fleet belongs to, and without.
    for kept in [true, false] {
        let (mut site, _) = held(Arc::new(MemoryStore::new())).await;
        let before = site.place();
        if !kept {
            site.fleet.set_keeper(Keeper::default()).await.expect("kept");
        }
        let empty = Arc::new(MemoryStore::new());
        site.service = open(&site.clock, &site.fleet, empty.clone()).await.expect("opens");
        let beside = open(&site.clock, &site.fleet, empty).await.expect("opens");
        go_on(&site.service).await;
        go_on(&beside).await;
        assert!(is_suspended(&beside).await);
        assert_eq!((site.place(), site.kinds().await), (before, vec!["foreign_fleet"]));
        let said = site.service.ready().await.expect_err("nothing may be changed").to_string();
        let host = &site.fleet.machines().await.expect("answers")[0].name;
        assert!(!said.contains(host.as_str()), "everybody may read it: {said}");
        let said = site.service.repairs().drift(None).await.expect("the fleet answers")[0].to_string();
        assert!(said.contains(host.as_str()), "operators may know: {said}");
        assert!(
            suspended(&site.service.repairs().repair(&operator(), None).await.map(drop))
                || site.place() == before
        );
        let two = service::HostSelector::Id(HostId(2));
        let taken_on = site.service.hosts().add(&operator(), two, Vec::new(), FreePool::DEFAULT).await;
        assert!(suspended(&taken_on));
        assert_eq!(site.place(), before);
        site.service.accept(&operator(), Acceptable::Fleet).await.expect("accepted");
        // The second service checks again in its next round.
        site.clock.advance(SignedDuration::from_mins(1));
        go_on(&beside).await;
        assert!(!is_suspended(&beside).await, "whichever service was told");
        if !kept {
            site.fleet.set_keeper(Keeper::default()).await.expect("kept");
        }
        site.service = beside;
        assert_eq!(site.kinds().await, ["stray"]);
        assert_eq!(site.service.repairs().repair(&operator(), None).await.expect("repaired"), []);
        assert_eq!(site.fleet.look(ONE), None);
    }
}

#[tokio::test]
async fn a_new_store_beside_a_fleet_that_nobody_holds_begins_at_once() {
    let (mut site, lease) = held(Arc::new(MemoryStore::new())).await;
    site.service.leases().delete(&operator(), lease).await.expect("deleted");
    go_on(&site.service).await;
    assert_eq!(site.place(), Place::FreePool);
    site.service = open(&site.clock, &site.fleet, Arc::new(MemoryStore::new())).await.expect("opens");
    go_on(&site.service).await;
    assert_eq!(site.kinds().await, ["stray"]);
    assert!(!is_suspended(&site.service).await);
}

#[tokio::test]
async fn the_store_that_a_fleet_belongs_to_is_not_doubted() {
    let store = Arc::new(MemoryStore::new());
    let (mut site, lease) = held(store.clone()).await;
    site.service = open(&site.clock, &site.fleet, store).await.expect("opens");
    go_on(&site.service).await;
    assert_eq!((site.status(lease), site.kinds().await), ("ACTIVE", Vec::new()));
    let keeper = site.fleet.keeper().await.expect("answers").expect("kept");
    assert!(keeper.fence > 0);
}
