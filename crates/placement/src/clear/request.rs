//! What a hunt is asked: nodes, guests, and what moving and waiting cost.

use std::collections::BTreeSet;

/// A node's identifier, whatever it means to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u64);

/// A guest's identifier, whatever it means to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GuestId(pub u128);

/// A fact about a node that guests may depend on: a migration tag, a trait, an aggregate. What a guest must not
/// meet is a label of the nodes that lack it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(pub u32);

/// Guests of which no two may be on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExclusionGroup(pub u64);

/// What a node may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// It may be cleared and taken. As long as it is not, it may receive guests.
    Candidate,
    /// It may receive guests, but not be taken.
    Receiver,
    /// Neither: it is leased, fenced, failed, or another hunt plans with it.
    Closed,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its identifier.
    pub id: NodeId,
    /// What it may be used for.
    pub role: Role,
    /// What guests may use of it, in the units of each dimension (for instance virtual CPUs, MiB of memory and GiB
    /// of disk), at most [`LARGEST_AMOUNT`] each. All nodes and guests have the same dimensions in the same order.
    pub capacity: Vec<u64>,
    /// Its facts.
    pub labels: BTreeSet<Label>,
    /// Seconds from now after which its guests are gone without anybody moving them; none if nobody knows.
    pub free_in_seconds: Option<u64>,
    /// What taking it costs beside moving and waiting, in points of [`CostWeights`].
    pub surcharge: u64,
}

impl Node {
    /// An unlabelled node of that size without a surcharge.
    pub fn new(id: NodeId, role: Role, capacity: Vec<u64>) -> Self {
        Self { id, role, capacity, labels: BTreeSet::new(), free_in_seconds: None, surcharge: 0 }
    }
}

/// An instance on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guest {
    /// Its identifier.
    pub id: GuestId,
    /// Where it is.
    pub node: NodeId,
    /// What it uses, in the units of each dimension, at most [`LARGEST_AMOUNT`] each.
    pub size: Vec<u64>,
    /// Whether it may be moved. A guest that may not makes its node one that cannot be cleared; the requester's own
    /// guests, if they may stay on a node that is taken, are left out of the request altogether.
    pub movable: bool,
    /// Memory to copy when it moves, MiB.
    pub memory_mib: u64,
    /// Disk to copy when it moves, GiB; 0 for shared storage.
    pub disk_gib: u64,
    /// How long it is expected to stand still when it moves, milliseconds.
    pub downtime_ms: u64,
    /// By how much its downtime counts; 1 is usual, 0 means that nobody minds.
    pub priority: u64,
    /// What a node must have to receive it.
    pub requires: BTreeSet<Label>,
    /// Whom it must not meet.
    pub exclusion: BTreeSet<ExclusionGroup>,
    /// Nodes that no plan moves it to: that has failed. If its node is lost it can be started there all the same.
    pub avoided: BTreeSet<NodeId>,
}

impl Guest {
    /// A movable guest of that size that goes anywhere, with nothing to copy, no downtime and priority 1.
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

/// What counts how much. A point is about what a millisecond of a link of 10 Gbit/s is worth. Sums stop at the
/// largest number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostWeights {
    /// Points per MiB of memory copied; 1 by default.
    pub per_mib_of_memory: u64,
    /// Points per GiB of disk copied; 1,000 by default.
    pub per_gib_of_disk: u64,
    /// Points per millisecond of downtime and unit of priority; 10 by default, since somebody notices.
    pub per_ms_of_downtime: u64,
    /// Points per second of waiting for a node, for each such node; 1,000 by default: as long as copying takes.
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
    /// What moving a guest costs, in points.
    pub fn of_move(&self, guest: &Guest) -> u64 {
        let memory = guest.memory_mib.saturating_mul(self.per_mib_of_memory);
        let disk = guest.disk_gib.saturating_mul(self.per_gib_of_disk);
        let downtime =
            guest.downtime_ms.saturating_mul(guest.priority).saturating_mul(self.per_ms_of_downtime);
        memory.saturating_add(disk).saturating_add(downtime)
    }
}

/// Nodes of which any one may be lost; see [`super`] for what is promised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NPlusOne {
    /// The nodes that stand in for each other. Closed ones among them are ignored.
    pub nodes: BTreeSet<NodeId>,
    /// In which dimensions there must be room for a lost node's guests; at least one. The first, usually memory,
    /// decides in which order room is looked for.
    pub dimensions: Vec<usize>,
}

/// What is to be cleared of what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// All nodes on which guests are.
    pub nodes: Vec<Node>,
    /// All guests, those that nobody may move included. There may be too many on a node, or some that exclude each
    /// other; a plan makes nothing of that worse.
    pub guests: Vec<Guest>,
    /// How many candidates are to be taken.
    pub wanted: usize,
    /// Which nodes must stay redundant; none if that does not matter.
    pub n_plus_one: Option<NPlusOne>,
    /// What counts how much.
    pub weights: CostWeights,
}

/// No amount of a capacity or a size is larger, so that no sum of [`MOST_NODES_OR_GUESTS`] overflows.
pub const LARGEST_AMOUNT: u64 = 1 << 40;

/// There are no more nodes, and no more guests.
pub const MOST_NODES_OR_GUESTS: usize = 1 << 20;

/// How long to search, in *looks*: a look is a node considered for a guest, some nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Looks per node and guest to find a plan. When they are used up, nodes that are waited for still complete one.
    pub constructing_looks: u64,
    /// Looks per guest to make a plan cheaper by exchanging nodes.
    pub improving_looks: u64,
    /// Looks per guest, and for a hundred guests more, to go through all plans that could be cheaper: if that
    /// ends, the plan is the cheapest, or it is certain that there is none. With 0, nobody tries.
    pub exhaustive_looks: u64,
    /// At most so many looks in all, however many nodes and guests there are.
    pub most: u64,
}

impl Default for Effort {
    fn default() -> Self {
        Self { constructing_looks: 2500, improving_looks: 2000, exhaustive_looks: 2000, most: u64::MAX }
    }
}
