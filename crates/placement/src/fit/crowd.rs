//! A full cluster, and the number of instances that would fit after a change to it.

use cluster::{AllocPolicy, Cluster, GroupIdx, InstanceIdx, NodeIdx};

use super::remedy::{Action, MOST_COUNTED, Remedy};
use crate::capacity::{CapacityOptions, Shape};
use crate::whatif::{NewNodes, place};

/// A cluster that accepts no more instances of a shape.
pub(super) struct Crowd {
    pub(super) filled: Cluster,
    /// Number of real instances. Instances from this index on are hypothetical and are never moved.
    pub(super) existing: usize,
    /// Nodes that can take new instances.
    pub(super) ground: Vec<NodeIdx>,
    pub(super) shape: Shape,
    pub(super) rules: CapacityOptions,
}

impl Crowd {
    /// Number of further instances, up to `most`, that fit on a changed copy of the cluster.
    pub(super) fn room(&self, changed: &Cluster, most: usize) -> usize {
        place(&mut changed.clone(), most, &self.shape, self.rules).placed.len()
    }

    /// Wraps `action` as a remedy if at least one more instance fits after it.
    pub(super) fn remedy(&self, action: Action, changed: &Cluster) -> Option<Remedy> {
        let more = self.room(changed, MOST_COUNTED);
        (more > 0).then_some(Remedy { action, more })
    }

    pub(super) fn groups(&self) -> Vec<GroupIdx> {
        let mut groups: Vec<GroupIdx> = self.ground.iter().map(|n| self.filled.node(*n).group).collect();
        groups.sort_unstable();
        groups.dedup();
        groups
    }

    pub(super) fn is_real(&self, index: InstanceIdx) -> bool {
        index.at() < self.existing
    }

    /// Drops the capacity check, so nodes need not stay evacuable. `None` if it is off already.
    pub(super) fn unchecked(&self) -> Option<Remedy> {
        if !self.rules.capacity_checks {
            return None;
        }
        let rules = CapacityOptions { capacity_checks: false, ..self.rules };
        let mut changed = self.filled.clone();
        let placed = place(&mut changed, MOST_COUNTED, &self.shape, rules).placed;
        let mut groups: Vec<GroupIdx> = placed.iter().map(|p| changed.node(p.primary).group).collect();
        groups.sort_unstable();
        groups.dedup();
        let (action, more) = (Action::NoCapacityCheck(groups), placed.len());
        (more > 0).then_some(Remedy { action, more })
    }

    /// Makes each unallocable group allocatable, one at a time.
    pub(super) fn opened(&self, unallocable: &[GroupIdx]) -> Vec<Remedy> {
        let open = |group: &GroupIdx| {
            let mut changed = self.filled.clone();
            changed.groups[group.at()].alloc_policy = AllocPolicy::Preferred;
            self.remedy(Action::AllocPolicy(*group), &changed)
        };
        unallocable.iter().filter_map(open).collect()
    }

    /// Adds one node to the group where that makes room for the most instances. Ties go to the first group.
    pub(super) fn one_more_node(&self) -> Option<Remedy> {
        let remedies = self.groups().into_iter().filter_map(|group| {
            let like = NewNodes::typical(&self.filled, group)?;
            let mut changed = self.filled.clone();
            changed.add_node(like.clone());
            self.remedy(Action::AddNode(Box::new(like)), &changed)
        });
        remedies.reduce(|best, next| if next.more > best.more { next } else { best })
    }
}
