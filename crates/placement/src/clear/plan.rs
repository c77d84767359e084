//! What comes of a hunt: a plan, or why there is none.

use thiserror::Error;

use super::request::{GuestId, NodeId};

/// A guest goes to another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Who.
    pub guest: GuestId,
    /// Where it is.
    pub from: NodeId,
    /// Where it goes.
    pub to: NodeId,
}

/// Where the guests of a node can go if it is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refuge {
    /// Which node.
    pub node: NodeId,
    /// Where each of its guests goes.
    pub places: Vec<(GuestId, NodeId)>,
}

/// What a plan costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Memory copied, MiB.
    pub memory_mib: u64,
    /// Disk copied, GiB.
    pub disk_gib: u64,
    /// Downtime of all guests together, milliseconds, priorities not counted.
    pub downtime_ms: u64,
    /// Seconds of waiting for all nodes together that are waited for.
    pub waiting_seconds: u64,
    /// Surcharges of the nodes taken, points.
    pub surcharge: u64,
    /// All of it, weighed by [`super::CostWeights`], points.
    pub weighted: u64,
}

/// How to get nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The nodes that are empty after the moves, cheapest first. Those that had no guests are among them.
    pub cleared: Vec<NodeId>,
    /// The nodes that become free by themselves, and in how many seconds, cheapest first. None is in `cleared`.
    pub waits: Vec<(NodeId, u64)>,
    /// The moves; one node of `cleared` after the other. After each of them all rules hold; see [`super`].
    pub moves: Vec<Move>,
    /// Evidence of redundancy for nodes for which it is hard to find: where their guests can go after the last move.
    pub refuges: Vec<Refuge>,
    /// What it costs.
    pub cost: Cost,
    /// No plan for this request is cheaper than so many points; never more than `cost.weighted`.
    pub lower_bound: u64,
}

/// Why candidates, and other nodes, cannot be taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unclearable {
    /// Nodes that are not candidates.
    pub not_candidates: usize,
    /// Candidates with a guest that may not be moved.
    pub unmovable: usize,
    /// Candidates with a guest that no other node could take even if everything else stayed where it is.
    pub without_destination: usize,
}

/// How much room is missing in a dimension at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// The dimension's position.
    pub dimension: usize,
    /// What is missing altogether, in its unit: less more than this does not help.
    pub lacking: u64,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The request contradicts itself.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// Fewer candidates can be cleared or waited for, each taken alone, than are wanted.
    #[error(
        "{wanted} nodes are wanted, but only {clearable} can be cleared: {} are no candidates, {} have guests that \
         may not be moved, {} have guests that no other node can take",
        others.not_candidates, others.unmovable, others.without_destination
    )]
    TooFewCandidates {
        /// How many are wanted.
        wanted: usize,
        /// How many candidates can be had.
        clearable: usize,
        /// What is wrong with the other nodes.
        others: Unclearable,
    },
    /// There are enough candidates, but no choice of them leaves room for their guests. This is proved: either by
    /// the sums in `shortages`, or, if there are none, by going through all choices and destinations.
    #[error("no choice of {wanted} nodes leaves enough room for their guests{}", lacking(shortages))]
    NoRoom {
        /// How many are wanted.
        wanted: usize,
        /// The dimensions whose sums alone prove it.
        shortages: Vec<Shortage>,
    },
    /// No plan was found, and not all plans were gone through either: there may be one, unlike with
    /// [`Refusal::NoRoom`]. More [`super::Effort`] may find it, as may asking for fewer nodes.
    #[error(
        "no way was found to clear {wanted} nodes (at most {found} together), though it is not proved that there \
         is none; ask for fewer nodes"
    )]
    SearchExhausted {
        /// How many are wanted.
        wanted: usize,
        /// As many could be had together in the best attempt.
        found: usize,
    },
}

fn lacking(shortages: &[Shortage]) -> String {
    let each = shortages.iter().map(|s| format!("{} of dimension {}", s.lacking, s.dimension));
    let each: Vec<String> = each.collect();
    if each.is_empty() { String::new() } else { format!("; there is a lack of {}", each.join(", ")) }
}

/// What is wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Malformed {
    /// Two nodes have one identifier.
    #[error("node {} is there twice", .0.0)]
    DuplicateNode(NodeId),
    /// Two guests have one identifier.
    #[error("guest {:032x} is there twice", .0.0)]
    DuplicateGuest(GuestId),
    /// A guest is on a node that is not there.
    #[error("guest {:032x} is on node {}, which is unknown", guest.0, node.0)]
    UnknownNode {
        /// Who.
        guest: GuestId,
        /// Where.
        node: NodeId,
    },
    /// Nodes or guests have different numbers of dimensions.
    #[error("nodes and guests do not all have the same number of dimensions")]
    Dimensions,
    /// An amount is above [`super::LARGEST_AMOUNT`].
    #[error("a capacity or size is larger than {}", super::LARGEST_AMOUNT)]
    TooLarge,
    /// There are more nodes or guests than [`super::MOST_NODES_OR_GUESTS`].
    #[error("there are more than {} nodes or guests", super::MOST_NODES_OR_GUESTS)]
    TooMany,
    /// The redundant nodes name one that is not there.
    #[error("node {}, which must stay redundant, is unknown", .0.0)]
    UnknownMember(NodeId),
    /// Redundancy is asked for in no dimension, or in one that is not there.
    #[error("redundancy is asked for in no dimension, or in one that nodes do not have")]
    RedundantDimensions,
}
