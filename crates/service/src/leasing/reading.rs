//! Reading leases. Nothing here waits for the store.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use leases::hunt::{Hunt, Move, MoveState};
use leases::ids::{HostId, LeaseId, ReservationId};
use leases::lease::Lease;
use leases::lease_pool::pools;
use leases::lease_type::Deadlines;
use leases::status::LeaseStatus;
use leases::work::Budget;
use store::LeaseRecord;

use super::Leases;
use crate::listing::{Page, Position, whole};
use crate::state::State;
use crate::types::{AllocationFilter, HostAllocation, LeaseFilter, ServiceError};

/// Number of reservations at which a page of allocations ends, after completing the current host.
const MOST_RESERVATIONS: usize = 1024;

impl Leases<'_> {
    /// Maximum time that leases wait for their start.
    pub fn deadlines(self) -> Deadlines {
        self.service.decider.settings.rules.deadlines
    }

    pub fn get(self, id: LeaseId) -> Option<Arc<LeaseRecord>> {
        self.service.state().leases.get(id).cloned()
    }

    /// Guest moves planned for a lease, and the state of each at the last observation.
    pub fn moves(self, lease: &Lease) -> Vec<(Move, MoveState)> {
        let state = self.service.state();
        let progress = self.service.progress();
        let moves = lease.hunt.iter().flat_map(|hunt| &hunt.moves);
        let shown = |mov: &Move| match Hunt::state(mov, &progress.observed, &state.history) {
            // The guest moved between two observations.
            MoveState::Gone if progress.is_moving(mov) => MoveState::Moving { percent: None },
            known => known,
        };
        moves.map(|mov| (*mov, shown(mov))).collect()
    }

    /// Matching leases in order of creation.
    pub fn all(self, filter: &LeaseFilter) -> Vec<Arc<LeaseRecord>> {
        let state = self.service.snapshot();
        whole(|after| state.leases.page(filter, after, usize::MAX))
    }

    /// At most `limit` matching leases after a position, in order of creation.
    pub fn page(self, filter: &LeaseFilter, after: Option<Position>, limit: usize) -> Page<LeaseRecord> {
        self.service.state().leases.page(filter, after, limit)
    }

    /// One entry per host, or only the filter's host, with its reservations. Reservations that are over are
    /// included only if the filter names a lease or a reservation.
    pub async fn allocations(self, filter: &AllocationFilter) -> Result<Vec<HostAllocation>, ServiceError> {
        let all = |budget: &Budget| {
            let state = self.service.snapshot();
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
        self.service.consider(all).await
    }

    /// A page of [`Self::allocations`]: at most `limit` hosts after `after`, ordered by identifier, or fewer
    /// if they have many reservations. Also returns the last of these hosts if more follow.
    pub fn allocations_after(
        self,
        filter: &AllocationFilter,
        after: Option<HostId>,
        limit: usize,
    ) -> (Vec<HostAllocation>, Option<HostId>) {
        allocations_after(&self.service.state(), filter, after, limit)
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

/// Current and future reservations of the host.
fn booked(state: &State, host: HostId) -> Reservations {
    let bookings = state.calendar.bookings(host);
    let records =
        bookings.filter_map(|(_, booking)| Some((state.leases.get(booking.lease)?, booking.reservation)));
    let kept = records.filter(|(record, _)| record.lease.keeps_resources());
    kept.map(|(record, id)| (record.clone(), id)).collect()
}

/// Allocations of the lease or the reservation, by host.
fn named(
    state: &State,
    lease: Option<LeaseId>,
    reservation: Option<ReservationId>,
) -> BTreeMap<HostId, Reservations> {
    let of_reservation = reservation.and_then(|id| state.leases.of_reservation(id));
    let record = lease.or(of_reservation).and_then(|id| state.leases.get(id));
    let mut found: BTreeMap<HostId, Reservations> = BTreeMap::new();
    // A client that names a finished lease can see its hosts, although they are no longer reserved.
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
