//! Guests of others, who come and go beside leases: what hunts move away.
//!
//! They come from outside of the service, as from a cloud's own scheduler: to hosts of two racks that are in the free
//! pool at that moment. Hosts of one of these racks are leased as well, though not to advance reservations, which could
//! not be punctual beside guests that nobody may stop; those of the other one never are, so that there is always
//! somewhere to go.

use fleet::simulated::{Between, SimulatedFleet};
use jiff::SignedDuration;
use leases::ids::HostId;
use leases::plan::{GuestOwner, Place};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

/// On average a guest comes so often.
const COMES_EVERY_S: i64 = 20 * 60;
/// It stays between so long and so long.
const STAYS: Between = Between { least: SignedDuration::from_hours(2), most: SignedDuration::from_hours(24) };
/// No more guests than that on one host.
const MOST_PER_HOST: usize = 3;

/// Guests of others.
#[derive(Debug)]
pub(super) struct Guests {
    rng: SmallRng,
    hosts: Vec<HostId>,
    /// How many came.
    pub came: u64,
}

impl Guests {
    /// Who come to these hosts.
    pub fn new(seed: u64, hosts: Vec<HostId>) -> Self {
        Self { rng: SmallRng::seed_from_u64(seed ^ 0x67_7565_7374), hosts, came: 0 }
    }

    /// How long it is until the next one comes.
    pub fn pause(&mut self) -> SignedDuration {
        SignedDuration::from_secs(self.rng.random_range(1..2 * COMES_EVERY_S))
    }

    /// One comes, if there is a place for it.
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
