//! Input of a hunt: nodes, guests, and the cost of moving and waiting.

use std::collections::BTreeSet;

/// A node's identifier. Its meaning is up to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u64);

/// A guest's identifier. Its meaning is up to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GuestId(pub u128);

/// A property of nodes that guests can require: a migration tag, a trait, an aggregate. A property that a
/// guest must avoid is modeled as a label of the nodes that lack it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(pub u32);

/// Group of guests that may not share a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExclusionGroup(pub u64);

/// Role of a node in a hunt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Can be cleared and taken. Until then it can receive guests.
    Candidate,
    /// Can receive guests, but cannot be taken.
    Receiver,
    /// Neither: it is leased, fenced, failed, or part of another hunt's plan.
    Closed,
}

/// A node of the pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub id: NodeId,
    pub role: Role,
    /// Capacity for guests in the units of each dimension (for example virtual CPUs, MiB of memory and GiB of
    /// disk), at most [`LARGEST_AMOUNT`] each. All nodes and guests have the same dimensions in the same
    /// order.
    pub capacity: Vec<u64>,
    pub labels: BTreeSet<Label>,
    /// Seconds from now until its guests are gone without being moved; `None` if unknown.
    pub free_in_seconds: Option<u64>,
    /// Cost of taking it in addition to moving and waiting, in points of [`CostWeights`].
    pub surcharge: u64,
}

impl Node {
    /// A node without labels or surcharge.
    pub fn new(id: NodeId, role: Role, capacity: Vec<u64>) -> Self {
        Self { id, role, capacity, labels: BTreeSet::new(), free_in_seconds: None, surcharge: 0 }
    }
}

/// An instance on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guest {
    pub id: GuestId,
    pub node: NodeId,
    /// Use of each dimension in its unit, at most [`LARGEST_AMOUNT`] each.
    pub size: Vec<u64>,
    /// Whether it can be moved. If not, its node cannot be cleared. If the requester's own guests may stay on
    /// a taken node, omit them from the request.
    pub movable: bool,
    /// Memory to copy when it moves, MiB.
    pub memory_mib: u64,
    /// Disk to copy when it moves, GiB; 0 for shared storage.
    pub disk_gib: u64,
    /// Expected downtime of a move, milliseconds.
    pub downtime_ms: u64,
    /// Weight of its downtime: 1 is usual, 0 means that downtime doesn't matter.
    pub priority: u64,
    /// Labels that a node must have to receive it.
    pub requires: BTreeSet<Label>,
    /// It must not share a node with another guest of these groups.
    pub exclusion: BTreeSet<ExclusionGroup>,
    /// Nodes that no plan moves it to, because such a move has failed. If its node is lost, it can still be
    /// started there.
    pub avoided: BTreeSet<NodeId>,
}

impl Guest {
    /// A movable guest of this size that can go anywhere, with nothing to copy, no downtime and priority 1.
    pub fn new(id: GuestId, node: NodeId, size: Vec<u64>) -> Self {
        Self {
            id,
            node,
            size,
            movable: true,
            memory_mib: 0,
            disk_gib: 0,
            downtime_ms: 0,
            priority: 1,
            requires: BTreeSet::new(),
            exclusion: BTreeSet::new(),
            avoided: BTreeSet::new(),
        }
    }
}

/// Weights of the parts of a plan's cost. A point is worth about a millisecond of a 10 Gbit/s link. Sums
/// saturate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostWeights {
    /// Points per MiB of memory copied; 1 by default.
    pub per_mib_of_memory: u64,
    /// Points per GiB of disk copied; 1,000 by default.
    pub per_gib_of_disk: u64,
    /// Points per millisecond of downtime and unit of priority; 10 by default, because users notice downtime.
    pub per_ms_of_downtime: u64,
    /// Points per second of waiting for a node, for each such node; 1,000 by default, as much as a second of
    /// copying.
    pub per_second_of_waiting: u64,
}

impl Default for CostWeights {
    fn default() -> Self {
        Self {
            per_mib_of_memory: 1,
            per_gib_of_disk: 1000,
            per_ms_of_downtime: 10,
            per_second_of_waiting: 1000,
        }
    }
}

impl CostWeights {
    /// Cost of moving a guest, in points.
    pub fn of_move(&self, guest: &Guest) -> u64 {
        let memory = guest.memory_mib.saturating_mul(self.per_mib_of_memory);
        let disk = guest.disk_gib.saturating_mul(self.per_gib_of_disk);
        let downtime =
            guest.downtime_ms.saturating_mul(guest.priority).saturating_mul(self.per_ms_of_downtime);
        memory.saturating_add(disk).saturating_add(downtime)
    }
}

/// Nodes of which any one can be lost; see [`super`] for the guarantee.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NPlusOne {
    /// Nodes that take over each other's guests. Closed nodes are ignored.
    pub nodes: BTreeSet<NodeId>,
    /// Dimensions in which there must be capacity for a lost node's guests; at least one. The first, usually
    /// memory, determines the order of the search.
    pub dimensions: Vec<usize>,
}

/// Request to clear nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// All nodes with guests.
    pub nodes: Vec<Node>,
    /// All guests, including immovable ones. Nodes can be overcommitted or have guests that exclude each
    /// other; a plan doesn't make this worse.
    pub guests: Vec<Guest>,
    /// Number of candidates to take.
    pub wanted: usize,
    /// Redundancy rule; `None` if redundancy doesn't matter.
    pub n_plus_one: Option<NPlusOne>,
    pub weights: CostWeights,
}

/// Maximum capacity or size, chosen so that no sum of [`MOST_NODES_OR_GUESTS`] overflows.
pub const LARGEST_AMOUNT: u64 = 1 << 40;

/// Maximum number of nodes, and of guests.
pub const MOST_NODES_OR_GUESTS: usize = 1 << 20;

/// Limits of the search in *looks*. A look considers one node for a guest and takes some nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Looks per node and guest for constructing a plan. Once they are used up, a plan can still be completed
    /// with nodes that are waited for.
    pub constructing_looks: u64,
    /// Looks per guest for making a plan cheaper by exchanging nodes.
    pub improving_looks: u64,
    /// Looks per guest, plus a hundred guests, for trying all plans that could be cheaper. If that finishes,
    /// the plan is the cheapest, or it is certain that there is none. 0 disables it.
    pub exhaustive_looks: u64,
    /// Maximum number of looks in total, regardless of the number of nodes and guests.
    pub most: u64,
}

impl Default for Effort {
    fn default() -> Self {
        Self { constructing_looks: 2500, improving_looks: 2000, exhaustive_looks: 2000, most: u64::MAX }
    }
}
