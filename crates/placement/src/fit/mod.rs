//! How many instances of a shape fit, what stops the next one, and what would make room for it.
//!
//! Instances are placed where `hail` would, one after another. Everything else is asked of the cluster that they
//! fill: which nodes are nearest to taking one more, and how many more fit after one change.

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

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FitQuestion {
    /// What the instances look like.
    pub shape: Shape,
    /// Count at most so many.
    pub most: usize,
    /// What must stay redundant, and the only group, if any; [`CapacityOptions::limit`] is of no meaning.
    pub rules: CapacityOptions,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The instances that fit, in the order of their placement.
    pub placed: Vec<Placement>,
    /// Why no more do. `None` if all that were asked for fit, or if counting ended at the limit of instances without memory.
    pub refused: Option<Refusal>,
    /// Groups whose policies do not allow such instances at all, and what they object to.
    pub outside_policy: Vec<(GroupIdx, FailMode)>,
    /// Groups with online nodes that take no new instances.
    pub unallocable: Vec<GroupIdx>,
    /// Nodes that cannot be emptied as things are, before anything is placed, and the instances that find no place:
    /// with one of them, everything is refused for global N+1.
    pub stuck: Vec<(NodeIdx, Vec<InstanceIdx>)>,
    /// The nodes nearest to taking one more, best first; primaries, then (for mirrored instances) secondaries.
    pub nearest: Vec<Near>,
    /// What would make room for more.
    pub remedies: Vec<Remedy>,
}

impl Fit {
    /// Whether it is proven that no more instances fit than were placed. It isn't if counting ended at a limit, or if other
    /// places for the first ones might leave more room: for pairs of nodes, and by the capacity check.
    pub fn is_proven(&self, question: &FitQuestion) -> bool {
        let is_pair = question.shape.template.mirror() == MirrorClass::Internal;
        let is_full = self.placed.is_empty() || !(is_pair || question.rules.capacity_checks);
        self.refused.is_some() && is_full
    }
}

/// Answers the question. The cluster is left unchanged.
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

/// The nodes that the capacity check finds stuck as things are, and what finds no place.
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

/// Groups with online nodes that take no new instances.
fn unallocable(cluster: &Cluster) -> Vec<GroupIdx> {
    let is_online = |group: GroupIdx| cluster.nodes.iter().any(|n| n.group == group && n.online());
    let is_closed = |group: &GroupIdx| cluster.group(*group).alloc_policy == AllocPolicy::Unallocable;
    cluster.group_indices().filter(is_closed).filter(|group| is_online(*group)).collect()
}

/// Online nodes of the only group, or else of all groups that take new instances, ascending.
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

/// The groups of these nodes whose policies do not allow the shape.
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
