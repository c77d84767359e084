//! Which nodes may not be down together.

use cluster::{Cluster, DiskTemplate, NodeIdx};

/// The nodes to reboot as vertices, with an edge between two that must not be down at the same time.
///
/// Vertices are all nodes from the first chosen one to the last: the colourings of the reference colour those
/// between as well, and so must ours. Nodes that are not chosen have no edges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConflictGraph {
    first: NodeIdx,
    instances_down: bool,
    chosen: Vec<bool>,
    /// Neighbours of each vertex. Pairs of mirrored instances are listed as often as there are such instances, and
    /// a node can be its own neighbour: the degrees that steer the colourings count both.
    neighbours: Vec<Vec<usize>>,
}

impl ConflictGraph {
    /// The graph of the chosen nodes; none if there are none.
    ///
    /// The two nodes of a mirrored instance are in conflict. So are the primaries of instances that share a
    /// secondary, since that one would take over the instances of both; unless `instances_down`, when nothing
    /// fails over (HT-hroller).
    pub fn new(cluster: &Cluster, chosen: &[NodeIdx], instances_down: bool) -> Option<Self> {
        let (first, last) = (*chosen.iter().min()?, *chosen.iter().max()?);
        let mut graph = Self {
            first,
            instances_down,
            chosen: vec![false; last.at() - first.at() + 1],
            neighbours: vec![Vec::new(); last.at() - first.at() + 1],
        };
        for node in chosen {
            graph.chosen[node.at() - first.at()] = true;
        }
        graph.join_mirrors(cluster);
        if !instances_down {
            graph.join_primaries_of_a_secondary(cluster);
        }
        Some(graph)
    }

    fn join_mirrors(&mut self, cluster: &Cluster) {
        for instance in cluster.instances.iter().filter(|i| i.template == DiskTemplate::Drbd) {
            let ends = (self.chosen_vertex(instance.primary), instance.secondary);
            if let (Some(primary), Some(secondary)) = (ends.0, ends.1.and_then(|s| self.chosen_vertex(s))) {
                self.neighbours[primary].push(secondary);
                self.neighbours[secondary].push(primary);
            }
        }
    }

    /// Adds each edge that is not there yet, in the order of the secondaries.
    fn join_primaries_of_a_secondary(&mut self, cluster: &Cluster) {
        let vertices = self.neighbours.len();
        let mut served: Vec<Vec<usize>> = Vec::with_capacity(cluster.nodes.len());
        let mut servants: Vec<Vec<usize>> = vec![Vec::new(); vertices];
        for (node, state) in cluster.states.iter().enumerate() {
            let primaries = state.secondaries.iter().rev().map(|i| cluster.instance(*i).primary);
            let primaries: Vec<usize> = primaries.filter_map(|p| self.chosen_vertex(p)).collect();
            for &primary in &primaries {
                if servants[primary].last() != Some(&node) {
                    servants[primary].push(node);
                }
            }
            served.push(primaries);
        }
        // The vertex whose neighbours were last found to include this one.
        let mut seen_by = vec![usize::MAX; vertices];
        for (vertex, neighbours) in self.neighbours.iter_mut().enumerate() {
            for &neighbour in &*neighbours {
                seen_by[neighbour] = vertex;
            }
            for &neighbour in servants[vertex].iter().flat_map(|servant| &served[*servant]) {
                if seen_by[neighbour] != vertex {
                    seen_by[neighbour] = vertex;
                    neighbours.push(neighbour);
                }
            }
        }
    }

    fn chosen_vertex(&self, node: NodeIdx) -> Option<usize> {
        let vertex = node.at().checked_sub(self.first.at())?;
        self.chosen.get(vertex).is_some_and(|chosen| *chosen).then_some(vertex)
    }

    /// How many vertices there are, those of nodes that are not chosen included.
    pub fn vertices(&self) -> usize {
        self.neighbours.len()
    }

    /// The node that a vertex stands for.
    pub fn node(&self, vertex: usize) -> NodeIdx {
        NodeIdx::from_usize(self.first.at() + vertex)
    }

    /// Whether nothing fails over, since instances are shut down.
    pub fn instances_down(&self) -> bool {
        self.instances_down
    }

    /// The chosen nodes, ascending.
    pub fn chosen(&self) -> Vec<NodeIdx> {
        (0..self.vertices()).filter(|vertex| self.chosen[*vertex]).map(|vertex| self.node(vertex)).collect()
    }

    /// Whether the node is one of the chosen.
    pub fn has_chosen(&self, node: NodeIdx) -> bool {
        self.chosen_vertex(node).is_some()
    }

    /// The neighbours of a vertex, in the order in which they were found; some more than once.
    pub fn neighbours(&self, vertex: usize) -> &[usize] {
        &self.neighbours[vertex]
    }

    /// The chosen vertices alone, each neighbour once: what decides how many colours are needed.
    pub(super) fn simple(&self) -> SimpleGraph {
        let vertices: Vec<usize> = (0..self.vertices()).filter(|v| self.chosen[*v]).collect();
        let mut number = vec![0; self.vertices()];
        for (position, &vertex) in vertices.iter().enumerate() {
            number[vertex] = position;
        }
        let neighbours = |&vertex: &usize| {
            let others = self.neighbours[vertex].iter().filter(|n| **n != vertex);
            let mut others: Vec<usize> = others.map(|n| number[*n]).collect();
            others.sort_unstable();
            others.dedup();
            others
        };
        SimpleGraph {
            neighbours: vertices.iter().map(neighbours).collect(),
            nodes: vertices.iter().map(|v| self.node(*v)).collect(),
        }
    }
}

/// An undirected graph without loops and repeated edges.
#[derive(Clone, Debug)]
pub(super) struct SimpleGraph {
    /// Neighbours of each vertex, ascending.
    pub neighbours: Vec<Vec<usize>>,
    /// The node of each vertex, ascending.
    pub nodes: Vec<NodeIdx>,
}

impl SimpleGraph {
    /// Whether an edge joins the two.
    pub fn adjacent(&self, a: usize, b: usize) -> bool {
        self.neighbours[a].binary_search(&b).is_ok()
    }
}
