//! Bodies of requests about leases.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::v1::SchedulerHints;

/// Lease to create.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LeaseCreate {
    /// Name of the lease. Names don't have to be unique.
    #[schema(max_length = 80)]
    pub name: String,
    /// `SCHEDULE` (the default) starts the lease at its start date. `IMMEDIATE` starts it now or rejects the
    /// request. `BEST-EFFORT` starts it as soon as possible, before its timeout. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_type: Option<String>,
    /// Start: `now`, `YYYY-MM-DD HH:MM` in UTC, or RFC 3339. Required for scheduled leases. For a best-effort
    /// lease, the earliest start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_date: Option<String>,
    /// End, in the format of `start_date`. Can be omitted if `duration` is given. For a best-effort lease,
    /// only the time between `start_date` and this date matters: it is the length of the lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_date: Option<String>,
    /// Duration in whole minutes, instead of an end: `P1DT4H`, `1d4h`. Together with an end, the lease has
    /// this duration at any time between `start_date` and `end_date`. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
    /// Maximum time that a best-effort lease waits for its start, as a duration. Default:
    /// `leases.best_effort_timeout`, an operator setting. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// Latest start of a best-effort lease, instead of `timeout`. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_date: Option<String>,
    /// Time of the action before the end. By default, that is `leases.before_end_lead` (an operator setting)
    /// before the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_end_date: Option<String>,
    /// Resources to reserve.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reservations: Vec<ReservationCreate>,
    /// Ignored, but accepted because clients send it. Exception: a client without the field `lease_type` can
    /// set it with an event of type `lease_type:TYPE`. With `lease_type:best-effort`, the event's
    /// `event_date` is the `timeout_date`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Value>,
    /// Action on the lease's guests at its end: `delete`; `keep`; `migrate` moves them to hosts outside of
    /// leases, as far as possible; `snapshot` makes images of guests on the lease's hosts, then deletes them.
    /// Default: the end action of the hosts' free pool, otherwise `leases.end_action`, an operator setting.
    /// Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_action: Option<String>,
    /// Whether preemptible instances can run on whole hosts of the lease while it doesn't use them. Not in
    /// Blazar.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub backfill: bool,
    /// Whether to join the waitlist instead of being rejected when capacity is short. Not in Blazar.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waitlist: bool,
    /// Makes the lease recur: `every` (`1w`), `times` or `until` (a date), `time_zone` (`Europe/Paris`;
    /// default: UTC) and `skip_unavailable`. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<RepeatCreate>,
    /// Placement of hosts, and distribution of instances. `GET /v1/hints` lists the available hints. They
    /// can't be changed later. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler_hints: Option<SchedulerHints>,
}

/// Recurrence of a lease. Requires either `times` or `until`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RepeatCreate {
    /// Calendar interval between starts: `1w`, `1d`, `1mo`.
    pub every: String,
    /// Number of leases. Can't be combined with `until`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// Date before which leases start. Can't be combined with `times`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Time zone in which leases keep their time of day: `Europe/Paris`. Default: UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// Whether to skip unavailable dates. If false, one unavailable date rejects the whole request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skip_unavailable: bool,
}

/// Resource to reserve. Unknown fields are ignored.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "resource_type")]
pub enum ReservationCreate {
    /// Whole hosts.
    #[serde(rename = "physical:host")]
    Hosts {
        /// Minimum number of hosts.
        #[schema(minimum = 1)]
        min: u32,
        /// Maximum number of hosts.
        #[schema(minimum = 1)]
        max: u32,
        /// Requirements on hosts: a JSON expression in a string, such as `["==", "$rack", "r1"]`.
        hypervisor_properties: Option<String>,
        /// More requirements on hosts, in the format of `hypervisor_properties`. Hosts must match both.
        resource_properties: Option<String>,
        /// Action before the end: `default` (the operator's setting), `snapshot`, or empty for no action.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        before_end: Option<String>,
        /// Region of the hosts. This field and all below aren't in Blazar.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        region: Option<String>,
        /// Availability zone of the hosts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        availability_zone: Option<String>,
        /// Minimum number of virtual CPUs of each host.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        vcpus: Option<u32>,
        /// Minimum memory of each host, in MiB.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        memory_mib: Option<u32>,
        /// Minimum disk of each host, in GiB.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        disk_gib: Option<u32>,
        /// Whether all hosts must have the same CPUs and hypervisor.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        homogeneous: bool,
        /// Properties whose values must be equal on all hosts, such as `cpu_mhz`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        alike: Vec<String>,
        /// Kind of failure that leaves the lease the hosts that it requests: `host`, or a location property,
        /// such as `rack`. The lease gets the additional hosts that this requires.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        survives: Option<String>,
        /// Requirements on hosts, as Nova's extra specs: `capabilities:cpu_info:arch` with the value
        /// `x86_64`.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        extra_specs: BTreeMap<String, String>,
        /// Properties of the image that guests will run, by Glance's names.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        image_properties: BTreeMap<String, String>,
        /// Name of the lease pool that the hosts form while the lease runs. Default: the reservation's
        /// identifier.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pool_name: Option<String>,
    },
    /// Capacity for instances of a size.
    #[serde(rename = "virtual:instance")]
    Instances {
        /// Number of virtual CPUs of each instance.
        #[schema(minimum = 1)]
        vcpus: u32,
        /// Memory of each instance, in MiB.
        #[schema(minimum = 1)]
        memory_mb: u32,
        /// Disk of each instance, in GiB.
        disk_gb: u32,
        /// Ephemeral disk of each instance, in GiB. Default: 0. Not in Blazar.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ephemeral_gb: Option<u32>,
        /// Number of instances.
        #[schema(minimum = 1)]
        amount: u32,
        /// True places all instances on one host, false places each on a different host, null allows any
        /// host.
        affinity: Option<bool>,
        /// Requirements on hosts: a JSON expression in a string.
        resource_properties: Option<String>,
        /// Extra specs of the instances' flavor, in Nova's format: `hw:cpu_policy` with the value
        /// `dedicated`. Hosts must have the resources and traits that they name. Requires the policy rule
        /// `blazar:leases:extra_specs`. Not in Blazar.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        extra_specs: BTreeMap<String, String>,
        /// Kind of failure that leaves capacity for all instances: `host`, or a location property, such as
        /// `rack`. Not in Blazar.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        survives: Option<String>,
    },
    /// Capacity for instances of a flavor.
    #[serde(rename = "flavor:instance")]
    Flavor {
        /// Identifier of the flavor.
        flavor_id: String,
        /// Number of instances.
        #[schema(minimum = 1)]
        amount: u32,
        /// Always null.
        affinity: Option<bool>,
        /// Kind of failure that leaves capacity for all instances: `host`, or a location property, such as
        /// `rack`. Not in Blazar.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        survives: Option<String>,
    },
    /// Floating IPs.
    #[serde(rename = "virtual:floatingip")]
    FloatingIps {
        /// Identifier of the network.
        network_id: String,
        /// Number of addresses, including `required_floatingips`.
        amount: u32,
        /// Specific addresses to reserve.
        #[serde(default)]
        required_floatingips: Vec<String>,
    },
}

/// Changes to a lease. Absent fields stay unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LeaseChange {
    /// New name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, max_length = 80)]
    pub name: Option<String>,
    /// New start: `now`, `YYYY-MM-DD HH:MM` in UTC, or RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_date: Option<String>,
    /// New end, in the format of `start_date`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_date: Option<String>,
    /// New time of the action before the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_end_date: Option<String>,
    /// Whether preemptible instances can run on whole hosts of the lease while it doesn't use them. Not in
    /// Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub backfill: Option<bool>,
    /// Action on the lease's guests at its end: `delete`, `keep`, `snapshot` or `migrate`. Can be changed
    /// until the end. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub end_action: Option<String>,
    /// Changes to reservations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reservations: Vec<ReservationChange>,
}

/// Changes to a reservation, named by `id`. Absent and empty fields stay unchanged. Null removes a
/// requirement on hosts other than an expression. Fields of other resource types and unknown fields are
/// ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReservationChange {
    /// Identifier of the reservation.
    pub id: String,
    /// Type of the reservation. Can't be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_type: Option<String>,
    /// Minimum number of hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub min: Option<u32>,
    /// Maximum number of hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub max: Option<u32>,
    /// Requirements on hosts, in the format of a new lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hypervisor_properties: Option<String>,
    /// More requirements on hosts, also for hosts of instances. Hosts must match both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_properties: Option<String>,
    /// Action before the end on guests of hosts: `default` (the operator's setting), `snapshot`, or empty for
    /// no action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_end: Option<String>,
    /// Region of the hosts. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Availability zone of the hosts. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub availability_zone: Option<String>,
    /// Number of virtual CPUs of each instance. For whole hosts, the minimum of each host, which isn't in
    /// Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vcpus: Option<u32>,
    /// Minimum memory of each host, in MiB. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u32>,
    /// Minimum disk of each host, in GiB. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_gib: Option<u32>,
    /// Whether all hosts must have the same CPUs and hypervisor. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub homogeneous: Option<bool>,
    /// Properties whose values must be equal on all hosts. Replaces the whole list. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alike: Option<Vec<String>>,
    /// Kind of failure that leaves the lease the hosts that it requests: `host`, or a location property, such
    /// as `rack`. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub survives: Option<String>,
    /// Requirements on hosts, as Nova's extra specs. Replaces all previous ones. Extra specs of instances
    /// can't be changed. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra_specs: Option<BTreeMap<String, String>>,
    /// Properties of the image that guests will run. Replaces all previous ones. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_properties: Option<BTreeMap<String, String>>,
    /// Memory of each instance, in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub memory_mb: Option<u32>,
    /// Disk of each instance, in GiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_gb: Option<u32>,
    /// Ephemeral disk of each instance, in GiB. Can't be changed. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ephemeral_gb: Option<u32>,
    /// Number of instances or addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<u32>,
    /// True places all instances on one host, false places each on a different host, null allows any host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<bool>,
    /// Flavor of the instances. Can't be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flavor_id: Option<String>,
    /// Network of the addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_id: Option<String>,
    /// Specific addresses to reserve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_floatingips: Option<Vec<String>>,
}
