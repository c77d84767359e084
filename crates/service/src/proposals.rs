//! What is kept like leases and is none yet: offers, what is kept free for them, and requests that wait for their turn.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use leases::ids::{LeaseId, OffersId};
use leases::offer::{HeldOffers, OfferKind};
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

    /// Offers that hold, by refusal, the newest first; those of one refusal in the order of their kinds.
    pub fn offers(&self, now: Timestamp) -> Vec<&Arc<LeaseRecord>> {
        let holds =
            |record: &&Arc<LeaseRecord>| record.lease.standing.until().is_some_and(|until| now < until);
        let mut offers: Vec<_> = self.offered().filter(holds).collect();
        offers.sort_by_key(|record| by_number(record));
        offers
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

    /// Offers of these groups with their reservations.
    pub fn of_groups(&self, groups: &BTreeSet<OffersId>) -> impl Iterator<Item = &Arc<LeaseRecord>> {
        let ids = self.offered.iter().chain(&self.reserved);
        let records = ids.filter_map(|id| self.records.get(id));
        records.filter(|record| record.lease.standing.group().is_some_and(|group| groups.contains(&group)))
    }

    /// The groups of held offers, each with its owner, also those that don't hold any more.
    pub fn held(&self) -> impl Iterator<Item = (HeldOffers, &Owner)> {
        self.offered().filter_map(|record| {
            let group = record.lease.standing.group()?;
            Some((HeldOffers { since: record.created_at, group }, &record.lease.owner))
        })
    }

    /// The groups of offers to change one of these leases.
    pub fn changing(&self, leases: &BTreeSet<LeaseId>) -> BTreeSet<OffersId> {
        let changes = |record: &&Arc<LeaseRecord>| match record.lease.standing {
            Standing::Offered { of: Some(lease), .. } => leases.contains(&lease),
            _ => false,
        };
        self.offered().filter(changes).filter_map(|record| record.lease.standing.group()).collect()
    }
}

/// The order in which offers to one user are numbered.
pub(crate) fn by_number(
    record: &LeaseRecord,
) -> (Reverse<Timestamp>, Option<OffersId>, Option<OfferKind>, LeaseId) {
    let kind = match record.lease.standing {
        Standing::Offered { kind, .. } => Some(kind),
        _ => None,
    };
    (Reverse(record.created_at), record.lease.standing.group(), kind, record.lease.id)
}

/// Forgets it.
pub(crate) fn forget(record: &LeaseRecord) -> Write {
    Write::ForgetLease { id: record.lease.id, expected: record.version }
}
