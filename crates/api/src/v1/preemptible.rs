//! What preemptible instances came to (spec §6). Not in Blazar.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

const US_PER_HOUR: f64 = 3.6e9;

/// What preemptible instances came to in a period that is past.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PreemptibleUsage {
    /// From when: UTC.
    pub start: String,
    /// Until when.
    pub end: String,
    /// Instances that began to run.
    pub begun: u64,
    /// Instances that made way for leases.
    pub preempted: u64,
    /// How many hours instances ran, all together.
    pub hours: f64,
    /// CPUs times the hours that they were used.
    pub core_hours: f64,
    /// How many hours those had run that made way: what is lost if they kept nothing.
    pub hours_lost: f64,
    /// The part of all CPUs of all hosts that was used so, from 0 to 1; null to callers who may not see hosts.
    pub utilisation_gained: Option<f64>,
}

/// Microseconds as hours.
#[expect(clippy::cast_precision_loss, reason = "it is shown, and nothing is computed from it")]
pub fn hours(us: u128) -> f64 {
    us as f64 / US_PER_HOUR
}
