//! How a set of nodes is doing: its score, and whether it would survive the loss of a node.
//!
//! Two questions are asked about redundancy, and both are kept apart. *Failing N+1* is a node's own figure: it has
//! no memory left for what it would have to take over. *Stuck* is the global question: not everything that runs
//! on the node would find a place if the node were lost (HT-redundancy).

use cluster::{Cluster, MirrorClass, NodeIdx, Outcome};

use crate::board::Board;
use crate::health::bad_nodes;
use crate::redundancy::can_evacuate;

/// How a set of nodes is doing.
#[derive(Clone, Debug, PartialEq)]
pub struct Health {
    /// The score; less is better.
    pub score: f64,
    /// Online nodes that fail N+1, ascending.
    pub failing_n1: Vec<NodeIdx>,
    /// Online nodes that could not be emptied if they were lost, ascending.
    pub stuck: Vec<NodeIdx>,
}

impl Health {
    /// The health of `nodes` (ascending). The cluster is left unchanged.
    ///
    /// Offline nodes count in the score, but nothing can be taken over by them.
    pub fn of(cluster: &mut Cluster, nodes: &[NodeIdx]) -> Self {
        let score = Board::new(cluster, nodes).score();
        let watch = Watch::new(cluster, nodes);
        Self { score, failing_n1: watch.failing_n1(cluster), stuck: watch.stuck().collect() }
    }
}

/// Keeps the redundancy of a set of nodes up to date while instances move, looking only at nodes that a move can
/// have affected.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    /// The online nodes, ascending.
    nodes: Vec<NodeIdx>,
    /// By node index.
    stuck: Vec<bool>,
}

impl Watch {
    /// Looks at all of `nodes` that are online. The cluster is left unchanged.
    pub fn new(cluster: &mut Cluster, nodes: &[NodeIdx]) -> Self {
        let nodes: Vec<NodeIdx> = nodes.iter().copied().filter(|n| cluster.node(*n).online()).collect();
        let mut stuck = vec![false; cluster.nodes.len()];
        for &node in &nodes {
            stuck[node.at()] = !can_evacuate(cluster, &nodes, node, None);
        }
        Self { nodes, stuck }
    }

    /// Online nodes that could not be emptied, ascending.
    pub fn stuck(&self) -> impl Iterator<Item = NodeIdx> + '_ {
        self.nodes.iter().copied().filter(|n| self.stuck[n.at()])
    }

    /// Online nodes that fail N+1, ascending.
    pub fn failing_n1(&self, cluster: &Cluster) -> Vec<NodeIdx> {
        bad_nodes(cluster, &self.nodes)
    }

    /// Whether no node is stuck that was not stuck before `outcome`, which `cluster` reflects already.
    pub fn no_worse(&self, cluster: &mut Cluster, outcome: &Outcome) -> bool {
        let affected = self.affected(cluster, outcome);
        affected.into_iter().all(|n| self.stuck[n.at()] || can_evacuate(cluster, &self.nodes, n, None))
    }

    /// Takes note of `outcome`, which `cluster` reflects already.
    pub fn update(&mut self, cluster: &mut Cluster, outcome: &Outcome) {
        for node in self.affected(cluster, outcome) {
            self.stuck[node.at()] = !can_evacuate(cluster, &self.nodes, node, None);
        }
    }

    /// The nodes whose verdict may have changed: those that changed, those that count on them as secondaries, and
    /// those with instances that may go anywhere.
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
