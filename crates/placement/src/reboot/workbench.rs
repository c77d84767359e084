//! A cluster on which relocations are tried and rolled back.
//!
//! It tracks only the inputs of forced placement, which fails if memory, disk or spindles run out and ignores
//! reserves and tags. So reserves aren't updated here.

use cluster::{Cluster, DiskTemplate, Figures, InstanceIdx, NodeIdx, TagEffect};

use super::group::Relocation;
use crate::Search;

/// Record stored under a node's index.
#[derive(Clone, Debug)]
struct Slot {
    /// Node that the record describes. It can differ from the index; see [`Workbench::replace_secondary`].
    owner: NodeIdx,
    figures: Figures,
    /// Most recent last.
    primaries: Vec<InstanceIdx>,
    /// Most recent last.
    secondaries: Vec<InstanceIdx>,
}

/// Primary and secondary.
type Places = (NodeIdx, Option<NodeIdx>);

#[derive(Debug)]
enum Before {
    Slot(NodeIdx, Box<Slot>),
    Places(InstanceIdx, Places),
}

/// Instances to clear from a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Primaries without a mirror.
    NonRedundantPrimary,
    /// Mirrors on the node.
    Secondary,
}

/// A point in the journal to roll back to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark(usize);

/// State of a cluster while relocations are planned.
#[derive(Debug)]
pub(super) struct Workbench<'a> {
    pub cluster: &'a Cluster,
    slots: Vec<Slot>,
    places: Vec<Places>,
    journal: Vec<Before>,
    /// Online nodes of each group.
    online: Vec<Vec<NodeIdx>>,
    /// Whether each node can receive instances.
    open: Vec<bool>,
    search: Search,
}

impl<'a> Workbench<'a> {
    pub fn new(cluster: &'a Cluster, search: Search) -> Self {
        let slot = |owner: NodeIdx| {
            let state = cluster.state(owner);
            Slot {
                owner,
                figures: state.figures,
                primaries: state.primaries.clone(),
                secondaries: state.secondaries.clone(),
            }
        };
        let online = |n: &NodeIdx| cluster.node(*n).online();
        Self {
            cluster,
            slots: cluster.node_indices().map(slot).collect(),
            places: cluster.instances.iter().map(|i| (i.primary, i.secondary)).collect(),
            journal: Vec::new(),
            online: cluster
                .group_indices()
                .map(|g| cluster.nodes_of(g).into_iter().filter(online).collect())
                .collect(),
            open: cluster.nodes.iter().map(cluster::Node::online).collect(),
            search,
        }
    }

    pub fn mark(&self) -> Mark {
        Mark(self.journal.len())
    }

    /// Undoes all changes since `to`, except which nodes are open.
    pub fn roll_back(&mut self, to: Mark) {
        while self.journal.len() > to.0 {
            match self.journal.pop() {
                Some(Before::Slot(node, slot)) => self.slots[node.at()] = *slot,
                Some(Before::Places(instance, places)) => self.places[instance.at()] = places,
                None => return,
            }
        }
    }

    /// Lets every online node receive instances.
    pub fn open_all(&mut self) {
        for (open, node) in self.open.iter_mut().zip(&self.cluster.nodes) {
            *open = node.online();
        }
    }

    /// Stops a node from receiving instances.
    pub fn close(&mut self, node: NodeIdx) {
        self.open[node.at()] = false;
    }

    /// Lets a node receive instances again if it is online.
    pub fn reopen(&mut self, node: NodeIdx) {
        self.open[node.at()] = self.cluster.node(node).online();
    }

    /// Relocates all instances with `role` on the node, except pinned ones, and returns whether they all fit
    /// elsewhere. The node itself must be closed.
    pub fn clear(&mut self, node: NodeIdx, role: Role) -> bool {
        let slot = &self.slots[node.at()];
        let group = self.cluster.node(slot.owner).group;
        let mut instances: Vec<InstanceIdx> = match role {
            Role::NonRedundantPrimary => {
                slot.primaries.iter().rev().copied().filter(|i| !self.is_mirrored(*i)).collect()
            }
            Role::Secondary => slot.secondaries.iter().rev().copied().collect(),
        };
        instances.retain(|i| !self.cluster.instance(*i).is_pinned());
        let candidates = std::mem::take(&mut self.online[group.at()]);
        let cleared = instances.into_iter().all(|instance| {
            candidates.iter().any(|&target| {
                self.open[target.at()]
                    && match role {
                        Role::NonRedundantPrimary => self.move_primary(instance, target),
                        Role::Secondary => self.replace_secondary(instance, target),
                    }
            })
        });
        self.online[group.at()] = candidates;
        cleared
    }

    fn is_mirrored(&self, instance: InstanceIdx) -> bool {
        self.cluster.instance(instance).template == DiskTemplate::Drbd
    }

    /// Moves an instance without a mirror. Returns whether it fits on the target.
    fn move_primary(&mut self, index: InstanceIdx, target: NodeIdx) -> bool {
        let demand = self.cluster.instance(index).demand();
        let slot = &self.slots[target.at()];
        let node = self.cluster.node(slot.owner);
        let Ok(figures) = slot.figures.add_primary(node, &demand, TagEffect::default(), 0, true) else {
            return false;
        };
        let (primary, secondary) = self.places[index.at()];
        self.remove_primary(primary, index);
        let slot = self.change(target);
        slot.figures = figures;
        slot.primaries.push(index);
        self.put(index, (target, secondary));
        true
    }

    /// Swaps primary and secondary of every mirrored instance that runs on `nodes`, and returns whether that
    /// is possible. No instance migrates twice, even if both its nodes are among `nodes`. Pinned instances
    /// stay.
    pub fn migrate_all(&mut self, nodes: &[NodeIdx]) -> bool {
        let primaries = nodes.iter().flat_map(|node| self.slots[node.at()].primaries.iter().rev().copied());
        let migrates = |i: &InstanceIdx| self.is_mirrored(*i) && !self.cluster.instance(*i).is_pinned();
        let instances: Vec<InstanceIdx> = primaries.filter(migrates).collect();
        instances.into_iter().all(|instance| self.migrate(instance))
    }

    fn migrate(&mut self, index: InstanceIdx) -> bool {
        let (primary, Some(secondary)) = self.places[index.at()] else { return false };
        let demand = self.cluster.instance(index).demand();
        self.remove_primary(primary, index);
        self.remove_secondary(secondary, index);
        let slot = &self.slots[secondary.at()];
        let node = self.cluster.node(slot.owner);
        let Ok(figures) = slot.figures.add_primary(node, &demand, TagEffect::default(), 0, true) else {
            return false;
        };
        let slot = self.change(secondary);
        slot.figures = figures;
        slot.primaries.push(index);
        let slot = &self.slots[primary.at()];
        let node = self.cluster.node(slot.owner);
        let Ok(figures) = slot.figures.add_secondary(node, &demand, 0, true, false) else { return false };
        let slot = self.change(primary);
        slot.figures = figures;
        slot.secondaries.push(index);
        self.put(index, (secondary, Some(primary)));
        true
    }

    /// Moves an instance's mirror. Returns whether the target can take it.
    ///
    /// The reference stores the record of the *primary* under the old secondary's index, without the mirror.
    /// That node receives nothing anymore, but in unusual clusters the record is read again, and instances
    /// are moved that are on another node. The exact search reproduces this.
    fn replace_secondary(&mut self, index: InstanceIdx, target: NodeIdx) -> bool {
        let (primary, Some(secondary)) = self.places[index.at()] else { return false };
        if target == primary {
            return false;
        }
        let demand = self.cluster.instance(index).demand();
        let slot = &self.slots[target.at()];
        let node = self.cluster.node(slot.owner);
        let Ok(figures) = slot.figures.add_secondary(node, &demand, 0, true, false) else { return false };
        if self.search == Search::Exact {
            let of_primary = self.slots[primary.at()].clone();
            *self.change(secondary) = of_primary;
        }
        self.remove_secondary(secondary, index);
        let slot = self.change(target);
        slot.figures = figures;
        slot.secondaries.push(index);
        self.put(index, (primary, Some(target)));
        true
    }

    fn remove_primary(&mut self, from: NodeIdx, index: InstanceIdx) {
        let demand = self.cluster.instance(index).demand();
        let node = self.cluster.node(self.slots[from.at()].owner);
        let slot = self.change(from);
        slot.figures = slot.figures.remove_primary(node, &demand, 0, 0);
        remove_most_recent(&mut slot.primaries, index);
    }

    fn remove_secondary(&mut self, from: NodeIdx, index: InstanceIdx) {
        let demand = self.cluster.instance(index).demand();
        let node = self.cluster.node(self.slots[from.at()].owner);
        let slot = self.change(from);
        slot.figures = slot.figures.remove_secondary(node, &demand, slot.figures.reserved_memory);
        remove_most_recent(&mut slot.secondaries, index);
    }

    /// Slot for modification. Its previous state is added to the journal.
    fn change(&mut self, node: NodeIdx) -> &mut Slot {
        self.journal.push(Before::Slot(node, Box::new(self.slots[node.at()].clone())));
        &mut self.slots[node.at()]
    }

    fn put(&mut self, index: InstanceIdx, places: Places) {
        let before = std::mem::replace(&mut self.places[index.at()], places);
        self.journal.push(Before::Places(index, before));
    }

    /// Instances that are on other nodes than in the cluster, ascending. Instances that only swapped primary
    /// and secondary are left out.
    pub fn relocations(&self) -> Vec<Relocation> {
        let moved = self.journal.iter().filter_map(|before| match before {
            Before::Places(index, _) => Some(*index),
            Before::Slot(..) => None,
        });
        let mut moved: Vec<InstanceIdx> = moved.collect();
        moved.sort_unstable();
        moved.dedup();
        moved.into_iter().filter_map(|index| self.relocation(index)).collect()
    }

    fn relocation(&self, index: InstanceIdx) -> Option<Relocation> {
        let instance = self.cluster.instance(index);
        let mirrored = self.is_mirrored(index);
        let from = (instance.primary, instance.secondary.filter(|_| mirrored));
        let (primary, secondary) = self.places[index.at()];
        let to = (primary, secondary.filter(|_| mirrored));
        let swapped = (to.1, Some(to.0)) == (Some(from.0), from.1);
        if to == from || swapped {
            return None;
        }
        let owner = |node: NodeIdx| self.slots[node.at()].owner;
        Some(Relocation { instance: index, from, to: (owner(to.0), to.1.map(owner)) })
    }
}

fn remove_most_recent(list: &mut Vec<InstanceIdx>, instance: InstanceIdx) {
    if let Some(position) = list.iter().rposition(|i| *i == instance) {
        list.remove(position);
    }
}
