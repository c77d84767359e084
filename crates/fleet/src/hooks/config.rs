//! The configuration of a rack without a cloud: which machines there are, and what to call when they change
//! hands. Read by serde, so from TOML or JSON.

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

/// How long a hook may take if it does not say.
const TIME_LIMIT_SECONDS: u64 = 60;

/// The same for [`Moment::Check`]: whoever looks at the machines waits for the slowest.
const CHECK_TIME_LIMIT_SECONDS: u64 = 10;

/// The longest time that a hook may take: a week.
const LONGEST_TIME_LIMIT_SECONDS: u64 = 7 * 24 * 60 * 60;

/// The configuration.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HooksConfig {
    /// Where the driver keeps what it knows of the machines.
    pub state_file: PathBuf,
    /// The machines.
    pub hosts: Vec<HostConfig>,
    /// Networks that floating IPs may come from.
    #[serde(default)]
    pub networks: Vec<NetworkConfig>,
    /// Names of environment variables of the service that programs get.
    #[serde(default)]
    pub pass_environment: Vec<String>,
    /// What to call when. A moment without a hook passes without one.
    #[serde(default)]
    pub hooks: BTreeMap<Moment, HookConfig>,
}

/// A machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostConfig {
    /// Its number, which must not change.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Virtual CPUs that instances may use.
    pub vcpus: u32,
    /// Memory that instances may use, MiB.
    pub memory_mib: u32,
    /// Disk that instances may use, GiB.
    #[serde(default)]
    pub disk_gib: u32,
    /// Other resources by Placement's class.
    #[serde(default)]
    pub other_resources: BTreeMap<String, u64>,
    /// Traits, by Placement's names.
    #[serde(default)]
    pub traits: BTreeSet<String>,
    /// The CPU's description.
    #[serde(default)]
    pub cpu_info: String,
    /// The hypervisor: `QEMU`.
    #[serde(default)]
    pub hypervisor_type: String,
    /// Its version as a number: `2010001`.
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
    /// Its identifier.
    pub id: String,
    /// Its subnets.
    pub subnets: Vec<SubnetConfig>,
}

/// A subnet.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubnetConfig {
    /// Its identifier.
    pub id: String,
    /// `203.0.113.0/24`.
    pub cidr: String,
    /// Its gateway.
    #[serde(default)]
    pub gateway: Option<IpAddr>,
    /// Ranges that others take addresses from, first and last.
    #[serde(default)]
    pub allocation_pools: Vec<(IpAddr, IpAddr)>,
}

/// When something is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// A host becomes one that may be leased.
    OnAdopt,
    /// A host is not one any more.
    OnAbandon,
    /// A reservation gets the first of what it asks for.
    OnPrepare,
    /// The last of it was taken back.
    OnFinish,
    /// No new guest may start on a host.
    OnFence,
    /// Preemptible guests may start there again.
    OnUnfence,
    /// A host goes to a project.
    OnHold,
    /// A host is taken back from a project.
    OnRelease,
    /// A project may use so many slots of a host.
    OnGrant,
    /// A project may not use any slots of it.
    OnWithdraw,
    /// A project may use an address.
    OnAssign,
    /// A project may not use an address any more.
    OnUnassign,
    /// The guest of an instance is started.
    OnStart,
    /// A guest is asked to shut down.
    OnStop,
    /// A guest that was asked to shut down may stay.
    OnResume,
    /// A guest is moved to another host while it runs.
    OnMigrate,
    /// A guest is deleted.
    OnDelete,
    /// Images are made of a reservation's guests on a host.
    OnSnapshot,
    /// A host is switched on.
    OnPowerOn,
    /// A host is switched off that nobody needs.
    OnPowerOff,
    /// What runs on a host, and does it work? The answer is JSON: see [`crate::hooks`].
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

/// What is called: a program or a web hook.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HookConfig {
    /// A program with its arguments.
    #[serde(default)]
    pub exec: Option<Vec<String>>,
    /// The address of a web hook.
    #[serde(default)]
    pub webhook: Option<String>,
    /// How long it may take; 60 if not given, for checks 10.
    #[serde(default)]
    pub time_limit_seconds: Option<u64>,
    /// A header of the web hook's request whose value is secret.
    #[serde(default)]
    pub secret_header: Option<SecretHeader>,
    /// Certificates of the authorities that the web hook's certificate may be signed by, as PEM; those of the
    /// system if not given.
    #[serde(default)]
    pub authorities_file: Option<PathBuf>,
}

/// A header whose value is secret.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretHeader {
    /// Its name: `Authorization`.
    pub name: String,
    /// A file with its value, which is read for every request.
    pub file: PathBuf,
}

/// Why there is no such fleet.
#[derive(Debug, Error)]
pub enum HooksError {
    /// Two machines of one number or name.
    #[error("hosts: {what} occurs twice")]
    Twice {
        /// Position of the second one in the list, from 0.
        position: usize,
        /// Its name or number.
        what: String,
    },
    /// A subnet's address range is none.
    #[error("networks: subnet {subnet}: {cidr:?} is not an address and a number of leading bits")]
    Cidr {
        /// Positions of the network, and of the subnet in it, from 0.
        position: (usize, usize),
        /// Which subnet.
        subnet: String,
        /// What it says.
        cidr: String,
    },
    /// A hook is neither a program nor a web hook, or both.
    #[error("hooks.{0}: give either exec, with a program, or webhook")]
    Kind(Moment),
    /// A variable that no program can get, or that programs must not get.
    #[error(
        "pass_environment: {0:?} is not the name of a variable that can be passed on; those of ALLOT_ are set for each hook"
    )]
    Variable(String),
    /// A variable that the service doesn't have, so programs won't get it.
    #[error("pass_environment: {0} is not set in the environment")]
    Unset(String),
    /// A hook that may take no time at all, or longer than a week.
    #[error("hooks.{0}: time_limit_seconds must be at least 1 and at most {max}", max = LONGEST_TIME_LIMIT_SECONDS)]
    TimeLimit(Moment),
    /// What only a web hook can have.
    #[error("hooks.{0}: {1} goes with webhook only")]
    WebhookOnly(Moment, &'static str),
    /// A web hook that cannot be called.
    #[error("hooks.{moment}: {message}")]
    Webhook {
        /// Which hook.
        moment: Moment,
        /// What is wrong.
        message: String,
    },
    /// A program that can't be started.
    #[error("hooks.{moment}: {program}: {reason}")]
    Program {
        /// The hook.
        moment: Moment,
        /// The program, as configured.
        program: String,
        /// Why.
        reason: &'static str,
    },
    /// The value of a web hook's secret header can't be read.
    #[error("hooks.{moment}: secret_header: {path}: {reason}")]
    Secret {
        /// The hook.
        moment: Moment,
        /// The file that should have it.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The driver's own file.
    #[error("state_file: {0}")]
    State(#[from] StateError),
}

impl HooksError {
    /// Path of the wrong value in the configuration: keys, and positions in lists.
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
    /// The machines.
    pub(super) fn machines(&self) -> Result<BTreeMap<HostId, Machine>, HooksError> {
        match self.repeated_hosts().into_iter().next() {
            Some(repeated) => Err(repeated),
            None => Ok(self.hosts.iter().map(|host| (HostId(host.id), host.machine())).collect()),
        }
    }

    /// Hosts with the name or the number of an earlier one.
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

    /// The networks.
    pub(super) fn networks(&self) -> Result<Vec<Network>, HooksError> {
        let network = |(position, network): (usize, &NetworkConfig)| {
            let subnets = network.subnets.iter().enumerate();
            let subnets: Result<_, _> =
                subnets.map(|(subnet, config)| config.subnet((position, subnet))).collect();
            Ok(Network { id: NetworkId(network.id.clone()), subnets: subnets? })
        };
        self.networks.iter().enumerate().map(network).collect()
    }

    /// Subnets whose range of addresses is wrong.
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
    /// `position` is that of the network, and of the subnet in it.
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
