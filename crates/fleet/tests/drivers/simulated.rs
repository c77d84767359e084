//! The simulated fleet, with immediate and with lifelike timing.

use std::sync::Arc;

use ambient::{Clock, ManualClock};
use async_trait::async_trait;
use fleet::conformance::{self, Subject};
use fleet::simulated::{BackgroundLoad, Between, Faults, Happening, Layout, SimulatedFleet, Timing};
use fleet::{Fleet, Isolation as _};
use jiff::{SignedDuration, Timestamp};
use leases::ids::{GuestId, HostId};
use leases::plan::GuestOwner;
use leases::status::LeaseStatus;

use crate::conductor::{Conductor, address, at, hosts, lease, slots};

/// A clock that jumps to the time of each sleep.
#[derive(Debug)]
struct Leaping(ManualClock);

#[async_trait]
impl Clock for Leaping {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    async fn sleep_until(&self, instant: Timestamp) {
        if self.0.now() < instant {
            self.0.set(instant);
        }
    }
}

struct Simulated {
    clock: Arc<Leaping>,
    fleet: SimulatedFleet,
}

const BOOT: i64 = 30;

fn simulated(timing: Timing, seed: u64) -> Simulated {
    let clock = Arc::new(Leaping(ManualClock::new(Timestamp::UNIX_EPOCH)));
    let timing = Timing { boot: Between::secs(BOOT, BOOT), ..timing };
    let fleet = SimulatedFleet::new(clock.clone(), seed, &Layout::of_machines(3)).with_timing(timing);
    Simulated { clock, fleet }
}

#[async_trait]
impl Subject for Simulated {
    fn fleet(&self) -> &dyn Fleet {
        &self.fleet
    }

    async fn guest_appears(&self, host: HostId, owner: GuestOwner) -> GuestId {
        let guest = self.fleet.start_guest(host, owner, None).expect("nobody else has the host");
        self.guests_land().await;
        guest
    }

    async fn guest_sets_out(&self, host: HostId) -> GuestId {
        self.fleet.start_guest(host, GuestOwner::Preemptible, None).expect("in the free pool")
    }

    async fn guests_land(&self) {
        self.clock.0.advance(SignedDuration::from_secs(BOOT));
    }

    async fn guest_ends(&self, guest: GuestId) {
        self.fleet.happen(Happening::GuestEnds(guest));
    }

    async fn wait(&self) {
        self.clock.0.advance(SignedDuration::from_secs(1));
    }
}

#[tokio::test]
async fn a_fleet_where_everything_happens_at_once_conforms() {
    Box::pin(conformance::all(|| async { simulated(Timing::IMMEDIATE, 1) })).await;
}

#[tokio::test]
async fn a_fleet_where_things_take_time_conforms() {
    for seed in 0..10 {
        Box::pin(conformance::all(|| async { simulated(Timing::LIFELIKE, seed) })).await;
    }
}

/// Runs consecutive leases on the same hosts, with background load, failing hosts, and rejected, lost, late
/// or duplicate calls. A calm hour follows.
async fn run_leases(seed: u64) {
    let clock = Arc::new(Leaping(ManualClock::new(at(0))));
    let fleet = SimulatedFleet::new(clock.clone(), seed, &Layout::of_machines(5));
    for host in 1..=5 {
        fleet.adopt(HostId(host)).await.expect("nothing is there yet");
    }
    let timing = Timing { call: Between::millis(0, 900), ..Timing::LIFELIKE };
    let fleet = fleet
        .with_timing(timing)
        .with_background_load(BackgroundLoad::LIVELY)
        .with_faults(Faults::each(0.05));
    let leases = vec![
        lease(1, 10, 60, vec![hosts(&[1, 2]), address(7)]),
        lease(2, 60, 110, vec![hosts(&[2, 3]), address(7)]),
        lease(3, 20, 60, vec![slots(4, 3)]),
        lease(4, 70, 115, vec![hosts(&[4]), slots(5, 2)]),
    ];
    for (number, host) in [1, 2, 3, 4].into_iter().enumerate() {
        let fails = at(600 + 1200 * number as i64 + 100 * (seed as i64 % 7));
        fleet.schedule(fails, Happening::HostFails(HostId(host)));
        fleet.schedule(fails + SignedDuration::from_mins(8), Happening::HostRecovers(HostId(host)));
    }
    let mut conductor = Conductor::new((1..=5).map(HostId), leases);
    let mut been_active = std::collections::BTreeSet::new();
    while clock.now() < at(180 * 60) {
        if clock.now() >= at(120 * 60) {
            fleet.set_faults(Faults::NONE);
        }
        conductor.turn(&fleet, clock.now()).await;
        let active = conductor.leases.iter().filter(|lease| lease.status == LeaseStatus::Active);
        been_active.extend(active.map(|lease| lease.id));
        assert_eq!(fleet.violations(), [], "seed {seed}");
        clock.0.advance(SignedDuration::from_secs(5));
    }
    for lease in &conductor.leases {
        assert_eq!(lease.status, LeaseStatus::Terminated, "seed {seed}: {lease:?}");
    }
    assert_eq!(been_active.len(), 4, "seed {seed}");
    for host in 1..=5 {
        let seen = fleet.look(HostId(host)).expect("taken on");
        assert_eq!(seen.place, leases::plan::Place::FreePool, "seed {seed}");
        assert!(seen.slots.is_empty(), "seed {seed}");
    }
    assert_eq!(fleet.holder_of(leases::ids::FloatingIpId(7)), None, "seed {seed}");
}

#[tokio::test]
async fn leases_run_on_a_simulated_fleet_whatever_goes_wrong() {
    for seed in 0..12 {
        run_leases(seed).await;
    }
}
