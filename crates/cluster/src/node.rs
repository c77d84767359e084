//! Nodes: their recorded facts and limits. Their instances are in [`crate::Figures`] and
//! [`crate::NodeState`].

use crate::ids::{GroupIdx, TagId};
use crate::tags::Migration;

/// Cause of [`Node::offline`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Outage {
    /// Down or marked offline: no data can be read from it.
    #[default]
    Offline,
    /// Working, but must not receive instances.
    Drained,
    /// Working, but unable to run instances.
    NoInstances,
}

impl Outage {
    /// A phrase that follows the node's name in messages.
    pub fn words(self) -> &'static str {
        match self {
            Self::Offline => "is offline",
            Self::Drained => "is drained",
            Self::NoInstances => "is not able to run instances",
        }
    }
}

/// Facts about a node, constant while instances move.
///
/// "Offline" means offline, drained or unable to run instances.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub name: String,
    pub group: GroupIdx,
    /// MiB.
    pub total_memory: f64,
    /// Memory of the node's own system, MiB.
    pub node_memory: i64,
    /// Free memory as the node reports it, MiB; never updated.
    pub reported_free_memory: i64,
    /// MiB.
    pub total_disk: f64,
    /// Free disk as the node reports it, MiB.
    pub reported_free_disk: i64,
    /// Number of physical CPUs.
    pub total_cpus: f64,
    /// Virtual CPUs used by the node's own system.
    pub node_cpus: i64,
    /// Physical spindles with exclusive storage; else a configured number.
    pub total_spindles: i64,
    /// Free spindles as reported. Meaningful only with exclusive storage.
    pub reported_free_spindles: i64,
    /// Whether the node is never a target.
    pub offline: bool,
    /// Reason for `offline`; ignored if the node is online. The text format doesn't record it, so it's
    /// [`Outage::Offline`] there.
    pub outage: Outage,
    pub master: bool,
    /// Whether disks are allocated as whole spindles.
    pub exclusive_storage: bool,
    /// Relative to other nodes.
    pub cpu_speed: f64,
    /// Tags as loaded.
    pub tags: Vec<String>,
    /// Whether the hypervisor is KVM. KVM's own memory use is configured, not measured.
    pub kvm: bool,

    /// Memory neither used nor free, MiB; can be negative. Derived at load, then constant.
    pub missing_memory: i64,
    /// Disk to keep free, MiB; derived from `--min-disk`.
    pub min_free_disk: i64,
    /// Limit of virtual CPUs per physical CPU; negative for no limit. Derived from the policy.
    pub max_vcpu_ratio: f64,
    /// Limit of virtual CPUs; derived.
    pub max_vcpus: i64,
    /// Limit of spindles used by instances; derived.
    pub max_spindles: f64,
    /// Location tags, sorted; derived.
    pub locations: Vec<TagId>,
    /// Migration tags; derived.
    pub migration: Migration,
}

/// Upper bound of limits derived from ratios, 2^40, so that sums over a cluster don't overflow.
const LARGEST_LIMIT: f64 = (1_i64 << 40) as f64;

/// Rounds a limit down to a whole number.
fn whole(limit: f64) -> i64 {
    limit.floor().clamp(-LARGEST_LIMIT, LARGEST_LIMIT) as i64
}

impl Node {
    /// An online node without instances, memory, disk or CPUs.
    pub fn new(name: impl Into<String>, group: GroupIdx) -> Self {
        Self {
            name: name.into(),
            group,
            total_memory: 0.0,
            node_memory: 0,
            reported_free_memory: 0,
            total_disk: 0.0,
            reported_free_disk: 0,
            total_cpus: 0.0,
            node_cpus: 1,
            total_spindles: 1,
            reported_free_spindles: 0,
            offline: false,
            outage: Outage::Offline,
            master: false,
            exclusive_storage: false,
            cpu_speed: 1.0,
            tags: Vec::new(),
            kvm: false,
            missing_memory: 0,
            min_free_disk: 0,
            max_vcpu_ratio: 4.0,
            max_vcpus: 0,
            max_spindles: 0.0,
            locations: Vec::new(),
            migration: Migration::default(),
        }
    }

    /// Limits virtual CPUs to `ratio` per physical CPU.
    pub fn limit_vcpus(&mut self, ratio: f64) {
        self.max_vcpu_ratio = ratio;
        self.max_vcpus = whole(ratio * self.total_cpus);
    }

    /// Keeps the share `ratio` of the total disk free.
    pub fn keep_free_disk(&mut self, ratio: f64) {
        self.min_free_disk = whole(ratio * self.total_disk);
    }

    /// Total memory, rounded down to MiB.
    #[inline]
    pub fn total_memory_mib(&self) -> i64 {
        self.total_memory as i64
    }

    /// Whether the node can receive instances.
    #[inline]
    pub fn online(&self) -> bool {
        !self.offline
    }

    /// Whether the data on the node can be read. True for drained nodes.
    #[inline]
    pub fn readable(&self) -> bool {
        self.online() || self.outage != Outage::Offline
    }

    /// Marks the node offline: nothing can be read from it or moved to it.
    pub fn lose(&mut self) {
        self.offline = true;
        self.outage = Outage::Offline;
    }

    /// Sets `offline` and `outage` from a cluster's three flags.
    pub fn set_flags(&mut self, offline: bool, drained: bool, vm_capable: bool) {
        self.offline = offline || drained || !vm_capable;
        self.outage = match (offline, vm_capable) {
            (true, _) => Outage::Offline,
            (false, false) => Outage::NoInstances,
            (false, true) => Outage::Drained,
        };
    }
}
