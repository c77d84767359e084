//! Guests of other tenants. They share hosts with leases, and hunts move them away.
//!
//! They are started outside the service, as by a cloud's own scheduler, on hosts of two racks that are in the
//! free pool at that moment. Hosts of the first rack are leased as well, but not to advance reservations,
//! which couldn't be punctual with guests that must not be stopped. Hosts of the second rack are never
//! leased, so that guests always have a place to go.

use fleet::simulated::{Between, SimulatedFleet};
use jiff::SignedDuration;
use leases::ids::HostId;
use leases::plan::{GuestOwner, Place};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

/// Average interval between guests.
const COMES_EVERY_S: i64 = 20 * 60;
/// Range of their stay.
const STAYS: Between = Between { least: SignedDuration::from_hours(2), most: SignedDuration::from_hours(24) };
/// Maximum number of guests on a host.
const MOST_PER_HOST: usize = 3;

/// Guests of other tenants.
#[derive(Debug)]
pub(super) struct Guests {
    rng: SmallRng,
    hosts: Vec<HostId>,
    /// Number of guests that came.
    pub came: u64,
}

impl Guests {
    pub fn new(seed: u64, hosts: Vec<HostId>) -> Self {
        Self { rng: SmallRng::seed_from_u64(seed ^ 0x67_7565_7374), hosts, came: 0 }
    }

    /// Draws the time until the next guest comes.
    pub fn pause(&mut self) -> SignedDuration {
        SignedDuration::from_secs(self.rng.random_range(1..2 * COMES_EVERY_S))
    }

    /// Starts a guest, if a host has capacity for it.
    pub fn come(&mut self, fleet: &SimulatedFleet) {
        let least = STAYS.least.as_secs();
        let stays = SignedDuration::from_secs(self.rng.random_range(least..=STAYS.most.as_secs()));
        let mut hosts = self.hosts.clone();
        hosts.shuffle(&mut self.rng);
        let welcome = |host: &HostId| {
            let seen = fleet.look(*host);
            seen.is_some_and(|seen| seen.place == Place::FreePool && seen.guests.len() < MOST_PER_HOST)
        };
        let came = hosts
            .into_iter()
            .filter(welcome)
            .find_map(|host| fleet.start_guest(host, GuestOwner::Other, Some(stays)));
        self.came += u64::from(came.is_some());
    }
}
