//! What is kept like leases and is none yet: offers, what is kept free for them, and requests that wait for their turn.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use leases::ids::{LeaseId, OffersId};
use leases::project::{Owner, ProjectId};
use leases::standing::Standing;
use store::{LeaseRecord, Write};

/// All of them, with indexes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Proposals {
    records: BTreeMap<LeaseId, Arc<LeaseRecord>>,
    /// By when they are forgotten.
    by_expiry: BTreeSet<(Timestamp, LeaseId)>,
    /// The waitlist: requests by when they were made.
    waiting: BTreeSet<(Timestamp, LeaseId)>,
    /// Offers.
    offered: BTreeSet<LeaseId>,
    /// What is reserved for them.
    reserved: BTreeSet<LeaseId>,
}

impl Proposals {
    pub fn get(&self, id: LeaseId) -> Option<&Arc<LeaseRecord>> {
        self.records.get(&id)
    }

    pub fn put(&mut self, record: Arc<LeaseRecord>) {
        let id = record.lease.id;
        self.remove(id);
        self.by_expiry.extend(record.lease.standing.until().map(|until| (until, id)));
        match record.lease.standing {
            Standing::Waiting { .. } => _ = self.waiting.insert((record.created_at, id)),
            Standing::Offered { .. } => _ = self.offered.insert(id),
            Standing::Kept { .. } => _ = self.reserved.insert(id),
            Standing::Firm => {}
        }
        self.records.insert(id, record);
    }

    pub fn remove(&mut self, id: LeaseId) -> Option<Arc<LeaseRecord>> {
        let record = self.records.remove(&id)?;
        if let Some(until) = record.lease.standing.until() {
            self.by_expiry.remove(&(until, id));
        }
        self.waiting.remove(&(record.created_at, id));
        self.offered.remove(&id);
        self.reserved.remove(&id);
        Some(record)
    }

    /// Offers that hold, by when they end.
    pub fn offers(&self, now: Timestamp) -> impl Iterator<Item = &Arc<LeaseRecord>> {
        let by_expiry = self.by_expiry.iter().filter(move |(until, _)| now < *until);
        let records = by_expiry.filter_map(|(_, id)| self.records.get(id));
        records.filter(|record| matches!(record.lease.standing, Standing::Offered { .. }))
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<LeaseRecord>> {
        self.records.values()
    }

    /// Offers, also such as do not hold any more.
    pub fn offered(&self) -> impl Iterator<Item = &Arc<LeaseRecord>> {
        self.offered.iter().filter_map(|id| self.records.get(id))
    }

    /// What is reserved for offers.
    pub fn reserved(&self) -> impl Iterator<Item = &Arc<LeaseRecord>> {
        self.reserved.iter().filter_map(|id| self.records.get(id))
    }

    /// Requests that wait, the first one first.
    pub fn waiting(&self) -> impl Iterator<Item = &Arc<LeaseRecord>> {
        self.waiting.iter().filter_map(|(_, id)| self.records.get(id))
    }

    /// How many requests of the project wait.
    pub fn waiting_of(&self, project: &ProjectId) -> usize {
        self.waiting().filter(|record| record.lease.owner.project == *project).count()
    }

    /// What is to be forgotten by now.
    pub fn expired(&self, now: Timestamp) -> impl Iterator<Item = &Arc<LeaseRecord>> {
        let expired = self.by_expiry.range(..=(now, LeaseId(u128::MAX)));
        expired.filter_map(|(_, id)| self.records.get(id))
    }

    /// When the next one is to be forgotten.
    pub fn next_expiry(&self) -> Option<Timestamp> {
        self.by_expiry.first().map(|(until, _)| *until)
    }

    /// Offers to someone, those of that group, and what is kept free for them.
    pub fn offers_to(&self, owner: &Owner, group: Option<OffersId>) -> Vec<Arc<LeaseRecord>> {
        let wanted = |record: &&Arc<LeaseRecord>| {
            let own = record.lease.standing.group();
            own.is_some() && (own == group || record.lease.owner == *owner)
        };
        self.records.values().filter(wanted).cloned().collect()
    }
}

/// Forgets it.
pub(crate) fn forget(record: &LeaseRecord) -> Write {
    Write::ForgetLease { id: record.lease.id, expected: record.version }
}
