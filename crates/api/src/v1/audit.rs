//! The audit trail: users and their changes. Blazar has these only in its log.

use serde::{Deserialize, Serialize};
use store::AuditRecord;
use utoipa::ToSchema;

/// A change, as recorded in the audit log.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// Number of the entry. Numbers increase over time.
    pub number: u64,
    /// Time of the change: UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub timestamp: String,
    /// User who made the change.
    pub user_id: String,
    /// Project of the request.
    pub project_id: String,
    /// Identifier of the request, from the response header `X-OpenStack-Request-ID`.
    pub request_id: String,
    /// Kind of change: `lease.create`, `host.update`.
    pub action: String,
    /// Identifier of the changed object.
    pub object_id: String,
}

impl AuditEntry {
    /// The record of that number.
    pub fn new(number: u64, record: AuditRecord) -> Self {
        Self {
            number,
            timestamp: record.at.to_string(),
            user_id: record.user.0,
            project_id: record.project.0,
            request_id: record.request_id,
            action: record.action,
            object_id: record.object,
        }
    }
}
