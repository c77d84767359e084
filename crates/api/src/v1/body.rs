//! Bodies of requests and answers in the form that the document describes, also for clients of our own. The
//! readers ([`super::LeaseRequest`] and so on) also accept other forms from sloppier clients.

mod instance;
mod lease;
mod list;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

pub use self::instance::{HostsQuestion, InstanceCreate, LeaseHints, VendordataRequest};
pub use self::lease::{LeaseChange, LeaseCreate, RepeatCreate, ReservationChange, ReservationCreate};
pub use self::list::{
    AllocationsBody, FloatingIpsBody, HostsBody, InstancesBody, LeasePoolsBody, LeasesBody, Link,
};
use super::{
    Allocation, AuditEntry, Availability, BillingLine, Calendar, DriftEntry, EnergyHost, EnergyPool,
    EnergyPoolReport, Flavor, FlavorAvailability, FloatingIp, FreePool, Host, Instance, Lease, LeasePool,
    LeasePoolHost, Maintenance, Notification, OccupancyInterval, Offer, Plan, PreemptibleProject,
    PreemptibleUsage, Property, RefusedRequests, ResourceProperty, Series, SessionOf, SettingOf, Usage,
    UsageEvent, WaitlistEntry,
};

/// A new lease. For a recurring request, the first lease of the series.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LeaseMadeBody {
    /// The lease.
    pub lease: Lease,
    /// All leases of the series, if the request recurs. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<Series>,
}

macro_rules! envelope {
    ($($(#[$doc:meta])* $name:ident { $field:ident: $of:ty })*) => { $(
        $(#[$doc])*
        #[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
        pub struct $name {
            $(#[$doc])*
            pub $field: $of,
        }
    )* };
}

envelope! {
    /// A lease.
    LeaseBody { lease: Lease }
    /// A series of recurring leases.
    SeriesBody { series: Series }
    /// Held offers.
    OffersBody { offers: Vec<Offer> }
    /// An offer.
    OfferBody { offer: Offer }
    /// Requests on the waitlist.
    WaitlistBody { waitlist: Vec<WaitlistEntry> }
    /// A request on the waitlist.
    WaitlistEntryBody { waitlist_entry: WaitlistEntry }
    /// The migration plan of a lease, and its progress.
    PlanBody { plan: Plan }
    /// A host.
    HostBody { host: Host }
    /// Reservations of a host.
    AllocationBody { allocation: Allocation }
    /// Properties of hosts.
    PropertiesBody { resource_properties: Vec<Property> }
    /// A property of hosts.
    PropertyBody { resource_property: ResourceProperty }
    /// A free pool.
    FreePoolBody { freepool: FreePool }
    /// All free pools.
    FreePoolsBody { freepools: Vec<FreePool> }
    /// Maintenance windows, one for each host.
    MaintenanceBody { maintenance: Vec<Maintenance> }
    /// A lease pool.
    LeasePoolBody { leasepool: LeasePool }
    /// Hosts of a lease pool.
    LeasePoolHostsBody { hosts: Vec<LeasePoolHost> }
    /// A floating IP.
    FloatingIpBody { floatingip: FloatingIp }
    /// An instance.
    InstanceBody { instance: Instance }
    /// Usage of preemptible instances.
    PreemptibleBody { preemptible: PreemptibleUsage }
    /// A pattern of projects whose instances are preemptible.
    PreemptibleProjectBody { project: PreemptibleProject }
    /// All patterns of projects whose instances are preemptible. Patterns from the operator's settings come
    /// first.
    PreemptibleProjectsBody { projects: Vec<PreemptibleProject> }
    /// A flavor.
    FlavorBody { flavor: Flavor }
    /// All differences between store and fleet.
    DriftBody { drift: Vec<DriftEntry> }
    /// All flavors.
    FlavorsBody { flavors: Vec<Flavor> }
}

/// Entries of the audit log.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AuditBody {
    /// Changes, newest first.
    pub audit: Vec<AuditEntry>,
    /// Link to the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub audit_links: Vec<Link>,
}

/// Notifications.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct NotificationsBody {
    /// Notifications, oldest first.
    pub notifications: Vec<Notification>,
    /// Number to pass as `after` in the next request.
    pub last: u64,
}

/// Free capacity over time.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AvailabilityBody {
    /// Free capacity over time.
    pub availability: Availability,
}

/// Free capacity over time, in instances of each flavor.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FlavorInstancesBody {
    /// One entry for each flavor.
    pub flavor_instances: Vec<FlavorAvailability>,
}

/// Names of clusters.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ClustersBody {
    /// Names of the clusters, sorted.
    pub clusters: Vec<String>,
}

/// The JSON document that the command prints, in the field with the name of the question.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct PlacementAnswer {
    /// Output of `allot hbal --json --explain`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub balance: Option<Value>,
    /// Output of `allot drain --json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<Value>,
    /// Output of `allot whatif --json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whatif: Option<Value>,
    /// Output of `allot fit --json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fit: Option<Value>,
}

/// Calendar of host reservations.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CalendarBody {
    /// Calendar of host reservations.
    pub calendar: Calendar,
}

/// The caller's identity and permissions.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SessionBody {
    /// The caller's identity and permissions.
    pub session: SessionOf,
}

/// The operator's settings.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SettingsBody {
    /// All settings, in the order of the configuration reference.
    pub settings: Vec<SettingOf>,
}

/// Credentials for the console: one of `auth`, `token`, and `user` with `password`. If the body is empty,
/// they are read from the headers `X-Auth-Token` or `Authorization`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SessionBegin {
    /// Credentials in the format of `POST /identity/v3/auth/tokens`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub auth: Option<Value>,
    /// A token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// A user's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The user's password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// Identifier of the project. Default: the user's default project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
}

/// Usage by period and group.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct UsageBody {
    /// Start of the report: UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub start: String,
    /// End of the report, at most the current time: UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub end: String,
    /// Sums by period and group. Groups without usage are omitted.
    pub usage: Vec<Usage>,
}

/// Refused requests, by kind.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CapacityBody {
    /// Start of the report: UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub start: String,
    /// End of the report, at most the current time: UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub end: String,
    /// Kinds of requests, by number of refusals, largest first.
    pub capacity: Vec<RefusedRequests>,
}

/// Power-saving plan.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct EnergyPlanBody {
    /// Power saving mode: `off`, `dry_run` or `on`.
    pub mode: String,
    /// Start of the plan: UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub start: String,
    /// End of the plan: UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub end: String,
    /// The plan of each free pool.
    pub pools: Vec<EnergyPool>,
}

/// Energy saved and used.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct EnergyReportBody {
    /// Start of the report: UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub start: String,
    /// End of the report, at most the current time: UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub end: String,
    /// Report of each free pool. Pools without hosts in this period are omitted.
    pub pools: Vec<EnergyPoolReport>,
    /// Energy saved in all pools, in kWh.
    pub saved_kwh: f64,
    /// Energy drawn by hosts while off, in kWh.
    pub used_kwh: f64,
    /// Energy used by all hosts while busy, idle and off, in kWh.
    pub total_kwh: f64,
}

/// Power states of hosts.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct EnergyHostsBody {
    /// Hosts, by identifier.
    pub hosts: Vec<EnergyHost>,
}

/// Cost of leases and preemptible instances.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct BillingBody {
    /// Start of the bill: UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub start: String,
    /// End of the bill, at most the current time: UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub end: String,
    /// Currency of all amounts, as configured by the operator; empty if not configured.
    pub currency: String,
    /// Lines of the bill.
    pub billing: Vec<BillingLine>,
    /// Sum of the amounts: a decimal number.
    pub total: String,
}

/// Events of leases and instances.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct UsageEventsBody {
    /// Events, oldest first.
    pub events: Vec<UsageEvent>,
    /// Number to pass as `after` in the next request.
    pub last: u64,
}

/// Instances observed on the hosts of a lease.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct OccupancyBody {
    /// Intervals, oldest first.
    pub occupancy: Vec<OccupancyInterval>,
    /// Number to pass as `after` in the next request.
    pub last: u64,
    /// Time until which all observations are recorded: UTC, RFC 3339. Intervals without an end lasted at
    /// least until then.
    #[schema(format = "date-time")]
    pub seen_until: Option<String>,
}

/// Maintenance to book, for hosts or for all hosts of a free pool.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MaintenanceCreate {
    /// Names or identifiers of hosts.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Name or identifier of a free pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freepool: Option<String>,
    /// Duration of the maintenance: `PT2H`, `2h`.
    pub duration: String,
    /// Time before and after the maintenance during which the host isn't leased, as a duration. Default: 10
    /// minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<String>,
    /// Earliest start: `now`, `YYYY-MM-DD HH:MM` in UTC, or RFC 3339. Default: now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<String>,
    /// Latest end, in the format of `not_before`. Default: 4 weeks after `not_before`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
}

/// Host of a lease pool to replace.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LeasePoolSwap {
    /// Identifier of the host.
    pub host_id: String,
}

/// Host to add, named by `name` or `id`. All other fields are extra capabilities.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct HostCreate {
    /// Name of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Identifier of the host. Ignored if `name` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Extra capabilities.
    #[serde(flatten)]
    pub capabilities: BTreeMap<String, String>,
}

/// Changes to a host. Absent fields stay unchanged.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct HostChange {
    /// Whether new leases can use the host. If it is closed, leases that haven't started get other hosts, if
    /// there are any; running leases continue on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservable: Option<bool>,
    /// Capabilities to set. Null removes a capability.
    #[serde(flatten)]
    pub capabilities: BTreeMap<String, Option<String>>,
}

/// Free pool to create.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FreePoolCreate {
    /// Unique name.
    pub name: String,
    /// Capabilities that all hosts of the pool have, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra_specs: BTreeMap<String, String>,
    /// Default end action of leases on hosts of the pool: `delete`, `keep`, `snapshot` or `migrate`. Absent:
    /// the service's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_action: Option<String>,
}

/// Changes to a free pool. Absent fields stay unchanged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FreePoolChange {
    /// New name. Names are unique.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Capabilities that all hosts of the pool have. Replaces all previous ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra_specs: Option<BTreeMap<String, String>>,
    /// Default end action of leases on hosts of the pool. Null: the service's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_action: Option<Option<String>>,
}

/// Lease pool to create. Its lease starts immediately.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LeasePoolCreate {
    /// Number of hosts.
    #[schema(minimum = 1)]
    pub host_count: u32,
    /// Name of the pool. Default: its identifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Requirements on hosts, as extra specs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra_specs: BTreeMap<String, String>,
    /// Duration of the lease in whole minutes: `P1DT4H`, `1d4h`. Either this or `end_date` is required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
    /// End of the lease. Can be given instead of `duration`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_date: Option<String>,
    /// Action on the lease's guests at its end: `delete`, `keep`, `snapshot` or `migrate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_action: Option<String>,
    /// Project that owns the lease. Default: the caller's project. Only administrators can name another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    /// Synonym for `project_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
}

/// Changes to a lease pool. Absent fields stay unchanged; null resets a field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LeasePoolChange {
    /// New name. Null: the pool's identifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Option<String>>,
    /// CPU overcommit ratio of the pool's hosts, from 0.001 to 1000. Null: the ratio of each host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_allocation_ratio: Option<Option<f64>>,
    /// Memory overcommit ratio of the pool's hosts, from 0.001 to 1000. Null: the ratio of each host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ram_allocation_ratio: Option<Option<f64>>,
}

/// Hosts to add to a lease pool.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LeasePoolGrowth {
    /// Number of hosts. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub host_count: Option<u32>,
    /// Requirements on the new hosts, as extra specs, in addition to those of the reservation.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra_specs: BTreeMap<String, String>,
}

/// Visibility of a property.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PropertyChange {
    /// Whether to hide the property from lists, unless an administrator requests all properties.
    pub private: bool,
}

/// Floating IP to add.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FloatingIpCreate {
    /// Identifier of the network.
    pub floating_network_id: String,
    /// The IP address.
    pub floating_ip_address: String,
}

/// Flavor to create, with Nova's field names.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FlavorCreate {
    /// Identifier of the flavor. Default: generated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Name of the flavor.
    pub name: String,
    /// Number of virtual CPUs.
    #[schema(minimum = 1)]
    pub vcpus: u32,
    /// Memory in MiB.
    #[schema(minimum = 1)]
    pub ram: u32,
    /// Root disk in GiB.
    pub disk: u32,
    /// Ephemeral disk in GiB. Default: 0.
    #[serde(rename = "OS-FLV-EXT-DATA:ephemeral", default, skip_serializing_if = "Option::is_none")]
    pub ephemeral: Option<u32>,
    /// Swap in MiB. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap: Option<u32>,
    /// Ignored. Accepted because answers contain it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rxtx_factor: Option<f32>,
    /// Whether every project can use the flavor. Default: true.
    #[serde(rename = "os-flavor-access:is_public", default, skip_serializing_if = "Option::is_none")]
    pub is_public: Option<bool>,
    /// Requirements on hosts, as extra specs.
    #[serde(default)]
    pub extra_specs: BTreeMap<String, String>,
}
