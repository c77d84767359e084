//! How many instances of a shape fit, what stops the next one, and what would make room for it.
//!
//! Instances are placed as [`crate::capacity`] does for `hspace`. Everything else is asked of the cluster that they
//! fill: which nodes are nearest to taking one more, and how many more fit after one change.

mod crowd;
pub(crate) mod lack;
mod moves;
mod policy;
mod remedy;

use cluster::{AllocPolicy, Cluster, FailMode, GroupIdx, NodeIdx};

use crate::capacity::{CapacityOptions, Placement, Shape};
use crate::watch::Watch;
use crate::whatif::{Refusal, place};
use crowd::Crowd;

pub use lack::{Lack, Near};
pub use remedy::{Action, Bound, MOST_COUNTED, PolicyChange, Remedy};

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FitQuestion {
    /// What the instances look like.
    pub shape: Shape,
    /// The group that they must go to; any if none.
    pub group: Option<GroupIdx>,
    /// Count at most so many.
    pub most: usize,
    /// What must stay redundant; [`CapacityOptions::limit`] is of no meaning.
    pub rules: CapacityOptions,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The instances that fit, in the order of their placement.
    pub placed: Vec<Placement>,
    /// Why no more do; none if all that were asked for fit.
    pub refused: Option<Refusal>,
    /// Groups whose policies do not allow such instances at all, and what they object to.
    pub outside_policy: Vec<(GroupIdx, FailMode)>,
    /// Nodes that cannot be emptied as things are, before anything is placed: with one of them, whatever is not
    /// mirrored is refused for global N+1.
    pub stuck: Vec<NodeIdx>,
    /// The nodes nearest to taking one more, best first; primaries, then (for mirrored instances) secondaries.
    pub nearest: Vec<Near>,
    /// What would make room for more.
    pub remedies: Vec<Remedy>,
}

/// Answers the question. The cluster is left unchanged.
pub fn fit(cluster: &Cluster, question: &FitQuestion) -> Fit {
    let mut filled = restricted(cluster, question.group);
    let existing = cluster.instances.len();
    let added = place(&mut filled, question.most, &question.shape, question.rules);
    let mut fit = Fit {
        placed: added.placed,
        refused: added.refused,
        outside_policy: Vec::new(),
        stuck: Vec::new(),
        nearest: Vec::new(),
        remedies: Vec::new(),
    };
    if fit.refused.is_some() {
        let ground = open_nodes(&filled);
        let all: Vec<NodeIdx> = cluster.node_indices().collect();
        fit.stuck = Watch::new(&mut cluster.clone(), &all).stuck().collect();
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
        fit.remedies.extend(crowd.one_more_node());
        fit.remedies.extend(crowd.unchecked());
    }
    fit
}

/// A copy of the cluster in which only `group` takes new instances.
fn restricted(cluster: &Cluster, group: Option<GroupIdx>) -> Cluster {
    let mut cluster = cluster.clone();
    if let Some(only) = group {
        for (position, group) in cluster.groups.iter_mut().enumerate() {
            let chosen = GroupIdx::from_usize(position) == only;
            group.alloc_policy = if chosen { AllocPolicy::Preferred } else { AllocPolicy::Unallocable };
        }
    }
    cluster
}

/// Online nodes of the groups that take new instances, ascending.
fn open_nodes(cluster: &Cluster) -> Vec<NodeIdx> {
    let open = |n: &NodeIdx| {
        let node = cluster.node(*n);
        node.online() && cluster.group(node.group).alloc_policy != AllocPolicy::Unallocable
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
