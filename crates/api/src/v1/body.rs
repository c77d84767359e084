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

/// A lease that was made; or several that recur, with the first of them as the lease.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LeaseMadeBody {
    /// The lease.
    pub lease: Lease,
    /// All of those that recur. Not in Blazar.
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
    /// Leases that were made together.
    SeriesBody { series: Series }
    /// Offers that hold.
    OffersBody { offers: Vec<Offer> }
    /// An offer.
    OfferBody { offer: Offer }
    /// Requests that wait.
    WaitlistBody { waitlist: Vec<WaitlistEntry> }
    /// A request that waits.
    WaitlistEntryBody { waitlist_entry: WaitlistEntry }
    /// What is planned for a lease, and how far it is.
    PlanBody { plan: Plan }
    /// A host.
    HostBody { host: Host }
    /// What is reserved of a host.
    AllocationBody { allocation: Allocation }
    /// The properties of hosts.
    PropertiesBody { resource_properties: Vec<Property> }
    /// A property.
    PropertyBody { resource_property: ResourceProperty }
    /// A free pool.
    FreePoolBody { freepool: FreePool }
    /// All free pools.
    FreePoolsBody { freepools: Vec<FreePool> }
    /// Maintenance, host by host.
    MaintenanceBody { maintenance: Vec<Maintenance> }
    /// A lease pool.
    LeasePoolBody { leasepool: LeasePool }
    /// The hosts of a lease pool.
    LeasePoolHostsBody { hosts: Vec<LeasePoolHost> }
    /// A floating IP.
    FloatingIpBody { floatingip: FloatingIp }
    /// An instance.
    InstanceBody { instance: Instance }
    /// What preemptible instances came to.
    PreemptibleBody { preemptible: PreemptibleUsage }
    /// Projects whose instances are preemptible, of one pattern.
    PreemptibleProjectBody { project: PreemptibleProject }
    /// All patterns of projects whose instances are preemptible, those of the settings first.
    PreemptibleProjectsBody { projects: Vec<PreemptibleProject> }
    /// A flavor.
    FlavorBody { flavor: Flavor }
    /// All differences between what is stored and what the fleet shows.
    DriftBody { drift: Vec<DriftEntry> }
    /// All flavors.
    FlavorsBody { flavors: Vec<Flavor> }
}

/// Who did what.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AuditBody {
    /// Changes, newest first.
    pub audit: Vec<AuditEntry>,
    /// Where there are more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub audit_links: Vec<Link>,
}

/// Notifications.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct NotificationsBody {
    /// Notifications, oldest first.
    pub notifications: Vec<Notification>,
    /// What to ask for next: `after` this.
    pub last: u64,
}

/// How much is free when.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AvailabilityBody {
    /// How much is free when.
    pub availability: Availability,
}

/// How many instances of flavors there is room for when.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct FlavorInstancesBody {
    /// One for each flavor.
    pub flavor_instances: Vec<FlavorAvailability>,
}

/// Names of clusters.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ClustersBody {
    /// The names, in order.
    pub clusters: Vec<String>,
}

/// An answer about a cluster: the document that the command prints, in the field that has the question's name.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct PlacementAnswer {
    /// Of `allot hbal --json --explain`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub balance: Option<Value>,
    /// Of `allot drain --json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<Value>,
    /// Of `allot whatif --json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whatif: Option<Value>,
    /// Of `allot fit --json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fit: Option<Value>,
}

/// Who has which hosts when.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CalendarBody {
    /// Who has which hosts when.
    pub calendar: Calendar,
}

/// Who one is.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SessionBody {
    /// Who one is.
    pub session: SessionOf,
}

/// The operator's settings.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SettingsBody {
    /// All settings, in the order of the documentation.
    pub settings: Vec<SettingOf>,
}

/// With what one logs in to the console: one of `auth`, `token`, and `user` with `password`. Without any, the headers
/// `X-Auth-Token` or `Authorization` say it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SessionBegin {
    /// As the body of `POST /identity/v3/auth/tokens` has it.
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
    /// The project; the user's usual one if it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
}

/// Usage, by period and by what it was asked.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct UsageBody {
    /// From when: UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub start: String,
    /// Until when; not later than now.
    #[schema(format = "date-time")]
    pub end: String,
    /// Sums; none of what there is nothing of.
    pub usage: Vec<Usage>,
}

/// Refused requests, by kind.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CapacityBody {
    /// Start of the period: UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub start: String,
    /// End of the period; not later than now.
    #[schema(format = "date-time")]
    pub end: String,
    /// Kinds of requests, those with the most refusals first.
    pub capacity: Vec<RefusedRequests>,
}

/// What may be off when.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct EnergyPlanBody {
    /// Whether power is saved: `off`, `dry_run` or `on`.
    pub mode: String,
    /// From when: UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub start: String,
    /// How far ahead it is planned.
    #[schema(format = "date-time")]
    pub end: String,
    /// Pool by pool.
    pub pools: Vec<EnergyPool>,
}

/// What was saved.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct EnergyReportBody {
    /// From when: UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub start: String,
    /// Until when; not later than now.
    #[schema(format = "date-time")]
    pub end: String,
    /// Pool by pool; none of those where there were no hosts.
    pub pools: Vec<EnergyPoolReport>,
    /// What all pools saved.
    pub saved_kwh: f64,
    /// What hosts drew while they were off.
    pub used_kwh: f64,
    /// What all hosts used: at work, idle and off.
    pub total_kwh: f64,
}

/// The power of hosts.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct EnergyHostsBody {
    /// By identifier.
    pub hosts: Vec<EnergyHost>,
}

/// What leases cost.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct BillingBody {
    /// From when: UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub start: String,
    /// Until when; not later than now.
    #[schema(format = "date-time")]
    pub end: String,
    /// What amounts are in, as the operator calls it; empty if it has no name.
    pub currency: String,
    /// The lines.
    pub billing: Vec<BillingLine>,
    /// The sum of their amounts: a decimal number.
    pub total: String,
}

/// What happened.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct UsageEventsBody {
    /// Events, oldest first.
    pub events: Vec<UsageEvent>,
    /// What to ask for next: `after` this.
    pub last: u64,
}

/// Who was on the hosts of a lease.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct OccupancyBody {
    /// Intervals, oldest first.
    pub occupancy: Vec<OccupancyInterval>,
    /// What to ask for next: `after` this.
    pub last: u64,
    /// Until when all that was seen is recorded: UTC, RFC 3339. Intervals without an end lasted at least until then.
    #[schema(format = "date-time")]
    pub seen_until: Option<String>,
}

/// Maintenance that is to be booked, of hosts or of all those of a free pool.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MaintenanceCreate {
    /// Names or identifiers of hosts.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// The name or identifier of a free pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freepool: Option<String>,
    /// How long it takes: `PT2H`, `2h`.
    pub duration: String,
    /// How long nobody may have the host before and after it; ten minutes if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<String>,
    /// It does not begin before this: `now`, `YYYY-MM-DD HH:MM` in UTC, or RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<String>,
    /// It is over by then; four weeks later if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
}

/// The host of a lease pool that is to be exchanged.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LeasePoolSwap {
    /// Its identifier.
    pub host_id: String,
}

/// A host that is to be entered: by `name` or by `id`. All other fields are extra capabilities.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct HostCreate {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its identifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Extra capabilities.
    #[serde(flatten)]
    pub capabilities: BTreeMap<String, String>,
}

/// What is to be different of a host.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct HostChange {
    /// Whether new leases may have it. Where it is closed, leases that have not started get other hosts, if there are
    /// any, and running ones go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservable: Option<bool>,
    /// Capabilities to set; null takes one away.
    #[serde(flatten)]
    pub capabilities: BTreeMap<String, Option<String>>,
}

/// A free pool that is to be made.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FreePoolCreate {
    /// Its name; no other has it.
    pub name: String,
    /// What its hosts are like, by the names of capabilities.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra_specs: BTreeMap<String, String>,
    /// What becomes of guests at the end of leases that do not say: `delete`, `keep`, `snapshot` or `migrate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_action: Option<String>,
}

/// What is to be different of a free pool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FreePoolChange {
    /// Another name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What its hosts are like from now on: all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra_specs: Option<BTreeMap<String, String>>,
    /// What becomes of guests at the end of leases that do not say; null for what the service does by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_action: Option<Option<String>>,
}

/// A lease that starts at once, of hosts that make one pool.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LeasePoolCreate {
    /// How many hosts.
    #[schema(minimum = 1)]
    pub host_count: u32,
    /// The pool's name; without one, its identifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What its hosts must match.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra_specs: BTreeMap<String, String>,
    /// For how long: `P1DT4H`, `1d4h`; whole minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
    /// Until when, instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_date: Option<String>,
    /// What becomes of guests at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_action: Option<String>,
    /// The project that it is for; administrators only, if it is not the caller's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    /// The same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
}

/// What is to be different of a lease pool; null takes back what was said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LeasePoolChange {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Option<String>>,
    /// How far CPUs of its hosts are over-committed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_allocation_ratio: Option<Option<f64>>,
    /// The same of memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ram_allocation_ratio: Option<Option<f64>>,
}

/// Hosts by which a lease pool is to grow.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LeasePoolGrowth {
    /// How many; 1 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub host_count: Option<u32>,
    /// What they must match, beside what the others do.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra_specs: BTreeMap<String, String>,
}

/// The visibility of a property.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PropertyChange {
    /// Whether it is to be left out of lists unless all are asked for.
    pub private: bool,
}

/// An address that is to be entered.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FloatingIpCreate {
    /// The network.
    pub floating_network_id: String,
    /// The address.
    pub floating_ip_address: String,
}

/// A flavor that is to be entered, with Nova's names.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FlavorCreate {
    /// Its identifier; made up if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    pub name: String,
    /// Virtual CPUs.
    #[schema(minimum = 1)]
    pub vcpus: u32,
    /// Memory, MiB.
    #[schema(minimum = 1)]
    pub ram: u32,
    /// Root disk, GiB.
    pub disk: u32,
    /// Second disk, GiB.
    #[serde(rename = "OS-FLV-EXT-DATA:ephemeral", default, skip_serializing_if = "Option::is_none")]
    pub ephemeral: Option<u32>,
    /// Swap, MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap: Option<u32>,
    /// Passed over; answers have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rxtx_factor: Option<f32>,
    /// Whether every project may use it; true if absent.
    #[serde(rename = "os-flavor-access:is_public", default, skip_serializing_if = "Option::is_none")]
    pub is_public: Option<bool>,
    /// What it asks of hosts beside its size.
    #[serde(default)]
    pub extra_specs: BTreeMap<String, String>,
}
