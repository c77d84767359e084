//! Result of a hunt: a plan, or the reason why there is none.

use thiserror::Error;

use super::request::{GuestId, NodeId};

/// A move of a guest to another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    pub guest: GuestId,
    pub from: NodeId,
    pub to: NodeId,
}

/// Destinations for the guests of a node if it is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refuge {
    pub node: NodeId,
    /// Each guest with its destination.
    pub places: Vec<(GuestId, NodeId)>,
}

/// Cost of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Memory copied, MiB.
    pub memory_mib: u64,
    /// Disk copied, GiB.
    pub disk_gib: u64,
    /// Total downtime of all guests in milliseconds, not weighted by priority.
    pub downtime_ms: u64,
    /// Total waiting time for all nodes that are waited for, seconds.
    pub waiting_seconds: u64,
    /// Surcharges of the nodes taken, points.
    pub surcharge: u64,
    /// Total weighted by [`super::CostWeights`], points.
    pub weighted: u64,
}

/// A plan to obtain nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Nodes that are empty after the moves, cheapest first. Includes nodes that had no guests.
    pub cleared: Vec<NodeId>,
    /// Nodes that become free by themselves, with the number of seconds until then, cheapest first. None is
    /// in `cleared`.
    pub waits: Vec<(NodeId, u64)>,
    /// Moves, grouped by node in the order of `cleared`. All rules hold after each move; see [`super`].
    pub moves: Vec<Move>,
    /// Evidence for nodes whose redundancy is hard to establish: destinations of their guests after the last
    /// move.
    pub refuges: Vec<Refuge>,
    pub cost: Cost,
    /// Lower bound on the cost of any plan for this request, in points; never more than `cost.weighted`.
    pub lower_bound: u64,
}

/// Number of nodes that cannot be taken, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unclearable {
    /// Nodes that are not candidates.
    pub not_candidates: usize,
    /// Candidates with a guest that isn't movable.
    pub unmovable: usize,
    /// Candidates with a guest that no other node could take even if everything else stayed in place.
    pub without_destination: usize,
}

/// Minimum capacity missing in a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// Index of the dimension.
    pub dimension: usize,
    /// Total amount missing, in the dimension's unit. Adding less than this doesn't help.
    pub lacking: u64,
}

/// Reason why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The request contradicts itself.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// Fewer candidates than wanted can be cleared or waited for, each taken alone.
    #[error(
        "{wanted} nodes are wanted, but only {clearable} can be cleared: {} are no candidates, {} have guests that \
         may not be moved, {} have guests that no other node can take",
        others.not_candidates, others.unmovable, others.without_destination
    )]
    TooFewCandidates {
        wanted: usize,
        /// Number of candidates that can be cleared or waited for.
        clearable: usize,
        /// Reasons against all other nodes.
        others: Unclearable,
    },
    /// There are enough candidates, but no choice of them leaves capacity for their guests. This is proved,
    /// either by the sums in `shortages` or, if that is empty, by trying all choices and destinations.
    #[error("no choice of {wanted} nodes leaves enough room for their guests{}", lacking(shortages))]
    NoRoom {
        wanted: usize,
        /// Dimensions whose sums alone prove it.
        shortages: Vec<Shortage>,
    },
    /// No plan was found, but not all plans were tried either. Unlike with [`Refusal::NoRoom`], one might
    /// exist. More [`super::Effort`] or fewer wanted nodes can help.
    #[error(
        "no way was found to clear {wanted} nodes (at most {found} together), though it is not proved that there \
         is none; ask for fewer nodes"
    )]
    SearchExhausted {
        wanted: usize,
        /// Number of nodes taken together in the best attempt.
        found: usize,
    },
}

fn lacking(shortages: &[Shortage]) -> String {
    let each = shortages.iter().map(|s| format!("{} of dimension {}", s.lacking, s.dimension));
    let each: Vec<String> = each.collect();
    if each.is_empty() { String::new() } else { format!("; there is a lack of {}", each.join(", ")) }
}

/// Error in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Malformed {
    /// Two nodes have the same identifier.
    #[error("node {} is there twice", .0.0)]
    DuplicateNode(NodeId),
    /// Two guests have the same identifier.
    #[error("guest {:032x} is there twice", .0.0)]
    DuplicateGuest(GuestId),
    /// A guest is on an unknown node.
    #[error("guest {:032x} is on node {}, which is unknown", guest.0, node.0)]
    UnknownNode { guest: GuestId, node: NodeId },
    /// Nodes or guests have different numbers of dimensions.
    #[error("nodes and guests do not all have the same number of dimensions")]
    Dimensions,
    /// An amount is above [`super::LARGEST_AMOUNT`].
    #[error("a capacity or size is larger than {}", super::LARGEST_AMOUNT)]
    TooLarge,
    /// There are more nodes or guests than [`super::MOST_NODES_OR_GUESTS`].
    #[error("there are more than {} nodes or guests", super::MOST_NODES_OR_GUESTS)]
    TooMany,
    /// The redundancy rule names an unknown node.
    #[error("node {}, which must stay redundant, is unknown", .0.0)]
    UnknownMember(NodeId),
    /// The redundancy rule names no dimension, or one that doesn't exist.
    #[error("redundancy is requested in no dimension, or in a dimension that nodes lack")]
    RedundantDimensions,
}
