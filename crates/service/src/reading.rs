//! Questions. None of them waits for the store, but those about notifications.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use jiff::{SignedDuration, Timestamp};
use leases::energy::PowerState;
use leases::host::{Health, Host};
use leases::hunt::{Hunt, Move, MoveState};
use leases::ids::{HostId, LeaseId, ReservationId};
use leases::instance::InstanceKind;
use leases::lease::Lease;
use leases::lease_pool::pools;
use leases::lease_type::Deadlines;
use leases::status::LeaseStatus;
use leases::work::Budget;
use store::{AuditFilter, AuditRecord, LeaseRecord, Notification};

use crate::listing::whole;
use crate::listing::{Page, Position};
use crate::service::Service;
use crate::state::State;
use crate::types::{AllocationFilter, HostAllocation, LeaseFilter, ServiceError, Statistics};

/// After so many reservations, a part of the list of allocations ends with the host that it is at.
const MOST_RESERVATIONS: usize = 1024;

impl Service {
    /// How long leases may wait for their start.
    pub fn deadlines(&self) -> Deadlines {
        self.decider.settings.rules.deadlines
    }

    /// A lease.
    pub fn lease(&self, id: LeaseId) -> Option<Arc<LeaseRecord>> {
        self.state().leases.get(id).cloned()
    }

    /// The moves of guests that are planned for a lease, and how far each is, as was seen last.
    pub fn moves(&self, lease: &Lease) -> Vec<(Move, MoveState)> {
        let state = self.state();
        let progress = self.progress();
        let moves = lease.hunt.iter().flat_map(|hunt| &hunt.moves);
        let shown = |mov: &Move| match Hunt::state(mov, &progress.observed, &state.history) {
            // It was moved between two looks.
            MoveState::Gone if progress.is_moving(mov) => MoveState::Moving { percent: None },
            known => known,
        };
        moves.map(|mov| (*mov, shown(mov))).collect()
    }

    /// Leases, in the order of their creation.
    pub fn leases(&self, filter: &LeaseFilter) -> Vec<Arc<LeaseRecord>> {
        let state = self.snapshot();
        whole(|after| state.leases.page(filter, after, usize::MAX))
    }

    /// Leases after a position, in the order of their creation, at most so many.
    pub fn leases_page(
        &self,
        filter: &LeaseFilter,
        after: Option<Position>,
        limit: usize,
    ) -> Page<LeaseRecord> {
        self.state().leases.page(filter, after, limit)
    }

    /// One entry for every host, or for one of them, with what is reserved of it. Unless a lease or a
    /// reservation is named, only what is not over.
    pub async fn allocations(&self, filter: &AllocationFilter) -> Result<Vec<HostAllocation>, ServiceError> {
        let all = |budget: &Budget| {
            let state = self.snapshot();
            let (mut allocations, mut after) = (Vec::new(), None);
            loop {
                let (more, last) = allocations_after(&state, filter, after, usize::MAX);
                let reservations: usize = more.iter().map(|allocation| allocation.reservations.len()).sum();
                budget.charge((more.len() + reservations) as u64);
                allocations.extend(more);
                after = last;
                if after.is_none() {
                    return Ok(allocations);
                }
            }
        };
        self.consider(all).await
    }

    /// The same of hosts after one, by identifier, at most so many, and fewer if much is reserved of them; and the last
    /// of them, if there are more.
    pub fn allocations_after(
        &self,
        filter: &AllocationFilter,
        after: Option<HostId>,
        limit: usize,
    ) -> (Vec<HostAllocation>, Option<HostId>) {
        allocations_after(&self.state(), filter, after, limit)
    }

    /// Notifications after that number, at most so many, oldest first.
    pub async fn notifications(&self, after: u64, limit: u32) -> Result<Vec<Notification>, ServiceError> {
        Ok(self.parts.store.notifications(after, limit).await?)
    }

    /// Who did what, newest first, with numbers; only before that number, if one is given.
    pub async fn audit(
        &self,
        filter: &AuditFilter,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<(u64, AuditRecord)>, ServiceError> {
        Ok(self.parts.store.audit_page(filter, before, limit).await?)
    }

    /// The number of the last notification that this listener has been told; 0 at first.
    pub async fn delivered(&self, listener: &str) -> Result<u64, ServiceError> {
        Ok(self.parts.store.delivered(listener).await?)
    }

    /// Notes how far a listener has been told.
    pub async fn set_delivered(&self, listener: &str, number: u64) -> Result<(), ServiceError> {
        Ok(self.parts.store.set_delivered(listener, number).await?)
    }

    /// Whether this service has that role among those that share the store, for so long from now on; for no time,
    /// it gives it up.
    pub async fn lead(&self, role: &str, term: SignedDuration) -> Result<bool, ServiceError> {
        let now = self.now();
        let until = now.checked_add(term).unwrap_or(Timestamp::MAX);
        Ok(self.parts.store.lead(role, &self.decider.settings.holder, now, until).await?)
    }

    /// Returns when there may be a notification after that number.
    pub async fn notified(&self, after: u64) {
        // Subscribed first, so that none is missed between looking and waiting.
        let mut changes = self.changes.subscribe();
        while self.parts.store.notifications(after, 1).await.is_ok_and(|found| found.is_empty()) {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Figures for metrics.
    pub fn statistics(&self) -> Statistics {
        let mut statistics = self.progress().statistics();
        let state = self.snapshot();
        let by_status = state.leases.by_status().iter().filter(|(_, count)| **count > 0);
        statistics.leases = by_status.map(|(status, count)| (*status, *count)).collect();
        statistics.degraded_leases = state.leases.degraded() as u64;
        statistics.hosts = state.hosts.len() as u64;
        let failed = state.inventory.hosts().filter(|host| host.health == Health::Failed);
        statistics.failed_hosts = failed.count() as u64;
        let off = |host: &&Host| matches!(host.power.state, PowerState::Off { .. });
        statistics.off_hosts = state.inventory.hosts().filter(off).count() as u64;
        statistics.instances = state.instances.iter().count() as u64;
        statistics.floating_ips = state.floating_ips.len() as u64;
        for record in state.instances.iter() {
            let instance = &record.instance;
            let counts = instance.kind == InstanceKind::Preemptible && instance.needs_place();
            statistics.preemptible_instances += u64::from(counts);
            statistics.departing_instances += u64::from(counts && instance.departure.is_some());
        }
        let progress = self.progress();
        let failing = state.history.failures.keys().filter(|action| progress.is_wanted(**action));
        statistics.failing_steps = failing.count() as u64;
        drop(progress);
        let (writers, readers) = self.places.waiting();
        (statistics.waiting_writers, statistics.waiting_decisions) = (writers as u64, readers as u64);
        (statistics.decisions_too_costly, statistics.decisions_canceled) = self.ended.counts();
        statistics
    }

    /// Whether requests can be served: the store can be written to, goes by the same time, and the loop runs. It waits
    /// for no decision.
    pub async fn ready(&self) -> Result<(), ServiceError> {
        self.parts.store.check().await?;
        self.refuse_suspended().await?;
        self.update().await?;
        if self.running.load(Ordering::Acquire) {
            Ok(())
        } else {
            Err(ServiceError::Conflict("the loop that carries plans out does not run".to_owned()))
        }
    }
}

fn allocations_after(
    state: &State,
    filter: &AllocationFilter,
    after: Option<HostId>,
    limit: usize,
) -> (Vec<HostAllocation>, Option<HostId>) {
    let mut found = match (filter.lease, filter.reservation) {
        (None, None) => None,
        (lease, reservation) => Some(named(state, lease, reservation)),
    };
    let from = match (filter.host, after) {
        (Some(host), None) => Bound::Included(host),
        (_, Some(after)) => Bound::Excluded(after),
        (None, None) => Bound::Unbounded,
    };
    let to = filter.host.map_or(Bound::Unbounded, Bound::Included);
    if let (Bound::Excluded(after), Bound::Included(host)) = (from, to)
        && host <= after
    {
        return (Vec::new(), None);
    }
    let mut hosts = state.hosts.range((from, to)).map(|(id, _)| *id);
    let mut allocation = |host| {
        let mut reservations = match &mut found {
            Some(found) => found.remove(&host).unwrap_or_default(),
            None => booked(state, host),
        };
        reservations.sort_by_key(|(record, id)| (record.lease.window.start(), *id));
        HostAllocation { host, reservations }
    };
    let (mut allocations, mut reservations) = (Vec::new(), 0);
    for allocation in hosts.by_ref().take(limit).map(&mut allocation) {
        reservations += allocation.reservations.len();
        allocations.push(allocation);
        if reservations >= MOST_RESERVATIONS {
            break;
        }
    }
    let last = allocations.last().map(|allocation| allocation.host);
    (allocations, last.filter(|_| hosts.next().is_some()))
}

impl LeaseFilter {
    pub(crate) fn lets_through(&self, lease: &Lease) -> bool {
        self.project.as_ref().is_none_or(|project| lease.owner.project == *project)
            && self.name.as_ref().is_none_or(|name| lease.name == *name)
            && self.status.is_none_or(|status| lease.status == status)
            && self.series.is_none_or(|series| lease.series == Some(series))
            && self.ends_after.is_none_or(|instant| lease.window.end() > instant)
            && self.starts_before.is_none_or(|instant| lease.window.start() < instant)
            && (!self.with_pools || pools(lease).next().is_some())
    }
}

type Reservations = Vec<(Arc<LeaseRecord>, ReservationId)>;

/// What is reserved of the host from now on.
fn booked(state: &State, host: HostId) -> Reservations {
    let bookings = state.calendar.bookings(host);
    let records =
        bookings.filter_map(|(_, booking)| Some((state.leases.get(booking.lease)?, booking.reservation)));
    let kept = records.filter(|(record, _)| record.lease.keeps_resources());
    kept.map(|(record, id)| (record.clone(), id)).collect()
}

/// What the lease, or the reservation, has of each host.
fn named(
    state: &State,
    lease: Option<LeaseId>,
    reservation: Option<ReservationId>,
) -> BTreeMap<HostId, Reservations> {
    let of_reservation = reservation.and_then(|id| state.leases.of_reservation(id));
    let record = lease.or(of_reservation).and_then(|id| state.leases.get(id));
    let mut found: BTreeMap<HostId, Reservations> = BTreeMap::new();
    // What a lease had that is over is of interest to who names it, though nothing is kept for it any more.
    let shown = |lease: &Lease| lease.keeps_resources() || lease.status == LeaseStatus::Terminated;
    for record in record.into_iter().filter(|record| shown(&record.lease)) {
        for own in &record.lease.reservations {
            if reservation.is_some_and(|id| id != own.id) {
                continue;
            }
            for host in own.allocation.hosts() {
                found.entry(host).or_default().push((record.clone(), own.id));
            }
        }
    }
    found
}
