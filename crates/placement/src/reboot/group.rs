//! Groups of nodes that may be down together.

use cluster::{InstanceIdx, NodeIdx};
use thiserror::Error;

/// Why nodes cannot be grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RebootError {
    /// A node hosts instances without mirror that fit nowhere else.
    #[error("Not enough capacity to move non-redundant instances")]
    NonRedundantCapacity,
    /// The secondary of an instance cannot take it over.
    #[error("Failed to migrate instances off nodes")]
    Migration,
    /// A node hosts mirrors that fit nowhere else.
    #[error("Not enough capacity to move secondaries")]
    SecondaryCapacity,
}

/// Where an instance goes while its node is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// Which instance.
    pub instance: InstanceIdx,
    /// Its primary, and its secondary if it is mirrored.
    pub from: (NodeIdx, Option<NodeIdx>),
    /// Where they go.
    pub to: (NodeIdx, Option<NodeIdx>),
}

/// Nodes that may be down together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RebootGroup {
    /// The nodes.
    pub nodes: Vec<NodeIdx>,
    /// What has to move first, by instance. Instances that only change sides are not listed.
    pub relocations: Vec<Relocation>,
}
