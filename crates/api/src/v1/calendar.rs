//! The calendar of hosts and their leases, in answers. Not in Blazar.

use std::borrow::Cow;

use jiff::Timestamp;
use leases::window::Window;
use serde::{Deserialize, Serialize};
use store::LeaseRecord;
use utoipa::ToSchema;

/// Word of a change, as the stream of changes sends it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CalendarChange {
    /// `revision`.
    pub event: String,
    /// The calendar's revision, to go on from with `Last-Event-ID`.
    pub id: String,
    /// The same as JSON: `{"revision": "..."}`.
    pub data: String,
}

/// A part of the calendar: hosts, and what is on them within a window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Calendar {
    /// From when: UTC, RFC 3339, as all times here.
    #[schema(format = "date-time")]
    pub start: String,
    /// Until when.
    #[schema(format = "date-time")]
    pub end: String,
    /// The service's time.
    #[schema(format = "date-time")]
    pub now: String,
    /// As of which state of the service: another text after every change.
    pub revision: String,
    /// How long the spans of `buckets` are, in minutes; null where bars are shown.
    pub bucket_minutes: Option<u64>,
    /// Hosts, by group if they are grouped, and by identifier.
    pub hosts: Vec<CalendarHost>,
    /// The leases that bars refer to by position: those that the caller may know.
    pub leases: Vec<CalendarLease>,
    /// The `marker` that the rest is asked for with; null if this is the last part.
    pub next: Option<String>,
}

/// A host in the calendar.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CalendarHost {
    /// Its identifier.
    pub id: String,
    /// Its name; null where the caller may not know it.
    pub name: Option<String>,
    /// The name of its pool; null where the caller may not know it.
    pub pool: Option<String>,
    /// The value that it is grouped by; null if it has none, or hosts are not grouped.
    pub group: Option<String>,
    /// How it is at present: `open`, `closed`, `failed` or `maintenance`.
    #[schema(value_type = String)]
    pub status: Cow<'static, str>,
    /// `on` or `off`; null where the caller may not know.
    #[schema(value_type = Option<String>)]
    pub power: Option<Cow<'static, str>>,
    /// What is on it, by start; absent where buckets are asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bars: Option<Vec<CalendarBar>>,
    /// How much of it is reserved on average in each span from `start` on, in thousandths, rounded up; the last span ends
    /// at `end`. Absent unless buckets are asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buckets: Option<Vec<u16>>,
}

/// A time during which something is on a host. There are many of them, so that times become text only as they are sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CalendarBar {
    /// `lease`, `offer`, `maintenance`, `instance` (of no lease), `preemptible`, or `other`: what the caller may not know.
    #[schema(value_type = String)]
    pub kind: Cow<'static, str>,
    /// From when, also if that is before the start of the calendar.
    #[schema(value_type = String, format = "date-time")]
    pub start: Timestamp,
    /// Until when; null if there is no end. Of a preemptible instance, when it is asked to leave.
    #[schema(value_type = Option<String>, format = "date-time")]
    pub end: Option<Timestamp>,
    /// The position of the lease in `leases`; null if the caller may not know it, or there is none.
    pub lease: Option<usize>,
    /// How many instances there is room for; null of a whole host, or if the caller may not know.
    pub instances: Option<u64>,
    /// Whether it is about the whole host.
    pub whole: bool,
}

/// A lease in the calendar.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CalendarLease {
    /// Its identifier.
    pub id: String,
    pub name: String,
    /// The project it belongs to.
    pub project_id: String,
    /// Its status, as of a lease.
    pub status: String,
    /// From when.
    #[schema(value_type = String, format = "date-time")]
    pub start_date: Timestamp,
    /// Until when.
    #[schema(value_type = String, format = "date-time")]
    pub end_date: Timestamp,
    /// Whether it is one of the caller's project.
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
