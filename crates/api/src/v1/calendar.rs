//! The calendar of hosts and their leases, in answers. Not in Blazar.

use std::borrow::Cow;

use jiff::Timestamp;
use leases::window::Window;
use serde::{Deserialize, Serialize};
use store::LeaseRecord;
use utoipa::ToSchema;

/// Event in the stream of calendar changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CalendarChange {
    /// Always `revision`.
    pub event: String,
    /// Revision of the calendar. Send it as `Last-Event-ID` to continue the stream.
    pub id: String,
    /// The revision as JSON: `{"revision": "..."}`.
    pub data: String,
}

/// Page of the calendar: hosts, and their reservations within a time window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Calendar {
    /// Start of the window: UTC, RFC 3339, like all times in the calendar.
    #[schema(format = "date-time")]
    pub start: String,
    /// End of the window.
    #[schema(format = "date-time")]
    pub end: String,
    /// Current time of the service.
    #[schema(format = "date-time")]
    pub now: String,
    /// Revision of the service's state. It differs after every change.
    pub revision: String,
    /// Length of each span in `buckets`, in minutes; null if the calendar shows bars.
    pub bucket_minutes: Option<u64>,
    /// Hosts, sorted by group if they are grouped, then by identifier.
    pub hosts: Vec<CalendarHost>,
    /// Leases that bars refer to by position. Only leases that the caller can see.
    pub leases: Vec<CalendarLease>,
    /// Value of `marker` for the next page; null on the last page.
    pub next: Option<String>,
}

/// A host in the calendar.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CalendarHost {
    /// Identifier of the host.
    pub id: String,
    /// Name of the host; null if the caller can't see it.
    pub name: Option<String>,
    /// Name of the host's free pool; null if the caller can't see it.
    pub pool: Option<String>,
    /// Value of the property that hosts are grouped by; null if the host has no value, or hosts aren't
    /// grouped.
    pub group: Option<String>,
    /// Current status: `open`, `closed`, `failed` or `maintenance`.
    #[schema(value_type = String)]
    pub status: Cow<'static, str>,
    /// Power state: `on`, also while the host boots, or `off`; null if the caller can't see it.
    #[schema(value_type = Option<String>)]
    pub power: Option<Cow<'static, str>>,
    /// Uses of the host, by start; absent if the request has `bucket`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bars: Option<Vec<CalendarBar>>,
    /// Average share of the host that is reserved in each span, in thousandths, rounded up. The first span
    /// starts at `start`, and the last one ends at `end`. Absent unless the request has `bucket`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buckets: Option<Vec<u16>>,
}

/// Period during which a host is used.
// There are many of these, so times become text only when they are sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CalendarBar {
    /// Kind of use: `lease`, `offer`, `maintenance`, `instance` (outside of leases), `preemptible`, or
    /// `other` if the caller can't see the details.
    #[schema(value_type = String)]
    pub kind: Cow<'static, str>,
    /// Start. Can be before the start of the calendar.
    #[schema(value_type = String, format = "date-time")]
    pub start: Timestamp,
    /// End; null if there is none. For a preemptible instance, the time of its preemption notice.
    #[schema(value_type = Option<String>, format = "date-time")]
    pub end: Option<Timestamp>,
    /// Position of the lease in `leases`; null if there is no lease, or the caller can't see it.
    pub lease: Option<usize>,
    /// Number of instances that the reserved capacity is for; null for whole hosts, or if the caller can't
    /// see it.
    pub instances: Option<u64>,
    /// Whether the whole host is used.
    pub whole: bool,
}

/// A lease in the calendar.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CalendarLease {
    /// Identifier of the lease.
    pub id: String,
    /// Name of the lease.
    pub name: String,
    /// Project that owns the lease.
    pub project_id: String,
    /// Status of the lease.
    pub status: String,
    /// Start of the lease.
    #[schema(value_type = String, format = "date-time")]
    pub start_date: Timestamp,
    /// End of the lease.
    #[schema(value_type = String, format = "date-time")]
    pub end_date: Timestamp,
    /// Whether the lease belongs to the caller's project.
    pub mine: bool,
}

impl CalendarLease {
    /// The lease in a calendar. `mine`: it is the reader's own.
    pub fn of(record: &LeaseRecord, mine: bool) -> Self {
        let lease = &record.lease;
        Self {
            id: lease.id.to_string(),
            name: lease.name.clone(),
            project_id: lease.owner.project.0.clone(),
            status: lease.status.name().to_owned(),
            start_date: lease.window.start(),
            end_date: lease.window.end(),
            mine,
        }
    }
}

impl Calendar {
    /// A calendar of that window, still without hosts and leases.
    pub fn new(within: &Window, now: Timestamp, revision: String) -> Self {
        Self {
            start: within.start().to_string(),
            end: within.end().to_string(),
            now: now.to_string(),
            revision,
            bucket_minutes: None,
            hosts: Vec::new(),
            leases: Vec::new(),
            next: None,
        }
    }
}
