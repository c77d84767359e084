//! The simulated fleet, at once and taking its time.

use std::sync::Arc;

use ambient::{Clock, ManualClock};
use async_trait::async_trait;
use fleet::Fleet;
use fleet::conformance::{self, Subject};
use fleet::simulated::{Between, Happening, Layout, SimulatedFleet, Timing};
use jiff::{SignedDuration, Timestamp};
use leases::ids::{GuestId, HostId};
use leases::plan::GuestOwner;

/// A clock that is set to whatever somebody waits for.
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
    conformance::all(|| async { simulated(Timing::IMMEDIATE, 1) }).await;
}

#[tokio::test]
async fn a_fleet_where_things_take_time_conforms() {
    for seed in 0..10 {
        conformance::all(|| async { simulated(Timing::LIFELIKE, seed) }).await;
    }
}
