//! Possible targets of new instances, and nodes that must stay redundant.

use cluster::{AllocPolicy, Cluster, DiskTemplate, GroupIdx, NodeIdx};

use super::options::{CapacityOptions, Rule};
use crate::allocate::{NoTargets, Targets};
use crate::{dedicated, redundancy};

/// Possible targets of new instances in the current state of a cluster.
#[derive(Clone, Debug)]
pub struct Ground {
    /// Online nodes that fail N+1.
    pub bad_nodes: Vec<NodeIdx>,
    /// Nodes or pairs to place instances on, or the reason why there are none.
    pub targets: Result<Targets, NoTargets>,
    /// Nodes whose score counts, ascending.
    pub(super) nodes: Vec<NodeIdx>,
    /// Nodes that must stay evacuable, ascending.
    pub(super) tested: Vec<NodeIdx>,
    /// Whether placements are compared by the allocations that later instances lose.
    pub(super) dedicated: bool,
    blocked: bool,
}

impl Ground {
    /// Surveys the cluster for instances of `template`. Leaves it unchanged.
    pub fn survey(cluster: &mut Cluster, template: DiskTemplate, options: &CapacityOptions) -> Self {
        match options.rule {
            Rule::Hspace { accept_existing } => Self::of_hspace(cluster, template, options, accept_existing),
            Rule::Hail { group } => Self::of_hail(cluster, template, options, group),
        }
    }

    fn of_hail(
        cluster: &mut Cluster,
        template: DiskTemplate,
        options: &CapacityOptions,
        only: Option<GroupIdx>,
    ) -> Self {
        let nodes: Vec<NodeIdx> =
            only.map_or_else(|| cluster.node_indices().collect(), |g| cluster.nodes_of(g));
        let bad_groups =
            if options.independent_groups { groups_not_redundant(cluster, false) } else { Vec::new() };
        let is_redundant = |n: &NodeIdx| !bad_groups.contains(&cluster.node(*n).group);
        let is_open = |n: &NodeIdx| {
            let group = cluster.group(cluster.node(*n).group);
            is_redundant(n) && (only.is_some() || group.alloc_policy != AllocPolicy::Unallocable)
        };
        let open: Vec<NodeIdx> = nodes.iter().copied().filter(is_open).collect();
        Self {
            bad_nodes: Vec::new(),
            targets: Targets::new(cluster, &open, template.required_nodes() as i64, None),
            tested: nodes.iter().copied().filter(is_redundant).collect(),
            dedicated: dedicated::is_dedicated(cluster, only),
            nodes,
            blocked: false,
        }
    }

    fn of_hspace(
        cluster: &mut Cluster,
        template: DiskTemplate,
        options: &CapacityOptions,
        accept_existing: bool,
    ) -> Self {
        let bad_groups = if options.independent_groups {
            groups_not_redundant(cluster, accept_existing)
        } else {
            Vec::new()
        };
        let fails = |n: &NodeIdx| cluster.node(*n).online() && cluster.figures(*n).fails_n1;
        let bad_nodes: Vec<NodeIdx> = cluster.node_indices().filter(fails).collect();
        let closed = |group: GroupIdx| {
            let has_bad_node = || bad_nodes.iter().any(|n| cluster.node(*n).group == group);
            cluster.group(group).alloc_policy == AllocPolicy::Unallocable
                || (!accept_existing && has_bad_node())
                || bad_groups.contains(&group)
        };
        let closed: Vec<bool> = cluster.group_indices().map(closed).collect();
        let some_open = closed.iter().any(|closed| !closed);
        let allowed = accept_existing || (options.independent_groups && some_open) || bad_nodes.is_empty();
        let open = |n: &NodeIdx| !closed[cluster.node(*n).group.at()];
        let nodes: Vec<NodeIdx> = cluster.node_indices().filter(open).collect();
        let targets = Targets::new(cluster, &nodes, template.required_nodes() as i64, None);
        let tested = |n: &NodeIdx| {
            let node = cluster.node(*n);
            !(bad_groups.contains(&node.group) || accept_existing && node.offline)
        };
        let tested = cluster.node_indices().filter(tested).collect();
        let nodes = cluster.node_indices().collect();
        Self { bad_nodes, targets, nodes, tested, dedicated: false, blocked: !allowed }
    }

    /// Whether nothing can be placed at all because nodes already fail N+1.
    pub fn blocked(&self) -> bool {
        self.blocked
    }
}

/// Groups with a node that could not be emptied within its group. With `accept_existing`, offline nodes don't
/// count.
pub fn groups_not_redundant(cluster: &mut Cluster, accept_existing: bool) -> Vec<GroupIdx> {
    let groups: Vec<GroupIdx> = cluster.group_indices().collect();
    let mut lacks = |group: &GroupIdx| {
        let nodes = cluster.nodes_of(*group);
        let is_tested = |n: &NodeIdx| !(accept_existing && cluster.node(*n).offline);
        let tested: Vec<NodeIdx> = nodes.iter().copied().filter(is_tested).collect();
        !redundancy::all_evacuable(cluster, &nodes, &tested)
    };
    groups.into_iter().filter(|group| lacks(group)).collect()
}
