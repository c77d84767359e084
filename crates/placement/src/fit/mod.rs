//! Answers how many instances of a shape fit, why the next one doesn't, and which change would make room for
//! it.
//!
//! Instances are placed one after another on the nodes that `hail` would choose. The rest is worked out on
//! the filled cluster: the nodes that come closest to accepting one more, and how many more fit after a
//! single change.

mod crowd;
pub(crate) mod lack;
mod moves;
mod policy;
mod remedy;

use cluster::{AllocPolicy, Cluster, FailMode, GroupIdx, InstanceIdx, MirrorClass, NodeIdx};

use crate::capacity::{CapacityOptions, Placement, Shape};
use crate::dedicated;
use crate::redundancy::{can_evacuate, stuck_instances};
use crate::whatif::{Refusal, place};
use crowd::Crowd;

pub use lack::{Lack, Near};
pub use remedy::{Action, Bound, MOST_COUNTED, PolicyChange, Remedy};

/// Input of [`fit()`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FitQuestion {
    pub shape: Shape,
    /// Maximum number of instances to count.
    pub most: usize,
    /// Redundancy to preserve, and optionally the only group to use. [`CapacityOptions::limit`] is ignored.
    pub rules: CapacityOptions,
}

/// Result of the search.
#[derive(Clone, Debug)]
pub struct Fit {
    /// Instances that fit, in placement order.
    pub placed: Vec<Placement>,
    /// Reason why no more instances fit. `None` if all requested instances fit, or if counting stopped at the
    /// limit for instances without memory.
    pub refused: Option<Refusal>,
    /// Groups whose policy rejects the shape, with the reason.
    pub outside_policy: Vec<(GroupIdx, FailMode)>,
    /// Unallocable groups that have online nodes.
    pub unallocable: Vec<GroupIdx>,
    /// Nodes that can't be evacuated even before anything is placed, and the instances that have nowhere to
    /// go. A single such node makes global N+1 refuse every placement.
    pub stuck: Vec<(NodeIdx, Vec<InstanceIdx>)>,
    /// Nodes closest to accepting one more instance, best first: primaries, then (for mirrored instances)
    /// secondaries.
    pub nearest: Vec<Near>,
    /// Changes that would make room for more instances.
    pub remedies: Vec<Remedy>,
}

impl Fit {
    /// Whether the count is proven to be the maximum. It isn't if counting stopped at a limit. Nor is it if a
    /// different placement of the earlier instances could leave more room, which is possible for pairs of
    /// nodes and under the capacity check.
    pub fn is_proven(&self, question: &FitQuestion) -> bool {
        let is_pair = question.shape.template.mirror() == MirrorClass::Internal;
        let is_full = self.placed.is_empty() || !(is_pair || question.rules.capacity_checks);
        self.refused.is_some() && is_full
    }
}

/// Answers `question` without changing the cluster.
pub fn fit(cluster: &Cluster, question: &FitQuestion) -> Fit {
    let mut filled = cluster.clone();
    let existing = cluster.instances.len();
    let added = place(&mut filled, question.most, &question.shape, question.rules);
    let mut fit = Fit {
        placed: added.placed,
        refused: added.refused,
        outside_policy: Vec::new(),
        unallocable: Vec::new(),
        stuck: Vec::new(),
        nearest: Vec::new(),
        remedies: Vec::new(),
    };
    if fit.refused.is_some() {
        let only = question.rules.group();
        let ground = open_nodes(&filled, only);
        fit.stuck = stuck(cluster, &question.rules);
        fit.unallocable = if only.is_none() { unallocable(cluster) } else { Vec::new() };
        fit.outside_policy = outside_policy(&filled, &ground, &question.shape);
        let allowed = |n: &&NodeIdx| {
            let group = filled.node(**n).group;
            fit.outside_policy.iter().all(|(outside, _)| *outside != group)
        };
        let allowed: Vec<NodeIdx> = ground.iter().filter(allowed).copied().collect();
        fit.nearest = lack::nearest(&filled, &allowed, &question.shape);
        let crowd = Crowd { filled, existing, ground, shape: question.shape, rules: question.rules };
        fit.remedies.extend(moves::remedy(&crowd, &fit.nearest));
        fit.remedies.extend(policy::remedies(&crowd));
        fit.remedies.extend(crowd.opened(&fit.unallocable));
        fit.remedies.extend(crowd.one_more_node());
        fit.remedies.extend(crowd.unchecked());
    }
    fit
}

/// Nodes that the capacity check finds impossible to evacuate right now, and the instances that have nowhere
/// to go.
fn stuck(cluster: &Cluster, rules: &CapacityOptions) -> Vec<(NodeIdx, Vec<InstanceIdx>)> {
    if !rules.capacity_checks || dedicated::is_dedicated(cluster, rules.group()) {
        return Vec::new();
    }
    let scopes: Vec<Vec<NodeIdx>> = match rules.group() {
        Some(only) => vec![cluster.nodes_of(only)],
        None if rules.independent_groups => cluster.group_indices().map(|g| cluster.nodes_of(g)).collect(),
        None => vec![cluster.node_indices().collect()],
    };
    let mut cluster = cluster.clone();
    let mut found = Vec::new();
    for nodes in &scopes {
        for node in nodes {
            if !can_evacuate(&mut cluster, nodes, *node, None) {
                found.push((*node, stuck_instances(&mut cluster, nodes, *node)));
            }
        }
    }
    found
}

/// Unallocable groups that have online nodes.
fn unallocable(cluster: &Cluster) -> Vec<GroupIdx> {
    let is_online = |group: GroupIdx| cluster.nodes.iter().any(|n| n.group == group && n.online());
    let is_closed = |group: &GroupIdx| cluster.group(*group).alloc_policy == AllocPolicy::Unallocable;
    cluster.group_indices().filter(is_closed).filter(|group| is_online(*group)).collect()
}

/// Online nodes, ascending, of the group `only`, or otherwise of all groups that aren't unallocable.
fn open_nodes(cluster: &Cluster, only: Option<GroupIdx>) -> Vec<NodeIdx> {
    let open = |n: &NodeIdx| {
        let node = cluster.node(*n);
        node.online()
            && match only {
                Some(only) => node.group == only,
                None => cluster.group(node.group).alloc_policy != AllocPolicy::Unallocable,
            }
    };
    cluster.node_indices().filter(open).collect()
}

/// Groups among `nodes` whose policy rejects the shape.
fn outside_policy(cluster: &Cluster, nodes: &[NodeIdx], shape: &Shape) -> Vec<(GroupIdx, FailMode)> {
    let instance = shape.instance("");
    let check = |n: &NodeIdx| {
        let node = cluster.node(*n);
        let refused = cluster.group(node.group).policy.check(&instance, node.exclusive_storage).err();
        refused.map(|mode| (node.group, mode))
    };
    let mut groups: Vec<(GroupIdx, FailMode)> = nodes.iter().filter_map(check).collect();
    groups.sort_unstable();
    groups.dedup_by_key(|(group, _)| *group);
    groups
}
