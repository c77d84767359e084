//! Resources that nodes have given out, counted from the instances' records, for the checker of plans.
//!
//! It must not use the figures that the search maintains: an error in those must show.

use cluster::{Cluster, DiskTemplate, Instance, InstanceIdx, NodeIdx};

use super::atlas::Pair;

/// Placement of instances during a plan. The cluster is as it was at the start.
#[derive(Clone, Debug)]
pub(super) struct Ledger<'a> {
    cluster: &'a Cluster,
    pub pairs: Vec<Pair>,
    residents: Vec<Vec<InstanceIdx>>,
}

/// Rule that can be broken even if a move is possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The node can take over the instances of any one other node.
    Redundancy,
    /// Its virtual CPUs are within the policy.
    Cpus,
    /// The required amount of disk stays free.
    Disk,
    /// Its spindles are within the policy.
    Spindles,
    /// No two primaries have the same exclusion tag.
    Exclusion,
}

/// Resources that a node has left or has given out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Standing {
    /// Memory that isn't given to an instance, MiB.
    memory: i64,
    /// Largest reservation for the instances of one other node, MiB.
    reserved: i64,
    /// Disk taken since the start, MiB, and spindles, which count with exclusive storage.
    disk_taken: i64,
    spindles_taken: i64,
    /// Virtual CPUs and weights of disk activity taken since the start.
    vcpus_taken: i64,
    weight_taken: i64,
    /// Instances that share an exclusion tag with another instance on the node.
    conflicts: usize,
}

impl<'a> Ledger<'a> {
    pub fn new(cluster: &'a Cluster) -> Self {
        let pairs: Vec<Pair> = cluster.instances.iter().map(|i| (i.primary, i.secondary)).collect();
        let mut residents = vec![Vec::new(); cluster.nodes.len()];
        for (index, pair) in cluster.instance_indices().zip(&pairs) {
            std::iter::once(pair.0).chain(pair.1).for_each(|node| residents[node.at()].push(index));
        }
        Self { cluster, pairs, residents }
    }

    /// Records a move.
    pub fn note(&mut self, index: InstanceIdx, to: Pair) {
        let from = std::mem::replace(&mut self.pairs[index.at()], to);
        for node in std::iter::once(from.0).chain(from.1) {
            self.residents[node.at()].retain(|i| *i != index);
        }
        for node in std::iter::once(to.0).chain(to.1) {
            self.residents[node.at()].push(index);
        }
    }

    pub fn standing(&self, node: NodeIdx) -> Standing {
        let record = self.cluster.node(node);
        let mut standing = Standing {
            memory: record.total_memory_mib() - record.node_memory - record.missing_memory.max(0),
            reserved: 0,
            disk_taken: 0,
            spindles_taken: 0,
            vcpus_taken: 0,
            weight_taken: 0,
            conflicts: 0,
        };
        let mut peers: Vec<(NodeIdx, i64)> = Vec::new();
        for &index in &self.residents[node.at()] {
            let (instance, pair) = (self.cluster.instance(index), self.pairs[index.at()]);
            if instance.forthcoming {
                continue;
            }
            standing.take_storage(instance, 1);
            if pair.0 == node {
                standing.memory -= if instance.uses_memory() { instance.memory } else { 0 };
                standing.vcpus_taken += if instance.online() { instance.vcpus } else { 0 };
                standing.conflicts += usize::from(self.has_rival(index, node));
            } else if instance.reserves_secondary_memory() {
                match peers.iter_mut().find(|(peer, _)| *peer == pair.0) {
                    Some((_, memory)) => *memory += instance.memory,
                    None => peers.push((pair.0, instance.memory)),
                }
            }
        }
        standing.reserved = peers.iter().map(|(_, memory)| *memory).max().unwrap_or(0);
        let state = self.cluster.state(node);
        for index in state.primaries.iter().chain(&state.secondaries) {
            standing.take_storage(self.cluster.instance(*index), -1);
        }
        for index in &state.primaries {
            let instance = self.cluster.instance(*index);
            standing.vcpus_taken -= if instance.online() { instance.vcpus } else { 0 };
        }
        standing
    }

    /// Whether another primary of the node, forthcoming instances excepted, shares an exclusion tag with the
    /// instance.
    fn has_rival(&self, index: InstanceIdx, node: NodeIdx) -> bool {
        let tags = &self.cluster.instance(index).exclusion_tags;
        let shares = |other: &InstanceIdx| {
            *other != index
                && !self.cluster.instance(*other).forthcoming
                && self.pairs[other.at()].0 == node
                && self.cluster.instance(*other).exclusion_tags.iter().any(|tag| tags.contains(tag))
        };
        !tags.is_empty() && self.residents[node.at()].iter().any(shares)
    }

    /// Whether the node has the resources that `taker` took from it since `before`.
    pub fn possible(&self, node: NodeIdx, taker: InstanceIdx, before: &Standing, now: &Standing) -> bool {
        let (record, start) = (self.cluster.node(node), self.cluster.figures(node));
        let memory = now.memory > 0 || now.memory >= before.memory;
        let disk = now.disk_taken < start.free_disk || now.disk_taken <= before.disk_taken;
        let spindles = !record.exclusive_storage
            || !self.cluster.instance(taker).template.local_storage()
            || now.spindles_taken <= start.free_spindles
            || now.spindles_taken <= before.spindles_taken;
        memory && disk && spindles
    }

    /// The first rule that is broken now but wasn't before.
    pub fn broken(&self, node: NodeIdx, before: &Standing, now: &Standing) -> Option<Rule> {
        let (record, start) = (self.cluster.node(node), self.cluster.figures(node));
        // Values that a node reports at the start can make it fail even if its records don't.
        let survives = now.memory > now.reserved || before.memory <= before.reserved || start.fails_n1;
        let cpu_ratio = (start.used_vcpus + now.vcpus_taken) as f64 / record.total_cpus;
        let cpus = record.max_vcpu_ratio < 0.0
            || now.vcpus_taken <= before.vcpus_taken
            || cpu_ratio <= record.max_vcpu_ratio;
        let disk =
            now.disk_taken <= before.disk_taken || start.free_disk - now.disk_taken >= record.min_free_disk;
        let weight = start.instance_spindles + now.weight_taken as f64;
        let spindles = record.exclusive_storage
            || now.weight_taken <= before.weight_taken
            || weight <= record.max_spindles;
        let rules = [
            (Rule::Redundancy, survives),
            (Rule::Cpus, cpus),
            (Rule::Disk, disk),
            (Rule::Spindles, spindles),
            (Rule::Exclusion, now.conflicts <= before.conflicts),
        ];
        rules.into_iter().find(|(_, kept)| !kept).map(|(rule, _)| rule)
    }
}

impl Standing {
    fn take_storage(&mut self, instance: &Instance, sign: i64) {
        let mirrored = instance.template == DiskTemplate::Drbd;
        if mirrored || instance.template.local_storage() {
            self.disk_taken += sign * instance.disk;
            self.weight_taken += sign * instance.spindle_use;
        }
        // Counted for all instances, as in the reference, but checked only when storage is taken.
        self.spindles_taken += sign * instance.total_spindles().unwrap_or(0);
    }
}
