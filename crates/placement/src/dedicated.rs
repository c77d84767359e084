//! Allocation on dedicated nodes, where storage belongs to one instance (HT-dedicated).
//!
//! The goal is to keep the cluster available for further instances of the sizes that the policy names: lose
//! as few possible allocations of large instances as possible, then leave as little disk over as possible.

use cluster::{
    AllocPolicy, Change, Cluster, DiskTemplate, FailMode, Figures, GroupIdx, ISpec, Instance, Node, NodeIdx,
    Outcome, Policy,
};

use crate::allocate::{Placed, Targets, Trials};

/// Allocations lost by a placement: for each size of the policy (largest disk first), the number of instances
/// that no longer fit; then the disk left over, MiB. Lower is better.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LostAllocations {
    /// By decreasing size.
    pub lost: Vec<i64>,
    /// Disk left on the chosen nodes, MiB.
    pub disk_left: i64,
}

/// Whether `hail` compares placements by lost allocations, because all nodes that could be chosen have
/// exclusive storage.
pub fn is_dedicated(cluster: &Cluster, only: Option<GroupIdx>) -> bool {
    let relevant = |group| match only {
        Some(only) => group == only,
        None => cluster.group(group).alloc_policy != AllocPolicy::Unallocable,
    };
    cluster.nodes.iter().all(|node| node.exclusive_storage || !relevant(node.group))
}

/// Maximum number of test instances on a node. Keeps degenerate policies (all sizes 0) finite.
const MOST_TEST_INSTANCES: i64 = 1 << 20;

/// The minimum instance of each interval of the policy, largest disk first.
fn test_instances(policy: &Policy) -> Vec<Instance> {
    let mut sizes: Vec<ISpec> = policy.minmax.iter().map(|pair| pair.min).collect();
    sizes.sort_by_key(|spec| std::cmp::Reverse(spec.disk_size));
    sizes
        .into_iter()
        .map(|spec| Instance {
            memory: spec.memory_size,
            disk: spec.disk_size,
            vcpus: spec.cpu_count,
            spindle_use: spec.spindle_use,
            ..Instance::new("", DiskTemplate::Plain, NodeIdx(0))
        })
        .collect()
}

/// Number of instances of each size that still fit.
pub fn allocation_vector(policy: &Policy, node: &Node, figures: &Figures) -> Vec<i64> {
    test_instances(policy)
        .iter()
        .map(|test| {
            let demand = test.demand();
            let mut figures = *figures;
            let mut count = 0;
            while count < MOST_TEST_INSTANCES {
                match figures.add_primary(node, &demand, cluster::TagEffect::default(), 0, false) {
                    Ok(next) => figures = next,
                    Err(_) => break,
                }
                count += 1;
            }
            count
        })
        .collect()
}

fn loss(policy: &Policy, node: &Node, before: &Figures, after: &Figures) -> LostAllocations {
    let before = allocation_vector(policy, node, before);
    let left = allocation_vector(policy, node, after);
    let lost = before.iter().zip(left).map(|(b, a)| b - a).collect();
    LostAllocations { lost, disk_left: after.free_disk }
}

/// Tries all targets. Among equal losses, the latest wins.
pub fn try_all(
    cluster: &Cluster,
    instance: &Instance,
    targets: &Targets,
    force: bool,
) -> Trials<LostAllocations> {
    match targets {
        Targets::Single(nodes) => {
            collect(nodes.iter().map(|node| on_one_node(cluster, instance, *node, force)))
        }
        Targets::Pairs(pairs) => {
            let all = pairs.primaries.iter().flat_map(|(p, list)| {
                pairs.partners[*list].iter().filter(move |s| *s != p).map(move |s| (*p, *s))
            });
            collect(all.map(|(p, s)| on_two_nodes(cluster, instance, p, s, force)))
        }
    }
}

type Attempt = Result<Placed<LostAllocations>, FailMode>;

fn collect(attempts: impl Iterator<Item = Attempt>) -> Trials<LostAllocations> {
    let mut trials = Trials::default();
    for attempt in attempts {
        match attempt {
            Ok(found) => {
                trials.successes += 1;
                if trials.best.as_ref().is_none_or(|old: &Placed<_>| old.score >= found.score) {
                    trials.best = Some(found);
                }
            }
            Err(mode) => trials.failures.add(mode),
        }
    }
    trials
}

fn place_primary(
    cluster: &Cluster,
    instance: &Instance,
    node: NodeIdx,
    force: bool,
) -> Result<Figures, FailMode> {
    let (target, state) = (cluster.node(node), cluster.state(node));
    cluster.group(target.group).policy.check(instance, target.exclusive_storage)?;
    let tags = state.tag_effect(&instance.exclusion_tags);
    let location = cluster.unmet_wishes(instance, node);
    state.figures.add_primary(target, &instance.demand(), tags, location, force)
}

fn on_one_node(cluster: &Cluster, instance: &Instance, node: NodeIdx, force: bool) -> Attempt {
    let figures = place_primary(cluster, instance, node, force)?;
    let target = cluster.node(node);
    let score = loss(&cluster.group(target.group).policy, target, cluster.figures(node), &figures);
    Ok(Placed { score, outcome: Outcome::one(Change { node, figures }, node, None, 0) })
}

fn on_two_nodes(cluster: &Cluster, instance: &Instance, p: NodeIdx, s: NodeIdx, force: bool) -> Attempt {
    let first = place_primary(cluster, instance, p, force)?;
    let reserved = cluster.state(s).reserved_for(p);
    let second =
        cluster.figures(s).add_secondary(cluster.node(s), &instance.demand(), reserved, false, false)?;
    let policy = &cluster.group(cluster.node(p).group).policy;
    let mut score = loss(policy, cluster.node(p), cluster.figures(p), &first);
    let other = loss(policy, cluster.node(s), cluster.figures(s), &second);
    for (mine, theirs) in score.lost.iter_mut().zip(other.lost) {
        *mine += theirs;
    }
    score.disk_left += other.disk_left;
    let changes = [Change { node: p, figures: first }, Change { node: s, figures: second }];
    Ok(Placed { score, outcome: Outcome::two(changes, p, Some(s), 0) })
}
