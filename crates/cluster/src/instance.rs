//! Instances: their sizes, states and nodes.

use crate::figures::Demand;
use crate::ids::{NodeIdx, TagId};
use crate::tags::PINNED;

/// Disk template: how an instance's disks are stored (HT-model).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DiskTemplate {
    Diskless,
    /// Files on the node.
    File,
    /// Files on storage shared by all nodes.
    SharedFile,
    /// Logical volumes on the node.
    Plain,
    /// A block device visible to all nodes.
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

/// How an instance's data reaches other nodes, which decides how the instance can move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MirrorClass {
    /// The data is on one node only.
    None,
    /// Mirrored by Ganeti to a secondary node.
    Internal,
    /// Reachable from every node.
    External,
}

impl DiskTemplate {
    /// All templates in canonical order.
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

    /// The name in files and messages.
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

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|t| t.name() == name)
    }

    /// All names, for messages about an unknown one.
    pub fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    pub fn mirror(self) -> MirrorClass {
        match self {
            Self::Drbd => MirrorClass::Internal,
            Self::Plain | Self::File => MirrorClass::None,
            _ => MirrorClass::External,
        }
    }

    /// Whether balancing can move instances of this template.
    pub fn movable(self) -> bool {
        !matches!(self, Self::Plain | Self::File | Self::Diskless)
    }

    /// Whether instances use disk space and spindles of their nodes.
    pub fn local_storage(self) -> bool {
        matches!(self, Self::Drbd | Self::Plain)
    }

    /// Number of nodes that an instance occupies.
    pub fn required_nodes(self) -> usize {
        if self == Self::Drbd { 2 } else { 1 }
    }
}

/// Administrative and observed state of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceStatus {
    /// Stopped by the administrator.
    AdminDown,
    /// Stopped by the administrator. Its CPUs are not counted, and no memory is reserved for it.
    AdminOffline,
    /// Stopped, but should be running.
    ErrorDown,
    /// Running, but should be stopped.
    ErrorUp,
    /// The primary does not answer.
    ErrorNodeDown,
    /// The primary is marked offline.
    ErrorNodeOffline,
    Running,
    /// Stopped from inside the instance.
    UserDown,
    /// Running on a node that isn't its primary.
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

    /// The name in files.
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

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.name() == name)
    }

    /// Whether the instance is moved by live migration instead of failover.
    pub fn running(self) -> bool {
        matches!(self, Self::Running | Self::ErrorUp)
    }

    /// Whether the instance uses memory on its primary.
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

/// A disk of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disk {
    /// MiB.
    pub size: i64,
    /// `None` if unknown.
    pub spindles: Option<i64>,
}

/// Utilization of CPU, memory, disk and network. Dimensionless; 1 each if unknown.
pub type Utilisation = [f64; 4];

/// An instance.
#[derive(Clone, Debug, PartialEq)]
pub struct Instance {
    pub name: String,
    /// MiB.
    pub memory: i64,
    /// Disk space on each node, MiB, including mirror metadata.
    pub disk: i64,
    pub disks: Vec<Disk>,
    pub vcpus: i64,
    pub status: InstanceStatus,
    /// Whether balancing can move the instance and its secondary reserves memory for it.
    pub auto_balance: bool,
    pub primary: NodeIdx,
    pub secondary: Option<NodeIdx>,
    pub template: DiskTemplate,
    /// Weight of the disk activity, in spindles.
    pub spindle_use: i64,
    /// Tags as loaded.
    pub tags: Vec<String>,
    /// Planned but not created yet.
    pub forthcoming: bool,
    /// UUIDs of the networks that its interfaces are in.
    pub networks: Vec<String>,
    pub utilisation: Utilisation,
    /// Whether balancing can move the instance; derived at load.
    pub movable: bool,
    /// Tags that keep instances on different nodes; derived at load.
    pub exclusion_tags: Vec<TagId>,
    /// Location tags that the primary should have, sorted; derived at load.
    pub desired_locations: Vec<TagId>,
    /// Number of location tags shared by primary and secondary; derived at load, updated by moves.
    pub location_score: i64,
}

impl Instance {
    /// A running instance with default values: no memory, disks or CPUs.
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

    /// Sum of the disks' spindles. `None` if any disk's number is unknown; 0 without disks.
    pub fn total_spindles(&self) -> Option<i64> {
        self.disks.iter().map(|d| d.spindles).sum()
    }

    /// Whether the instance has the tag [`PINNED`], which keeps both its primary and its secondary in place.
    pub fn is_pinned(&self) -> bool {
        self.tags.iter().any(|tag| tag == PINNED)
    }

    /// Whether the instance's CPUs are counted.
    pub fn online(&self) -> bool {
        self.status != InstanceStatus::AdminOffline
    }

    /// Whether the instance uses memory on its primary.
    pub fn uses_memory(&self) -> bool {
        self.status.uses_memory() && !self.forthcoming
    }

    /// Whether the secondary reserves memory for the instance. It does for stopped instances too.
    pub fn reserves_secondary_memory(&self) -> bool {
        self.online() && self.auto_balance
    }

    /// Nodes that the instance depends on: primary and secondary for DRBD, else the primary.
    pub fn involved_nodes(&self) -> impl Iterator<Item = NodeIdx> + use<> {
        let secondary = if self.template == DiskTemplate::Drbd { self.secondary } else { None };
        std::iter::once(self.primary).chain(secondary)
    }

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
