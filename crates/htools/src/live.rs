//! What the live sources share: names that refer to one another, and what holds for the whole cluster.

use std::collections::HashMap;

use cluster::{Disk, Group, GroupIdx, Instance, Node, NodeIdx, Policy};
use thiserror::Error;

use crate::data::ClusterData;
use crate::json::Hashing;

/// A name that refers to nothing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DanglingName {
    /// A node is in a group that is not listed.
    #[error("Unknown group '{group}' for node {node}")]
    Group {
        /// The group's UUID as given.
        group: String,
        /// The node.
        node: String,
    },
    /// An instance is on a node that is not listed.
    #[error("Unknown node '{node}' for instance {instance}")]
    Node {
        /// The node's name as given.
        node: String,
        /// The instance.
        instance: String,
    },
    /// The master is none of the nodes.
    #[error("Master node {0} unknown")]
    Master(String),
}

/// The group of each UUID; of several the last.
pub(crate) struct Groups(HashMap<String, GroupIdx, Hashing>);

impl Groups {
    pub(crate) fn new(groups: &[Group]) -> Self {
        let positions = groups.iter().enumerate();
        Self(positions.map(|(at, group)| (group.uuid.clone(), GroupIdx::from_usize(at))).collect())
    }

    /// The group of a node.
    pub(crate) fn of(&self, node: &str, uuid: &str) -> Result<GroupIdx, DanglingName> {
        let unknown = || DanglingName::Group { group: uuid.to_owned(), node: node.to_owned() };
        self.0.get(uuid).copied().ok_or_else(unknown)
    }
}

/// The node of each name; of several the last.
pub(crate) struct Nodes(HashMap<String, NodeIdx, Hashing>);

impl Nodes {
    pub(crate) fn new(nodes: &[Node]) -> Self {
        let positions = nodes.iter().enumerate();
        Self(positions.map(|(at, node)| (node.name.clone(), NodeIdx::from_usize(at))).collect())
    }

    /// A node of an instance.
    pub(crate) fn of(&self, instance: &str, node: &str) -> Result<NodeIdx, DanglingName> {
        let unknown = || DanglingName::Node { node: node.to_owned(), instance: instance.to_owned() };
        self.0.get(node).copied().ok_or_else(unknown)
    }
}

/// Disks from the lists of their sizes and spindles; what one list has more than the other is dropped.
pub(crate) fn disks(sizes: Vec<i64>, spindles: Vec<Option<i64>>) -> Vec<Disk> {
    sizes.into_iter().zip(spindles).map(|(size, spindles)| Disk { size, spindles }).collect()
}

/// What is said of the cluster as a whole.
pub(crate) struct Info {
    pub(crate) master: String,
    pub(crate) tags: Vec<String>,
    pub(crate) policy: Policy,
    /// Whether the default hypervisor is KVM.
    pub(crate) kvm: bool,
}

/// Puts the parts together.
pub(crate) fn assemble(
    groups: Vec<Group>,
    mut nodes: Vec<Node>,
    instances: Vec<Instance>,
    info: Info,
) -> Result<ClusterData, DanglingName> {
    for node in &mut nodes {
        node.kvm = info.kvm;
    }
    match nodes.iter_mut().rfind(|node| node.name == info.master) {
        Some(master) => master.master = true,
        None => return Err(DanglingName::Master(info.master)),
    }
    Ok(ClusterData { groups, nodes, instances, tags: info.tags, policy: info.policy })
}
