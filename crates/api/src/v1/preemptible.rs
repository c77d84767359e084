//! Usage by preemptible instances, and projects whose instances are preemptible (PRE). Not in Blazar.

use jiff::Timestamp;
use leases::preemption::ProjectPattern;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::date::rfc_3339_seconds;

const US_PER_HOUR: f64 = 3.6e9;

/// Usage of preemptible instances in a past period.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PreemptibleUsage {
    /// Start of the period: UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub start: String,
    /// End of the period: UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub end: String,
    /// Number of instances that started running.
    pub begun: u64,
    /// Number of instances that were preempted for leases.
    pub preempted: u64,
    /// Running time of all instances, in hours.
    pub hours: f64,
    /// CPUs of instances, in core-hours.
    pub core_hours: f64,
    /// Running time of preempted instances, in hours. This work is lost if they saved nothing.
    pub hours_lost: f64,
    /// Share of all CPUs of all hosts that preemptible instances used, from 0 to 1. Null for callers who
    /// can't see hosts.
    pub utilisation_gained: Option<f64>,
}

/// Pattern of projects whose instances are preemptible, unless a request says otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PreemptibleProject {
    /// Pattern of project identifiers: `*` matches any text and `?` any character.
    pub pattern: String,
    /// Time at which the pattern was added; null for patterns from the operator's settings.
    #[schema(format = "date-time")]
    pub created_at: Option<String>,
}

impl PreemptibleProject {
    /// A pattern of the list. `since` is when it was added, and `None` if the settings have it.
    pub fn of(pattern: &ProjectPattern, since: Option<Timestamp>) -> Self {
        Self { pattern: pattern.to_string(), created_at: since.map(rfc_3339_seconds) }
    }
}

/// Converts microseconds to hours.
#[expect(clippy::cast_precision_loss, reason = "it is shown, and nothing is computed from it")]
pub fn hours(us: u128) -> f64 {
    us as f64 / US_PER_HOUR
}
