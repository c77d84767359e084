//! Usage by preemptible instances, and projects whose instances are preemptible (PRE). Not in Blazar.

use jiff::Timestamp;
use leases::preemption::ProjectPattern;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::date::rfc_3339_seconds;

const US_PER_HOUR: f64 = 3.6e9;

/// What preemptible instances came to in a period that is past.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PreemptibleUsage {
    /// From when: UTC.
    #[schema(format = "date-time")]
    pub start: String,
    /// Until when.
    #[schema(format = "date-time")]
    pub end: String,
    /// Instances that began to run.
    pub begun: u64,
    /// Instances that were preempted for leases.
    pub preempted: u64,
    /// How many hours instances ran, all together.
    pub hours: f64,
    /// CPUs times the hours that they were used.
    pub core_hours: f64,
    /// How many hours those had run that were preempted: what is lost if they kept nothing.
    pub hours_lost: f64,
    /// The part of all CPUs of all hosts that was used so, from 0 to 1; null to callers who may not see hosts.
    pub utilisation_gained: Option<f64>,
}

/// Projects whose instances are preemptible unless a request says otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PreemptibleProject {
    /// Their identifiers, with `*` for anything and `?` for any character.
    pub pattern: String,
    /// Since when they are listed; null if by the settings.
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
