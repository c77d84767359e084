//! Leases in memory, with indexes for answers and plans.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use jiff::Timestamp;
use leases::hunt::may_hunt;
use leases::ids::{LeaseId, ReservationId};
use leases::lease_type::LeaseType;
use leases::project::ProjectId;
use leases::status::LeaseStatus;
use store::LeaseRecord;

use crate::listing::{Order, Page, Position};
use crate::sorted::Sorted;
use crate::types::LeaseFilter;

/// All leases, with indexes.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeaseIndex {
    records: BTreeMap<LeaseId, Arc<LeaseRecord>>,
    order: Order,
    by_status: BTreeMap<LeaseStatus, u64>,
    by_reservation: BTreeMap<ReservationId, LeaseId>,
    /// Pending leases by start.
    waiting: BTreeSet<(Timestamp, LeaseId)>,
    /// Pending best-effort leases by creation.
    hasty: BTreeSet<(Timestamp, LeaseId)>,
    /// Leases that are neither pending nor over.
    going: BTreeSet<LeaseId>,
    /// Leases that are over with a temporary reason, which is removed when its cause is gone.
    explained: BTreeSet<LeaseId>,
    degraded: BTreeSet<LeaseId>,
    /// Leases that are over, by their last change.
    ended: Sorted<(Timestamp, LeaseId)>,
    /// Leases that hunt, or would if guests were in their way, and ending leases whose own guests are moved
    /// away.
    hunters: BTreeSet<LeaseId>,
}

impl LeaseIndex {
    pub fn get(&self, id: LeaseId) -> Option<&Arc<LeaseRecord>> {
        self.records.get(&id)
    }

    /// All leases by creation.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<LeaseRecord>> {
        self.order.leases().filter_map(|id| self.records.get(&id))
    }

    /// At most `limit` matching leases after a position.
    pub fn page(&self, filter: &LeaseFilter, after: Option<Position>, limit: usize) -> Page<LeaseRecord> {
        self.order.page_of_leases(filter, after, limit, |id| self.records.get(&id))
    }

    /// Leases of a project by creation.
    pub fn of_project(&self, project: &ProjectId) -> impl Iterator<Item = &Arc<LeaseRecord>> {
        let leases = self.order.leases_of(project).filter_map(|id| self.records.get(&id));
        leases.filter(move |record| record.lease.owner.project == *project)
    }

    /// Number of leases by status.
    pub fn by_status(&self) -> &BTreeMap<LeaseStatus, u64> {
        &self.by_status
    }

    /// Leases that have less than they were promised.
    pub fn degraded(&self) -> &BTreeSet<LeaseId> {
        &self.degraded
    }

    pub fn of_reservation(&self, id: ReservationId) -> Option<LeaseId> {
        self.by_reservation.get(&id).copied()
    }

    /// Leases that are neither pending nor over.
    pub fn going(&self) -> impl Iterator<Item = &Arc<LeaseRecord>> {
        self.going.iter().filter_map(|id| self.records.get(id))
    }

    /// Leases that are neither pending nor over, from that identifier on.
    pub fn going_from(&self, from: LeaseId) -> impl Iterator<Item = &Arc<LeaseRecord>> {
        self.going.range(from..).filter_map(|id| self.records.get(id))
    }

    /// Leases that are neither pending nor over, and pending ones that start by `until`.
    pub fn to_tend(&self, until: Timestamp) -> impl Iterator<Item = &Arc<LeaseRecord>> {
        let coming = self.waiting.range(..=(until, LeaseId(u128::MAX))).map(|(_, id)| id);
        self.going.iter().chain(coming).filter_map(|id| self.records.get(id))
    }

    /// Leases that are running or start by `until`, and leases that are over with a temporary reason.
    pub fn due(&self, until: Timestamp) -> BTreeSet<LeaseId> {
        let coming = self.waiting.range(..=(until, LeaseId(u128::MAX))).map(|(_, id)| id);
        self.going.iter().chain(&self.explained).chain(coming).copied().collect()
    }

    /// Pending best-effort leases by creation.
    pub fn waiting_for_hosts(&self) -> impl Iterator<Item = &Arc<LeaseRecord>> {
        self.hasty.iter().filter_map(|(_, id)| self.records.get(id))
    }

    /// Leases that hunt, or would if guests were in their way, and ending leases whose own guests are moved
    /// away.
    pub fn hunters(&self) -> impl Iterator<Item = &Arc<LeaseRecord>> {
        self.hunters.iter().filter_map(|id| self.records.get(id))
    }

    /// Pending leases by start.
    pub fn pending(&self) -> impl Iterator<Item = &Arc<LeaseRecord>> {
        self.waiting.iter().filter_map(|(_, id)| self.records.get(id))
    }

    /// Leases that are over and were last changed before `until`, earliest first.
    pub fn ended_before(&self, until: Timestamp) -> impl Iterator<Item = &Arc<LeaseRecord>> {
        let ended = self.ended.from(Bound::Unbounded).take_while(move |(at, _)| *at < until);
        ended.filter_map(|(_, id)| self.records.get(&id))
    }

    /// Leases that are over and were last changed at `from` or later, earliest first.
    pub fn ended_since(&self, from: Timestamp) -> impl Iterator<Item = &Arc<LeaseRecord>> {
        let ended = self.ended.from(Bound::Included((from, LeaseId(0))));
        ended.filter_map(|(_, id)| self.records.get(&id))
    }

    /// For each project with more than `most` leases that are over, the oldest of these beyond that number.
    pub fn ended_beyond(&self, most: usize) -> Vec<&Arc<LeaseRecord>> {
        let ended = || self.ended.from(Bound::Unbounded).filter_map(|(_, id)| self.records.get(&id));
        let mut left: BTreeMap<&ProjectId, usize> = BTreeMap::new();
        for record in ended() {
            *left.entry(&record.lease.owner.project).or_default() += 1;
        }
        left.retain(|_, count| *count > most);
        let beyond = |record: &&Arc<LeaseRecord>| match left.get_mut(&record.lease.owner.project) {
            Some(count) if *count > most => {
                *count -= 1;
                true
            }
            _ => false,
        };
        ended().filter(beyond).collect()
    }

    /// Earliest start of a lease after `now`.
    pub fn next_start(&self, now: Timestamp) -> Option<Timestamp> {
        let later = (Bound::Excluded((now, LeaseId(u128::MAX))), Bound::Unbounded);
        self.waiting.range(later).next().map(|(start, _)| *start)
    }

    pub fn put(&mut self, record: Arc<LeaseRecord>) {
        let lease = &record.lease;
        self.remove(lease.id);
        self.order.put_lease(&record);
        *self.by_status.entry(lease.status).or_default() += 1;
        self.by_reservation.extend(lease.reservations.iter().map(|reservation| (reservation.id, lease.id)));
        if lease.status == LeaseStatus::Pending {
            self.waiting.insert((lease.window.start(), lease.id));
            if matches!(lease.lease_type, LeaseType::BestEffort { .. }) {
                self.hasty.insert((record.created_at, lease.id));
            }
        } else if !lease.over() {
            self.going.insert(lease.id);
        }
        if lease.degraded() {
            self.degraded.insert(lease.id);
        }
        if lease.over() {
            if lease.reason.is_some() && !lease.keeps_reason() {
                self.explained.insert(lease.id);
            }
            self.ended.insert((changed_at(&record), lease.id));
        }
        if may_hunt(lease) || lease.departing() {
            self.hunters.insert(lease.id);
        }
        self.records.insert(lease.id, record);
    }

    pub fn remove(&mut self, id: LeaseId) -> Option<Arc<LeaseRecord>> {
        let record = self.records.remove(&id)?;
        let lease = &record.lease;
        self.order.remove_lease(&record);
        if let Some(count) = self.by_status.get_mut(&lease.status) {
            *count -= 1;
        }
        self.hasty.remove(&(record.created_at, id));
        for reservation in &lease.reservations {
            self.by_reservation.remove(&reservation.id);
        }
        self.waiting.remove(&(lease.window.start(), id));
        self.going.remove(&id);
        self.explained.remove(&id);
        self.degraded.remove(&id);
        self.ended.remove(&(changed_at(&record), id));
        self.hunters.remove(&id);
        Some(record)
    }
}

fn changed_at(record: &LeaseRecord) -> Timestamp {
    record.updated_at.unwrap_or(record.created_at)
}
