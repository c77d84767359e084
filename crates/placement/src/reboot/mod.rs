//! Rolling reboots: groups of nodes that can be down together (HT-hroller).
//!
//! A graph joins nodes that must not be down at the same time, and coloring it gives classes of nodes. Each
//! class is split into groups small enough that the instances that have to leave fit elsewhere.

mod check;
mod colouring;
mod deep;
mod graph;
mod group;
mod partition;
mod tabu;
mod workbench;

use cluster::{Cluster, DiskTemplate, GroupIdx, InstanceIdx, NodeIdx};

use crate::Search;

pub use check::{Rules, Violation, verify};
pub use colouring::{Colouring, Heuristic};
pub use graph::ConflictGraph;
pub use group::{RebootError, RebootGroup, Relocation};
pub use partition::Evacuation;
use workbench::Workbench;

/// Selects the nodes to reboot. Offline nodes are never selected.
#[derive(Clone, Copy, Debug, Default)]
pub struct Choice<'a> {
    /// Only nodes of this group.
    pub group: Option<GroupIdx>,
    /// Only nodes with at least one of these tags.
    pub tags: Option<&'a [String]>,
    /// Only nodes whose primaries are all mirrored.
    pub redundant_only: bool,
}

impl Choice<'_> {
    /// Selected nodes, ascending.
    pub fn nodes(&self, cluster: &Cluster) -> Vec<NodeIdx> {
        let mirrored = |i: &InstanceIdx| cluster.instance(*i).template == DiskTemplate::Drbd;
        let chosen = |index: &NodeIdx| {
            let node = cluster.node(*index);
            node.online()
                && self.group.is_none_or(|group| node.group == group)
                && self.tags.is_none_or(|tags| node.tags.iter().any(|tag| tags.contains(tag)))
                && (!self.redundant_only || cluster.state(*index).primaries.iter().all(mirrored))
        };
        cluster.node_indices().filter(chosen).collect()
    }
}

/// Finds a pinned instance that would have to leave the node for a reboot, because it runs there or its
/// mirror must be moved.
pub fn pinned_to(cluster: &Cluster, node: NodeIdx, evacuation: Evacuation) -> Option<InstanceIdx> {
    let state = cluster.state(node);
    let running = state.primaries.iter().filter(|i| cluster.instance(**i).uses_memory());
    let mirrors = state.secondaries.iter().filter(|_| evacuation.secondaries);
    running.chain(mirrors).copied().find(|i| cluster.instance(*i).is_pinned())
}

/// Pinned instances with a copy on the node that the evacuation would move if they weren't pinned.
pub fn pinned_on(cluster: &Cluster, node: NodeIdx, evacuation: Evacuation) -> Vec<InstanceIdx> {
    let state = cluster.state(node);
    let leaves = |index: &&InstanceIdx| match cluster.instance(**index).template {
        DiskTemplate::Drbd => evacuation.secondaries,
        _ => evacuation.non_redundant,
    };
    let primaries = state.primaries.iter().filter(leaves);
    let mirrors = state.secondaries.iter().filter(|_| evacuation.secondaries);
    primaries.chain(mirrors).copied().filter(|i| cluster.instance(*i).is_pinned()).collect()
}

/// Groups the graph's nodes. The largest group comes first. The `master`'s group comes last, with the master
/// at its end.
pub fn plan(
    cluster: &Cluster,
    graph: &ConflictGraph,
    colourings: &[Colouring],
    evacuation: Evacuation,
    master: Option<NodeIdx>,
    search: Search,
) -> Result<Vec<RebootGroup>, RebootError> {
    let Some(colouring) = colourings.iter().min_by_key(|c| (c.colours(), c.heuristic)) else {
        return Ok(Vec::new());
    };
    let exact = as_the_reference(cluster, graph, colouring, evacuation);
    let mut groups = match search {
        Search::Exact => exact?,
        Search::Deep => {
            fewest(cluster, graph, evacuation, exact, || deep::groups(cluster, graph, colouring, evacuation))?
        }
    };
    groups.sort_by_key(|group| std::cmp::Reverse(group.nodes.len()));
    if let Some(master) = master {
        put_last(&mut groups, master);
    }
    Ok(groups)
}

/// Groups of a coloring, in the order of the colors.
fn as_the_reference(
    cluster: &Cluster,
    graph: &ConflictGraph,
    colouring: &Colouring,
    evacuation: Evacuation,
) -> Result<Vec<RebootGroup>, RebootError> {
    let mut bench = Workbench::new(cluster, Search::Exact);
    let mut groups = Vec::new();
    for class in colouring.classes() {
        let nodes: Vec<NodeIdx> = class.iter().map(|vertex| graph.node(*vertex)).collect();
        groups.extend(partition::partition(&mut bench, &nodes, evacuation)?);
    }
    // The coloring includes nodes that weren't chosen, so a group can become empty.
    for group in &mut groups {
        group.nodes.retain(|node| graph.has_chosen(*node));
    }
    Ok(groups)
}

/// Returns the deep search's groups, unless the reference finds fewer and they keep the rules. The
/// reference's groups can break the rules if nodes that aren't rebooted took part, and in a full evacuation.
fn fewest(
    cluster: &Cluster,
    graph: &ConflictGraph,
    evacuation: Evacuation,
    exact: Result<Vec<RebootGroup>, RebootError>,
    deep: impl FnOnce() -> Result<Vec<RebootGroup>, RebootError>,
) -> Result<Vec<RebootGroup>, RebootError> {
    let nodes = graph.chosen();
    let rules = Rules { nodes: &nodes, instances_down: graph.instances_down(), evacuation };
    let deep = deep().inspect(|deep| debug_assert_eq!(verify(cluster, &rules, deep), Ok(())));
    let exact = exact.map(|mut groups| {
        groups.retain(|group| !group.nodes.is_empty());
        groups
    });
    let exact = exact.ok().filter(|groups| verify(cluster, &rules, groups).is_ok());
    match (exact, deep) {
        // On a tie the deep search wins, because the reference's groups can contain unnecessary moves.
        (Some(exact), Ok(deep)) if exact.len() < deep.len() => Ok(exact),
        (Some(exact), Err(_)) => Ok(exact),
        (_, deep) => deep,
    }
}

fn put_last(groups: &mut Vec<RebootGroup>, master: NodeIdx) {
    let Some(position) = groups.iter().position(|group| group.nodes.contains(&master)) else { return };
    let mut group = groups.remove(position);
    group.nodes.retain(|node| *node != master);
    group.nodes.push(master);
    groups.push(group);
}
