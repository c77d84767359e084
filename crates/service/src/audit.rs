//! The audit log.

use store::{AuditFilter, AuditRecord, Commit};

use crate::service::Service;
use crate::types::{Caller, ServiceError};
use crate::writing::{audit, conflict_error, retry_on_conflict};

/// Access to audit records.
#[derive(Clone, Copy, Debug)]
pub struct Audit<'a> {
    pub(crate) service: &'a Service,
}

impl<'a> Audit<'a> {
    pub(crate) fn of(service: &'a Service) -> Self {
        Self { service }
    }

    /// Audit records with their numbers, newest first. With `before`, only records with lower numbers.
    pub async fn page(
        self,
        filter: &AuditFilter,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<(u64, AuditRecord)>, ServiceError> {
        self.service.store_read(self.service.parts.store.audit_page(filter, before, limit)).await
    }

    /// Adds an audit record of an event that changes no data: a failed login, or an event of the service itself. The
    /// record expires by age only.
    pub async fn note(self, caller: &Caller, action: &str, object: &str) -> Result<(), ServiceError> {
        let writer = self.service.writer().await?;
        let now = self.service.now();
        let mut commit = Commit::new(now);
        commit.audit.push(AuditRecord { protected: true, ..audit(caller, now, action, &object) });
        writer
            .commit(commit)
            .await
            .map_err(|error| retry_on_conflict(error).err().unwrap_or_else(conflict_error))
    }
}
