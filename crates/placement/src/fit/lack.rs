//! What a node lacks to take an instance.

use std::cmp::Ordering;

use cluster::{Cluster, DiskTemplate, FailMode, Figures, Instance, Node, NodeIdx, TagEffect};

use crate::capacity::Shape;
use crate::role::Role;

/// What a node would need more of; 0 for what is there.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Lack {
    /// Memory, the N+1 reserve included, MiB.
    pub memory_mib: i64,
    /// Disk, MiB.
    pub disk_mib: i64,
    /// Virtual CPUs, by the allowed ratio.
    pub vcpus: i64,
    /// Instance spindles, by the allowed ratio.
    pub instance_spindles: f64,
    /// Spindles of a node with exclusive storage.
    pub spindles: i64,
}

impl Lack {
    /// Whether everything is there.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// How many things are lacking.
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

    /// How much is lacking, in shares of what the instance asks for.
    fn weight(&self, instance: &Instance) -> f64 {
        let share = |lacking: i64, wanted: i64| lacking as f64 / wanted.max(1) as f64;
        share(self.memory_mib, instance.memory)
            + share(self.disk_mib, instance.disk)
            + share(self.vcpus, instance.vcpus)
            + self.instance_spindles
            + self.spindles as f64
    }
}

/// A node that could almost take an instance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Near {
    /// Which node.
    pub node: NodeIdx,
    /// What it would be to the instance.
    pub role: Role,
    /// What it lacks.
    pub lack: Lack,
    /// What refuses the instance on this node alone; none if the node would take it, but no other node would be
    /// its secondary, or global redundancy would be lost.
    pub refused: Option<FailMode>,
}

/// So many nodes are named per role.
const NODES_NAMED: usize = 5;

/// The nodes nearest to taking an instance: as its primary, then, if it has one, as its secondary with the first
/// of these as its primary.
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
        // What lacks nothing measurable and is refused all the same comes last.
        let hopeless = |near: &Near| near.refused.is_some() && near.lack.is_none();
        let by_hope = hopeless(a).cmp(&hopeless(b));
        by_hope.then(key(a).cmp(&key(b))).then(by_weight.unwrap_or(Ordering::Equal)).then(a.node.cmp(&b.node))
    });
}

/// The node as the primary of an instance.
pub(crate) fn as_primary(cluster: &Cluster, index: NodeIdx, instance: &Instance) -> Near {
    let (node, state) = (cluster.node(index), cluster.state(index));
    let (figures, demand) = (&state.figures, instance.demand());
    let refused = figures.add_primary(node, &demand, TagEffect::default(), 0, false).err();
    let left = figures.unallocated_memory(node) - demand.used_memory;
    // Where N+1 is failed already, it is no reason to refuse.
    let keep = if figures.fails_n1 { 0 } else { figures.reserved_memory.max(0) };
    let memory_mib = more_than(left, keep).max(more_than(figures.booked_free_memory - demand.memory, 0));
    let used = figures.used_vcpus.max(figures.booked_used_vcpus) + demand.vcpus;
    let lack = Lack { memory_mib, vcpus: vcpus_short(node, used), ..storage(node, figures, instance) };
    Near { node: index, role: Role::Primary, lack, refused }
}

/// The node as the secondary of an instance with this primary.
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

/// How much `value` must grow to be above `limit`.
fn more_than(value: i64, limit: i64) -> i64 {
    (limit + 1 - value).max(0)
}

/// By how many virtual CPUs the ratio is exceeded.
fn vcpus_short(node: &Node, used: i64) -> i64 {
    if node.max_vcpu_ratio < 0.0 { 0 } else { (used - node.max_vcpus).max(0) }
}

/// What is lacking of disk and spindles.
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
