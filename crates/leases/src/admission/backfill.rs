//! Preemptible instances on unused hosts of leases (PRE-11).
//!
//! The owner of a lease can allow preemptible instances on its whole hosts. They run on hosts without guests
//! of the lease. They leave, with notice, before a guest of the lease starts there, when the owner withdraws
//! the permission, and before the next lease of the host. At the end of the lease they stay, on a host that
//! is now in the free pool.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::ids::{HostId, LeaseId, ReservationId};
use crate::instance::Instance;
use crate::lease::{Allocation, Lease};
use crate::plan::{GuestOwner, ObservedHost, Place};
use crate::status::LeaseStatus;

/// Hosts of leases on which preemptible instances can be started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backfill {
    holders: BTreeMap<HostId, (LeaseId, ReservationId)>,
}

impl Backfill {
    /// Collects the hosts of active leases that allow backfill, except for hosts with an instance of the
    /// lease, running or expected.
    pub fn new<'a>(
        leases: impl IntoIterator<Item = &'a Lease>,
        instances: impl IntoIterator<Item = &'a Instance>,
        now: Timestamp,
    ) -> Self {
        let mut holders = BTreeMap::new();
        let open = |lease: &&Lease| {
            lease.backfill && lease.status == LeaseStatus::Active && now < lease.window.end()
        };
        for lease in leases.into_iter().filter(open) {
            for reservation in &lease.reservations {
                if let Allocation::Hosts(hosts) = &reservation.allocation {
                    holders.extend(hosts.iter().map(|host| (*host, (lease.id, reservation.id))));
                }
            }
        }
        if !holders.is_empty() {
            for used in instances.into_iter().filter(|instance| instance.needs_place()) {
                if holders.get(&used.host).is_some_and(|(lease, _)| used.kind.lease() == Some(*lease)) {
                    holders.remove(&used.host);
                }
            }
        }
        Self { holders }
    }

    /// The lease that allows preemptible instances on the host.
    pub fn holder(&self, host: HostId) -> Option<LeaseId> {
        self.holders.get(&host).map(|(lease, _)| *lease)
    }

    /// Whether the host allows backfill, is held by its reservation, and has no guest of the lease.
    pub(super) fn is_open(&self, host: HostId, seen: &ObservedHost) -> bool {
        self.holders.get(&host).is_some_and(|(lease, reservation)| {
            seen.place == Place::Held(*reservation) && !is_used(*lease, seen)
        })
    }
}

pub(crate) fn is_used(lease: LeaseId, seen: &ObservedHost) -> bool {
    seen.guests.iter().any(|guest| guest.owner == GuestOwner::Lease(lease))
}
