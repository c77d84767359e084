//! Refused requests in answers, for capacity planning. Not in Blazar.

use leases::shortage::Unmet;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Requests for the same kind of hosts, instances or addresses that were refused for lack of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RefusedRequests {
    /// Type of the reservation: `physical:host`, `virtual:instance`, `flavor:instance` or `virtual:floatingip`.
    pub resource_type: String,
    /// What was asked for: properties of hosts (`gpu=a100 and vcpus>=16`), size of instances, a flavor, or a network; empty
    /// for any host.
    pub kind: String,
    /// Number of refused requests.
    pub refused: u64,
    /// How many of them more capacity would have met, each by itself. Empty if none.
    pub met_by: Vec<MetBy>,
}

/// Number of refused requests that additional capacity would have met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MetBy {
    /// Additional hosts, instances or addresses.
    pub more: u32,
    /// Number of requests that so many would have met.
    pub met: u64,
}

impl From<Unmet> for RefusedRequests {
    fn from(Unmet { resource_type, kind, refused, met_by }: Unmet) -> Self {
        let met_by = met_by.into_iter().map(|(more, met)| MetBy { more, met }).collect();
        Self { resource_type, kind, refused, met_by }
    }
}
