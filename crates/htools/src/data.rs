//! What every source of cluster data delivers.

use cluster::{Cluster, Group, Inconsistency, Instance, LoadError, LoadOptions, Node, Policy};

/// A cluster as it was read: nothing is derived yet. Indices in it are positions in its vectors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterData {
    /// Node groups, in input order.
    pub groups: Vec<Group>,
    /// Nodes, in input order.
    pub nodes: Vec<Node>,
    /// Instances, in input order.
    pub instances: Vec<Instance>,
    /// The cluster's tags.
    pub tags: Vec<String>,
    /// The cluster's policy.
    pub policy: Policy,
}

impl ClusterData {
    /// Derives everything; also returns the nodes whose records do not add up, last node first.
    pub fn load(self, options: &LoadOptions) -> Result<(Cluster, Vec<Inconsistency>), LoadError> {
        Cluster::load(self.groups, self.nodes, self.instances, self.tags, self.policy, options)
    }
}

/// The largest magnitude that sizes and counts are taken to have: 2^40, an exbibyte in MiB.
///
/// Nothing real comes near it; with larger numbers, sums over a cluster could overflow.
pub const LARGEST: i64 = 1 << 40;

/// A size or count, no larger than [`LARGEST`] in magnitude.
pub fn bounded(number: i64) -> i64 {
    number.clamp(-LARGEST, LARGEST)
}

/// As [`bounded`]; what is not a number stays so.
pub fn bounded_float(number: f64) -> f64 {
    number.clamp(-(LARGEST as f64), LARGEST as f64)
}
