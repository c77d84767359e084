//! Guests that would have to leave if a host were leased now. Hosts that no guest has to leave are allocated
//! first, so that no instance is preempted without need (PRE-06). Reservations of instances first take
//! capacity that leaves all guests in place.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::ids::{GuestId, HostId};
use crate::instance::{Instance, InstanceKind};
use crate::plan::{Guest, GuestOwner, GuestSize, Observed};
use crate::preemption::{Candidate, victims_within};
use crate::resources::Resources;
use crate::work::Budget;

/// Loss if a whole host is leased; less is better. Compares the number of guests first, then their work.
/// Losses of hosts add up, so the hosts with the smallest losses are also the set with the smallest loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Loss {
    /// Number of guests that would have to leave.
    guests: u32,
    /// Work done so far, in minutes times vCPUs. 0 for guests that weren't started through the service: their
    /// work is unknown.
    work: u64,
}

/// Losses by host, for leases that start soon.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    soon: Timestamp,
    by_host: BTreeMap<HostId, There>,
}

/// Guests on a host that belong to no lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct There {
    /// Loss if the whole host is leased.
    loss: Loss,
    /// Preemptible guests with their sizes and work.
    preemptible: Vec<(GuestId, GuestSize, u64)>,
    /// Resources used by instances that stay whatever is leased.
    staying: Resources,
}

impl Losses {
    /// Losses of leases that start by `soon`. Later starts count no loss, since current guests can have ended
    /// by then. `instances` must be complete: preemptible guests that aren't among them count as started by
    /// other means.
    pub fn new<'a>(
        observed: &Observed,
        instances: impl IntoIterator<Item = &'a Instance>,
        now: Timestamp,
        soon: Timestamp,
    ) -> Self {
        let mut losses = Self { soon, by_host: BTreeMap::new() };
        let mut known: BTreeSet<GuestId> = BTreeSet::new();
        for instance in instances {
            match instance.kind {
                InstanceKind::Preemptible => {
                    known.insert(instance.id);
                    let leaves = instance.leaves_anyway() || instance.is_departing(now);
                    if instance.is_to_run() && !leaves {
                        losses.add(instance.host, (instance.id, instance.size), instance.work_by(now));
                    }
                }
                InstanceKind::Regular if instance.is_to_run() => {
                    let there = losses.by_host.entry(instance.host).or_default();
                    there.staying.add(1, &instance.size.resources());
                }
                InstanceKind::Regular | InstanceKind::Reserved { .. } => {}
            }
        }
        let others = |guest: &&Guest| {
            guest.owner == GuestOwner::Preemptible
                && guest.stopping_since.is_none()
                && !known.contains(&guest.id)
        };
        for (host, seen) in &observed.hosts {
            for guest in seen.guests.iter().filter(others) {
                losses.add(*host, (guest.id, guest.size), 0);
            }
        }
        losses
    }

    fn add(&mut self, host: HostId, (id, size): (GuestId, GuestSize), work: u64) {
        let there = self.by_host.entry(host).or_default();
        there.loss.guests = there.loss.guests.saturating_add(1);
        there.loss.work = there.loss.work.saturating_add(work);
        there.preemptible.push((id, size, work));
    }

    /// Loss if a lease takes the whole host at `start`.
    pub(crate) fn of_lease(&self, host: HostId, start: Timestamp) -> Loss {
        let there = self.by_host.get(&host).filter(|_| start <= self.soon);
        there.map(|there| there.loss).unwrap_or_default()
    }

    /// Resources used on the host by guests outside leases. `None` if there is no preemptible guest, so that
    /// a reservation of instances couldn't make any guest leave.
    pub(crate) fn used(&self, host: HostId) -> Option<Resources> {
        let there = self.by_host.get(&host).filter(|there| !there.preemptible.is_empty())?;
        let mut used = there.staying.clone();
        there.preemptible.iter().for_each(|(_, size, _)| used.add(1, &size.resources()));
        Some(used)
    }

    /// Loss if only `left` of the host remains for guests outside leases.
    pub(crate) fn with_left(&self, host: HostId, left: &Resources, budget: &Budget) -> Loss {
        let Some(there) = self.by_host.get(&host) else { return Loss::default() };
        let mut room = left.clone();
        room.subtract(1, &there.staying);
        let candidate = |(id, size, work): &(GuestId, GuestSize, u64)| Candidate {
            id: *id,
            size: *size,
            work: *work,
            project: None,
            leaves: false,
        };
        let candidates: Vec<Candidate<'_>> = there.preemptible.iter().map(candidate).collect();
        let leaving = victims_within(&candidates, &room, budget);
        let lost = candidates.iter().filter(|candidate| leaving.contains(&candidate.id));
        Loss {
            guests: u32::try_from(leaving.len()).unwrap_or(u32::MAX),
            work: lost.map(|candidate| candidate.work).fold(0, u64::saturating_add),
        }
    }
}
