//! Traces on machines of leases in any status.

use std::collections::BTreeSet;

use leases::ids::{LeaseId, ReservationId};
use leases::lease::Lease;
use leases::plan::{GuestOwner, Observed, Place};

/// Reservations with hosts, slots or addresses, and leases with guests.
pub(crate) struct Traces {
    pub(crate) reservations: BTreeSet<ReservationId>,
    pub(crate) leases: BTreeSet<LeaseId>,
}

impl Traces {
    pub(crate) fn of(observed: &Observed) -> Self {
        let mut traces =
            Self { reservations: observed.floating_ips.values().copied().collect(), leases: BTreeSet::new() };
        for host in observed.hosts.values() {
            match host.place {
                Place::Held(reservation)
                | Place::Releasing(reservation)
                | Place::Fenced { verified_for: Some(reservation) } => {
                    traces.reservations.insert(reservation);
                }
                Place::Fenced { verified_for: None } | Place::FreePool => {}
            }
            traces.reservations.extend(host.slots.keys());
            traces.leases.extend(host.guests.iter().filter_map(|guest| match guest.owner {
                GuestOwner::Lease(lease) => Some(lease),
                GuestOwner::Preemptible | GuestOwner::Other => None,
            }));
        }
        traces
    }

    /// Whether the loop might still have work to do for a lease that is over. Ignores guests that the lease
    /// is allowed to leave behind.
    pub(crate) fn matter_to(&self, lease: &Lease) -> bool {
        lease.reservations.iter().any(|reservation| self.reservations.contains(&reservation.id))
            || (lease.end_action.deletes() && self.leases.contains(&lease.id))
    }
}
