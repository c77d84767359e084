//! Finds fewer groups than the reference under the same rules.
//!
//! Three techniques make the difference: a tabu search for fewer colors; several orders in which the nodes of
//! a color claim the available capacity; and dissolving groups whose nodes all fit into others. Nodes that
//! aren't rebooted are ignored.

use std::cmp::Reverse;

use cluster::{Cluster, DiskTemplate, NodeIdx};

use super::colouring::Colouring;
use super::graph::{ConflictGraph, SimpleGraph};
use super::partition::{Evacuation, partition};
use super::workbench::Workbench;
use super::{RebootError, RebootGroup, tabu};
use crate::Search;

/// Limit on how often nodes are cleared while dissolving groups.
const CLEARINGS: usize = 100_000;

/// Returns the fewest groups found, in no particular order.
pub(super) fn groups(
    cluster: &Cluster,
    graph: &ConflictGraph,
    start: &Colouring,
    evacuation: Evacuation,
) -> Result<Vec<RebootGroup>, RebootError> {
    let simple = graph.simple();
    let greedy = chosen_classes(graph, &simple, start);
    let fewer = tabu::recolour(&simple, greedy.clone(), tabu::clique(&simple));
    let mut packer = Packer { graph: &simple, bench: Workbench::new(cluster, Search::Deep), evacuation };
    let mut best = packer.pack(&fewer);
    // If capacity is short, fewer colors can lead to more groups.
    if fewer.len() < greedy.len() && best.as_ref().map_or(true, |groups| groups.len() > fewer.len()) {
        let other = packer.pack(&greedy);
        let better = match (&best, &other) {
            (Ok(best), Ok(other)) => other.len() < best.len(),
            (Err(_), Ok(_)) => true,
            (_, Err(_)) => false,
        };
        if better {
            best = other;
        }
    }
    best
}

/// Chosen vertices of each color, as vertices of the simple graph.
fn chosen_classes(graph: &ConflictGraph, simple: &SimpleGraph, colouring: &Colouring) -> Vec<Vec<usize>> {
    let vertex = |of: &usize| simple.nodes.binary_search(&graph.node(*of)).ok();
    let classes = colouring.classes().into_iter().map(|class| class.iter().filter_map(vertex).collect());
    classes.filter(|class: &Vec<usize>| !class.is_empty()).collect()
}

/// Packs classes of vertices into groups.
struct Packer<'a> {
    graph: &'a SimpleGraph,
    bench: Workbench<'a>,
    evacuation: Evacuation,
}

impl Packer<'_> {
    fn pack(&mut self, classes: &[Vec<usize>]) -> Result<Vec<RebootGroup>, RebootError> {
        let mut groups = Vec::new();
        for class in classes {
            let nodes: Vec<NodeIdx> = class.iter().map(|vertex| self.graph.nodes[*vertex]).collect();
            groups.extend(self.pack_class(&nodes)?);
        }
        if groups.len() > classes.len() {
            self.dissolve(&mut groups);
        }
        for group in &mut groups {
            group.nodes.sort_unstable();
        }
        Ok(groups)
    }

    /// Groups of a class, from the node order that gives the fewest.
    fn pack_class(&mut self, nodes: &[NodeIdx]) -> Result<Vec<RebootGroup>, RebootError> {
        let mut best = partition(&mut self.bench, nodes, self.evacuation);
        let load = |node: &NodeIdx| self.load(*node);
        let (mut heavy_first, mut light_first) = (nodes.to_vec(), nodes.to_vec());
        heavy_first.sort_by_key(|node| Reverse(load(node)));
        light_first.sort_by_key(load);
        for order in [heavy_first, light_first] {
            if best.as_ref().is_ok_and(|groups| groups.len() == 1) {
                break;
            }
            let other = partition(&mut self.bench, &order, self.evacuation);
            if let Ok(groups) = &other
                && best.as_ref().map_or(true, |best| groups.len() < best.len())
            {
                best = other;
            }
        }
        best
    }

    /// Memory and disk that must leave the node, MiB. Compared by memory first.
    fn load(&self, node: NodeIdx) -> (i64, i64) {
        let cluster = self.bench.cluster;
        let state = cluster.state(node);
        let primaries = state.primaries.iter().map(|i| cluster.instance(*i));
        let alone = primaries.filter(|i| self.evacuation.non_redundant && i.template != DiskTemplate::Drbd);
        let memory = alone.filter(|i| i.uses_memory()).map(|i| i.memory).sum();
        let mirrors = state.secondaries.iter().filter(|_| self.evacuation.secondaries);
        (memory, mirrors.map(|i| cluster.instance(*i).disk).sum())
    }

    /// Dissolves groups, smallest first, as long as all their nodes fit into the remaining groups.
    fn dissolve(&mut self, groups: &mut Vec<RebootGroup>) {
        let mut clearings = CLEARINGS;
        let mut position = 0;
        groups.sort_by_key(|group| group.nodes.len());
        while position < groups.len() {
            let mut others = groups.clone();
            let nodes = others.remove(position).nodes;
            if nodes.iter().all(|node| self.insert(*node, &mut others, &mut clearings)) {
                *groups = others;
                groups.sort_by_key(|group| group.nodes.len());
                position = 0;
            } else {
                position += 1;
            }
        }
    }

    /// Adds a node to the first group that can take it.
    fn insert(&mut self, node: NodeIdx, groups: &mut [RebootGroup], clearings: &mut usize) -> bool {
        for group in groups {
            if group.nodes.iter().any(|other| self.in_conflict(node, *other)) {
                continue;
            }
            let Some(left) = clearings.checked_sub(group.nodes.len() + 1) else { return false };
            *clearings = left;
            let mut nodes = group.nodes.clone();
            nodes.push(node);
            if let Ok(joint) = partition(&mut self.bench, &nodes, self.evacuation)
                && let [joint] = joint.as_slice()
            {
                *group = joint.clone();
                return true;
            }
        }
        false
    }

    fn in_conflict(&self, a: NodeIdx, b: NodeIdx) -> bool {
        let vertex = |node| self.graph.nodes.binary_search(&node);
        matches!((vertex(a), vertex(b)), (Ok(a), Ok(b)) if self.graph.adjacent(a, b))
    }
}
