//! Hosts, addresses and reservations that steps might have changed. They must be observed again.

use std::collections::{BTreeMap, BTreeSet};

use leases::ids::{HostId, LeaseId, ReservationId};
use leases::plan::Action;

/// Hosts, addresses and reservations to observe again. Decisions about them wait for that observation.
#[derive(Clone, Debug, Default)]
pub(super) struct DirtySet {
    /// Hosts, with the leases for which steps were carried out on them.
    pub hosts: BTreeMap<HostId, BTreeSet<LeaseId>>,
    /// Leases whose addresses were touched. Every look observes all addresses. `None` if no observation is
    /// needed.
    pub addresses: Option<BTreeSet<LeaseId>>,
    /// Reservations as a whole, with their leases. Every look observes them.
    pub reservations: BTreeMap<ReservationId, BTreeSet<LeaseId>>,
}

impl DirtySet {
    pub fn concerns(&self, lease: LeaseId) -> bool {
        let mut all = self.hosts.values().chain(&self.addresses).chain(self.reservations.values());
        all.any(|leases| leases.contains(&lease))
    }

    /// Whether it includes anything that the action might have changed.
    pub fn has(&self, action: Action) -> bool {
        if is_of_addresses(action) {
            return self.addresses.is_some();
        }
        if let Action::Prepare(reservation) | Action::Finish(reservation) = action {
            return self.reservations.contains_key(&reservation);
        }
        action.hosts().any(|host| self.hosts.contains_key(&host))
    }

    /// Removes and returns everything that a look at these hosts observes.
    pub fn take(&mut self, hosts: &BTreeSet<HostId>) -> Self {
        let (taken, left) =
            std::mem::take(&mut self.hosts).into_iter().partition(|(host, _)| hosts.contains(host));
        self.hosts = left;
        let reservations = std::mem::take(&mut self.reservations);
        Self { hosts: taken, addresses: self.addresses.take(), reservations }
    }

    pub fn merge(&mut self, other: Self) {
        for (host, leases) in other.hosts {
            self.hosts.entry(host).or_default().extend(leases);
        }
        if let Some(leases) = other.addresses {
            self.addresses.get_or_insert_default().extend(leases);
        }
        for (reservation, leases) in other.reservations {
            self.reservations.entry(reservation).or_default().extend(leases);
        }
    }
}

/// Whether the action is about addresses and not about a host.
pub(super) fn is_of_addresses(action: Action) -> bool {
    matches!(action, Action::Assign(..) | Action::Unassign(..))
}
