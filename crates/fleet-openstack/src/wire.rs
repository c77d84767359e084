//! What Nova, Placement, Neutron and Glance answer, as far as it is read. Fields that are not named here are ignored.

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

/// A hypervisor, as it is listed before microversion 2.53, where identifiers are numbers.
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

/// The compute service of a hypervisor.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct HypervisorService {
    pub(crate) host: String,
}

/// A host aggregate.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Aggregate {
    pub(crate) id: u64,
    /// By which Placement knows it.
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
    /// None until a host was chosen.
    #[serde(rename = "OS-EXT-SRV-ATTR:host", default)]
    pub(crate) host: Option<String>,
    #[serde(rename = "OS-EXT-STS:task_state", default)]
    pub(crate) task_state: Option<String>,
    /// Time of its creation. Resizing, rebuilding and unshelving reset Nova's `launched_at`, but not this.
    #[serde(default)]
    pub(crate) created: Option<Timestamp>,
    /// How far Nova is with what it does to the server, percent.
    #[serde(default)]
    pub(crate) progress: Option<u64>,
    /// What it was started with, if that is asked for: each hint is a list, or a text.
    #[serde(default)]
    pub(crate) scheduler_hints: Option<BTreeMap<String, Value>>,
}

/// The flavor that a server was started with, as it was then.
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
    /// An empty text where there is none and Nova goes by an older version than it was asked for.
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
    /// Since when it has been under way, if Nova says so.
    pub(crate) fn since(&self) -> Option<Timestamp> {
        in_utc(self.created_at.as_deref()?)
    }

    /// Whether a server that was moved while it was shut off is on its new host and waits for somebody to say that it
    /// works there.
    pub(crate) fn waits_to_be_confirmed(&self) -> bool {
        self.status == "finished"
    }

    /// Whether nothing more becomes of it.
    pub(crate) fn is_over(&self) -> bool {
        const ENDS: [&str; 8] =
            ["confirmed", "reverted", "error", "failed", "completed", "done", "deleted", "cancelled"];
        ENDS.contains(&self.status.as_str())
    }
}

/// A resource provider.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Provider {
    pub(crate) uuid: String,
    pub(crate) name: String,
    /// Another number after each change of what it has, or of who has some of it.
    #[serde(default)]
    pub(crate) generation: u64,
}

/// What a provider has of a class of resources.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Inventory {
    #[serde(default)]
    pub(crate) total: u64,
    #[serde(default)]
    pub(crate) reserved: u64,
    #[serde(default)]
    pub(crate) allocation_ratio: f64,
}

/// A subnet of Neutron.
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

/// The first and the last address of a range.
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

    /// Whether it is on its way to be.
    pub(crate) fn is_being_made(&self) -> bool {
        ["queued", "saving", "uploading", "importing"].contains(&self.status.as_str())
    }
}

/// An instant as Nova writes it: in UTC, without an offset.
fn in_utc(text: &str) -> Option<Timestamp> {
    TimeZone::UTC.to_timestamp(text.parse::<DateTime>().ok()?).ok()
}

impl Server {
    /// Whether its flavor, in the way that `BlazarFilter` reads, or a hint makes it preemptible. None if neither says anything.
    pub(crate) fn marked_preemptible(&self) -> Option<bool> {
        let of_flavor = self.flavor.extra_specs.get(PROPERTY).map(String::as_str);
        let hint = self.scheduler_hints.as_ref().and_then(|hints| hints.get("preemptible"));
        let hint = hint.and_then(|hint| hint.as_str().or_else(|| hint.get(0)?.as_str()));
        of_flavor.into_iter().chain(hint).map(is_true).reduce(|one, other| one || other)
    }

    /// Whether it has been shut down.
    pub(crate) fn is_shut_off(&self) -> bool {
        self.status == "SHUTOFF"
    }

    /// Whether Nova is doing something with it that ends by itself.
    pub(crate) fn is_busy(&self) -> bool {
        const PASSING: [&str; 7] =
            ["BUILD", "REBUILD", "REBOOT", "HARD_REBOOT", "MIGRATING", "RESIZE", "PASSWORD"];
        self.task_state.is_some() || PASSING.contains(&self.status.as_str())
    }

    /// Whether Nova makes images of servers in its state.
    pub(crate) fn can_be_imaged(&self) -> bool {
        ["ACTIVE", "SHUTOFF", "PAUSED", "SUSPENDED"].contains(&self.status.as_str())
    }

    /// Whether it is on its way to another host while it runs.
    pub(crate) fn is_moving(&self) -> bool {
        self.status == "MIGRATING" || self.task_state.as_deref() == Some("migrating")
    }

    /// Whether it gets another host or another flavor while it is shut off, or has got it and waits to be confirmed.
    pub(crate) fn is_resizing(&self) -> bool {
        let state = self.task_state.as_deref().unwrap_or_default();
        ["RESIZE", "VERIFY_RESIZE"].contains(&self.status.as_str()) || state.starts_with("resize")
    }

    /// Whether Nova does nothing with it before somebody says that it works where it is now.
    pub(crate) fn waits_to_be_confirmed(&self) -> bool {
        self.status == "VERIFY_RESIZE" && self.task_state.is_none()
    }
}

impl ComputeService {
    /// Whether it runs and nobody has declared it down.
    pub(crate) fn is_up(&self) -> bool {
        self.state == "up" && !self.forced_down
    }

    /// Whether new servers may be scheduled to it.
    pub(crate) fn is_enabled(&self) -> bool {
        self.status == "enabled"
    }
}

/// Whether Nova takes an extra spec or a hint of that value for set.
pub(crate) fn is_true(value: &str) -> bool {
    ["true", "1", "yes", "on", "t", "y"].contains(&value.to_lowercase().as_str())
}

/// A number; 0 for an empty text.
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
