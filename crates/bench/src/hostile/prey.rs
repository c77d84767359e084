//! Prey: the objects (leases, hosts, tokens, ...) that attacks act on, and the requests that create them.

use serde_json::Value;

use super::attackers::Who;
use super::bodies;

/// Location of the name in the response: a JSON pointer, or a header.
#[derive(Clone, Copy, Debug)]
pub enum Found {
    Body(&'static str),
    Header(&'static str),
}

#[derive(Clone, Copy, Debug)]
pub struct Prey {
    /// Variable that stands for the name in paths, headers and bodies.
    pub name: &'static str,
    pub who: Who,
    pub request: &'static str,
    pub body: Option<fn() -> Value>,
    pub found: Found,
}

const fn prey(
    name: &'static str,
    who: Who,
    request: &'static str,
    body: fn() -> Value,
    at: &'static str,
) -> Prey {
    Prey { name, who, request, body: Some(body), found: Found::Body(at) }
}

/// In order of creation: the requests of later entries can use the variables of earlier ones.
pub const PREY: [Prey; 12] = [
    prey("lease_id", Who::Member, "POST /v1/leases", bodies::large_lease, "/lease/id"),
    prey("series_id", Who::Member, "POST /v1/leases", bodies::long_series, "/lease/series_id"),
    prey("offer_id", Who::Member, "POST /v1/leases?hold_offers=true", bodies::refused, "/offers/0/id"),
    prey("waitlist_entry_id", Who::Member, "POST /v1/leases", bodies::waiting, "/waitlist_entry/id"),
    prey("instance_id", Who::Member, "POST /v1/instances", bodies::instance, "/instance/id"),
    prey("leasepool_id", Who::Member, "POST /v1/leasepools", bodies::small_lease_pool, "/leasepool/id"),
    Prey {
        name: "pooled_host",
        who: Who::Member,
        request: "GET /v1/leasepools/{leasepool_id}/hosts",
        body: None,
        found: Found::Body("/hosts/0/id"),
    },
    prey("host_id", Who::Admin, "POST /v1/os-hosts", bodies::host, "/host/id"),
    prey("freepool", Who::Admin, "POST /v1/freepools", bodies::free_pool, "/freepool/name"),
    prey("floatingip_id", Who::Admin, "POST /v1/floatingips", bodies::floating_ip, "/floatingip/id"),
    prey("flavor_id", Who::Admin, "POST /v1/flavors", bodies::flavor, "/flavor/id"),
    Prey {
        name: "subject_token",
        who: Who::Nobody,
        request: "POST /identity/v3/auth/tokens",
        body: Some(bodies::login),
        found: Found::Header("x-subject-token"),
    },
];
