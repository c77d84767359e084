//! Health of a set of nodes: its score, and whether it would survive the loss of a node.
//!
//! Redundancy has two separate questions. *Failing N+1* is a figure of a single node: it has too little
//! memory for the instances that it would have to take over. *Stuck* is the global question: some instances
//! on the node would fit nowhere if the node were lost (HT-redundancy).

use cluster::{Cluster, MirrorClass, NodeIdx, Outcome};

use crate::board::Board;
use crate::health::bad_nodes;
use crate::redundancy::can_evacuate;

/// Health of a set of nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Health {
    /// Lower is better.
    pub score: f64,
    /// Online nodes that fail N+1, ascending.
    pub failing_n1: Vec<NodeIdx>,
    /// Online nodes that couldn't be evacuated if they were lost, ascending.
    pub stuck: Vec<NodeIdx>,
}

impl Health {
    /// Health of `nodes` (ascending). The cluster is unchanged on return.
    ///
    /// Offline nodes count in the score, but can't take over instances.
    pub fn of(cluster: &mut Cluster, nodes: &[NodeIdx]) -> Self {
        let score = Board::new(cluster, nodes).score();
        let watch = Watch::new(cluster, nodes);
        Self { score, failing_n1: watch.failing_n1(cluster), stuck: watch.stuck().collect() }
    }
}

/// Tracks the redundancy of a set of nodes while instances move, rechecking only nodes that a move can
/// affect.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    /// Online nodes, ascending.
    nodes: Vec<NodeIdx>,
    /// By node index.
    stuck: Vec<bool>,
}

impl Watch {
    /// Checks the online nodes among `nodes`. The cluster is unchanged on return.
    pub fn new(cluster: &mut Cluster, nodes: &[NodeIdx]) -> Self {
        let nodes: Vec<NodeIdx> = nodes.iter().copied().filter(|n| cluster.node(*n).online()).collect();
        let mut stuck = vec![false; cluster.nodes.len()];
        for &node in &nodes {
            stuck[node.at()] = !can_evacuate(cluster, &nodes, node, None);
        }
        Self { nodes, stuck }
    }

    /// Online nodes that couldn't be evacuated, ascending.
    pub fn stuck(&self) -> impl Iterator<Item = NodeIdx> + '_ {
        self.nodes.iter().copied().filter(|n| self.stuck[n.at()])
    }

    /// Online nodes that fail N+1, ascending.
    pub fn failing_n1(&self, cluster: &Cluster) -> Vec<NodeIdx> {
        bad_nodes(cluster, &self.nodes)
    }

    /// Whether `outcome`, which `cluster` already includes, makes no further node stuck.
    pub fn no_worse(&self, cluster: &mut Cluster, outcome: &Outcome) -> bool {
        let affected = self.affected(cluster, outcome);
        affected.into_iter().all(|n| self.stuck[n.at()] || can_evacuate(cluster, &self.nodes, n, None))
    }

    /// Records `outcome`, which `cluster` already includes.
    pub fn update(&mut self, cluster: &mut Cluster, outcome: &Outcome) {
        for node in self.affected(cluster, outcome) {
            self.stuck[node.at()] = !can_evacuate(cluster, &self.nodes, node, None);
        }
    }

    /// Nodes with a possibly different verdict: changed nodes, nodes that rely on changed nodes as
    /// secondaries, and nodes with instances that can go to any node.
    fn affected(&self, cluster: &Cluster, outcome: &Outcome) -> Vec<NodeIdx> {
        let changed = |n: NodeIdx| outcome.changes_node(n);
        let counts_on_it = |n: &NodeIdx| {
            changed(*n)
                || cluster.state(*n).primaries.iter().map(|i| cluster.instance(*i)).any(|instance| {
                    instance.template.mirror() != MirrorClass::Internal
                        || instance.secondary.is_some_and(changed)
                })
        };
        self.nodes.iter().copied().filter(counts_on_it).collect()
    }
}
