//! Sums over all nodes of a cluster, offline ones included (HT-hspace).

use cluster::{Cluster, Figures, Node};
use placement::board::Board;

/// What a cluster has, whatever is on it.
pub(super) struct Resources {
    /// Memory, MiB.
    pub memory_mib: f64,
    /// Disk, MiB.
    pub disk_mib: f64,
    /// Physical CPUs.
    pub cpus: f64,
    /// Virtual CPUs that the policies allow.
    pub vcpus: i64,
    /// Spindles.
    pub spindles: i64,
    /// Number of nodes.
    pub nodes: usize,
    /// Whether some node gives out whole spindles, so that they are worth mentioning.
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

/// How much of it is in use.
#[derive(Clone, Copy)]
pub(super) struct Usage {
    /// The cluster's score.
    pub score: f64,
    /// Primaries on all nodes.
    pub instances: usize,
    /// Memory that no instance has, MiB.
    pub free_memory_mib: i64,
    /// Memory for new instances: free, less what is reserved, MiB.
    pub available_memory_mib: i64,
    /// Memory of instances, MiB.
    pub instance_memory_mib: i64,
    /// Memory of the nodes' own systems, and memory missing, MiB.
    pub overhead_mib: i64,
    /// Free disk, MiB.
    pub free_disk_mib: i64,
    /// Disk for new instances: free, less what is to stay free, MiB.
    pub available_disk_mib: i64,
    /// Disk in use, MiB.
    pub used_disk_mib: i64,
    /// Free spindles.
    pub free_spindles: i64,
    /// Spindles in use.
    pub used_spindles: i64,
    /// Virtual CPUs in use, those of the nodes' own systems included.
    pub used_vcpus: i64,
    /// Physical CPUs that these amount to at the allowed ratio.
    pub used_cpus: f64,
    /// Most memory for new instances on one node, MiB.
    pub most_memory_mib: i64,
    /// Most disk for new instances on one node, MiB.
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

    /// Memory of instances over all memory.
    pub fn memory_efficiency(&self, resources: &Resources) -> f64 {
        self.instance_memory_mib as f64 / resources.memory_mib
    }

    /// Disk in use over all disk.
    pub fn disk_efficiency(&self, resources: &Resources) -> f64 {
        self.used_disk_mib as f64 / resources.disk_mib
    }

    /// Virtual CPUs in use over those that are allowed.
    pub fn vcpu_efficiency(&self, resources: &Resources) -> f64 {
        self.used_vcpus as f64 / resources.vcpus as f64
    }

    /// Spindles in use over all spindles.
    pub fn spindle_efficiency(&self, resources: &Resources) -> f64 {
        self.used_spindles as f64 / resources.spindles as f64
    }
}
