//! Graph of nodes that must not be down together.

use cluster::{Cluster, DiskTemplate, NodeIdx};

/// Nodes to reboot as vertices, with an edge between two nodes that must not be down at the same time.
///
/// Vertices are all nodes from the first chosen one to the last, because the reference also colors those in
/// between, and the results must match. Nodes that aren't chosen have no edges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConflictGraph {
    first: NodeIdx,
    instances_down: bool,
    chosen: Vec<bool>,
    /// Neighbors of each vertex. The two nodes of a mirrored instance are listed once per such instance, and
    /// a node can be its own neighbor: the degrees that steer the colorings count both.
    neighbours: Vec<Vec<usize>>,
}

impl ConflictGraph {
    /// Builds the graph of the chosen nodes; `None` if `chosen` is empty.
    ///
    /// The two nodes of a mirrored instance conflict. Primaries of instances with the same secondary conflict
    /// as well, because that secondary would have to take over the instances of both, unless
    /// `instances_down`, in which case nothing fails over (HT-hroller).
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

    /// Adds each missing edge, in the order of the secondaries.
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
        // Last vertex whose neighbors include this one.
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

    /// Number of vertices, including nodes that aren't chosen.
    pub fn vertices(&self) -> usize {
        self.neighbours.len()
    }

    pub fn node(&self, vertex: usize) -> NodeIdx {
        NodeIdx::from_usize(self.first.at() + vertex)
    }

    /// Whether instances are shut down, so that nothing fails over.
    pub fn instances_down(&self) -> bool {
        self.instances_down
    }

    /// Chosen nodes, ascending.
    pub fn chosen(&self) -> Vec<NodeIdx> {
        (0..self.vertices()).filter(|vertex| self.chosen[*vertex]).map(|vertex| self.node(vertex)).collect()
    }

    pub fn has_chosen(&self, node: NodeIdx) -> bool {
        self.chosen_vertex(node).is_some()
    }

    /// Neighbors of a vertex in the order in which they were found. Some occur more than once.
    pub fn neighbours(&self, vertex: usize) -> &[usize] {
        &self.neighbours[vertex]
    }

    /// Chosen vertices alone, with each neighbor once. This graph determines how many colors are needed.
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

/// An undirected graph without loops or repeated edges.
#[derive(Clone, Debug)]
pub(super) struct SimpleGraph {
    /// Neighbors of each vertex, ascending.
    pub neighbours: Vec<Vec<usize>>,
    /// Node of each vertex, ascending.
    pub nodes: Vec<NodeIdx>,
}

impl SimpleGraph {
    pub fn adjacent(&self, a: usize, b: usize) -> bool {
        self.neighbours[a].binary_search(&b).is_ok()
    }
}
