//! Bodies of requests about leases.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::v1::SchedulerHints;

/// A lease that is asked for.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LeaseCreate {
    /// Its name; not unique.
    #[schema(max_length = 80)]
    pub name: String,
    /// `SCHEDULE` (the default): at its date. `IMMEDIATE`: at once, or there is no lease. `BEST-EFFORT`: as soon as
    /// possible, but before its timeout. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_type: Option<String>,
    /// From when: `now`, `YYYY-MM-DD HH:MM` in UTC, or RFC 3339. Of a best-effort lease, the earliest start. Only scheduled
    /// leases need it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_date: Option<String>,
    /// Until when; or a `duration`. Of a best-effort lease, only how long it is after the start matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_date: Option<String>,
    /// For how long, instead of an end: `P1DT4H`, `1d4h`, of whole minutes. With an end: for so long at any time from `start_date` to
    /// `end_date`. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
    /// How long a best-effort lease may wait for its start, as a duration. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// Until when it must have started, instead of a timeout. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_date: Option<String>,
    /// When the action before the end is due; by default at the operator's distance from the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_end_date: Option<String>,
    /// What is to be reserved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reservations: Vec<ReservationCreate>,
    /// Passed over, since clients send them; but one of the type `lease_type:best-effort` is a `lease_type`, and its
    /// `event_date` a `timeout_date`, for clients that know neither.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Value>,
    /// What becomes of guests at the end: `delete` (the default), `keep`, `migrate`: they are moved to hosts
    /// that no lease has, as far as that is possible; or `snapshot`: images are made of those on its
    /// hosts, and then they are deleted. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_action: Option<String>,
    /// Whether preemptible instances may run on whole hosts of it as long as it does not use them. Not in Blazar.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub backfill: bool,
    /// Whether it waits for its turn if it cannot be had. Not in Blazar.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waitlist: bool,
    /// Leases that recur: `every` (`1w`), `times` or `until` (a date), `time_zone` (`Europe/Paris`; UTC by default) and
    /// `skip_unavailable`. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<RepeatCreate>,
    /// Where its hosts are to be, and how its instances are spread: `GET /v1/hints` says what there is. They stay what
    /// they are. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler_hints: Option<SchedulerHints>,
}

/// How a lease recurs.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RepeatCreate {
    /// From one start to the next, by the calendar: `1w`, `1d`, `1mo`.
    pub every: String,
    /// How often; or `until`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// As long as it starts before this date.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Whose time of the day stays the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// Whether dates that cannot be had are left out; if not, one of them has all refused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skip_unavailable: bool,
}

/// What is to be reserved. Fields that are not listed are ignored.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "resource_type")]
pub enum ReservationCreate {
    /// Whole hosts.
    #[serde(rename = "physical:host")]
    Hosts {
        /// At least so many.
        #[schema(minimum = 1)]
        min: u32,
        /// At most so many.
        #[schema(minimum = 1)]
        max: u32,
        /// What hosts must be like: an expression as JSON, such as `["==", "$rack", "r1"]`, in a string.
        hypervisor_properties: Option<String>,
        /// The same; both must hold.
        resource_properties: Option<String>,
        /// What is done before the end: `default`, `snapshot` or nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        before_end: Option<String>,
        /// The region that hosts are to be in. This and what follows is not in Blazar.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        region: Option<String>,
        /// The availability zone that they are to be in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        availability_zone: Option<String>,
        /// Virtual CPUs of each, at least.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        vcpus: Option<u32>,
        /// Memory of each, at least, MiB.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        memory_mib: Option<u32>,
        /// Disk of each, at least, GiB.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        disk_gib: Option<u32>,
        /// Whether all of them must have the same CPUs and hypervisor.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        homogeneous: bool,
        /// Properties that must have equal values on all of them, such as `cpu_mhz`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        alike: Vec<String>,
        /// What may fail without the lease having fewer hosts than it asks for: `host`, or a property that says where
        /// hosts are, as `rack`. It has so many more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        survives: Option<String>,
        /// What they must be like in Nova's words: `capabilities:cpu_info:arch` and `x86_64`.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        extra_specs: BTreeMap<String, String>,
        /// Properties of the image that guests are to run, by Glance's names.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        image_properties: BTreeMap<String, String>,
        /// The name of the pool that its hosts are while the lease runs; without one, the reservation's identifier.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pool_name: Option<String>,
    },
    /// Room for instances of a size.
    #[serde(rename = "virtual:instance")]
    Instances {
        /// Virtual CPUs of each.
        #[schema(minimum = 1)]
        vcpus: u32,
        /// Memory of each, MiB.
        #[schema(minimum = 1)]
        memory_mb: u32,
        /// Disk of each, GiB.
        disk_gb: u32,
        /// Second disk of each, GiB. Not in Blazar, as `extra_specs`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ephemeral_gb: Option<u32>,
        /// How many.
        #[schema(minimum = 1)]
        amount: u32,
        /// true: on one host; false: on distinct hosts; null: anywhere.
        affinity: Option<bool>,
        /// What hosts must be like.
        resource_properties: Option<String>,
        /// Extra specs of their flavor, in Nova's words: `hw:cpu_policy` and `dedicated`. Hosts must have the resources and
        /// traits that they name. Requires the policy rule `blazar:leases:extra_specs`.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        extra_specs: BTreeMap<String, String>,
        /// What may fail without there being room for fewer: `host`, or a property that says where hosts are, as `rack`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        survives: Option<String>,
    },
    /// Room for instances of a flavor.
    #[serde(rename = "flavor:instance")]
    Flavor {
        /// The flavor.
        flavor_id: String,
        /// How many.
        #[schema(minimum = 1)]
        amount: u32,
        /// Always null.
        affinity: Option<bool>,
        /// What may fail without there being room for fewer: `host`, or a property that says where hosts are, as `rack`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        survives: Option<String>,
    },
    /// Addresses.
    #[serde(rename = "virtual:floatingip")]
    FloatingIps {
        /// The network.
        network_id: String,
        /// How many.
        amount: u32,
        /// These among them.
        #[serde(default)]
        required_floatingips: Vec<String>,
    },
}

/// A change of a lease; what is absent stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LeaseChange {
    /// A new name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, max_length = 80)]
    pub name: Option<String>,
    /// A new start: `now`, `YYYY-MM-DD HH:MM` in UTC, or RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_date: Option<String>,
    /// A new end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_date: Option<String>,
    /// When the action before the end is to be due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_end_date: Option<String>,
    /// Whether preemptible instances may run on whole hosts of it as long as it does not use them. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub backfill: Option<bool>,
    /// What becomes of guests at the end: `delete`, `keep`, `snapshot` or `migrate`, until the end has come. Not in
    /// Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub end_action: Option<String>,
    /// New terms of reservations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reservations: Vec<ReservationChange>,
}

/// New terms of a reservation: which one it is, and those fields that change. What is absent or empty stays; null takes
/// back what was said of hosts beside expressions. Fields of other types, and fields that are not listed, are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReservationChange {
    /// The reservation's identifier.
    pub id: String,
    /// Its type, which stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_type: Option<String>,
    /// Hosts: at least so many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub min: Option<u32>,
    /// Hosts: at most so many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub max: Option<u32>,
    /// What hosts must be like, as in a new lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hypervisor_properties: Option<String>,
    /// The same, of hosts and of those of instances; both must hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_properties: Option<String>,
    /// What is done before the end with what runs on hosts: `default`, `snapshot` or nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_end: Option<String>,
    /// The region that hosts are to be in. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// The availability zone that they are to be in. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub availability_zone: Option<String>,
    /// Virtual CPUs of each instance; of each host, at least, which is not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vcpus: Option<u32>,
    /// Memory of each host, at least, MiB. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u32>,
    /// Disk of each host, at least, GiB. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_gib: Option<u32>,
    /// Whether all hosts must have the same CPUs and hypervisor. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub homogeneous: Option<bool>,
    /// Properties that must have equal values on all hosts: all of them. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alike: Option<Vec<String>>,
    /// What may fail without the lease having fewer hosts than it asks for. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub survives: Option<String>,
    /// What hosts must be like in Nova's words: all of it; of instances, they stay as they are. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra_specs: Option<BTreeMap<String, String>>,
    /// Properties of the image that guests are to run: all of them. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_properties: Option<BTreeMap<String, String>>,
    /// Memory of each instance, MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub memory_mb: Option<u32>,
    /// Disk of each instance, GiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_gb: Option<u32>,
    /// Second disk of each instance, GiB, which stays as it is. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ephemeral_gb: Option<u32>,
    /// Instances or addresses: so many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<u32>,
    /// Instances: true on one host, false on distinct hosts, null anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<bool>,
    /// The flavor of instances, which stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flavor_id: Option<String>,
    /// The network of addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_id: Option<String>,
    /// These addresses among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_floatingips: Option<Vec<String>>,
}
