//! The audit trail: users and their changes. Blazar has these only in its log.

use serde::{Deserialize, Serialize};
use store::AuditRecord;
use utoipa::ToSchema;

/// A change that somebody made.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// Its number: later ones have higher numbers.
    pub number: u64,
    /// When it was made: UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub timestamp: String,
    /// Who made it.
    pub user_id: String,
    /// For which project.
    pub project_id: String,
    /// In which request: what the answer had in `X-OpenStack-Request-ID`.
    pub request_id: String,
    /// What was done: `lease.create`, `host.update`.
    pub action: String,
    /// To what, by its identifier.
    pub object_id: String,
}

impl AuditEntry {
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
