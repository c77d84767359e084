//! Hosts that are swapped at the owner's request (HK).

use super::{Admission, Refusal, Resource, Search};
use crate::ids::{HostId, ReservationId};
use crate::lease::{Allocation, Lease};
use crate::status::LeaseStatus;
use crate::terms::ReservationTerms;

impl Admission<'_> {
    /// Replaces a host of a running lease with one like it, immediately and until the end of the lease.
    /// Without a replacement, the lease keeps its host. The host must belong to the reservation.
    pub fn swap(&self, lease: &Lease, reservation: ReservationId, host: HostId) -> Result<Lease, Refusal> {
        self.settled_of(lease, self.swapped(lease, reservation, host))
    }

    fn swapped(&self, lease: &Lease, reservation: ReservationId, host: HostId) -> Result<Lease, Refusal> {
        if lease.status != LeaseStatus::Active || lease.window.end() <= self.now {
            return Err(Refusal::Busy);
        }
        let found = lease.reservations.iter().enumerate().find(|(_, r)| r.id == reservation);
        let Some((position, before)) = found else {
            return Err(Refusal::UnknownReservations(vec![reservation]));
        };
        let (ReservationTerms::Hosts(terms), Allocation::Hosts(held)) = (&before.terms, &before.allocation)
        else {
            return Err(Refusal::ResourceType(reservation));
        };
        let mut search = Search::new(self.on_behalf_of(lease), lease.window, Some(lease.id));
        for reservation in &lease.reservations {
            search.take(&reservation.terms, &reservation.allocation);
        }
        let mut kept = held.clone();
        kept.remove(&host);
        let (mut free, report) = search.free_hosts(terms);
        // The calendar can have it as free, but the owner doesn't want it.
        free.retain(|fit| fit.host != host);
        let free = search.like(free, terms, &kept);
        let counted = search.counting(held.iter().copied(), terms);
        let hosts = search.joined(&kept, &free, counted, terms, &kept);
        if search.counting(hosts.iter().copied(), terms) < counted {
            return Err(Refusal::NotEnough {
                position,
                resource: Resource::Hosts(report),
                needed: 1,
                found: 0,
            });
        }
        let mut swapped = lease.clone();
        swapped.marks.swaps += 1;
        swapped.reservations[position].allocation = Allocation::Hosts(hosts);
        swapped.reservations[position].resources_changed = true;
        Ok(swapped)
    }
}
