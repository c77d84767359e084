//! Export of a whole store and its import into another one.

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

/// Contents of a store. Claims of steps and leadership are left out, because they end when no service uses
/// the store.
#[derive(Clone, Debug, Default)]
pub struct Archive {
    /// Records. Their revision isn't imported, because each store counts its own.
    pub snapshot: Snapshot,
    /// Notifications with their numbers, oldest first.
    pub notifications: Vec<Notification>,
    /// Highest number ever given to a notification.
    pub last_notification: u64,
    /// Number of the last notification that each listener was told.
    pub delivered: BTreeMap<String, u64>,
    pub audit: Vec<AuditRecord>,
    /// Idempotency keys.
    pub requests: Vec<IdempotencyRecord>,
    pub usage: Entries,
    /// Periods in which hosts were off, oldest first.
    pub slept: Vec<Sleep>,
    /// Refused requests, by project and day.
    pub refusals: Vec<RefusalRecord>,
    /// All intervals of occupancy, oldest first.
    pub occupancy: occupants::Changes,
    /// Token keys and revocations. A store that holds nothing else counts as empty, and its own are replaced
    /// by an import.
    pub tokens: TokenState,
    /// Highest fence ever given out. Drivers of fleets reject lower ones.
    pub last_fence: u64,
    /// Identifier of the store ([`crate::Origin::id`]). A copy keeps it, so it counts as the same store.
    pub id: Option<String>,
}

/// Reason why an archive wasn't imported.
#[derive(Debug, Error)]
pub enum ImportError {
    /// Only an empty store can import, so its records don't mix with the archive's.
    #[error("it is not empty")]
    NotEmpty,
    /// The archive's records contradict each other.
    #[error("cannot import the archive: {0}")]
    Refused(CommitError),
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
    /// A commit that adds all records, the audit log, usage and sleeps.
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
        // Every record has its own time, so the commit's isn't used.
        let (audit, usage, slept) = (self.audit.clone(), self.usage.clone(), self.slept.clone());
        Commit { writes, audit, usage, slept, ..Commit::new(Timestamp::UNIX_EPOCH) }
    }

    /// Whether there are no records and never was a notification. Tokens don't count, because a new service
    /// creates a key when it starts.
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
