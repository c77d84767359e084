//! What is checked, and the state that it is found in.

use cluster::{Cluster, GroupIdx, InstanceIdx, NodeIdx};
use placement::health::{Faults, GroupHealth};

use crate::options::Options;

/// A group that has nodes.
pub(super) struct Scope {
    pub(super) group: GroupIdx,
    pub(super) nodes: Vec<NodeIdx>,
    pub(super) instances: Vec<InstanceIdx>,
}

/// The state of each group, and of all together.
pub(super) struct Health {
    pub(super) groups: Vec<GroupHealth>,
    pub(super) all: Faults,
    /// Whether anything needs to be done; the reference repeats its first verdict after balancing.
    pub(super) needs_balancing: bool,
}

/// How groups are; `before` is how they were before balancing.
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
