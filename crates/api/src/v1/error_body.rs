//! Answers to requests that have no effect.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::offer::Offer;

/// The answer to a request that has no effect.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// The HTTP status.
    pub error_code: u16,
    /// What is wrong.
    pub error_message: String,
    /// The HTTP status again, as in Blazar.
    pub error_name: u16,
    /// What would help: which filter ruled out how many hosts, say. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// What could be had instead. Not in Blazar.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offers: Vec<Offer>,
}
