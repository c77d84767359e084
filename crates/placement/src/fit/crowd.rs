//! A full cluster, and how many more instances would fit if it were changed.

use cluster::{AllocPolicy, Cluster, GroupIdx, InstanceIdx, NodeIdx};

use super::remedy::{Action, MOST_COUNTED, Remedy};
use crate::capacity::{CapacityOptions, Shape};
use crate::whatif::{NewNodes, place};

/// A cluster that takes no more instances of a shape.
pub(super) struct Crowd {
    pub(super) filled: Cluster,
    /// Instances from this number on are hypothetical: nobody moves them.
    pub(super) existing: usize,
    /// The nodes that may take instances.
    pub(super) ground: Vec<NodeIdx>,
    pub(super) shape: Shape,
    pub(super) rules: CapacityOptions,
}

impl Crowd {
    /// How many more fit on a changed copy.
    pub(super) fn room(&self, changed: &Cluster, most: usize) -> usize {
        place(&mut changed.clone(), most, &self.shape, self.rules).placed.len()
    }

    /// The remedy, if it makes room.
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

    /// What fits if nodes need not stay evacuable.
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

    /// The groups that are unallocable, each made allocatable.
    pub(super) fn opened(&self, unallocable: &[GroupIdx]) -> Vec<Remedy> {
        let open = |group: &GroupIdx| {
            let mut changed = self.filled.clone();
            changed.groups[group.at()].alloc_policy = AllocPolicy::Preferred;
            self.remedy(Action::AllocPolicy(*group), &changed)
        };
        unallocable.iter().filter_map(open).collect()
    }

    /// The group in which one more node makes the most room; of equals the first.
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
