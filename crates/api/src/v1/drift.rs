//! Differences between the store and the fleet. Not in Blazar.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A difference between store and fleet.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DriftEntry {
    /// Kind of difference: `wrong_clock`, `foreign_fleet`, `machine_gone`, `not_taken_on`, `stray`,
    /// `foreign_guest`, `changed`, `overruled`, `cloud_differs`, `ownerless`, `step_fails`.
    pub kind: String,
    /// Identifier of the machine; null if the difference isn't about a machine.
    pub host_id: Option<String>,
    /// Description of the difference, and its remedy.
    pub message: String,
    /// Whether a repair can correct the difference.
    pub repairable: bool,
}
