//! Plain cluster data, as every source delivers it.

use cluster::{Cluster, Group, Inconsistency, Instance, LoadError, LoadOptions, Node, Policy};

/// A cluster as read, with nothing derived. Indices are positions in the vectors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterData {
    pub groups: Vec<Group>,
    pub nodes: Vec<Node>,
    pub instances: Vec<Instance>,
    /// Cluster tags.
    pub tags: Vec<String>,
    pub policy: Policy,
}

impl ClusterData {
    /// Derives all figures. Also returns the inconsistent nodes, last node first.
    pub fn load(self, options: &LoadOptions) -> Result<(Cluster, Vec<Inconsistency>), LoadError> {
        Cluster::load(self.groups, self.nodes, self.instances, self.tags, self.policy, options)
    }
}

/// Maximum magnitude of sizes and counts: 2^40, an exbibyte in MiB.
///
/// No real cluster comes close. Larger numbers could overflow sums over a cluster.
pub const LARGEST: i64 = 1 << 40;

/// Clamps a size or count to [`LARGEST`] in magnitude.
pub fn bounded(number: i64) -> i64 {
    number.clamp(-LARGEST, LARGEST)
}

/// Like [`bounded`]; NaN stays NaN.
pub fn bounded_float(number: f64) -> f64 {
    number.clamp(-(LARGEST as f64), LARGEST as f64)
}
