//! The sequence of notifications (API-notifications). Blazar sends them to a message bus; here they can be
//! read.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::Notification as Record;
use utoipa::ToSchema;

/// A notification.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Notification {
    /// Its number: later ones have higher numbers.
    pub number: u64,
    /// When it was made: UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub timestamp: String,
    /// What happened: `lease.create`, `lease.event.start_lease`, `host.boot_failed`.
    pub event_type: String,
    /// The lease; nothing of what is about an instance or a host.
    pub lease_id: Option<String>,
    /// The project of its owner; nothing of what is about a host.
    pub project_id: Option<String>,
    /// The lease, the instance or the host, as it was then.
    pub payload: Value,
}

impl From<&Record> for Notification {
    fn from(record: &Record) -> Self {
        let content = &record.content;
        Self {
            number: record.number,
            timestamp: record.at.to_string(),
            event_type: content.event_type.clone(),
            lease_id: content.lease.map(|lease| lease.to_string()),
            project_id: Some(content.project.0.clone()).filter(|project| !project.is_empty()),
            // The service wrote it as JSON. If it isn't JSON after all, it is shown as text.
            payload: serde_json::from_str(&content.payload)
                .unwrap_or_else(|_| Value::String(content.payload.clone())),
        }
    }
}
