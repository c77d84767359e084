//! Instances: what they ask of a node, and where they are.

use crate::figures::Demand;
use crate::ids::{NodeIdx, TagId};
use crate::tags::PINNED;

/// How an instance's disks are stored (HT-model).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DiskTemplate {
    /// No disks.
    Diskless,
    /// Files on the node.
    File,
    /// Files on storage that all nodes share.
    SharedFile,
    /// Logical volumes on the node.
    Plain,
    /// A block device that all nodes see.
    Block,
    /// Logical volumes mirrored to a secondary node.
    Drbd,
    /// Ceph.
    Rbd,
    /// An external storage provider.
    Ext,
    /// Gluster.
    Gluster,
}

/// How an instance can change its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MirrorClass {
    /// Its data is on one node only.
    None,
    /// Mirrored by Ganeti to a secondary node.
    Internal,
    /// Reachable from every node.
    External,
}

impl DiskTemplate {
    /// All templates, in the canonical order.
    pub const ALL: [Self; 9] = [
        Self::Diskless,
        Self::File,
        Self::SharedFile,
        Self::Plain,
        Self::Block,
        Self::Drbd,
        Self::Rbd,
        Self::Ext,
        Self::Gluster,
    ];

    /// The name used in files and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Diskless => "diskless",
            Self::File => "file",
            Self::SharedFile => "sharedfile",
            Self::Plain => "plain",
            Self::Block => "blockdev",
            Self::Drbd => "drbd",
            Self::Rbd => "rbd",
            Self::Ext => "ext",
            Self::Gluster => "gluster",
        }
    }

    /// The template of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|t| t.name() == name)
    }

    /// How an instance of this template can change its node.
    pub fn mirror(self) -> MirrorClass {
        match self {
            Self::Drbd => MirrorClass::Internal,
            Self::Plain | Self::File => MirrorClass::None,
            _ => MirrorClass::External,
        }
    }

    /// Whether balancing may move instances of this template at all.
    pub fn movable(self) -> bool {
        !matches!(self, Self::Plain | Self::File | Self::Diskless)
    }

    /// Whether an instance consumes disk space and spindles of its node.
    pub fn local_storage(self) -> bool {
        matches!(self, Self::Drbd | Self::Plain)
    }

    /// How many nodes an instance of this template occupies.
    pub fn required_nodes(self) -> usize {
        if self == Self::Drbd { 2 } else { 1 }
    }
}

/// The administrative and observed state of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceStatus {
    /// Stopped by the administrator.
    AdminDown,
    /// Stopped, and not counted as a consumer.
    AdminOffline,
    /// Should run, does not.
    ErrorDown,
    /// Runs, should not.
    ErrorUp,
    /// Its node does not answer.
    ErrorNodeDown,
    /// Its node is marked offline.
    ErrorNodeOffline,
    /// Runs as it should.
    Running,
    /// Stopped from inside.
    UserDown,
    /// Runs on another node than its primary.
    ErrorWrongNode,
}

impl InstanceStatus {
    /// All states, in the order of the text format's documentation.
    pub const ALL: [Self; 9] = [
        Self::AdminDown,
        Self::AdminOffline,
        Self::ErrorDown,
        Self::ErrorUp,
        Self::ErrorNodeDown,
        Self::ErrorNodeOffline,
        Self::Running,
        Self::UserDown,
        Self::ErrorWrongNode,
    ];

    /// The name used in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::AdminDown => "ADMIN_down",
            Self::AdminOffline => "ADMIN_offline",
            Self::ErrorDown => "ERROR_down",
            Self::ErrorUp => "ERROR_up",
            Self::ErrorNodeDown => "ERROR_nodedown",
            Self::ErrorNodeOffline => "ERROR_nodeoffline",
            Self::Running => "running",
            Self::UserDown => "USER_down",
            Self::ErrorWrongNode => "ERROR_wrongnode",
        }
    }

    /// The state of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.name() == name)
    }

    /// Whether the instance is moved live rather than restarted.
    pub fn running(self) -> bool {
        matches!(self, Self::Running | Self::ErrorUp)
    }

    /// Whether the instance occupies memory on its primary.
    pub fn uses_memory(self) -> bool {
        matches!(
            self,
            Self::Running
                | Self::ErrorUp
                | Self::ErrorNodeDown
                | Self::ErrorNodeOffline
                | Self::ErrorWrongNode
        )
    }
}

/// One disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disk {
    /// Size in MiB.
    pub size: i64,
    /// Spindles, where known.
    pub spindles: Option<i64>,
}

/// Utilisation of CPU, memory, disk and network, dimensionless; 1 each when nothing is known.
pub type Utilisation = [f64; 4];

/// An instance.
#[derive(Clone, Debug, PartialEq)]
pub struct Instance {
    /// Full name.
    pub name: String,
    /// Memory in MiB.
    pub memory: i64,
    /// Disk space on a node, in MiB (mirror metadata included).
    pub disk: i64,
    /// Its disks.
    pub disks: Vec<Disk>,
    /// Virtual CPUs.
    pub vcpus: i64,
    /// Its state.
    pub status: InstanceStatus,
    /// Whether balancing may move it, and secondaries reserve memory for it.
    pub auto_balance: bool,
    /// Where it runs.
    pub primary: NodeIdx,
    /// Where its mirror is.
    pub secondary: Option<NodeIdx>,
    /// How its disks are stored.
    pub template: DiskTemplate,
    /// How many spindles its disk activity is worth.
    pub spindle_use: i64,
    /// Its tags, as loaded.
    pub tags: Vec<String>,
    /// Planned, not yet created.
    pub forthcoming: bool,
    /// Networks of its interfaces (UUIDs).
    pub networks: Vec<String>,
    /// Utilisation, given or assumed.
    pub utilisation: Utilisation,
    /// Whether balancing may move it; derived at load.
    pub movable: bool,
    /// Tags that keep instances apart; derived at load.
    pub exclusion_tags: Vec<TagId>,
    /// Location tags it wishes its primary to have, sorted; derived at load.
    pub desired_locations: Vec<TagId>,
    /// Number of location tags that its two nodes share; derived at load, changed by moves.
    pub location_score: i64,
}

impl Instance {
    /// An instance with the given shape and everything else at its default.
    pub fn new(name: impl Into<String>, template: DiskTemplate, primary: NodeIdx) -> Self {
        Self {
            name: name.into(),
            memory: 0,
            disk: 0,
            disks: Vec::new(),
            vcpus: 0,
            status: InstanceStatus::Running,
            auto_balance: true,
            primary,
            secondary: None,
            template,
            spindle_use: 1,
            tags: Vec::new(),
            forthcoming: false,
            networks: Vec::new(),
            utilisation: [1.0; 4],
            movable: template.movable(),
            exclusion_tags: Vec::new(),
            desired_locations: Vec::new(),
            location_score: 0,
        }
    }

    /// Sum of the disks' spindles; unknown if any disk's number is, 0 without disks.
    pub fn total_spindles(&self) -> Option<i64> {
        self.disks.iter().map(|d| d.spindles).sum()
    }

    /// Whether the instance has the tag [`PINNED`], so that neither of its copies may change nodes.
    pub fn is_pinned(&self) -> bool {
        self.tags.iter().any(|tag| tag == PINNED)
    }

    /// Whether the instance is counted as a consumer of CPUs.
    pub fn online(&self) -> bool {
        self.status != InstanceStatus::AdminOffline
    }

    /// Whether the instance occupies memory of its primary.
    pub fn uses_memory(&self) -> bool {
        self.status.uses_memory() && !self.forthcoming
    }

    /// Whether the instance reserves memory on its secondary; a stopped one does as well.
    pub fn reserves_secondary_memory(&self) -> bool {
        self.online() && self.auto_balance
    }

    /// The nodes that the instance depends on: both for DRBD, the primary for everything else.
    pub fn involved_nodes(&self) -> impl Iterator<Item = NodeIdx> + use<> {
        let secondary = if self.template == DiskTemplate::Drbd { self.secondary } else { None };
        std::iter::once(self.primary).chain(secondary)
    }

    /// What the instance asks of a node, as plain numbers.
    pub fn demand(&self) -> Demand {
        Demand {
            memory: self.memory,
            disk: self.disk,
            vcpus: if self.online() { self.vcpus } else { 0 },
            spindle_use: self.spindle_use as f64,
            spindles: self.total_spindles(),
            utilisation: self.utilisation,
            used_memory: if self.uses_memory() { self.memory } else { 0 },
            reserved_memory: if self.reserves_secondary_memory() { self.memory } else { 0 },
            local_storage: self.template.local_storage(),
            drbd: self.template == DiskTemplate::Drbd,
            forthcoming: self.forthcoming,
        }
    }
}
