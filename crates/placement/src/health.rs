//! Counts and lists a cluster's faults (HT-hcheck).

use cluster::{Cluster, InstanceIdx, NodeIdx};

use crate::board::Board;
use crate::redundancy::can_evacuate;

/// Online nodes among `nodes`, in their order, that fail N+1: they couldn't take over the instances of some
/// other node.
pub fn bad_nodes(cluster: &Cluster, nodes: &[NodeIdx]) -> Vec<NodeIdx> {
    let bad = |n: &NodeIdx| cluster.node(*n).online() && cluster.figures(*n).fails_n1;
    nodes.iter().copied().filter(bad).collect()
}

/// Instances with their primary or secondary on `nodes`, ascending and unique.
pub fn instances_on(cluster: &Cluster, nodes: &[NodeIdx]) -> Vec<InstanceIdx> {
    let on_node = |n: &NodeIdx| cluster.state(*n).primaries.iter().chain(&cluster.state(*n).secondaries);
    let mut instances: Vec<InstanceIdx> = nodes.iter().flat_map(on_node).copied().collect();
    instances.sort_unstable();
    instances.dedup();
    instances
}

/// Number of faults in a set of nodes, or the sum over several sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Faults {
    /// Online nodes that couldn't take over the instances of some other node.
    pub n1_failing: usize,
    /// Nodes with primaries whose exclusion tags should keep them apart.
    pub conflicting: usize,
    /// Primaries on offline nodes.
    pub offline_primaries: usize,
    /// Offline nodes. The reference calls this "instances having a secondary node offline".
    pub offline_nodes: usize,
    /// Nodes that couldn't be evacuated if they were lost; 0 if this wasn't checked.
    pub not_evacuable: usize,
}

impl Faults {
    pub fn any(&self) -> bool {
        *self != Self::default()
    }
}

impl std::ops::Add for Faults {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            n1_failing: self.n1_failing + other.n1_failing,
            conflicting: self.conflicting + other.conflicting,
            offline_primaries: self.offline_primaries + other.offline_primaries,
            offline_nodes: self.offline_nodes + other.offline_nodes,
            not_evacuable: self.not_evacuable + other.not_evacuable,
        }
    }
}

impl std::iter::Sum for Faults {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), std::ops::Add::add)
    }
}

/// Nodes and instances counted in [`Faults`], each list ascending.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Faulty {
    /// Online nodes that couldn't take over the instances of some other node.
    pub n1_failing: Vec<NodeIdx>,
    /// Nodes with primaries whose exclusion tags should keep them apart.
    pub conflicting: Vec<NodeIdx>,
    /// Primaries on offline nodes.
    pub offline_primaries: Vec<InstanceIdx>,
    pub offline_nodes: Vec<NodeIdx>,
    /// Nodes that couldn't be evacuated if they were lost; empty if this wasn't checked.
    pub not_evacuable: Vec<NodeIdx>,
}

impl Faulty {
    /// Checks `nodes`, which must be ascending and are the only targets for evacuated instances. The cluster
    /// is unchanged on return.
    ///
    /// `capacity_checks` tests whether each node could be evacuated, which takes most of the time.
    pub fn of(cluster: &mut Cluster, nodes: &[NodeIdx], capacity_checks: bool) -> Self {
        let mut faulty = Self { n1_failing: bad_nodes(cluster, nodes), ..Self::default() };
        for &index in nodes {
            let (node, state) = (cluster.node(index), cluster.state(index));
            if node.offline {
                faulty.offline_nodes.push(index);
                faulty.offline_primaries.extend(&state.primaries);
            }
            if state.figures.tag_conflicts > 0 {
                faulty.conflicting.push(index);
            }
            if capacity_checks && !can_evacuate(cluster, nodes, index, None) {
                faulty.not_evacuable.push(index);
            }
        }
        faulty.offline_primaries.sort_unstable();
        faulty
    }

    pub fn count(&self) -> Faults {
        Faults {
            n1_failing: self.n1_failing.len(),
            conflicting: self.conflicting.len(),
            offline_primaries: self.offline_primaries.len(),
            offline_nodes: self.offline_nodes.len(),
            not_evacuable: self.not_evacuable.len(),
        }
    }
}

/// Faults and score of a node group.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupHealth {
    pub faults: Faults,
    pub faulty: Faulty,
    pub score: f64,
}

impl GroupHealth {
    /// Checks the nodes of a group, which must be ascending. The cluster is unchanged on return.
    pub fn of(cluster: &mut Cluster, nodes: &[NodeIdx], capacity_checks: bool) -> Self {
        let faulty = Faulty::of(cluster, nodes, capacity_checks);
        Self { faults: faulty.count(), faulty, score: Board::new(cluster, nodes).score() }
    }
}
