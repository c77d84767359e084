//! Lists, which are paginated if a client asks for pages.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::v1::{Allocation, FloatingIp, Host, Instance, Lease, LeasePool};

/// A link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Link {
    /// URL of the link.
    pub href: String,
    /// Relation of the link: `next`, `self`.
    pub rel: String,
}

macro_rules! list {
    ($( $(#[doc = $doc:literal])+ $name:ident { $field:ident: $item:ty, $links:ident } )+) => { $(
        $(#[doc = $doc])+
        #[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
        pub struct $name {
            $(#[doc = $doc])+
            pub $field: Vec<$item>,
            /// Link to the next page, if the request has a limit; absent on the last page.
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            pub $links: Vec<Link>,
        }
    )+ };
}

list! {
    /// Leases, by time of creation.
    LeasesBody { leases: Lease, leases_links }
    /// Lease pools, by creation time of their leases.
    LeasePoolsBody { leasepools: LeasePool, leasepools_links }
    /// Instances, by time of creation.
    InstancesBody { instances: Instance, instances_links }
    /// Hosts, by identifier.
    HostsBody { hosts: Host, hosts_links }
    /// Reservations of each host, by identifier of the host.
    AllocationsBody { allocations: Allocation, allocations_links }
    /// Floating IPs, by identifier.
    FloatingIpsBody { floatingips: FloatingIp, floatingips_links }
}
