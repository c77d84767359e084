//! Bodies of requests about instances.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Instance to start.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct InstanceCreate {
    /// Name of the instance.
    #[schema(min_length = 1, max_length = 255)]
    pub name: String,
    /// Number of virtual CPUs. The size (`vcpus`, `memory_mb` and `disk_gb`) can be omitted if the
    /// reservation has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub vcpus: Option<u32>,
    /// Memory in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub memory_mb: Option<u32>,
    /// Disk in GiB. Default: 0, if `vcpus` and `memory_mb` are given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_gb: Option<u32>,
    /// Lease or other instances that determine the host. Default: a host outside of leases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler_hints: Option<LeaseHints>,
    /// Properties of the flavor. `blazar:preemptible` sets whether the instance is preemptible.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub flavor_properties: BTreeMap<String, String>,
    /// Properties of the image. `blazar:preemptible` sets whether the instance is preemptible.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub image_properties: BTreeMap<String, String>,
    /// Properties of each volume. `blazar:preemptible` sets whether the instance is preemptible.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volume_properties: Vec<BTreeMap<String, String>>,
    /// Whether a preempted instance gets a successor, which starts as soon as there is capacity.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub requeue: bool,
}

/// Instance to find hosts for.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HostsQuestion {
    /// Names of the hosts to check. Can include hosts that the service doesn't manage. Default: all hosts of
    /// the service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Vec<String>>,
    /// Identifier of the instance, if it exists already. A host is allowed if the service is moving the
    /// instance there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "uuid")]
    pub instance_id: Option<String>,
    /// Project of the instance. Default: the caller's project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    /// Number of virtual CPUs. Without a size, free capacity isn't checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub vcpus: Option<u32>,
    /// Memory in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub memory_mb: Option<u32>,
    /// Disk in GiB. Default: 0, if `vcpus` and `memory_mb` are given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_gb: Option<u32>,
    /// Lease or other instances that determine the host. Default: a host outside of leases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler_hints: Option<LeaseHints>,
    /// Properties of the flavor. `blazar:preemptible` sets whether the instance is preemptible.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub flavor_properties: BTreeMap<String, String>,
    /// Properties of the image. `blazar:preemptible` sets whether the instance is preemptible.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub image_properties: BTreeMap<String, String>,
    /// Properties of each volume. `blazar:preemptible` sets whether the instance is preemptible.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volume_properties: Vec<BTreeMap<String, String>>,
}

/// Lease or reservation that an instance becomes part of, at most one of the two, and constraints on its
/// host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LeaseHints {
    /// Identifier of an active lease. The instance runs in its first reservation of hosts or of capacity for
    /// instances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "uuid")]
    pub lease: Option<String>,
    /// Identifier of a reservation of an active lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "uuid")]
    pub reservation: Option<String>,
    /// Whether the instance is preempted for leases. Default: the operator's setting for the project. Can't
    /// be true in a lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preemptible: Option<bool>,
    /// Class of the preemptible instance, which determines its preemption notice. Implies `preemptible`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preemptible_class: Option<String>,
    /// Identifiers of instances of the project. The new instance runs on one of their hosts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub same_host: Vec<String>,
    /// Identifiers of instances of the project. The new instance doesn't run on any of their hosts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub different_host: Vec<String>,
}

/// Nova's request for a server's vendor data (`DynamicJSON`). Additional fields are ignored.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct VendordataRequest {
    /// Identifier of the server, a UUID.
    #[serde(rename = "instance-id")]
    pub instance_id: String,
}
