//! Configuration of a rack without a cloud: its machines, and the hooks that hand them over. Deserialized
//! from TOML or JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use leases::host::{Health, NetworkId};
use leases::ids::HostId;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{Machine, Network, StateError, Subnet};

/// Default time limit of a hook.
const TIME_LIMIT_SECONDS: u64 = 60;

/// Default time limit of [`Moment::Check`], which is shorter because an observation waits for the slowest
/// check.
const CHECK_TIME_LIMIT_SECONDS: u64 = 10;

/// Longest time limit of a hook: one week.
const LONGEST_TIME_LIMIT_SECONDS: u64 = 7 * 24 * 60 * 60;

/// Configuration of a rack.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HooksConfig {
    /// File for the driver's knowledge of the machines.
    pub state_file: PathBuf,
    pub hosts: Vec<HostConfig>,
    /// Networks that can provide floating IPs.
    #[serde(default)]
    pub networks: Vec<NetworkConfig>,
    /// Names of the service's environment variables to pass to programs.
    #[serde(default)]
    pub pass_environment: Vec<String>,
    /// Hooks by moment. A moment without a hook succeeds at once.
    #[serde(default)]
    pub hooks: BTreeMap<Moment, HookConfig>,
}

/// A machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostConfig {
    /// Number of the machine, which must not change.
    pub id: u64,
    pub name: String,
    /// Virtual CPUs available to instances.
    pub vcpus: u32,
    /// Memory available to instances, MiB.
    pub memory_mib: u32,
    /// Disk available to instances, GiB.
    #[serde(default)]
    pub disk_gib: u32,
    /// Other resources by Placement's resource class.
    #[serde(default)]
    pub other_resources: BTreeMap<String, u64>,
    /// Placement's trait names.
    #[serde(default)]
    pub traits: BTreeSet<String>,
    #[serde(default)]
    pub cpu_info: String,
    /// For example `QEMU`.
    #[serde(default)]
    pub hypervisor_type: String,
    /// Hypervisor version as a number: `2010001`.
    #[serde(default)]
    pub hypervisor_version: u64,
    /// Empty if unknown.
    #[serde(default)]
    pub availability_zone: String,
}

/// A network.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkConfig {
    pub id: String,
    pub subnets: Vec<SubnetConfig>,
}

/// A subnet.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubnetConfig {
    pub id: String,
    /// For example `203.0.113.0/24`.
    pub cidr: String,
    #[serde(default)]
    pub gateway: Option<IpAddr>,
    /// Ranges that are allocated outside the service: first and last address.
    #[serde(default)]
    pub allocation_pools: Vec<(IpAddr, IpAddr)>,
}

/// Event that calls a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// A host becomes leasable.
    OnAdopt,
    /// A host is no longer leasable.
    OnAbandon,
    /// A reservation gets its first resource.
    OnPrepare,
    /// A reservation has lost its last resource.
    OnFinish,
    /// New guests must not start on a host.
    OnFence,
    /// Preemptible guests can start on the host again.
    OnUnfence,
    /// A host is handed to a project.
    OnHold,
    /// A host is taken back from a project.
    OnRelease,
    /// A project gets slots on a host.
    OnGrant,
    /// A project loses all slots on a host.
    OnWithdraw,
    /// A project gets an address.
    OnAssign,
    /// A project loses an address.
    OnUnassign,
    /// An instance's guest is started.
    OnStart,
    /// A guest is asked to shut down.
    OnStop,
    /// A guest that was asked to shut down can stay.
    OnResume,
    /// A guest is live-migrated to another host.
    OnMigrate,
    /// A guest is deleted.
    OnDelete,
    /// Images of a reservation's guests on a host are made.
    OnSnapshot,
    /// A host is switched on.
    OnPowerOn,
    /// An unused host is switched off.
    OnPowerOff,
    /// A host's health and guests are observed. The response is JSON: see [`crate::hooks`].
    Check,
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OnAdopt => "on_adopt",
            Self::OnAbandon => "on_abandon",
            Self::OnPrepare => "on_prepare",
            Self::OnFinish => "on_finish",
            Self::OnFence => "on_fence",
            Self::OnUnfence => "on_unfence",
            Self::OnHold => "on_hold",
            Self::OnRelease => "on_release",
            Self::OnGrant => "on_grant",
            Self::OnWithdraw => "on_withdraw",
            Self::OnAssign => "on_assign",
            Self::OnUnassign => "on_unassign",
            Self::OnStart => "on_start",
            Self::OnStop => "on_stop",
            Self::OnResume => "on_resume",
            Self::OnMigrate => "on_migrate",
            Self::OnDelete => "on_delete",
            Self::OnSnapshot => "on_snapshot",
            Self::OnPowerOn => "on_power_on",
            Self::OnPowerOff => "on_power_off",
            Self::Check => "check",
        })
    }
}

/// A hook: a program or a web hook.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HookConfig {
    /// A program and its arguments.
    #[serde(default)]
    pub exec: Option<Vec<String>>,
    /// URL of a web hook.
    #[serde(default)]
    pub webhook: Option<String>,
    /// Default 60, or 10 for `check`.
    #[serde(default)]
    pub time_limit_seconds: Option<u64>,
    /// Header with a secret value for the web hook's request.
    #[serde(default)]
    pub secret_header: Option<SecretHeader>,
    /// CA certificates (PEM) that can sign the web hook's certificate; the system's if `None`.
    #[serde(default)]
    pub authorities_file: Option<PathBuf>,
}

/// A header whose value is secret.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretHeader {
    /// For example `Authorization`.
    pub name: String,
    /// File with the value, read for every request.
    pub file: PathBuf,
}

/// Error in the configuration of a rack.
#[derive(Debug, Error)]
pub enum HooksError {
    /// Two machines have the same number or name.
    #[error("hosts: {what} occurs twice")]
    Twice {
        /// Position of the second machine in the list, from 0.
        position: usize,
        /// Repeated name or number.
        what: String,
    },
    /// The address range of a subnet is invalid.
    #[error("networks: subnet {subnet}: {cidr:?} is not an address and a number of leading bits")]
    Cidr {
        /// Positions of the network and, in it, of the subnet, from 0.
        position: (usize, usize),
        /// Identifier of the subnet.
        subnet: String,
        /// The invalid text.
        cidr: String,
    },
    /// A hook has neither a program nor a web hook, or has both.
    #[error("hooks.{0}: give either exec, with a program, or webhook")]
    Kind(Moment),
    /// The name of the variable is invalid, or is reserved for the service.
    #[error(
        "pass_environment: {0:?} is not the name of a variable that can be passed on; those of ALLOT_ are set for each hook"
    )]
    Variable(String),
    /// The service doesn't have the variable, so programs won't get it.
    #[error("pass_environment: {0} is not set in the environment")]
    Unset(String),
    /// The time limit of a hook is zero or longer than a week.
    #[error("hooks.{0}: time_limit_seconds must be at least 1 and at most {max}", max = LONGEST_TIME_LIMIT_SECONDS)]
    TimeLimit(Moment),
    /// A program has a key that only applies to web hooks.
    #[error("hooks.{0}: {1} goes with webhook only")]
    WebhookOnly(Moment, &'static str),
    /// A web hook can't be called.
    #[error("hooks.{moment}: {message}")]
    Webhook { moment: Moment, message: String },
    /// A program can't be started.
    #[error("hooks.{moment}: {program}: {reason}")]
    Program {
        moment: Moment,
        /// Program as configured.
        program: String,
        reason: &'static str,
    },
    /// The value of a web hook's secret header can't be read.
    #[error("hooks.{moment}: secret_header: {path}: {reason}")]
    Secret {
        moment: Moment,
        /// File that should have the value.
        path: PathBuf,
        reason: String,
    },
    /// The driver's state file can't be used.
    #[error("state_file: {0}")]
    State(#[from] StateError),
}

impl HooksError {
    /// Path of the invalid value in the configuration: keys, and positions in lists.
    pub fn path(&self) -> Vec<String> {
        let hook = |moment: &Moment, key: &[&str]| {
            let path = ["hooks".to_owned(), moment.to_string()];
            path.into_iter().chain(key.iter().map(|key| (*key).to_owned())).collect()
        };
        match self {
            Self::Twice { position, .. } => vec!["hosts".to_owned(), position.to_string()],
            Self::Cidr { position: (network, subnet), .. } => {
                let (network, subnet) = (network.to_string(), subnet.to_string());
                vec!["networks".to_owned(), network, "subnets".to_owned(), subnet, "cidr".to_owned()]
            }
            Self::Variable(_) | Self::Unset(_) => vec!["pass_environment".to_owned()],
            Self::Kind(moment) => hook(moment, &[]),
            Self::TimeLimit(moment) => hook(moment, &["time_limit_seconds"]),
            Self::WebhookOnly(moment, key) => hook(moment, &[*key]),
            Self::Webhook { moment, .. } => hook(moment, &["webhook"]),
            Self::Program { moment, .. } => hook(moment, &["exec"]),
            Self::Secret { moment, .. } => hook(moment, &["secret_header"]),
            Self::State(_) => vec!["state_file".to_owned()],
        }
    }
}

impl HookConfig {
    pub(super) fn time_limit(&self, moment: Moment) -> Result<Duration, HooksError> {
        let usual = if moment == Moment::Check { CHECK_TIME_LIMIT_SECONDS } else { TIME_LIMIT_SECONDS };
        match self.time_limit_seconds.unwrap_or(usual) {
            seconds @ 1..=LONGEST_TIME_LIMIT_SECONDS => Ok(Duration::from_secs(seconds)),
            _ => Err(HooksError::TimeLimit(moment)),
        }
    }
}

impl HooksConfig {
    pub(super) fn machines(&self) -> Result<BTreeMap<HostId, Machine>, HooksError> {
        match self.repeated_hosts().into_iter().next() {
            Some(repeated) => Err(repeated),
            None => Ok(self.hosts.iter().map(|host| (HostId(host.id), host.machine())).collect()),
        }
    }

    /// Errors of hosts with the name or number of an earlier host.
    pub(super) fn repeated_hosts(&self) -> Vec<HooksError> {
        let mut found = Vec::new();
        let (mut names, mut ids) = (BTreeSet::new(), BTreeSet::new());
        for (position, host) in self.hosts.iter().enumerate() {
            if !names.insert(&host.name) {
                found.push(HooksError::Twice { position, what: host.name.clone() });
            }
            if !ids.insert(host.id) {
                found.push(HooksError::Twice { position, what: format!("id {}", host.id) });
            }
        }
        found
    }

    pub(super) fn networks(&self) -> Result<Vec<Network>, HooksError> {
        let network = |(position, network): (usize, &NetworkConfig)| {
            let subnets = network.subnets.iter().enumerate();
            let subnets: Result<_, _> =
                subnets.map(|(subnet, config)| config.subnet((position, subnet))).collect();
            Ok(Network { id: NetworkId(network.id.clone()), subnets: subnets? })
        };
        self.networks.iter().enumerate().map(network).collect()
    }

    /// Errors of subnets with an invalid address range.
    pub(super) fn wrong_subnets(&self) -> Vec<HooksError> {
        let networks = self.networks.iter().enumerate();
        let wrong = networks.flat_map(|(position, network)| {
            let subnets = network.subnets.iter().enumerate();
            subnets.filter_map(move |(subnet, config)| config.subnet((position, subnet)).err())
        });
        wrong.collect()
    }
}

impl HostConfig {
    fn machine(&self) -> Machine {
        Machine {
            id: HostId(self.id),
            name: self.name.clone(),
            service_name: self.name.clone(),
            vcpus: self.vcpus,
            memory_mib: self.memory_mib,
            disk_gib: self.disk_gib,
            other_resources: self.other_resources.clone(),
            traits: self.traits.clone(),
            cpu_info: self.cpu_info.clone(),
            hypervisor_type: self.hypervisor_type.clone(),
            hypervisor_version: self.hypervisor_version,
            availability_zone: self.availability_zone.clone(),
            health: Health::Up,
            guests: Vec::new(),
        }
    }
}

impl SubnetConfig {
    /// `position` is the position of the network and, in it, of the subnet.
    fn subnet(&self, position: (usize, usize)) -> Result<Subnet, HooksError> {
        let cidr = self.cidr.split_once('/').and_then(|(address, bits)| {
            let address: IpAddr = address.parse().ok()?;
            let most = if address.is_ipv4() { 32 } else { 128 };
            bits.parse().ok().filter(|bits: &u8| *bits <= most).map(|bits| (address, bits))
        });
        let wrong = || HooksError::Cidr { position, subnet: self.id.clone(), cidr: self.cidr.clone() };
        Ok(Subnet {
            id: self.id.clone(),
            cidr: cidr.ok_or_else(wrong)?,
            gateway: self.gateway,
            allocation_pools: self.allocation_pools.clone(),
        })
    }
}
