//! Differences between the store and the fleet. Not in Blazar.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A difference.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DriftEntry {
    /// What kind: `wrong_clock`, `foreign_fleet`, `machine_gone`, `not_taken_on`, `stray`,
    /// `foreign_guest`, `changed`, `overruled`, `cloud_differs`, `ownerless`, `step_fails`.
    pub kind: String,
    /// The machine that it is about, if it is about one.
    pub host_id: Option<String>,
    /// What is the matter, and what to do.
    pub message: String,
    /// Whether a repair can do something about it.
    pub repairable: bool,
}
