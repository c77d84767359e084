//! What must hold where power is saved (EN): no host is off that anybody uses, and no lease is late because its
//! host sleeps. Found out from what is in the store and on the machines, without the plan that it judges.

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

/// So long before a lease starts nothing must have gone wrong that could make it late.
const QUIET: SignedDuration = SignedDuration::from_hours(3);
/// A lease that is noticed so long after its start is not judged: nobody was there.
const NOTICED: SignedDuration = SignedDuration::from_mins(2);

/// How power is saved in the simulation of that seed: in every third, and not always alike. It is drawn from numbers of its
/// own, so that the others are as they would be without.
pub(crate) fn saving(seed: u64) -> Option<EnergySettings> {
    if seed % 3 != 1 {
        return None;
    }
    let mut rng = SmallRng::seed_from_u64(seed ^ 0x70_6f77_6572);
    let rules = PowerRules {
        // Machines take up to four hundred seconds, calls up to twenty.
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

/// What is noted of the power that a host draws, where leases may be given hosts that draw less: not all alike.
pub(crate) fn drawing(host: HostId) -> Vec<(String, Option<String>)> {
    let watts = 100 + host.0 * 37 % 5 * 50;
    vec![(BUSY_WATTS.to_owned(), Some(watts.to_string()))]
}

/// Watches over power.
#[derive(Debug, Default)]
pub(crate) struct PowerWatch {
    /// So many hosts boot at once.
    boots_at_once: usize,
    /// The starts of leases, and the hosts that each has had for that start from the beginning.
    promised: BTreeMap<LeaseId, (Timestamp, BTreeSet<HostId>)>,
    judged: BTreeSet<LeaseId>,
    /// When something went wrong last: everywhere, and with a host.
    disturbed_at: Option<Timestamp>,
    hosts_disturbed_at: BTreeMap<HostId, Timestamp>,
}

impl PowerWatch {
    /// Where so many hosts boot at once.
    pub fn new(boots_at_once: usize) -> Self {
        Self { boots_at_once, ..Self::default() }
    }

    /// Something goes wrong, everywhere or with a host, until then.
    pub fn disturbed(&mut self, host: Option<HostId>, until: Timestamp) {
        match host {
            Some(host) => {
                let last = self.hosts_disturbed_at.entry(host).or_insert(until);
                *last = until.max(*last);
            }
            None => self.disturbed_at = self.disturbed_at.max(Some(until)),
        }
    }

    /// What leases are promised, and whether those that start now have it; `punctual` says that calls are not lost, so
    /// that they have to.
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

    /// Hosts that take the place of others at the same start were not promised: they were found in need.
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
        // A host that does not come up keeps others from their turn until it is given up. The margin is enough for one
        // such host at each place, and not for two in a row.
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

/// Nobody is on a host that is off, nor may anybody be.
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
