//! Checks whether groups can be down as planned, without the graph and the state that produced the plan.

use cluster::{Cluster, DiskTemplate, Figures, Instance, InstanceIdx, NodeIdx};
use thiserror::Error;

use super::group::{RebootGroup, Relocation};
use super::partition::Evacuation;

/// Reason why a set of groups is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Violation {
    /// A node to reboot is in no group or in several, or another node is in a group.
    #[error("node {0:?} is not in exactly one group")]
    Membership(NodeIdx),
    /// Both nodes of a mirrored instance would be down.
    #[error("both nodes of instance {0:?} are in one group")]
    BothNodes(InstanceIdx),
    /// Two nodes of a group would fail over to the same node.
    #[error("nodes {0:?} and {1:?} of one group fail over to the same node")]
    SharedSecondary(NodeIdx, NodeIdx),
    /// An instance stays on a node that it must leave, or moves to a node that it can't move to.
    #[error("instance {0:?} is not taken to safety")]
    Stranded(InstanceIdx),
    /// A node receives more than its capacity.
    #[error("node {0:?} has no room for the instances that it receives")]
    NoRoom(NodeIdx),
}

/// Input of [`verify`].
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    /// Nodes to reboot.
    pub nodes: &'a [NodeIdx],
    /// Instances are shut down, so nothing fails over.
    pub instances_down: bool,
    /// Instances that must move.
    pub evacuation: Evacuation,
}

/// Checks each group on its own, because all instances return before the next group goes down.
pub fn verify(cluster: &Cluster, rules: &Rules<'_>, groups: &[RebootGroup]) -> Result<(), Violation> {
    let mut groups_of = vec![0; cluster.nodes.len()];
    for node in groups.iter().flat_map(|group| &group.nodes) {
        groups_of[node.at()] += 1;
    }
    let mut wanted = vec![0; cluster.nodes.len()];
    for node in rules.nodes {
        wanted[node.at()] = 1;
    }
    if let Some(node) = cluster.node_indices().find(|node| groups_of[node.at()] != wanted[node.at()]) {
        return Err(Violation::Membership(node));
    }
    groups.iter().try_for_each(|group| Outage::new(cluster, group).verify(rules, &group.relocations))
}

/// A group while it is down.
struct Outage<'a> {
    cluster: &'a Cluster,
    down: Vec<bool>,
}

impl<'a> Outage<'a> {
    fn new(cluster: &'a Cluster, group: &RebootGroup) -> Self {
        let mut down = vec![false; cluster.nodes.len()];
        for node in &group.nodes {
            down[node.at()] = true;
        }
        Self { cluster, down }
    }

    fn verify(&self, rules: &Rules<'_>, relocations: &[Relocation]) -> Result<(), Violation> {
        self.mirrors(rules.instances_down)?;
        for index in self.cluster.instance_indices() {
            if !self.cluster.instance(index).forthcoming {
                let listed = relocations.binary_search_by_key(&index, |relocation| relocation.instance);
                let to = listed.ok().map(|position| relocations[position].to);
                if !self.safe(index, to, rules) {
                    return Err(Violation::Stranded(index));
                }
            }
        }
        self.room(relocations)
    }

    fn is_down(&self, node: NodeIdx) -> bool {
        self.down[node.at()]
    }

    /// No mirrored instance loses both nodes, and no node takes over from two nodes at once.
    fn mirrors(&self, instances_down: bool) -> Result<(), Violation> {
        let mut relieved: Vec<Option<NodeIdx>> = vec![None; self.cluster.nodes.len()];
        for index in self.cluster.instance_indices() {
            let instance = self.cluster.instance(index);
            let Some(secondary) = instance.secondary.filter(|_| self.is_down(instance.primary)) else {
                continue;
            };
            if instance.template == DiskTemplate::Drbd && self.is_down(secondary) {
                return Err(Violation::BothNodes(index));
            }
            if !instance.forthcoming && !instances_down {
                let first = *relieved[secondary.at()].get_or_insert(instance.primary);
                if first != instance.primary {
                    return Err(Violation::SharedSecondary(first, instance.primary));
                }
            }
        }
        Ok(())
    }

    /// Whether the instance is on allowed nodes after its move to `to`. A pinned instance must stay. If it
    /// runs, its primary must not be down, and if mirrors must be moved, neither must its secondary.
    fn safe(&self, index: InstanceIdx, to: Option<(NodeIdx, Option<NodeIdx>)>, rules: &Rules<'_>) -> bool {
        let (instance, must) = (self.cluster.instance(index), rules.evacuation);
        if instance.is_pinned() {
            let stops = self.is_down(instance.primary) && instance.uses_memory();
            let loses_mirror = must.secondaries && instance.secondary.is_some_and(|node| self.is_down(node));
            return to.is_none() && (rules.instances_down || !(stops || loses_mirror));
        }
        let refuge = |node: NodeIdx, left: NodeIdx| {
            let (to, from) = (self.cluster.node(node), self.cluster.node(left));
            !self.is_down(node) && to.online() && to.group == from.group
        };
        let primary_down = self.is_down(instance.primary);
        if instance.template != DiskTemplate::Drbd {
            let stays = !primary_down || !must.non_redundant;
            return to.map_or(stays, |(primary, _)| refuge(primary, instance.primary));
        }
        let Some(secondary) = instance.secondary else { return !(primary_down && must.secondaries) };
        let (remaining, leaving) = match (primary_down, self.is_down(secondary)) {
            (true, _) => (secondary, instance.primary),
            (_, true) => (instance.primary, secondary),
            // Both nodes stay up, so the move isn't necessary. Either node can run the instance.
            _ if to.is_some_and(|(primary, _)| primary == secondary) => (secondary, instance.primary),
            _ => (instance.primary, secondary),
        };
        match to {
            None => !must.secondaries || !self.is_down(leaving),
            Some((primary, mirror)) => {
                primary == remaining && mirror.is_some_and(|m| m != primary && refuge(m, leaving))
            }
        }
    }

    /// Whether every node that stays up has the capacity for the instances it receives.
    fn room(&self, relocations: &[Relocation]) -> Result<(), Violation> {
        let mut ledgers: Vec<Ledger> = vec![Ledger::default(); self.cluster.nodes.len()];
        for relocation in relocations {
            let instance = self.cluster.instance(relocation.instance);
            let (from, to) = (relocation.from, relocation.to);
            if from.0 != to.0 {
                ledgers[from.0.at()].primary(instance, -1);
                ledgers[to.0.at()].primary(instance, 1);
            }
            if from.1 != to.1 {
                from.1.iter().for_each(|secondary| ledgers[secondary.at()].storage(instance, -1));
                to.1.iter().for_each(|secondary| ledgers[secondary.at()].storage(instance, 1));
            }
        }
        for node in self.cluster.node_indices().filter(|node| !self.is_down(*node)) {
            let (record, figures) = (self.cluster.node(node), self.cluster.figures(node));
            let ledger = ledgers[node.at()];
            let memory = ledger.primaries == 0 || ledger.memory < figures.unallocated_memory(record);
            if !memory || !ledger.fits_storage(figures, record.exclusive_storage) {
                return Err(Violation::NoRoom(node));
            }
        }
        Ok(())
    }
}

/// Resources that a node receives, minus the resources that leave it.
#[derive(Clone, Copy, Debug, Default)]
struct Ledger {
    /// Number of received primaries.
    primaries: usize,
    memory: i64,
    /// Number of received instances with disks on the node.
    stored: usize,
    disk: i64,
    spindles: i64,
    unknown_spindles: bool,
}

impl Ledger {
    fn primary(&mut self, instance: &Instance, sign: i64) {
        self.primaries += usize::from(sign > 0);
        self.memory += sign * if instance.uses_memory() { instance.memory } else { 0 };
        self.storage(instance, sign);
    }

    fn storage(&mut self, instance: &Instance, sign: i64) {
        let is_local = instance.template.local_storage();
        // Figures count spindles of all templates, but only local disks are refused for a lack of spindles.
        if is_local || sign < 0 {
            self.spindles += sign * instance.total_spindles().unwrap_or(0);
        }
        if is_local {
            self.stored += usize::from(sign > 0);
            self.disk += sign * instance.disk;
            self.unknown_spindles |= sign > 0 && instance.total_spindles().is_none();
        }
    }

    fn fits_storage(&self, figures: &Figures, exclusive: bool) -> bool {
        // A node that becomes primary of an instance it mirrored receives no new disks.
        let spindles = !exclusive || (!self.unknown_spindles && self.spindles <= figures.free_spindles);
        self.stored == 0 || (self.disk < figures.free_disk && spindles)
    }
}
