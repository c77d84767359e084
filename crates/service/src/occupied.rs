//! Hosts with guests that can't be removed, and leases that can't start because of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use leases::ids::{HostId, LeaseId};
use leases::lease::{Allocation, Lease};
use leases::plan::{Guest, GuestOwner, Observed, PlanRules, overdue_at};
use leases::status::LeaseStatus;
use store::LeaseRecord;

use crate::state::State;

impl State {
    /// Hosts with guests that can't be removed, and hosts that will get such guests by a move for a hunting
    /// lease or by an instance that starts there. Guests left behind by a lease and guests with an overdue
    /// deletion count as such.
    pub fn occupied(&self, observed: &Observed, rules: &PlanRules, now: Timestamp) -> BTreeSet<HostId> {
        let left_behind = |id| {
            let lease = self.leases.get(id).map(|record| &record.lease);
            let stays = |lease: &Lease| !lease.end_action.deletes() || overdue_at(lease.window.end()) <= now;
            lease.is_none_or(|lease| lease.over() || (lease.ending() && stays(lease)))
        };
        let stays = |guest: &Guest| match guest.owner {
            GuestOwner::Preemptible => rules.is_stuck(guest, now),
            GuestOwner::Lease(lease) => left_behind(lease),
            GuestOwner::Other => true,
        };
        let hosts = observed.hosts.iter();
        let occupied = hosts.filter(|(_, host)| host.guests.iter().any(stays));
        let hunts = self.leases.hunters().filter_map(|record| record.lease.hunt.as_ref());
        let goals = hunts.flat_map(|hunt| hunt.open(observed)).map(|mov| mov.to);
        let instances = self.instances.hosts_without_lease().iter().copied();
        occupied.map(|(id, _)| *id).chain(goals).chain(instances).collect()
    }

    /// Leases that start by `until` or are starting, and have a whole host with guests that can't be removed.
    /// Also returns all hosts with such guests, or no hosts if no lease starts.
    pub fn blocked(
        &self,
        until: Timestamp,
        occupied: impl FnOnce() -> BTreeSet<HostId>,
    ) -> (BTreeSet<LeaseId>, BTreeSet<HostId>) {
        let waits = |record: &&Arc<LeaseRecord>| {
            matches!(record.lease.status, LeaseStatus::Pending | LeaseStatus::Starting)
        };
        let mut starting = self.leases.to_tend(until).filter(waits).peekable();
        // The usual case. Finding the occupied hosts is slow.
        if starting.peek().is_none() {
            return (BTreeSet::new(), BTreeSet::new());
        }
        let occupied = occupied();
        let blocked = starting.filter(|record| {
            record.lease.reservations.iter().any(|reservation| match &reservation.allocation {
                Allocation::Hosts(hosts) => hosts.iter().any(|host| occupied.contains(host)),
                Allocation::Slots(_) | Allocation::FloatingIps(_) => false,
            })
        });
        (blocked.map(|record| record.lease.id).collect(), occupied)
    }
}
