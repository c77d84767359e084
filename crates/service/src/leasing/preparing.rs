//! Leases on fleets that prepare reservations. The answer contains resources that clients use next: a flavor
//! and a server group for instance capacity, and flavors for hosts if the fleet has them. So it waits until
//! these exist.

use std::sync::Arc;

use leases::ids::ReservationId;
use leases::plan::{Action, Prepared, is_prepared};
use leases::status::LeaseStatus;
use leases::terms::ReservationTerms;
use store::LeaseRecord;

use super::Leases;
use crate::types::{Caller, NotFound, ServiceError};

impl Leases<'_> {
    /// Resources that the fleet has prepared for a reservation as a whole. `None` if the fleet doesn't
    /// prepare reservations.
    pub fn prepared_for(self, reservation: ReservationId) -> Option<Prepared> {
        let prepares = self.service.decider.abilities.prepares;
        prepares.then(|| self.service.observed().reservations.get(&reservation).cloned().unwrap_or_default())
    }

    /// Waits until the lease's reservations are prepared, at most as long as the start deadline of an
    /// immediate lease. If the fleet can't prepare them, the lease is withdrawn and the client gets an error.
    /// If the service crashes while it waits, the lease stays and is prepared later.
    pub async fn prepared(
        self,
        caller: &Caller,
        record: Arc<LeaseRecord>,
    ) -> Result<Arc<LeaseRecord>, ServiceError> {
        let fleet = &self.service.parts.fleet;
        let named = |terms: &ReservationTerms| match terms {
            ReservationTerms::Hosts(_) => fleet.has_flavors_for_hosts(),
            ReservationTerms::Instances(_) | ReservationTerms::Flavor(_) => true,
            ReservationTerms::FloatingIps(_) => false,
        };
        let waits = record.lease.reservations.iter().any(|reservation| named(&reservation.terms));
        if !waits || !fleet.prepares() {
            return Ok(record);
        }
        let limit = self.service.decider.settings.rules.deadlines.immediate.unsigned_abs();
        let failed = match tokio::time::timeout(limit, self.preparation(&record)).await {
            Err(_) | Ok(None) => {
                let id = record.lease.id;
                return self.get(id).ok_or(ServiceError::NotFound(NotFound::Lease(id)));
            }
            Ok(Some(failed)) => failed,
        };
        tracing::warn!(lease = %record.lease.id, reason = failed, "lease withdrawn");
        self.accept_deletion(caller, record.lease.id).await?;
        Err(ServiceError::Fleet(failed))
    }

    /// Returns `None` when the reservations are prepared or the lease is gone, and the reason when a
    /// reservation can't be prepared.
    async fn preparation(self, record: &LeaseRecord) -> Option<String> {
        let mut changes = self.service.changes.subscribe();
        loop {
            let now = self.get(record.lease.id)?;
            let observed = self.service.observed();
            let missing = now.lease.reservations.iter().filter(|known| !is_prepared(&observed, known));
            let missing: Vec<Action> = missing.map(|known| Action::Prepare(known.id)).collect();
            if missing.is_empty() || now.lease.status == LeaseStatus::Deleting {
                return None;
            }
            let failed = {
                let state = self.service.state();
                let mut failed = missing.iter().filter_map(|action| state.history.failures.get(action));
                failed.next().map(|failed| failed.message.clone())
            };
            if failed.is_some() {
                return failed;
            }
            changes.changed().await.ok()?;
        }
    }
}
