//! Answers of Nova, Placement, Neutron and Glance. Fields that the driver doesn't use are not declared, and
//! ignored.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use leases::preemption::PROPERTY;
use serde::Deserialize;
use serde_json::Value;

/// A compute service: `GET /os-services`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ComputeService {
    pub(crate) id: String,
    pub(crate) host: String,
    /// `up` or `down`.
    #[serde(default)]
    pub(crate) state: String,
    /// `enabled` or `disabled`.
    #[serde(default)]
    pub(crate) status: String,
    #[serde(default)]
    pub(crate) disabled_reason: Option<String>,
    #[serde(default)]
    pub(crate) forced_down: bool,
}

/// A hypervisor, as listed before microversion 2.53, where identifiers are numbers.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Hypervisor {
    pub(crate) id: u64,
    #[serde(rename = "hypervisor_hostname")]
    pub(crate) hostname: String,
    #[serde(rename = "hypervisor_type", default)]
    pub(crate) kind: String,
    #[serde(rename = "hypervisor_version", default)]
    pub(crate) version: u64,
    #[serde(default)]
    pub(crate) vcpus: u32,
    #[serde(default)]
    pub(crate) memory_mb: u32,
    #[serde(default)]
    pub(crate) local_gb: u32,
    #[serde(default)]
    pub(crate) cpu_info: Value,
    pub(crate) service: HypervisorService,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct HypervisorService {
    pub(crate) host: String,
}

/// A host aggregate.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Aggregate {
    pub(crate) id: u64,
    /// Identifier of the aggregate in Placement.
    pub(crate) uuid: String,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) availability_zone: Option<String>,
    #[serde(default)]
    pub(crate) hosts: BTreeSet<String>,
    #[serde(default)]
    pub(crate) metadata: BTreeMap<String, String>,
}

/// A server, as administrators see it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Server {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) tenant_id: String,
    #[serde(default)]
    pub(crate) status: String,
    #[serde(default)]
    pub(crate) flavor: EmbeddedFlavor,
    /// `None` until a host was chosen.
    #[serde(rename = "OS-EXT-SRV-ATTR:host", default)]
    pub(crate) host: Option<String>,
    #[serde(rename = "OS-EXT-STS:task_state", default)]
    pub(crate) task_state: Option<String>,
    /// Creation time. Resizing, rebuilding and unshelving reset Nova's `launched_at`, but not this.
    #[serde(default)]
    pub(crate) created: Option<Timestamp>,
    /// Progress of Nova's task on the server, percent.
    #[serde(default)]
    pub(crate) progress: Option<u64>,
    /// Scheduler hints that it was started with, if requested. Each is a list or a string.
    #[serde(default)]
    pub(crate) scheduler_hints: Option<BTreeMap<String, Value>>,
}

/// The flavor that a server was started with, unaffected by later changes of the flavor.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct EmbeddedFlavor {
    #[serde(default)]
    pub(crate) vcpus: u32,
    #[serde(default)]
    pub(crate) ram: u32,
    #[serde(default)]
    pub(crate) disk: u32,
    #[serde(default)]
    pub(crate) ephemeral: u32,
    #[serde(default)]
    pub(crate) original_name: String,
    #[serde(default)]
    pub(crate) extra_specs: BTreeMap<String, String>,
}

/// A flavor: `GET /flavors/{id}`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Flavor {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) vcpus: u32,
    pub(crate) ram: u32,
    pub(crate) disk: u32,
    #[serde(rename = "OS-FLV-EXT-DATA:ephemeral", default)]
    pub(crate) ephemeral: u32,
    /// An empty string means 0. Nova sends it if it uses an older version than was requested.
    #[serde(default, deserialize_with = "number_or_empty")]
    pub(crate) swap: u32,
    #[serde(rename = "os-flavor-access:is_public", default)]
    pub(crate) public: bool,
    #[serde(default)]
    pub(crate) extra_specs: BTreeMap<String, String>,
}

/// A migration: `GET /os-migrations`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Migration {
    pub(crate) id: u64,
    #[serde(default)]
    pub(crate) instance_uuid: String,
    #[serde(default)]
    pub(crate) source_compute: Option<String>,
    #[serde(default)]
    pub(crate) dest_compute: Option<String>,
    #[serde(default)]
    pub(crate) status: String,
    #[serde(default)]
    pub(crate) user_id: Option<String>,
    #[serde(default)]
    created_at: Option<String>,
}

impl Migration {
    /// Start of the migration. `None` if Nova doesn't report it.
    pub(crate) fn since(&self) -> Option<Timestamp> {
        in_utc(self.created_at.as_deref()?)
    }

    /// Whether a server that was moved while shut off is on its new host and waits for confirmation that it
    /// works there.
    pub(crate) fn waits_to_be_confirmed(&self) -> bool {
        self.status == "finished"
    }

    pub(crate) fn is_over(&self) -> bool {
        const ENDS: [&str; 8] =
            ["confirmed", "reverted", "error", "failed", "completed", "done", "deleted", "cancelled"];
        ENDS.contains(&self.status.as_str())
    }
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Provider {
    pub(crate) uuid: String,
    pub(crate) name: String,
    /// Changes whenever the provider's data or allocations change.
    #[serde(default)]
    pub(crate) generation: u64,
}

/// Inventory of a resource class.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Inventory {
    #[serde(default)]
    pub(crate) total: u64,
    #[serde(default)]
    pub(crate) reserved: u64,
    #[serde(default)]
    pub(crate) allocation_ratio: f64,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Subnet {
    pub(crate) id: String,
    pub(crate) network_id: String,
    pub(crate) cidr: String,
    #[serde(default)]
    pub(crate) gateway_ip: Option<IpAddr>,
    #[serde(default)]
    pub(crate) allocation_pools: Vec<AddressRange>,
}

/// A range of addresses, including both ends.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct AddressRange {
    pub(crate) start: IpAddr,
    pub(crate) end: IpAddr,
}

/// A floating IP of Neutron.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct FloatingAddress {
    pub(crate) id: String,
    pub(crate) floating_ip_address: IpAddr,
    #[serde(default)]
    pub(crate) tags: Vec<String>,
}

/// An image of Glance.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Image {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) status: String,
    #[serde(default)]
    pub(crate) owner: String,
}

impl Image {
    /// Whether servers can be started from it.
    pub(crate) fn is_ready(&self) -> bool {
        self.status == "active"
    }

    pub(crate) fn is_being_made(&self) -> bool {
        ["queued", "saving", "uploading", "importing"].contains(&self.status.as_str())
    }
}

/// Parses Nova's notation of instants: UTC, without an offset.
fn in_utc(text: &str) -> Option<Timestamp> {
    TimeZone::UTC.to_timestamp(text.parse::<DateTime>().ok()?).ok()
}

impl Server {
    /// Whether the flavor, read as `BlazarFilter` reads it, or a hint marks the server as preemptible. `None`
    /// if neither mentions it.
    pub(crate) fn marked_preemptible(&self) -> Option<bool> {
        let of_flavor = self.flavor.extra_specs.get(PROPERTY).map(String::as_str);
        let hint = self.scheduler_hints.as_ref().and_then(|hints| hints.get("preemptible"));
        let hint = hint.and_then(|hint| hint.as_str().or_else(|| hint.get(0)?.as_str()));
        of_flavor.into_iter().chain(hint).map(is_true).reduce(|one, other| one || other)
    }

    pub(crate) fn is_shut_off(&self) -> bool {
        self.status == "SHUTOFF"
    }

    /// Whether Nova has a task for the server that ends by itself.
    pub(crate) fn is_busy(&self) -> bool {
        const PASSING: [&str; 7] =
            ["BUILD", "REBUILD", "REBOOT", "HARD_REBOOT", "MIGRATING", "RESIZE", "PASSWORD"];
        self.task_state.is_some() || PASSING.contains(&self.status.as_str())
    }

    /// Whether Nova can make an image of the server in its current state.
    pub(crate) fn can_be_imaged(&self) -> bool {
        ["ACTIVE", "SHUTOFF", "PAUSED", "SUSPENDED"].contains(&self.status.as_str())
    }

    /// Whether it is on its way to another host while running.
    pub(crate) fn is_moving(&self) -> bool {
        self.status == "MIGRATING" || self.task_state.as_deref() == Some("migrating")
    }

    /// Whether it gets another host or flavor while shut off, or waits for that to be confirmed.
    pub(crate) fn is_resizing(&self) -> bool {
        let state = self.task_state.as_deref().unwrap_or_default();
        ["RESIZE", "VERIFY_RESIZE"].contains(&self.status.as_str()) || state.starts_with("resize")
    }

    /// Whether Nova waits for a confirmation that the server works where it is now.
    pub(crate) fn waits_to_be_confirmed(&self) -> bool {
        self.status == "VERIFY_RESIZE" && self.task_state.is_none()
    }
}

impl ComputeService {
    /// Whether the service runs and wasn't forced down.
    pub(crate) fn is_up(&self) -> bool {
        self.state == "up" && !self.forced_down
    }

    /// Whether new servers can be scheduled to it.
    pub(crate) fn is_enabled(&self) -> bool {
        self.status == "enabled"
    }
}

/// Whether Nova considers an extra spec or hint with that value as set.
pub(crate) fn is_true(value: &str) -> bool {
    ["true", "1", "yes", "on", "t", "y"].contains(&value.to_lowercase().as_str())
}

/// Reads a number. An empty string is 0.
fn number_or_empty<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Number(u32),
        Text(String),
    }
    match Written::deserialize(deserializer)? {
        Written::Number(number) => Ok(number),
        Written::Text(text) if text.is_empty() => Ok(0),
        Written::Text(text) => text.parse().map_err(serde::de::Error::custom),
    }
}
