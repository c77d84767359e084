//! Differences between the store and a cloud in the objects of running leases.

use std::collections::BTreeMap;

use fleet::{Difference, Wanted, WantedReservation};
use leases::ids::{LeaseId, ReservationId};
use leases::lease::{Allocation, Lease};
use leases::plan::{GuestOwner, Observed, Place};

use super::{Drift, Repairs};
use crate::state::State;
use crate::types::ServiceError;

impl Repairs<'_> {
    /// Tells the fleet which reservations are stored, for its comparison.
    pub(crate) async fn expect(self) {
        if !self.service.decider.abilities.prepares {
            return;
        }
        let origin = self.service.parts.store.origin().await.ok().flatten();
        let mut wanted = Wanted { store: origin.and_then(|origin| origin.id), ..Wanted::default() };
        let state = self.service.snapshot();
        for record in state.leases.pending().chain(state.leases.going()) {
            let lease = &record.lease;
            for reservation in &lease.reservations {
                let slots = match &reservation.allocation {
                    Allocation::Slots(slots) => slots.clone(),
                    Allocation::Hosts(_) | Allocation::FloatingIps(_) => BTreeMap::new(),
                };
                let reserved = WantedReservation {
                    lease: lease.id,
                    project: lease.owner.project.clone(),
                    terms: reservation.terms.clone(),
                    slots,
                    is_kept: !lease.ending(),
                };
                wanted.reservations.insert(reservation.id, reserved);
            }
        }
        self.service.parts.fleet.expect(wanted).await;
    }

    /// Differences between the cloud and the store. Includes guests of other leases and projects on the
    /// lease's hosts.
    pub(super) async fn cloud_differences(
        self,
        state: &State,
        observed: &Observed,
    ) -> Result<Vec<Drift>, ServiceError> {
        let differences = self.service.in_time(self.service.parts.fleet.all_differences()).await?;
        let others = |reservation: ReservationId, lease: LeaseId| {
            let held = observed.hosts.values().filter(move |host| host.place == Place::Held(reservation));
            let guests = held.flat_map(|host| &host.guests);
            let others = guests.filter(|guest| guest.owner != GuestOwner::Lease(lease));
            others.map(|guest| (guest.id, guest.project.clone())).collect()
        };
        let drift = |difference: Difference| {
            let Difference { reservation, host, what, is_undone, .. } = difference;
            let of = reservation.and_then(|id| Some((id, state.leases.of_reservation(id)?)));
            let guests = of.map(|(reservation, lease)| others(reservation, lease)).unwrap_or_default();
            let record = of.and_then(|(_, lease)| state.leases.get(lease));
            let lease = record.map(|record| record.lease.name.clone());
            Drift::Cloud { host, lease, what, is_undone, guests }
        };
        Ok(differences.into_iter().map(drift).collect())
    }

    /// Difference found for the lease by the last observation of the whole fleet, in words for its owner or
    /// for operators.
    pub fn changed_in_cloud(self, lease: &Lease, for_operator: bool) -> Option<String> {
        let progress = self.service.progress();
        let found = lease.reservations.iter().find_map(|own| progress.differences.get(&own.id))?;
        Some(if for_operator { found.what.clone() } else { found.for_owner.to_owned() })
    }
}
