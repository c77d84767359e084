//! Growing lease pools (LP-5).

use std::sync::Arc;

use super::{Admission, Refusal, Resource, Search};
use crate::extra_specs::ExtraSpecs;
use crate::ids::ReservationId;
use crate::lease::{Allocation, Lease};
use crate::status::LeaseStatus;
use crate::terms::{HostsTerms, ReservationTerms};

impl Admission<'_> {
    /// Adds `count` hosts to a reservation of a running lease, until the lease ends. The new hosts are like
    /// the current ones and also match `specs`, which the current ones need not do.
    pub fn grow(
        &self,
        lease: &Lease,
        reservation: ReservationId,
        count: u32,
        specs: ExtraSpecs,
    ) -> Result<Lease, Refusal> {
        self.settled_of(lease, self.grown(lease, reservation, count, specs))
    }

    fn grown(
        &self,
        lease: &Lease,
        reservation: ReservationId,
        count: u32,
        specs: ExtraSpecs,
    ) -> Result<Lease, Refusal> {
        if lease.status != LeaseStatus::Active || lease.window.end() <= self.now {
            return Err(Refusal::Busy);
        }
        let position = lease.reservations.iter().position(|r| r.id == reservation);
        let Some(position) = position else { return Err(Refusal::UnknownReservations(vec![reservation])) };
        let before = &lease.reservations[position];
        let (ReservationTerms::Hosts(terms), Allocation::Hosts(held)) = (&before.terms, &before.allocation)
        else {
            return Err(Refusal::ResourceType(reservation));
        };
        let mut wanted = HostsTerms::new(1, 1)?;
        Arc::make_mut(&mut wanted.properties).extra_specs = specs;
        self.rules.check_hosts(&wanted)?;
        let mut search = Search::new(self.on_behalf_of(lease), lease.window, Some(lease.id));
        for reservation in &lease.reservations {
            search.take(&reservation.terms, &reservation.allocation);
        }
        let (mut free, mut report) = search.free_hosts(terms);
        let unsuited = self.unsuited(&wanted);
        free.retain(|fit| {
            let against = self.inventory.host(fit.host).and_then(&unsuited);
            if let Some(filter) = &against {
                *report.removed.entry(filter.clone()).or_insert(0) += 1;
            }
            against.is_none()
        });
        let all = free.len();
        let free = search.like(free, terms, held);
        if free.len() < all {
            let filter = search.togetherness(terms, !held.is_empty());
            *report.removed.entry(filter).or_insert(0) += all - free.len();
        }
        let counted = search.counting(held.iter().copied(), terms);
        let hosts = search.joined(held, &free, counted + count as usize, terms, held);
        let found = search.counting(hosts.iter().copied(), terms) - counted;
        if found < count as usize {
            let (needed, found) = (count.into(), found as u64);
            return Err(Refusal::NotEnough { position, resource: Resource::Hosts(report), needed, found });
        }
        let mut grown = lease.clone();
        let more = |number: u32| number.saturating_add(count);
        let after = &mut grown.reservations[position];
        after.terms =
            ReservationTerms::Hosts(terms.clone().with_range(more(terms.min()), more(terms.max()))?);
        after.allocation = Allocation::Hosts(hosts);
        after.resources_changed = false;
        Ok(grown)
    }
}
