//! Leases that start immediately: the answer waits for the start (CLS-02).

use std::sync::Arc;
use std::time::Duration;

use leases::ids::LeaseId;
use leases::reason::for_owner;
use leases::status::LeaseStatus;
use store::LeaseRecord;

use super::Leases;
use crate::types::ServiceError;

/// Time that the answer waits beyond the start deadline, because the store can be slow to show the outcome.
const PATIENCE: Duration = Duration::from_secs(30);

impl Leases<'_> {
    /// Waits until the lease has started. If it doesn't start, this is an error and the lease is gone: its
    /// deadline ends it, whether or not a client waits. If the outcome isn't known in time, the error is
    /// `StoreError::Unavailable`.
    pub async fn started(self, id: LeaseId) -> Result<Arc<LeaseRecord>, ServiceError> {
        let limit = self.service.decider.settings.rules.deadlines.immediate.unsigned_abs() + PATIENCE;
        let unknown = || format!("whether lease {id} has started is not known yet");
        tokio::time::timeout(limit, self.start_of(id))
            .await
            .unwrap_or_else(|_| Err(ServiceError::Store(store::StoreError::Unavailable(unknown()))))
    }

    async fn start_of(self, id: LeaseId) -> Result<Arc<LeaseRecord>, ServiceError> {
        let mut changes = self.service.changes.subscribe();
        let mut reason = None;
        loop {
            let lease = self.get(id).filter(|record| record.lease.status != LeaseStatus::Deleting);
            let Some(record) = lease else { return Err(ServiceError::NotStarted(reason)) };
            match record.lease.status {
                LeaseStatus::Creating | LeaseStatus::Pending | LeaseStatus::Starting => {
                    let owned = |reason: &String| for_owner(reason).to_owned();
                    reason = record.lease.reason.as_ref().map(owned).or(reason);
                }
                _ => return Ok(record),
            }
            if changes.changed().await.is_err() {
                return Err(ServiceError::NotStarted(reason));
            }
        }
    }
}
