//! Records that are stored like leases but aren't leases: offers, the resources reserved for them, and
//! waiting requests.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use leases::ids::{LeaseId, OffersId};
use leases::offer::{HeldOffers, OfferKind};
use leases::project::{Owner, ProjectId};
use leases::standing::Standing;
use store::{LeaseRecord, Write};

/// All proposals, with indexes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Proposals {
    records: BTreeMap<LeaseId, Arc<LeaseRecord>>,
    /// By expiry.
    by_expiry: BTreeSet<(Timestamp, LeaseId)>,
    /// The waitlist: requests by creation.
    waiting: BTreeSet<(Timestamp, LeaseId)>,
    offered: BTreeSet<LeaseId>,
    /// Resources reserved for offers.
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

    /// Valid offers by refusal, newest refusal first. Within a refusal, offers are in the order of their
    /// kinds.
    pub fn offers(&self, now: Timestamp) -> Vec<&Arc<LeaseRecord>> {
        let holds =
            |record: &&Arc<LeaseRecord>| record.lease.standing.until().is_some_and(|until| now < until);
        let mut offers: Vec<_> = self.offered().filter(holds).collect();
        offers.sort_by_key(|record| by_number(record));
        offers
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<LeaseRecord>> {
        self.records.values()
    }

    /// All offers, including expired ones.
    pub fn offered(&self) -> impl Iterator<Item = &Arc<LeaseRecord>> {
        self.offered.iter().filter_map(|id| self.records.get(id))
    }

    /// Resources reserved for offers.
    pub fn reserved(&self) -> impl Iterator<Item = &Arc<LeaseRecord>> {
        self.reserved.iter().filter_map(|id| self.records.get(id))
    }

    /// Waiting requests, oldest first.
    pub fn waiting(&self) -> impl Iterator<Item = &Arc<LeaseRecord>> {
        self.waiting.iter().filter_map(|(_, id)| self.records.get(id))
    }

    /// Number of waiting requests of a project.
    pub fn waiting_of(&self, project: &ProjectId) -> usize {
        self.waiting().filter(|record| record.lease.owner.project == *project).count()
    }

    /// Proposals that expire by `now`.
    pub fn expired(&self, now: Timestamp) -> impl Iterator<Item = &Arc<LeaseRecord>> {
        let expired = self.by_expiry.range(..=(now, LeaseId(u128::MAX)));
        expired.filter_map(|(_, id)| self.records.get(id))
    }

    /// Time of the next expiry.
    pub fn next_expiry(&self) -> Option<Timestamp> {
        self.by_expiry.first().map(|(until, _)| *until)
    }

    /// Offers of these groups and the resources reserved for them.
    pub fn of_groups(&self, groups: &BTreeSet<OffersId>) -> impl Iterator<Item = &Arc<LeaseRecord>> {
        let ids = self.offered.iter().chain(&self.reserved);
        let records = ids.filter_map(|id| self.records.get(id));
        records.filter(|record| record.lease.standing.group().is_some_and(|group| groups.contains(&group)))
    }

    /// Groups of held offers with their owners, including expired groups.
    pub fn held(&self) -> impl Iterator<Item = (HeldOffers, &Owner)> {
        self.offered().filter_map(|record| {
            let group = record.lease.standing.group()?;
            Some((HeldOffers { since: record.created_at, group }, &record.lease.owner))
        })
    }

    /// Groups that contain an offer to change one of these leases.
    pub fn changing(&self, leases: &BTreeSet<LeaseId>) -> BTreeSet<OffersId> {
        let changes = |record: &&Arc<LeaseRecord>| match record.lease.standing {
            Standing::Offered { of: Some(lease), .. } => leases.contains(&lease),
            _ => false,
        };
        self.offered().filter(changes).filter_map(|record| record.lease.standing.group()).collect()
    }
}

/// Sort key by which offers to one user are numbered.
pub(crate) fn by_number(
    record: &LeaseRecord,
) -> (Reverse<Timestamp>, Option<OffersId>, Option<OfferKind>, LeaseId) {
    let kind = match record.lease.standing {
        Standing::Offered { kind, .. } => Some(kind),
        _ => None,
    };
    (Reverse(record.created_at), record.lease.standing.group(), kind, record.lease.id)
}

pub(crate) fn forget(record: &LeaseRecord) -> Write {
    Write::ForgetLease { id: record.lease.id, expected: record.version }
}
