//! Who would have to leave if a host were leased now: hosts where nobody has to are had first, so that no preemptible guest
//! is preempted without need (PRE-06). Leases of room on hosts go where it is beside everybody first.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::ids::{GuestId, HostId};
use crate::instance::{Instance, InstanceKind};
use crate::plan::{Guest, GuestOwner, GuestSize, Observed};
use crate::preemption::{Candidate, victims_within};
use crate::resources::Resources;
use crate::work::Budget;

/// What is lost if a whole host is leased; less is better. Losses of hosts add up, so the hosts that lose least are also the
/// set that loses least: fewest guests, then the least work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Loss {
    /// How many guests would have to leave.
    guests: u32,
    /// How much they have done, in minutes times vCPUs; nothing is known of those that others have started.
    work: u64,
}

/// Preemptible guests on hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    soon: Timestamp,
    by_host: BTreeMap<HostId, There>,
}

/// Who is on a host and belongs to no lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct There {
    /// What is lost if the whole host is leased.
    loss: Loss,
    /// Preemptible guests: their sizes, and what they have done.
    preemptible: Vec<(GuestId, GuestSize, u64)>,
    /// What instances use that stay whatever is leased.
    staying: Resources,
}

impl Losses {
    /// What leases would lose that start until then: who runs now may have ended by itself before others do. `instances` are
    /// all that there are.
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

    /// What is lost if a lease has the host from then on.
    pub(crate) fn of_lease(&self, host: HostId, start: Timestamp) -> Loss {
        let there = self.by_host.get(&host).filter(|_| start <= self.soon);
        there.map(|there| there.loss).unwrap_or_default()
    }

    /// What guests use of the host beside what is reserved there, if a lease of room on it could make any of them leave.
    pub(crate) fn used(&self, host: HostId) -> Option<Resources> {
        let there = self.by_host.get(&host).filter(|there| !there.preemptible.is_empty())?;
        let mut used = there.staying.clone();
        there.preemptible.iter().for_each(|(_, size, _)| used.add(1, &size.resources()));
        Some(used)
    }

    /// What is lost if no more than this is left of the host for guests that are in no lease.
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
