//! Instances displaced by the loss of their node (HT-redundancy).

use cluster::{Cluster, DiskTemplate, Instance, InstanceIdx, MirrorClass, NodeIdx};

use crate::evacuation::{Evacuation, Room, Size};

/// Way in which an instance survives the loss of its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rescue {
    /// It fails over to its secondary.
    Failover,
    /// It starts elsewhere from shared storage.
    Evacuate,
    /// It is created again.
    Recreate,
}

impl Rescue {
    pub fn of(template: DiskTemplate) -> Self {
        match (template, template.mirror()) {
            (_, MirrorClass::Internal) => Self::Failover,
            (DiskTemplate::Block, _) | (_, MirrorClass::None) => Self::Recreate,
            (_, MirrorClass::External) => Self::Evacuate,
        }
    }
}

/// Instances of a lost node that must be started or created elsewhere.
#[derive(Default)]
pub(crate) struct Displaced {
    /// To be started, in order.
    evacuated: Vec<Size>,
    /// To be created, in order of the list.
    recreated: Vec<(InstanceIdx, i64, Size)>,
}

impl Displaced {
    /// Adds an instance. Must be called for the latest in the node's list first.
    pub fn add(&mut self, index: InstanceIdx, instance: &Instance) {
        let size = Size::of(instance);
        if Rescue::of(instance.template) == Rescue::Evacuate {
            self.evacuated.push(size);
        } else {
            self.recreated.push((index, instance.memory, size));
        }
    }

    pub fn is_empty(&self) -> bool {
        self.evacuated.is_empty() && self.recreated.is_empty()
    }

    /// Evacuation after the loss of `node`, where `left` is the memory left on all other nodes; `None` if an
    /// instance has a negative size.
    pub fn evacuation(
        self,
        cluster: &Cluster,
        list: &[NodeIdx],
        node: NodeIdx,
        left: impl Fn(NodeIdx) -> i64,
    ) -> Option<Evacuation> {
        let group = cluster.node(node).group;
        let policy = &cluster.group(group).policy;
        // All nodes of the group share one policy, which reads differently with exclusive storage.
        let allowed = [false, true].map(|exclusive| {
            list.iter().any(|n| cluster.node(*n).exclusive_storage == exclusive)
                && self.recreated.iter().all(|(i, ..)| policy.check(cluster.instance(*i), exclusive).is_ok())
        });
        let local = self.recreated.iter().any(|(_, _, size)| size.disk.is_some());
        let mut rooms = Vec::with_capacity(list.len());
        for &target in list {
            let to = cluster.node(target);
            if target == node || to.group != group {
                continue;
            }
            let willing = allowed[usize::from(to.exclusive_storage)]
                && !(local && to.exclusive_storage)
                && (self.evacuated.is_empty() || cluster.migration_allowed(node, target));
            rooms.push(Room { memory: left(target), disk: cluster.figures(target).free_disk, willing });
        }
        let instances = self.in_order();
        instances.iter().all(Size::is_sensible).then_some(Evacuation { instances, rooms })
    }

    /// Sizes of the instances in the order in which they get new nodes.
    pub fn in_order(mut self) -> Vec<Size> {
        self.recreated.sort_by_key(|(_, memory, _)| std::cmp::Reverse(*memory));
        let recreated = self.recreated.into_iter().map(|(_, _, size)| size);
        self.evacuated.into_iter().chain(recreated).collect()
    }
}
