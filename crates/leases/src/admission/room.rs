//! Hosts with room as a cluster, so that the placement core can choose among them.
//!
//! A lease uses its slots during its whole window. So a slot fits on a host exactly if it fits beside the
//! peak use of each resource in that window. The cluster shows hosts at their peak use. The placement core
//! places slots on it like instances, and so balances CPU, memory and disk together.

use std::collections::BTreeMap;

use cluster::{
    AllocPolicy, Cluster, DiskTemplate, Group, GroupIdx, Instance, LoadOptions, Node, NodeIdx, Outcome,
    Policy,
};
use placement::allocate::{AllocOptions, Allocator, Scope, placed_on};

use crate::host::Host;
use crate::ids::HostId;
use crate::resources::Resources;

/// The placement core wants something to be left after each placement, but leases can use a host up. So each
/// host gets this much extra memory and disk, which is too little for anything else to fit.
const SPARE_MIB: u64 = 1;
/// The placement core counts disk in MiB.
const MIB_PER_GIB: u64 = 1024;

/// Hosts at their peak use, as a cluster.
#[derive(Debug)]
pub(super) struct RoomCluster {
    cluster: Cluster,
    nodes: BTreeMap<HostId, NodeIdx>,
    hosts: Vec<HostId>,
}

impl RoomCluster {
    pub(super) fn new<'a>(hosts: impl IntoIterator<Item = (&'a Host, &'a Resources)>) -> Option<Self> {
        let mut room = Vec::new();
        let mut nodes = Vec::new();
        for (host, used) in hosts {
            room.push(host.id);
            nodes.push(node(host, used));
        }
        // Neither sizes nor spindles are limited here, and CPUs aren't overcommitted.
        let policy =
            Policy { minmax: Vec::new(), vcpu_ratio: 1.0, spindle_ratio: f64::MAX, ..Policy::default() };
        let group = Group {
            name: "hosts".to_owned(),
            uuid: String::new(),
            alloc_policy: AllocPolicy::Preferred,
            tags: Vec::new(),
            networks: Vec::new(),
            policy: policy.clone(),
        };
        let options = LoadOptions::default();
        // Without instances, selections and mirrors, nothing can be inconsistent.
        let (cluster, _) =
            Cluster::load(vec![group], nodes, Vec::new(), Vec::new(), policy, &options).ok()?;
        let nodes =
            room.iter().enumerate().map(|(position, host)| (*host, NodeIdx::from_usize(position))).collect();
        Some(Self { cluster, nodes, hosts: room })
    }

    /// Places `count` slots of a size together on the best of these hosts, and returns it. One pass over the
    /// hosts.
    pub(super) fn place(&mut self, size: &Resources, count: u32, on: &[HostId]) -> Option<HostId> {
        let (instance, nodes) = (slots(size, count), self.nodes_of(on));
        let outcome = match nodes.as_slice() {
            [node] => placed_on(&self.cluster, &instance, *node),
            nodes => self.allocator().best_of(&self.cluster, &instance, nodes),
        }?;
        self.cluster.add(instance, &outcome);
        self.host(&outcome)
    }

    /// The hosts that have room for a slot of this size, best first. One pass over the hosts: placing a slot
    /// on one doesn't change the order of the rest.
    pub(super) fn ranked(&mut self, size: &Resources, on: &[HostId]) -> Vec<HostId> {
        let (instance, nodes) = (slots(size, 1), self.nodes_of(on));
        let ranked = self.allocator().ranked(&self.cluster, &instance, &nodes);
        ranked.iter().filter_map(|outcome| self.host(outcome)).collect()
    }

    fn nodes_of(&self, hosts: &[HostId]) -> Vec<NodeIdx> {
        let mut nodes: Vec<NodeIdx> = hosts.iter().filter_map(|host| self.nodes.get(host).copied()).collect();
        nodes.sort_unstable();
        nodes
    }

    fn allocator(&mut self) -> Allocator {
        let scope = Scope::cluster(&self.cluster);
        let options = AllocOptions { ignore_soft_errors: false, capacity_checks: false };
        Allocator::new(&mut self.cluster, &scope, options)
    }

    fn host(&self, outcome: &Outcome) -> Option<HostId> {
        self.hosts.get(outcome.primary.at()).copied()
    }
}

fn mib(gib: u64) -> i64 {
    signed(gib.saturating_mul(MIB_PER_GIB))
}

fn signed(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

fn node(host: &Host, used: &Resources) -> Node {
    let mut node = Node::new(host.name.as_str(), GroupIdx(0));
    let memory = signed(u64::from(host.memory_mib) + SPARE_MIB);
    node.total_memory = memory as f64;
    node.node_memory = signed(used.memory_mib).min(memory);
    node.reported_free_memory = memory - node.node_memory;
    let disk = mib(host.disk_gib.into()) + SPARE_MIB as i64;
    node.total_disk = disk as f64;
    node.reported_free_disk = disk - mib(used.disk_gib).min(disk);
    // A host without CPUs can serve flavors without CPUs, but ratios need a denominator.
    node.total_cpus = host.vcpus.max(1).into();
    node.node_cpus = signed(used.vcpus);
    node
}

/// Combines `count` slots to one instance.
fn slots(size: &Resources, count: u32) -> Instance {
    let times = |amount: u64| amount.saturating_mul(count.into());
    let mut instance = Instance::new("slots", DiskTemplate::Plain, NodeIdx(0));
    instance.vcpus = signed(times(size.vcpus));
    instance.memory = signed(times(size.memory_mib));
    instance.disk = mib(times(size.disk_gib));
    instance
}
