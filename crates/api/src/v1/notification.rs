//! Notifications, one after the other (spec §3.6). Blazar sends them to a message bus; here they can be read.

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
    pub timestamp: String,
    /// What happened: `lease.create`, `lease.event.start_lease`.
    pub event_type: String,
    /// The lease.
    pub lease_id: String,
    /// The project that it belongs to.
    pub project_id: String,
    /// The lease as it was then.
    pub payload: Value,
}

impl From<&Record> for Notification {
    fn from(record: &Record) -> Self {
        let content = &record.content;
        Self {
            number: record.number,
            timestamp: record.at.to_string(),
            event_type: content.event_type.clone(),
            lease_id: content.lease.to_string(),
            project_id: content.project.0.clone(),
            // The service wrote it; if it is no JSON after all, it is shown as it is.
            payload: serde_json::from_str(&content.payload)
                .unwrap_or_else(|_| Value::String(content.payload.clone())),
        }
    }
}
