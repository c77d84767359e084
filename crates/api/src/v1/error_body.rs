//! Answers to requests that have no effect.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::offer::Offer;

/// Response to a request that was rejected or failed. The request has no effect.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// HTTP status.
    pub error_code: u16,
    /// Description of the error.
    pub error_message: String,
    /// HTTP status, repeated as in Blazar.
    pub error_name: u16,
    /// Details that help to correct the request, such as the number of hosts that each filter ruled out. Not
    /// in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Alternatives to the request. Not in Blazar.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offers: Vec<Offer>,
}
