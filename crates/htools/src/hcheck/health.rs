//! Health of groups and of the cluster.

use cluster::{Cluster, GroupIdx, InstanceIdx, NodeIdx};
use placement::health::{Faults, GroupHealth};

use crate::options::Options;

/// A group with at least one node.
pub(super) struct Scope {
    pub(super) group: GroupIdx,
    pub(super) nodes: Vec<NodeIdx>,
    pub(super) instances: Vec<InstanceIdx>,
}

/// Health of each group and of the whole cluster.
pub(super) struct Health {
    pub(super) groups: Vec<GroupHealth>,
    pub(super) all: Faults,
    /// Whether the cluster needs balancing. After balancing, the reference repeats its first verdict.
    pub(super) needs_balancing: bool,
}

/// Checks the groups. `before` is the result before balancing, if any.
pub(super) fn health(
    cluster: &mut Cluster,
    scopes: &[Scope],
    options: &Options,
    before: Option<&Health>,
) -> Health {
    let of_group = |scope: &Scope| GroupHealth::of(cluster, &scope.nodes, !options.no_capacity_checks);
    let groups: Vec<GroupHealth> = scopes.iter().map(of_group).collect();
    let all: Faults = groups.iter().map(|group| group.faults).sum();
    let needs_balancing = before.map_or(all.any(), |before| before.needs_balancing);
    Health { groups, all, needs_balancing }
}
