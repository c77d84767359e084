//! Groups of nodes that can be down together.

use cluster::{InstanceIdx, NodeIdx};
use thiserror::Error;

/// Reason why nodes can't be grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RebootError {
    /// A node hosts instances without a mirror that fit nowhere else.
    #[error("Not enough capacity to move non-redundant instances")]
    NonRedundantCapacity,
    /// The secondary of an instance can't take it over.
    #[error("Failed to migrate instances off nodes")]
    Migration,
    /// A node hosts mirrors that fit nowhere else.
    #[error("Not enough capacity to move secondaries")]
    SecondaryCapacity,
}

/// Move of an instance while its node is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    pub instance: InstanceIdx,
    /// Primary, and secondary if the instance is mirrored.
    pub from: (NodeIdx, Option<NodeIdx>),
    /// Primary and secondary after the move.
    pub to: (NodeIdx, Option<NodeIdx>),
}

/// Nodes that can be down together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RebootGroup {
    pub nodes: Vec<NodeIdx>,
    /// Moves to make first, by instance. Instances that only swap primary and secondary aren't listed.
    pub relocations: Vec<Relocation>,
}
