//! The sequence of notifications (API-notifications). Blazar sends them to a message bus; here they can be
//! read.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::Notification as Record;
use utoipa::ToSchema;

/// A notification.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Notification {
    /// Number of the notification. Numbers increase over time.
    pub number: u64,
    /// Time of creation: UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub timestamp: String,
    /// Kind of event: `lease.create`, `lease.event.start_lease`, `host.boot_failed`.
    pub event_type: String,
    /// Identifier of the lease; null if the event is about an instance or a host.
    pub lease_id: Option<String>,
    /// Project that owns the object; null if the event is about a host.
    pub project_id: Option<String>,
    /// The lease, instance or host at the time of the event.
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
