//! Sums over all nodes of a cluster, including offline ones (HT-hspace).

use cluster::{Cluster, Figures, Node};
use placement::board::Board;

/// Total resources of a cluster, used or not.
pub(super) struct Resources {
    pub memory_mib: f64,
    pub disk_mib: f64,
    /// Physical CPUs.
    pub cpus: f64,
    /// Virtual CPUs allowed by the policies.
    pub vcpus: i64,
    pub spindles: i64,
    pub nodes: usize,
    /// Whether some node has exclusive storage. Only then are spindles printed for people.
    pub exclusive_storage: bool,
}

impl Resources {
    pub fn of(cluster: &Cluster) -> Self {
        let nodes = &cluster.nodes;
        Self {
            memory_mib: nodes.iter().fold(0.0, |sum, n| sum + n.total_memory),
            disk_mib: nodes.iter().fold(0.0, |sum, n| sum + n.total_disk),
            cpus: nodes.iter().fold(0.0, |sum, n| sum + n.total_cpus),
            vcpus: nodes.iter().map(|n| n.max_vcpus).sum(),
            spindles: nodes.iter().map(|n| n.total_spindles).sum(),
            nodes: nodes.len(),
            exclusive_storage: nodes.iter().any(|n| n.exclusive_storage),
        }
    }
}

/// Resources of a cluster that are in use, or free.
#[derive(Clone, Copy)]
pub(super) struct Usage {
    pub score: f64,
    /// Number of primaries on all nodes.
    pub instances: usize,
    /// Unallocated memory, MiB.
    pub free_memory_mib: i64,
    /// Memory available to new instances, MiB: free minus reserved.
    pub available_memory_mib: i64,
    /// Memory in use by instances, MiB.
    pub instance_memory_mib: i64,
    /// Memory of the nodes' own systems and missing memory, MiB.
    pub overhead_mib: i64,
    pub free_disk_mib: i64,
    /// Disk available to new instances, MiB: free minus the minimum to keep.
    pub available_disk_mib: i64,
    pub used_disk_mib: i64,
    pub free_spindles: i64,
    pub used_spindles: i64,
    /// Virtual CPUs in use, including the nodes' own systems.
    pub used_vcpus: i64,
    /// The same as physical CPUs, at each node's allowed ratio.
    pub used_cpus: f64,
    /// Maximum memory available to new instances on one node, MiB.
    pub most_memory_mib: i64,
    /// Maximum disk available to new instances on one node, MiB.
    pub most_disk_mib: i64,
}

impl Usage {
    pub fn of(cluster: &Cluster) -> Self {
        let nodes: Vec<_> = cluster.node_indices().collect();
        let all = || cluster.nodes.iter().zip(cluster.states.iter().map(|state| &state.figures));
        let sum = |figure: fn(&Node, &Figures) -> i64| all().map(|(n, f)| figure(n, f)).sum::<i64>();
        let most = |figure: fn(&Node, &Figures) -> i64| all().map(|(n, f)| figure(n, f)).max().unwrap_or(0);
        Self {
            score: Board::new(cluster, &nodes).score(),
            instances: cluster.states.iter().map(|state| state.primaries.len()).sum(),
            free_memory_mib: sum(|n, f| f.unallocated_memory(n)),
            available_memory_mib: sum(|n, f| f.available_memory(n)),
            instance_memory_mib: sum(|_, f| f.instance_memory),
            overhead_mib: sum(|n, _| n.missing_memory + n.node_memory),
            free_disk_mib: sum(|_, f| f.free_disk),
            available_disk_mib: sum(|n, f| f.available_disk(n)),
            used_disk_mib: sum(|n, f| n.total_disk as i64 - f.free_disk),
            free_spindles: sum(|_, f| f.free_spindles),
            used_spindles: sum(|n, f| n.total_spindles - f.free_spindles),
            used_vcpus: sum(|_, f| f.used_vcpus),
            used_cpus: all().fold(0.0, |sum, (n, f)| sum + f.used_vcpus as f64 / n.max_vcpu_ratio),
            most_memory_mib: most(|n, f| f.available_memory(n)),
            most_disk_mib: most(|n, f| f.available_disk(n)),
        }
    }

    /// Memory in use by instances over total memory.
    pub fn memory_efficiency(&self, resources: &Resources) -> f64 {
        self.instance_memory_mib as f64 / resources.memory_mib
    }

    /// Disk in use over total disk.
    pub fn disk_efficiency(&self, resources: &Resources) -> f64 {
        self.used_disk_mib as f64 / resources.disk_mib
    }

    /// Virtual CPUs in use over allowed virtual CPUs.
    pub fn vcpu_efficiency(&self, resources: &Resources) -> f64 {
        self.used_vcpus as f64 / resources.vcpus as f64
    }

    /// Spindles in use over total spindles.
    pub fn spindle_efficiency(&self, resources: &Resources) -> f64 {
        self.used_spindles as f64 / resources.spindles as f64
    }
}
