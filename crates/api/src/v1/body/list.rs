//! Lists, which are paginated if a client asks for pages.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::v1::{Allocation, FloatingIp, Host, Instance, Lease, LeasePool};

/// An address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Link {
    /// The address.
    pub href: String,
    /// What is there: `next`, `self`.
    pub rel: String,
}

macro_rules! list {
    ($( $(#[doc = $doc:literal])+ $name:ident { $field:ident: $item:ty, $links:ident } )+) => { $(
        $(#[doc = $doc])+
        #[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
        pub struct $name {
            $(#[doc = $doc])+
            pub $field: Vec<$item>,
            /// Where there are more, if a limit was asked for.
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            pub $links: Vec<Link>,
        }
    )+ };
}

list! {
    /// Leases, in the order of their creation.
    LeasesBody { leases: Lease, leases_links }
    /// Lease pools, in the order in which their leases were created.
    LeasePoolsBody { leasepools: LeasePool, leasepools_links }
    /// Instances, in the order of their creation.
    InstancesBody { instances: Instance, instances_links }
    /// All hosts, by identifier.
    HostsBody { hosts: Host, hosts_links }
    /// What is reserved of each host, by its identifier.
    AllocationsBody { allocations: Allocation, allocations_links }
    /// All floating IPs, by identifier.
    FloatingIpsBody { floatingips: FloatingIp, floatingips_links }
}
