//! Common parts of the live sources: references by name, and cluster-wide information.

use std::collections::HashMap;

use cluster::{Disk, Group, GroupIdx, Instance, Node, NodeIdx, Policy};
use thiserror::Error;

use crate::data::ClusterData;
use crate::json::Hashing;

/// A name that refers to no record.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DanglingName {
    /// A node's group is not listed.
    #[error("Unknown group '{group}' for node {node}")]
    Group {
        /// The group's UUID as given.
        group: String,
        node: String,
    },
    /// An instance's node is not listed.
    #[error("Unknown node '{node}' for instance {instance}")]
    Node {
        /// The node's name as given.
        node: String,
        instance: String,
    },
    /// The master is not a listed node.
    #[error("Master node {0} unknown")]
    Master(String),
}

/// Groups by UUID. The last of duplicates wins.
pub(crate) struct Groups(HashMap<String, GroupIdx, Hashing>);

impl Groups {
    pub(crate) fn new(groups: &[Group]) -> Self {
        let positions = groups.iter().enumerate();
        Self(positions.map(|(at, group)| (group.uuid.clone(), GroupIdx::from_usize(at))).collect())
    }

    pub(crate) fn of(&self, node: &str, uuid: &str) -> Result<GroupIdx, DanglingName> {
        let unknown = || DanglingName::Group { group: uuid.to_owned(), node: node.to_owned() };
        self.0.get(uuid).copied().ok_or_else(unknown)
    }
}

/// Nodes by name. The last of duplicates wins.
pub(crate) struct Nodes(HashMap<String, NodeIdx, Hashing>);

impl Nodes {
    pub(crate) fn new(nodes: &[Node]) -> Self {
        let positions = nodes.iter().enumerate();
        Self(positions.map(|(at, node)| (node.name.clone(), NodeIdx::from_usize(at))).collect())
    }

    pub(crate) fn of(&self, instance: &str, node: &str) -> Result<NodeIdx, DanglingName> {
        let unknown = || DanglingName::Node { node: node.to_owned(), instance: instance.to_owned() };
        self.0.get(node).copied().ok_or_else(unknown)
    }
}

/// Disks from lists of their sizes and spindles. If one list is longer, its surplus is dropped.
pub(crate) fn disks(sizes: Vec<i64>, spindles: Vec<Option<i64>>) -> Vec<Disk> {
    sizes.into_iter().zip(spindles).map(|(size, spindles)| Disk { size, spindles }).collect()
}

/// Cluster-wide information.
pub(crate) struct Info {
    pub(crate) master: String,
    pub(crate) tags: Vec<String>,
    pub(crate) policy: Policy,
    /// Whether the default hypervisor is KVM.
    pub(crate) kvm: bool,
}

/// Assembles the cluster, and marks the master and KVM nodes.
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
