//! Resources that a node is missing to take an instance.

use std::cmp::Ordering;

use cluster::{Cluster, DiskTemplate, FailMode, Figures, Instance, Node, NodeIdx, TagEffect};

use crate::capacity::Shape;
use crate::role::Role;

/// Resources that a node is missing. 0 means it has enough.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Lack {
    /// In MiB, including the N+1 reserve.
    pub memory_mib: i64,
    pub disk_mib: i64,
    /// Measured against the allowed ratio.
    pub vcpus: i64,
    /// Measured against the allowed ratio.
    pub instance_spindles: f64,
    /// Only on nodes with exclusive storage.
    pub spindles: i64,
}

impl Lack {
    /// Whether the node has enough of every resource.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Number of resources that are short.
    fn kinds(&self) -> usize {
        [
            self.memory_mib > 0,
            self.disk_mib > 0,
            self.vcpus > 0,
            self.instance_spindles > 0.0,
            self.spindles > 0,
        ]
        .into_iter()
        .filter(|lacking| *lacking)
        .count()
    }

    /// Total shortage. Memory, disk and CPUs are relative to the instance's demand; spindles are absolute.
    fn weight(&self, instance: &Instance) -> f64 {
        let share = |lacking: i64, wanted: i64| lacking as f64 / wanted.max(1) as f64;
        share(self.memory_mib, instance.memory)
            + share(self.disk_mib, instance.disk)
            + share(self.vcpus, instance.vcpus)
            + self.instance_spindles
            + self.spindles as f64
    }
}

/// A node that comes close to accepting an instance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Near {
    pub node: NodeIdx,
    /// Role the node would have for the instance.
    pub role: Role,
    pub lack: Lack,
    /// Reason why this node, on its own, refuses the instance. `None` if it would accept it, but no partner
    /// node is available as its secondary, or global redundancy would be lost.
    pub refused: Option<FailMode>,
}

/// Number of nodes reported per role.
const NODES_NAMED: usize = 5;

/// Nodes closest to accepting an instance as its primary. For DRBD, they are followed by nodes closest to
/// being its secondary, given the first of these primaries.
pub(super) fn nearest(cluster: &Cluster, nodes: &[NodeIdx], shape: &Shape) -> Vec<Near> {
    let instance = shape.instance("");
    let mut found: Vec<Near> = nodes.iter().map(|n| as_primary(cluster, *n, &instance)).collect();
    sort(&mut found, &instance);
    found.truncate(NODES_NAMED);
    let Some(primary) = found.first().map(|near| near.node) else { return found };
    if shape.template == DiskTemplate::Drbd {
        let partner = |n: &&NodeIdx| **n != primary && cluster.node(**n).group == cluster.node(primary).group;
        let partners = nodes.iter().filter(partner);
        let mut mirrors: Vec<Near> =
            partners.map(|n| as_secondary(cluster, *n, primary, &instance)).collect();
        sort(&mut mirrors, &instance);
        found.extend(mirrors.into_iter().take(NODES_NAMED));
    }
    found
}

fn sort(found: &mut [Near], instance: &Instance) {
    found.sort_by(|a, b| {
        let key = |near: &Near| (near.refused.is_some(), near.lack.kinds());
        let by_weight = a.lack.weight(instance).partial_cmp(&b.lack.weight(instance));
        // A node that refuses without a measurable shortage comes last.
        let hopeless = |near: &Near| near.refused.is_some() && near.lack.is_none();
        let by_hope = hopeless(a).cmp(&hopeless(b));
        by_hope.then(key(a).cmp(&key(b))).then(by_weight.unwrap_or(Ordering::Equal)).then(a.node.cmp(&b.node))
    });
}

/// Evaluates the node as the instance's primary.
pub(crate) fn as_primary(cluster: &Cluster, index: NodeIdx, instance: &Instance) -> Near {
    let (node, state) = (cluster.node(index), cluster.state(index));
    let (figures, demand) = (&state.figures, instance.demand());
    let refused = figures.add_primary(node, &demand, TagEffect::default(), 0, false).err();
    let left = figures.unallocated_memory(node) - demand.used_memory;
    // A node that already fails N+1 doesn't refuse instances because of its reserve.
    let keep = if figures.fails_n1 { 0 } else { figures.reserved_memory.max(0) };
    let memory_mib = more_than(left, keep).max(more_than(figures.booked_free_memory - demand.memory, 0));
    let used = figures.used_vcpus.max(figures.booked_used_vcpus) + demand.vcpus;
    let lack = Lack { memory_mib, vcpus: vcpus_short(node, used), ..storage(node, figures, instance) };
    Near { node: index, role: Role::Primary, lack, refused }
}

/// Evaluates the node as the secondary of an instance on `primary`.
pub(crate) fn as_secondary(cluster: &Cluster, index: NodeIdx, primary: NodeIdx, instance: &Instance) -> Near {
    let (node, state) = (cluster.node(index), cluster.state(index));
    let (figures, demand) = (&state.figures, instance.demand());
    let reserved = state.reserved_for(primary);
    let refused = figures.add_secondary(node, &demand, reserved, false, false).err();
    let free = figures.unallocated_memory(node);
    let reserve = figures.reserved_memory.max(reserved + demand.reserved_memory);
    let keep = if figures.fails_n1 { demand.reserved_memory } else { reserve.max(demand.reserved_memory) };
    let memory_mib = more_than(free, keep).max(more_than(figures.booked_free_memory, demand.reserved_memory));
    let lack = Lack { memory_mib, ..storage(node, figures, instance) };
    Near { node: index, role: Role::Secondary, lack, refused }
}

/// Amount by which `value` must grow to exceed `limit`.
fn more_than(value: i64, limit: i64) -> i64 {
    (limit + 1 - value).max(0)
}

/// Number of virtual CPUs beyond the allowed ratio. A negative ratio means no limit.
fn vcpus_short(node: &Node, used: i64) -> i64 {
    if node.max_vcpu_ratio < 0.0 { 0 } else { (used - node.max_vcpus).max(0) }
}

/// Shortage of disk and spindles.
fn storage(node: &Node, figures: &Figures, instance: &Instance) -> Lack {
    if !instance.template.local_storage() {
        return Lack::default();
    }
    let free = figures.free_disk.min(figures.booked_free_disk) - instance.disk;
    let used = figures.instance_spindles.max(figures.booked_instance_spindles) + instance.spindle_use as f64;
    let free_spindles = figures.free_spindles.min(figures.booked_free_spindles);
    let wanted = instance.total_spindles().unwrap_or(0);
    let exclusive = node.exclusive_storage;
    Lack {
        disk_mib: more_than(free, node.min_free_disk.max(1) - 1),
        instance_spindles: if exclusive { 0.0 } else { (used - node.max_spindles).max(0.0) },
        spindles: if exclusive { (wanted - free_spindles).max(0) } else { 0 },
        ..Lack::default()
    }
}
