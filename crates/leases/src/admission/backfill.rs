//! Preemptible instances on hosts of leases that are not in use (PRE-11).
//!
//! The owner of a lease may let preemptible instances on its whole hosts. They run where no guest of the lease does, and
//! leave, with notice, when one is to be started there, when the owner changes its mind, and before the next lease of the
//! host. When the lease is over they stay, on a host of the free pool.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::ids::{HostId, LeaseId, ReservationId};
use crate::instance::Instance;
use crate::lease::{Allocation, Lease};
use crate::plan::{GuestOwner, ObservedHost, Place};
use crate::status::LeaseStatus;

/// Hosts of leases that preemptible instances may be started on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backfill {
    holders: BTreeMap<HostId, (LeaseId, ReservationId)>,
}

impl Backfill {
    /// Hosts of active leases that let preemptible instances on them, but for those that an instance of the lease is on, or is
    /// about to be.
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

    /// The lease that lets preemptible instances on the host, if it is one of these.
    pub fn holder(&self, host: HostId) -> Option<LeaseId> {
        self.holders.get(&host).map(|(lease, _)| *lease)
    }

    /// Whether the host is one of these, held as it is to be, and not in use.
    pub(super) fn is_open(&self, host: HostId, seen: &ObservedHost) -> bool {
        self.holders.get(&host).is_some_and(|(lease, reservation)| {
            seen.place == Place::Held(*reservation) && !is_used(*lease, seen)
        })
    }
}

/// Whether a guest of the lease is on the host.
pub(crate) fn is_used(lease: LeaseId, seen: &ObservedHost) -> bool {
    seen.guests.iter().any(|guest| guest.owner == GuestOwner::Lease(lease))
}
