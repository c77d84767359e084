//! Short constructors for test requests. Times are minutes after the beginning of the simulation.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use fleet::simulated::{Layout, Model, SimulatedFleet};
use jiff::{SignedDuration, Timestamp};
use leases::admission::{Changes, TermsChange};
use leases::ids::{HostId, LeaseId};
use leases::terms::{
    Affinity, FloatingIpsTerms, HostsTerms, InstanceSize, InstancesTerms, ReservationTerms, Terms,
};
use leases::window::Window;
use service::{Created, Enforcer, LeaseChanges, NewLease, ServiceError, Settings};
use simulation::{Setup, World, caller};
use store::{LeaseRecord, Wording};

/// Noon of an arbitrary day, in seconds since 1970.
pub const NOON: i64 = 1_893_499_200;

/// The instant this many minutes after noon.
pub fn at(minute: i64) -> Timestamp {
    Timestamp::from_second(NOON + minute * 60).expect("in range")
}

pub fn window(start: i64, end: i64) -> Window {
    Window::new(at(start), at(end)).expect("forwards")
}

pub fn hosts(count: u32) -> ReservationTerms {
    between(count, count)
}

pub fn between(min: u32, max: u32) -> ReservationTerms {
    ReservationTerms::Hosts(HostsTerms::new(min, max).expect("a range"))
}

/// `amount` slots of `vcpus` CPUs, 1 MiB of memory and 1 GiB of disk each.
pub fn slots(amount: u32, vcpus: u32) -> ReservationTerms {
    ReservationTerms::Instances(InstancesTerms {
        size: InstanceSize::new(vcpus, 1, 1).expect("a size"),
        amount: NonZeroU32::new(amount).expect("some"),
        affinity: Affinity::Any,
        requirement: leases::requirement::Requirement::NONE,
        survives: None,
        extras: None,
    })
}

pub fn addresses(amount: u32) -> ReservationTerms {
    let network = Layout::public_network().id;
    ReservationTerms::FloatingIps(FloatingIpsTerms::new(network, amount, []).expect("terms"))
}

pub fn asking(start: i64, end: i64, reservations: Vec<ReservationTerms>) -> NewLease {
    let wording = vec![Wording::default(); reservations.len()];
    let terms = Terms::new(window(start, end), None, reservations).expect("terms");
    let name = "a lease".to_owned();
    NewLease { asked_at: at(0), name, terms, wording, end_action: None, waits: false }
}

pub fn dates(start: Option<i64>, end: Option<i64>) -> Changes {
    Changes { start: start.map(at), end: end.map(at), ..Changes::default() }
}

pub fn of_first(record: &LeaseRecord, change: TermsChange) -> Changes {
    Changes { reservations: vec![(record.lease.reservations[0].id, change)], ..Changes::default() }
}

/// Changes a lease on behalf of project `p`.
pub async fn change(
    world: &mut World,
    id: LeaseId,
    changes: Changes,
) -> Result<Arc<LeaseRecord>, ServiceError> {
    let changes = LeaseChanges { asked_at: world.now(), changes, wording: BTreeMap::new() };
    let changed = world.service.leases().update(&caller("p"), id, changes).await;
    world.touched();
    changed
}

pub fn settings() -> Settings {
    // Simulated time doesn't pass during a call, so it must not wait.
    Settings { delete_wait: Duration::ZERO, ..Settings::default() }
}

/// A world with `hosts` hosts of 16 CPUs and nothing else.
pub async fn world(hosts: u32) -> World {
    world_with(hosts, settings(), None, |fleet| fleet).await
}

pub async fn world_with(
    hosts: u32,
    settings: Settings,
    enforcer: Option<Arc<dyn Enforcer>>,
    ways: impl FnOnce(SimulatedFleet) -> SimulatedFleet,
) -> World {
    let layout = Layout::uniform(1, hosts, &Model::of_size(16, 65_536, 1000));
    let setup = Setup { seed: 1, begins: at(0), layout: layout.clone(), settings, enforcer };
    let mut world = World::new(setup, ways).await.expect("an empty store");
    world.take_on(&layout).await.expect("taken on");
    world.settle().await;
    world
}

/// Creates a lease for project `p`, requested now.
pub async fn make(world: &mut World, new: NewLease) -> Result<Arc<LeaseRecord>, ServiceError> {
    let new = NewLease { asked_at: world.now(), ..new };
    let made = world.service.leases().create(&caller("p"), new, None).await;
    world.touched();
    made.map(|Created { lease, .. }| lease)
}

/// The status of a lease, or "gone".
pub fn status(world: &World, id: LeaseId) -> &'static str {
    world.service.leases().get(id).map_or("gone", |record| record.lease.status.name())
}

pub fn hosts_of(record: &LeaseRecord) -> Vec<HostId> {
    record.lease.reservations.iter().flat_map(|reservation| reservation.allocation.hosts()).collect()
}

pub fn minutes(number: i64) -> SignedDuration {
    SignedDuration::from_mins(number)
}

/// Text of the conflict that the call must have failed with.
#[track_caller]
pub fn conflict<T>(answer: Result<T, ServiceError>) -> String {
    match answer {
        Err(ServiceError::Conflict(text)) => text,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("accepted"),
    }
}
