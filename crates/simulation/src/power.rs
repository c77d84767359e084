//! Invariants of power saving (EN): no host in use is off, and no lease is late because its host sleeps. They
//! are checked against the store and the machines, without the plan that they judge.

use std::collections::{BTreeMap, BTreeSet};

use fleet::simulated::SimulatedFleet;
use jiff::{SignedDuration, Timestamp};
use leases::energy::{BUSY_WATTS, PowerRules};
use leases::ids::{HostId, LeaseId};
use leases::lease::Lease;
use leases::plan::{Place, Powered};
use leases::status::LeaseStatus;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use service::{EnergyMode, EnergySettings};
use store::Snapshot;

use crate::verdict::Verdict;

/// A lease is judged only if nothing that could delay it went wrong within this time before its start.
const QUIET: SignedDuration = SignedDuration::from_hours(3);
/// A lease that is first checked later than this after its start isn't judged: no service was running.
const NOTICED: SignedDuration = SignedDuration::from_mins(2);

/// Power saving in one simulation of three, with settings that vary by seed. They come from separate random
/// numbers, so that power saving changes nothing else that is drawn from the seed.
pub(crate) fn saving(seed: u64) -> Option<EnergySettings> {
    if seed % 3 != 1 {
        return None;
    }
    let mut rng = SmallRng::seed_from_u64(seed ^ 0x70_6f77_6572);
    let rules = PowerRules {
        // Machines take up to 400 seconds to power on, and calls up to 20.
        shortest_boot: SignedDuration::from_mins(8),
        margin: SignedDuration::from_mins(20),
        spare_hosts: rng.random_range(0..2),
        shortest_rest: SignedDuration::from_mins(rng.random_range(10..90)),
        rests_a_day: rng.random_range(3..20),
        boots_at_once: rng.random_range(1..4),
        horizon: SignedDuration::from_hours(48),
        ..PowerRules::default()
    };
    let repack_watt_hours = rng.random_bool(0.5).then(|| rng.random_range(0..500));
    Some(EnergySettings { mode: EnergyMode::On, rules, repack_watt_hours })
}

/// Noted power draw of a host, for simulations that repack leases onto hosts that draw less. Differs between
/// hosts.
pub(crate) fn drawing(host: HostId) -> Vec<(String, Option<String>)> {
    let watts = 100 + host.0 * 37 % 5 * 50;
    vec![(BUSY_WATTS.to_owned(), Some(watts.to_string()))]
}

/// Tracks promised hosts and faults, to judge leases when they start.
#[derive(Debug, Default)]
pub(crate) struct PowerWatch {
    /// Maximum number of hosts that boot at the same time.
    boots_at_once: usize,
    /// Start of each lease, and the hosts it has had for that start all along.
    promised: BTreeMap<LeaseId, (Timestamp, BTreeSet<HostId>)>,
    judged: BTreeSet<LeaseId>,
    /// Time of the last fault, everywhere and of a single host.
    disturbed_at: Option<Timestamp>,
    hosts_disturbed_at: BTreeMap<HostId, Timestamp>,
}

impl PowerWatch {
    pub fn new(boots_at_once: usize) -> Self {
        Self { boots_at_once, ..Self::default() }
    }

    /// Notes a fault until then. `None` stands for all hosts.
    pub fn disturbed(&mut self, host: Option<HostId>, until: Timestamp) {
        match host {
            Some(host) => {
                let last = self.hosts_disturbed_at.entry(host).or_insert(until);
                *last = until.max(*last);
            }
            None => self.disturbed_at = self.disturbed_at.max(Some(until)),
        }
    }

    /// Follows the promises of pending leases, and checks leases that start now. `punctual` means that no
    /// calls are lost, so that leases have to start in time.
    pub fn check(&mut self, contents: &Snapshot, punctual: bool, now: Timestamp) -> Verdict {
        for record in &contents.leases {
            let lease = &record.lease;
            let start = lease.window.start();
            if start <= now {
                if punctual && self.judged.insert(lease.id) && now.duration_since(start) <= NOTICED {
                    self.judge(contents, lease)?;
                }
                continue;
            }
            if lease.status == LeaseStatus::Pending {
                self.follow(lease, start);
            }
        }
        Ok(())
    }

    /// Only hosts that the lease has had for this start from the beginning count as promised. Replacements
    /// were found in an emergency.
    fn follow(&mut self, lease: &Lease, start: Timestamp) {
        let hosts: BTreeSet<HostId> = lease.reservations.iter().flat_map(|r| r.allocation.hosts()).collect();
        match self.promised.get_mut(&lease.id) {
            Some((known, promised)) if *known == start => promised.retain(|host| hosts.contains(host)),
            _ => _ = self.promised.insert(lease.id, (start, hosts)),
        }
    }

    fn judge(&self, contents: &Snapshot, lease: &Lease) -> Verdict {
        let quiet =
            |at: Option<Timestamp>| at.is_none_or(|at| lease.window.start().duration_since(at) > QUIET);
        let Some((start, promised)) = self.promised.get(&lease.id) else { return Ok(()) };
        if *start != lease.window.start() || !quiet(self.disturbed_at) || lease.over() {
            return Ok(());
        }
        // A host that doesn't boot delays the hosts queued behind it until it is given up. The margin
        // suffices for one such host in each boot slot, but not for two in a row.
        let stuck = self.hosts_disturbed_at.values().filter(|at| !quiet(Some(**at))).count();
        if stuck > self.boots_at_once {
            return Ok(());
        }
        let has: BTreeSet<HostId> = lease.reservations.iter().flat_map(|r| r.allocation.hosts()).collect();
        for record in contents.hosts.iter().filter(|record| promised.contains(&record.host.id)) {
            let host = &record.host;
            let disturbed = !quiet(self.hosts_disturbed_at.get(&host.id).copied());
            if has.contains(&host.id) && !disturbed && !host.power.is_on() {
                let (id, state) = (lease.id, host.power.state);
                return Err(format!("lease {id} starts, and its host {} is {state:?}", host.id));
            }
        }
        Ok(())
    }
}

/// A host that is off has no guests or slots, and is fenced.
pub(crate) fn check_dark(contents: &Snapshot, fleet: &SimulatedFleet) -> Verdict {
    for record in &contents.hosts {
        let Some(seen) = fleet.look(record.host.id) else { continue };
        let used = !seen.guests.is_empty() || !seen.slots.is_empty();
        if seen.powered == Powered::Off && (used || !matches!(seen.place, Place::Fenced { .. })) {
            return Err(format!("host {} is off, and it is {seen:?}", record.host.id));
        }
    }
    Ok(())
}
