//! Hosts with room as a cluster, so that the placement core chooses among them.
//!
//! A lease's slots are used all through its window, so a slot fits a host exactly if it fits beside the highest
//! use of each resource in that window. The cluster shows the hosts at that use; the placement core places
//! slots on it as if they were instances, and so spreads the load over CPU, memory and disk together.

use std::collections::BTreeMap;

use cluster::{
    AllocPolicy, Cluster, DiskTemplate, Group, GroupIdx, Instance, LoadOptions, Node, NodeIdx, Outcome,
    Policy,
};
use placement::allocate::{AllocOptions, Allocator, Scope, placed_on};

use crate::host::Host;
use crate::ids::HostId;
use crate::resources::Resources;

/// The engine wants something to be left after each placement; leases may use a host up. So each host has
/// this much more memory and disk than it has, and no more fits.
const SPARE_MIB: u64 = 1;
/// The engine counts disk in MiB.
const MIB_PER_GIB: u64 = 1024;

/// Hosts at their peak use, as a cluster.
#[derive(Debug)]
pub(super) struct RoomCluster {
    cluster: Cluster,
    nodes: BTreeMap<HostId, NodeIdx>,
    hosts: Vec<HostId>,
}

impl RoomCluster {
    /// These hosts with what is used of each.
    pub(super) fn new<'a>(hosts: impl IntoIterator<Item = (&'a Host, &'a Resources)>) -> Option<Self> {
        let mut room = Vec::new();
        let mut nodes = Vec::new();
        for (host, used) in hosts {
            room.push(host.id);
            nodes.push(node(host, used));
        }
        // Sizes are not limited by a policy here, nor are spindles counted; CPUs are not over-committed.
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
        // Without instances, selections and mirrors nothing can be inconsistent.
        let (cluster, _) =
            Cluster::load(vec![group], nodes, Vec::new(), Vec::new(), policy, &options).ok()?;
        let nodes =
            room.iter().enumerate().map(|(position, host)| (*host, NodeIdx::from_usize(position))).collect();
        Some(Self { cluster, nodes, hosts: room })
    }

    /// Puts `count` slots of a size on the best of these hosts, all on one, and says on which. One pass over the hosts.
    pub(super) fn place(&mut self, size: &Resources, count: u32, on: &[HostId]) -> Option<HostId> {
        let (instance, nodes) = (slots(size, count), self.nodes_of(on));
        let outcome = match nodes.as_slice() {
            [node] => placed_on(&self.cluster, &instance, *node),
            nodes => self.allocator().best_of(&self.cluster, &instance, nodes),
        }?;
        self.cluster.add(instance, &outcome);
        self.host(&outcome)
    }

    /// Those of these hosts that have room for a slot of a size, the best first. One pass over the hosts: what one takes
    /// does not change the order of the others.
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
    // A host without CPUs serves flavors that need none; ratios want a denominator.
    node.total_cpus = host.vcpus.max(1).into();
    node.node_cpus = signed(used.vcpus);
    node
}

/// So many slots, as one instance.
fn slots(size: &Resources, count: u32) -> Instance {
    let times = |amount: u64| amount.saturating_mul(count.into());
    let mut instance = Instance::new("slots", DiskTemplate::Plain, NodeIdx(0));
    instance.vcpus = signed(times(size.vcpus));
    instance.memory = signed(times(size.memory_mib));
    instance.disk = mib(times(size.disk_gib));
    instance
}
