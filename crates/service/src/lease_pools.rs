//! Lease pools: the hosts of a running lease, by reservation (LP).

use std::sync::Arc;

use leases::extra_specs::ExtraSpecs;
use leases::ids::{GuestId, HostId, LeaseId, ReservationId};
use leases::lease::{Allocation, Lease};
use leases::lease_pool::{LeasePool, Ratios, pools};
use leases::plan::{Observed, ObservedHost};
use leases::project::ProjectId;
use leases::status::LeaseStatus;
use leases::terms::ReservationTerms;
use store::{HostRecord, InstanceRecord, LeaseRecord};

use crate::decider::Decider;
use crate::leasing::Leases;
use crate::leasing::update::{Basis, Decided};
use crate::listing::{Page, Position};
use crate::service::Service;
use crate::state::State;
use crate::types::{Caller, LeaseFilter, LeasePoolChange, NotFound, ServiceError};

/// A host of a lease pool, with its guests.
#[derive(Clone, Debug)]
pub struct LeasePoolHost {
    pub host: Arc<HostRecord>,
    /// Guests, with the record if the guest is an instance of this service.
    pub guests: Vec<(GuestId, Option<Arc<InstanceRecord>>)>,
}

/// Access to reservations as pools of hosts that can grow and shrink.
#[derive(Clone, Copy, Debug)]
pub struct LeasePools<'a> {
    pub(crate) service: &'a Service,
}

impl<'a> LeasePools<'a> {
    pub(crate) fn of(service: &'a Service) -> Self {
        Self { service }
    }

    /// Leases with pools in order of creation: at most `limit` after a position, optionally only of one
    /// project.
    pub fn leases(
        self,
        project: Option<&ProjectId>,
        after: Option<Position>,
        limit: usize,
    ) -> Page<LeaseRecord> {
        // Only active leases have pools.
        let status = Some(LeaseStatus::Active);
        let filter =
            LeaseFilter { project: project.cloned(), status, with_pools: true, ..LeaseFilter::default() };
        Leases::of(self.service).page(&filter, after, limit)
    }

    pub fn lease_of(self, id: ReservationId) -> Option<Arc<LeaseRecord>> {
        let state = self.service.state();
        let record = state.leases.get(state.leases.of_reservation(id)?)?;
        pools(&record.lease).any(|(reservation, _)| reservation.id == id).then(|| record.clone())
    }

    /// Hosts of a pool, with their guests (LP-6).
    pub fn hosts(self, id: ReservationId) -> Vec<LeasePoolHost> {
        let state = self.service.state();
        let record = state.leases.of_reservation(id).and_then(|lease| state.leases.get(lease));
        let hosts = record.and_then(|record| record.lease.reservation(id)).map(|r| r.allocation.hosts());
        let observed = self.service.decider.expected(&state);
        let guests = |host: &HostId| {
            let seen = observed.hosts.get(host).into_iter().flat_map(|seen| &seen.guests);
            seen.map(|guest| (guest.id, state.instances.get(guest.id).cloned())).collect()
        };
        let host =
            |id: HostId| Some(LeasePoolHost { host: state.hosts.get(&id)?.clone(), guests: guests(&id) });
        hosts.into_iter().flatten().filter_map(host).collect()
    }

    /// Changes settings of a pool (LP-3, LP-8, LP-9) together. Fails if the new ratios leave too little
    /// capacity for its instances.
    pub async fn update(
        self,
        caller: &Caller,
        id: ReservationId,
        change: LeasePoolChange,
    ) -> Result<Arc<LeaseRecord>, ServiceError> {
        let lease = self.known(id)?;
        // Instances might have been started outside the service since the last observation.
        let seen = if change.cpu_ratio.or(change.ram_ratio).is_some() {
            let hosts = self.hosts(id).into_iter().map(|there| there.host.host.id).collect();
            self.service.in_time(self.service.parts.fleet.observe(&hosts, &[])).await?
        } else {
            Observed::default()
        };
        let decide = |basis: &Basis<'_>, before: &LeaseRecord| {
            let state = basis.state;
            Ok(Decided::only(self.changed(state, &seen, &before.lease, id, &change)?, before))
        };
        Leases::of(self.service).change(caller, lease, self.service.now(), None, decide).await
    }

    fn changed(
        self,
        state: &State,
        seen: &Observed,
        lease: &Lease,
        id: ReservationId,
        change: &LeasePoolChange,
    ) -> Result<Lease, ServiceError> {
        let gone = || ServiceError::NotFound(NotFound::LeasePool(id));
        if !pools(lease).any(|(reservation, _)| reservation.id == id) {
            return Err(gone());
        }
        let mut changed = lease.clone();
        let reservation = changed.reservations.iter_mut().find(|r| r.id == id).ok_or_else(gone)?;
        let ReservationTerms::Hosts(terms) = &mut reservation.terms else { return Err(gone()) };
        let LeasePoolChange { name, cpu_ratio, ram_ratio } = change.clone();
        let before = terms.pool.clone();
        terms.pool = LeasePool {
            name: name.unwrap_or(before.name),
            ratios: Ratios {
                cpu: cpu_ratio.unwrap_or(before.ratios.cpu),
                ram: ram_ratio.unwrap_or(before.ratios.ram),
            },
        };
        if terms.pool.ratios != before.ratios {
            self.service.decider.check_use(state, seen, &reservation.allocation, &terms.pool)?;
        }
        Ok(changed)
    }

    /// Deletes the lease of a pool. Fails if the lease has other reservations.
    pub async fn delete(self, caller: &Caller, id: ReservationId) -> Result<(), ServiceError> {
        let record = self.lease_of(id).ok_or(ServiceError::NotFound(NotFound::LeasePool(id)))?;
        let lease = &record.lease;
        if lease.reservations.len() > 1 {
            let text =
                format!("Lease {} has other reservations beside this pool: delete the lease.", lease.id);
            return Err(ServiceError::Conflict(text));
        }
        Leases::of(self.service).delete(caller, lease.id).await
    }

    /// Adds hosts that match these extra specs to a pool, until its lease ends (LP-5).
    pub async fn grow(
        self,
        caller: &Caller,
        id: ReservationId,
        count: u32,
        specs: ExtraSpecs,
    ) -> Result<Arc<LeaseRecord>, ServiceError> {
        let lease = self.known(id)?;
        let now = self.service.now();
        let decide = |basis: &Basis<'_>, before: &LeaseRecord| {
            let state = basis.state;
            // The pool gets the hosts immediately, so they can't have guests that can't be removed.
            let facts = self.service.decider.host_facts(state, now);
            let admission = self.service.decider.admission(state, &facts, now, basis.budget);
            let lease = admission.grow(&before.lease, id, count, specs.clone())?;
            Ok(Decided::only(lease, before))
        };
        Leases::of(self.service).change(caller, lease, now, None, decide).await
    }

    fn known(self, id: ReservationId) -> Result<LeaseId, ServiceError> {
        let record = self.lease_of(id).ok_or(ServiceError::NotFound(NotFound::LeasePool(id)))?;
        Ok(record.lease.id)
    }
}

impl Decider {
    /// Checks that the hosts still have enough capacity for instances that run there or are about to.
    fn check_use(
        &self,
        state: &State,
        seen: &Observed,
        allocation: &Allocation,
        pool: &LeasePool,
    ) -> Result<(), ServiceError> {
        let expected = self.expected(state);
        for id in allocation.hosts() {
            let Some(host) = state.inventory.host(id) else { continue };
            let mut looks = [&expected, seen].into_iter().filter_map(|look| look.hosts.get(&id));
            if let Some(used) = looks.find(|look| !pool.suffices(host, look)).map(ObservedHost::used) {
                let text = format!(
                    "Instances on host {} use {} vCPUs and {} MiB of memory: more than it would have to give",
                    host.name, used.vcpus, used.memory_mib
                );
                return Err(ServiceError::Conflict(text));
            }
        }
        Ok(())
    }
}
