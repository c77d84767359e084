//! Refused requests in answers, for capacity planning. Not in Blazar.

use leases::shortage::Unmet;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Requests for the same kind of hosts, instances or addresses that were rejected for lack of capacity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RefusedRequests {
    /// Type of the reservation: `physical:host`, `virtual:instance`, `flavor:instance` or `virtual:floatingip`.
    pub resource_type: String,
    /// Requested resource: properties of hosts (`gpu=a100 and vcpus>=16`), size of instances, a flavor, or a
    /// network; empty for any host.
    pub kind: String,
    /// Number of rejected requests.
    pub refused: u64,
    /// Number of these requests that additional capacity would have met, each request judged separately.
    /// Empty if more capacity wouldn't have helped.
    pub met_by: Vec<MetBy>,
}

/// Number of rejected requests that additional capacity would have met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MetBy {
    /// Number of additional hosts, instances or addresses.
    pub more: u32,
    /// Number of requests that they would have met.
    pub met: u64,
}

impl From<Unmet> for RefusedRequests {
    fn from(Unmet { resource_type, kind, refused, met_by }: Unmet) -> Self {
        let met_by = met_by.into_iter().map(|(more, met)| MetBy { more, met }).collect();
        Self { resource_type, kind, refused, met_by }
    }
}
