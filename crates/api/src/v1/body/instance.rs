//! Bodies of requests about instances.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An instance that is to be started.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct InstanceCreate {
    /// Its name.
    #[schema(min_length = 1, max_length = 255)]
    pub name: String,
    /// Virtual CPUs. The size may be left out where the reservation gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub vcpus: Option<u32>,
    /// Memory, MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub memory_mb: Option<u32>,
    /// Disk, GiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_gb: Option<u32>,
    /// Where it is to run; beside all leases if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler_hints: Option<LeaseHints>,
    /// Properties of its flavor: `blazar:preemptible` may say that it is preempted for leases.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub flavor_properties: BTreeMap<String, String>,
    /// The same of its image.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub image_properties: BTreeMap<String, String>,
    /// The same of its volumes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volume_properties: Vec<BTreeMap<String, String>>,
    /// Whether another one is started in its place, as soon as there is room, once it was preempted for a lease.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub requeue: bool,
}

/// A question which hosts may have an instance.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HostsQuestion {
    /// The names of the hosts in question, others than the service's included; all of the service's if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Vec<String>>,
    /// The instance, if it is there already: where this service moves it, it may go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "uuid")]
    pub instance_id: Option<String>,
    /// Whose instance it is to be; the caller's project's if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    /// Virtual CPUs. Without a size it is not asked whether hosts have room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub vcpus: Option<u32>,
    /// Memory, MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub memory_mb: Option<u32>,
    /// Disk, GiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_gb: Option<u32>,
    /// Where it is to run; beside all leases if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler_hints: Option<LeaseHints>,
    /// Properties of its flavor: `blazar:preemptible` may say that it is preempted for leases.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub flavor_properties: BTreeMap<String, String>,
    /// The same of its image.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub image_properties: BTreeMap<String, String>,
    /// The same of its volumes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volume_properties: Vec<BTreeMap<String, String>>,
}

/// The lease that an instance is to be part of, or a reservation of it: one of the two; and where it is to run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LeaseHints {
    /// The lease, which is active: the instance runs on its first reservation of hosts, or of room on them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "uuid")]
    pub lease: Option<String>,
    /// A reservation of such a lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "uuid")]
    pub reservation: Option<String>,
    /// Whether it is preempted for leases; as the operator has it for the project if not given. Not in a lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preemptible: Option<bool>,
    /// The class of preemptible instances that it is to be of: how much notice it has when it is preempted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preemptible_class: Option<String>,
    /// Instances of the project, on whose hosts it is to run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub same_host: Vec<String>,
    /// Instances of the project, on whose hosts it is not to run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub different_host: Vec<String>,
}

/// What Nova asks about a server (`DynamicJSON`). It sends more, which is not looked at.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct VendordataRequest {
    /// The server's identifier, a UUID.
    #[serde(rename = "instance-id")]
    pub instance_id: String,
}
