//! Who would have to leave if a host were leased now: hosts where nobody has to are had first, so that no preemptible guest
//! makes way without need (spec PRE-06, and §6 on victims).

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::Search;
use crate::ids::{GuestId, HostId};
use crate::instance::{Instance, InstanceKind};
use crate::plan::{Guest, GuestOwner, Observed};

/// What is lost if a whole host is leased; less is better. Losses of hosts add up, so the hosts that lose least are also the
/// set that loses least: fewest guests, then the least work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Loss {
    /// How many guests would have to leave.
    guests: u32,
    /// How much they have done, in minutes times vCPUs; nothing is known of those that others have started.
    work: u64,
}

/// Preemptible guests on hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Losses {
    soon: Timestamp,
    by_host: BTreeMap<HostId, Loss>,
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
        let preemptible = |instance: &&Instance| instance.kind == InstanceKind::Preemptible;
        for instance in instances.into_iter().filter(preemptible) {
            known.insert(instance.id);
            let leaves = instance.leaves_anyway() || instance.is_departing(now);
            if instance.is_to_run() && !leaves {
                losses.add(instance.host, instance.work_by(now));
            }
        }
        let others = |guest: &&Guest| {
            guest.owner == GuestOwner::Preemptible
                && guest.stopping_since.is_none()
                && !known.contains(&guest.id)
        };
        for (host, seen) in &observed.hosts {
            seen.guests.iter().filter(others).for_each(|_| losses.add(*host, 0));
        }
        losses
    }

    fn add(&mut self, host: HostId, work: u64) {
        let loss = self.by_host.entry(host).or_default();
        loss.guests = loss.guests.saturating_add(1);
        loss.work = loss.work.saturating_add(work);
    }
}

/// What is known of hosts at the moment, beside who has them when.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostsNow<'a> {
    /// Hosts that are not on, and when each could be had if it were woken now ([`crate::energy::readiness`]); none if no
    /// power is saved here. If it is, hosts that draw least are had first.
    pub waking: Option<&'a BTreeMap<HostId, Timestamp>>,
    /// Who would have to leave them; none if it does not matter.
    pub losses: Option<&'a Losses>,
}

impl Search<'_> {
    /// What is lost if the lease has the host.
    pub(super) fn loss(&self, host: HostId) -> Loss {
        let losses = self.admission.hosts.losses.filter(|losses| self.window.start() <= losses.soon);
        losses.and_then(|losses| losses.by_host.get(&host)).copied().unwrap_or_default()
    }
}
