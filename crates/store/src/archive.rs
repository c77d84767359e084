//! Everything that a store keeps, to be taken into another one.

use std::collections::BTreeMap;

use jiff::Timestamp;
use leases::energy::Sleep;
use leases::occupants;
use leases::usage::Entries;
use thiserror::Error;

use crate::{
    AuditRecord, Commit, CommitError, IdempotencyRecord, Notification, RefusalRecord, Snapshot, StoreError,
    TokenState, Write,
};

/// The contents of a store: all but who claims steps and who leads, which is over when nobody works on it.
#[derive(Clone, Debug, Default)]
pub struct Archive {
    /// Records. Their revision is the store's own, and not taken into another one.
    pub snapshot: Snapshot,
    /// Notifications, oldest first, with their numbers.
    pub notifications: Vec<Notification>,
    /// The highest number that was given to a notification.
    pub last_notification: u64,
    /// How far listeners were told.
    pub delivered: BTreeMap<String, u64>,
    /// The audit log, oldest first.
    pub audit: Vec<AuditRecord>,
    /// Keys of requests.
    pub requests: Vec<IdempotencyRecord>,
    /// Usage: all spans, and what happened, oldest first.
    pub usage: Entries,
    /// Times that hosts were off for, oldest first.
    pub slept: Vec<Sleep>,
    /// Refused requests, by project and day.
    pub refusals: Vec<RefusalRecord>,
    /// Occupancy: all intervals, oldest first.
    pub occupancy: occupants::Changes,
    /// Keys of tokens and revocations. A store that has nothing else counts as empty, and takes these instead.
    pub tokens: TokenState,
    /// The highest fence that was given out: what carries out steps refuses lower ones.
    pub last_fence: u64,
    /// Which store it is ([`crate::Origin::id`]), so that a copy is the same one.
    pub id: Option<String>,
}

/// Why nothing was taken in.
#[derive(Debug, Error)]
pub enum ImportError {
    /// Only an empty store takes anything in: what is there would be mixed up with it.
    #[error("it is not empty")]
    NotEmpty,
    /// The records contradict each other.
    #[error("what is to be taken in is refused: {0}")]
    Refused(CommitError),
    /// The store does not work.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<CommitError> for ImportError {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Store(error) => Self::Store(error),
            refused => Self::Refused(refused),
        }
    }
}

impl Archive {
    /// A commit that enters all records, with the audit log and usage.
    pub fn commit(&self) -> Commit {
        let Snapshot { free_pools, hosts, floating_ips, leases, instances, .. } = &self.snapshot;
        let mut writes = Vec::with_capacity(hosts.len() + leases.len());
        writes.extend(
            free_pools
                .iter()
                .map(|record| Write::FreePool { record: Box::new(record.clone()), expected: None }),
        );
        writes.extend(
            hosts.iter().map(|record| Write::Host { record: Box::new(record.clone()), expected: None }),
        );
        writes.extend(floating_ips.iter().cloned().map(Write::AddFloatingIp));
        writes.extend(self.snapshot.documents().map(Write::from));
        writes.extend(
            leases.iter().map(|record| Write::Lease { record: Box::new(record.clone()), expected: None }),
        );
        writes.extend(
            instances
                .iter()
                .map(|record| Write::Instance { record: Box::new(record.clone()), expected: None }),
        );
        // No record takes its time from it.
        let (audit, usage, slept) = (self.audit.clone(), self.usage.clone(), self.slept.clone());
        Commit { writes, audit, usage, slept, ..Commit::new(Timestamp::UNIX_EPOCH) }
    }

    /// Whether there is nothing in it, and never was.
    pub fn is_empty(&self) -> bool {
        let Commit { writes, audit, usage, slept, .. } = self.commit();
        writes.is_empty()
            && audit.is_empty()
            && usage.is_empty()
            && slept.is_empty()
            && self.refusals.is_empty()
            && self.occupancy.is_empty()
            && self.last_notification == 0
    }
}
