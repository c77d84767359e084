//! Nodes: what they are. What is on them is in [`crate::Figures`] and [`crate::NodeState`].

use crate::ids::{GroupIdx, TagId};
use crate::tags::Migration;

/// Why a node is offline in the sense of [`Node::offline`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Outage {
    /// It does not work, or may not: nothing can be read from it.
    #[default]
    Offline,
    /// It works, but is to receive nothing.
    Drained,
    /// It works, but is not able to run instances.
    NoInstances,
}

impl Outage {
    /// What is wrong with the node, to follow its name.
    pub fn words(self) -> &'static str {
        match self {
            Self::Offline => "is offline",
            Self::Drained => "is drained",
            Self::NoInstances => "is not able to run instances",
        }
    }
}

/// What a node is; constant while instances move.
///
/// "Offline" means offline, drained or not able to run instances.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Full name.
    pub name: String,
    /// The group it belongs to.
    pub group: GroupIdx,
    /// Total memory, MiB.
    pub total_memory: f64,
    /// Memory of the node's own system, MiB.
    pub node_memory: i64,
    /// Free memory as the node reports it, MiB; never updated.
    pub reported_free_memory: i64,
    /// Total disk, MiB.
    pub total_disk: f64,
    /// Free disk as the node reports it, MiB.
    pub reported_free_disk: i64,
    /// Physical CPUs.
    pub total_cpus: f64,
    /// Virtual CPUs used by the node's own system.
    pub node_cpus: i64,
    /// Spindles: real ones with exclusive storage, else a parameter.
    pub total_spindles: i64,
    /// Free spindles as reported; meaningful with exclusive storage.
    pub reported_free_spindles: i64,
    /// Never a target.
    pub offline: bool,
    /// Why it is never a target; of no meaning otherwise. The text format does not say, so that [`Outage::Offline`] it is.
    pub outage: Outage,
    /// The master node.
    pub master: bool,
    /// Whether disks are given out as whole spindles.
    pub exclusive_storage: bool,
    /// Relative CPU speed.
    pub cpu_speed: f64,
    /// The node's tags, as loaded.
    pub tags: Vec<String>,
    /// Whether the node's hypervisor is KVM, whose own memory use is set rather than measured.
    pub kvm: bool,

    /// Memory that is neither accounted for nor free, MiB, may be negative; derived at load and fixed.
    pub missing_memory: i64,
    /// Disk to keep free, MiB; derived (`--min-disk`).
    pub min_free_disk: i64,
    /// Allowed ratio of virtual to physical CPUs; negative means no limit; derived from the policy.
    pub max_vcpu_ratio: f64,
    /// Allowed virtual CPUs; derived.
    pub max_vcpus: i64,
    /// Allowed instance spindles; derived.
    pub max_spindles: f64,
    /// Location tags, sorted; derived.
    pub locations: Vec<TagId>,
    /// Migration tags; derived.
    pub migration: Migration,
}

/// The largest limit that a ratio leads to, 2^40: sums over a cluster must not overflow.
const LARGEST_LIMIT: f64 = (1_i64 << 40) as f64;

/// A limit as the whole number below it.
fn whole(limit: f64) -> i64 {
    limit.floor().clamp(-LARGEST_LIMIT, LARGEST_LIMIT) as i64
}

impl Node {
    /// An empty, healthy node; the caller fills in what it knows.
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

    /// Allows that many virtual CPUs per physical one.
    pub fn limit_vcpus(&mut self, ratio: f64) {
        self.max_vcpu_ratio = ratio;
        self.max_vcpus = whole(ratio * self.total_cpus);
    }

    /// Keeps that share of the disk free.
    pub fn keep_free_disk(&mut self, ratio: f64) {
        self.min_free_disk = whole(ratio * self.total_disk);
    }

    /// Total memory as the whole MiB below it.
    #[inline]
    pub fn total_memory_mib(&self) -> i64 {
        self.total_memory as i64
    }

    /// Whether the node may receive instances.
    #[inline]
    pub fn online(&self) -> bool {
        !self.offline
    }

    /// Whether the data on the node can be read: it works, even if it is to receive nothing.
    #[inline]
    pub fn readable(&self) -> bool {
        self.online() || self.outage != Outage::Offline
    }

    /// From now on, nothing can be read from the node, and nothing moves to it.
    pub fn lose(&mut self) {
        self.offline = true;
        self.outage = Outage::Offline;
    }

    /// Takes over what a cluster says of the node.
    pub fn set_flags(&mut self, offline: bool, drained: bool, vm_capable: bool) {
        self.offline = offline || drained || !vm_capable;
        self.outage = match (offline, vm_capable) {
            (true, _) => Outage::Offline,
            (false, false) => Outage::NoInstances,
            (false, true) => Outage::Drained,
        };
    }
}
