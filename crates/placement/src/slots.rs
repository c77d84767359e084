//! Decides global N+1 for many placements at once by counting slots (HT-redundancy).
//!
//! A *slot* of a size is capacity for one instance of that size. Each group has a table with the number of
//! slots that each of its nodes has for each size among its instances. Two counts per node and size then give
//! most verdicts:
//!
//! - *Surely wanted:* the number of the node's instances that are at least as large. With fewer slots
//!   elsewhere, some instance is left over and the node can't be evacuated.
//! - *Possibly wanted:* the number of slots that can be gone, in the worst case, once the last instance of
//!   that size has its own. An instance of size A destroys at most ⌈A/B⌉ slots of size B, of memory or disk,
//!   whichever is more, and no more than one node has. It also goes to only one node, so the number of nodes
//!   that stop taking the size is at most the number of earlier instances. If each size has that many slots
//!   elsewhere, or more nodes that take it than there are earlier instances, the node can be evacuated
//!   whichever path the reference takes.
//!
//! A placement destroys slots only on the nodes that it changes. So the largest claim on each size tells
//! whether all other nodes still find their slots, and only scarce sizes need a look.

mod row;
mod witness;

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;

use cluster::{Cluster, GroupIdx, Instance, NodeIdx, Outcome};

use crate::displaced::{Displaced, Rescue};
use crate::evacuation::{Room, Size};

use row::{Row, Supply, destroyed, sizes, slots};
use witness::{Rooms, Witness};

/// Maximum number of entries of a table. Larger tables are dropped. The limit is low in tests so that few are
/// kept.
const MOST_ENTRIES: usize = if cfg!(test) { 24 } else { 1 << 22 };

/// Slots of a group's nodes, and the nodes that need them.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    group: GroupIdx,
    /// The group's nodes in scope, ascending. A position in this list is called a room.
    nodes: Vec<NodeIdx>,
    /// Free capacity of each room.
    rooms: Vec<Room>,
    /// By room: sizes of the node's instances in the order in which they get new nodes. `None` unless the
    /// node must stay evacuable and counting slots can decide.
    residents: Vec<Option<Vec<Size>>>,
    /// One row per size.
    rows: Vec<Row>,
    row_of: HashMap<Size, usize>,
    /// By room: proof that its node can be evacuated although counting can't decide. Computed on demand.
    witnesses: RefCell<Vec<Option<Witness>>>,
}

/// An instance to be placed, as a group sees it.
#[derive(Debug)]
pub(crate) struct Newcomer {
    size: Size,
    /// Whether counting can still decide about the node that receives it. It can't if the instance is
    /// forthcoming, for example: then it doesn't exist yet and needs no other node.
    countable: bool,
    /// Supply of its size in the group.
    supply: Supply,
    /// Rows that its placement can make scarce.
    critical: Vec<usize>,
}

/// Rooms of a group that a placement changed.
#[derive(Debug)]
pub(crate) struct Changed {
    rooms: Vec<(usize, Room)>,
    /// All rooms with these changes, computed on first use.
    all: OnceCell<Rooms>,
}

/// Result of counting for the nodes of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Count {
    /// Some node can't be evacuated.
    Stuck,
    /// All nodes can be evacuated except possibly these, for which counting can't decide.
    Unsettled(Vec<NodeIdx>),
}

/// Slots of all groups whose tables are kept.
#[derive(Clone, Debug)]
pub(crate) struct Tables(pub Vec<Slots>);

impl Tables {
    /// Slots of the nodes in `list`. Among these, the nodes in `tested` must stay evacuable. Both are
    /// ascending.
    pub fn new(cluster: &Cluster, list: &[NodeIdx], tested: &[NodeIdx]) -> Self {
        let mut groups: Vec<GroupIdx> = list.iter().map(|n| cluster.node(*n).group).collect();
        groups.sort_unstable();
        groups.dedup();
        Self(groups.into_iter().filter_map(|group| Slots::new(cluster, group, list, tested)).collect())
    }

    /// Whether counting can decide about this node.
    pub fn counts(&self, node: NodeIdx) -> bool {
        self.0.iter().any(|slots| slots.counts(node))
    }

    /// Records that nodes changed. `cluster` is the cluster *after* the change.
    pub fn update(&mut self, cluster: &Cluster, changed: &[NodeIdx], tested: &[NodeIdx]) {
        for node in changed {
            let is_tested = tested.binary_search(node).is_ok();
            self.0.retain_mut(|slots| slots.update(cluster, *node, is_tested).is_some());
        }
    }

    /// Prepares [`Self::prove`]. `cluster` is the cluster after the nodes `changed`.
    pub fn changed(&self, cluster: &Cluster, changed: &[NodeIdx]) -> Vec<Changed> {
        let of_group = |slots: &Slots| {
            let rooms =
                changed.iter().filter_map(|n| Some((slots.room_of(*n)?, room(cluster, *n)))).collect();
            Changed { rooms, all: OnceCell::new() }
        };
        self.0.iter().map(of_group).collect()
    }

    /// Whether a witness proves that a node can be evacuated after the changes.
    pub fn prove(&self, node: NodeIdx, changed: &[Changed]) -> bool {
        let proves = |(slots, changed): (&Slots, &Changed)| {
            slots.room_of(node).is_some_and(|own| slots.proves(own, changed))
        };
        self.0.iter().zip(changed).any(proves)
    }

    /// Whether some node can't be evacuated after this placement, and still couldn't be after further
    /// placements.
    pub fn stuck_after(&self, cluster: &Cluster, instance: &Instance, outcome: &Outcome) -> bool {
        let group = cluster.node(outcome.primary).group;
        self.0.iter().filter(|slots| slots.group == group).any(|slots| {
            let newcomer = slots.newcomer(cluster, instance, true);
            slots.after(cluster, &newcomer, outcome, true) == Count::Stuck
        })
    }

    /// Result of counting for the current state.
    pub fn standing(&self) -> Count {
        let mut unsettled = Vec::new();
        for slots in &self.0 {
            match slots.standing(true) {
                Count::Stuck => return Count::Stuck,
                Count::Unsettled(nodes) => unsettled.extend(nodes),
            }
        }
        Count::Unsettled(unsettled)
    }
}

impl Slots {
    /// Slots of `group`. Its nodes in `tested` must stay evacuable to those in `list`; both are ascending.
    /// Returns `None` if the table would be too large, or with exclusive storage, where disk size isn't the
    /// only constraint.
    pub fn new(cluster: &Cluster, group: GroupIdx, list: &[NodeIdx], tested: &[NodeIdx]) -> Option<Self> {
        let nodes: Vec<NodeIdx> = list.iter().copied().filter(|n| cluster.node(*n).group == group).collect();
        if nodes.iter().any(|n| cluster.node(*n).exclusive_storage) {
            return None;
        }
        let rooms = nodes.iter().map(|n| room(cluster, *n)).collect();
        let residents = vec![None; nodes.len()];
        let witnesses = RefCell::new(vec![None; nodes.len()]);
        let (rows, row_of) = (Vec::new(), HashMap::new());
        let mut slots = Self { group, nodes, rooms, residents, rows, row_of, witnesses };
        for room in 0..slots.nodes.len() {
            if tested.binary_search(&slots.nodes[room]).is_ok() {
                slots.count(cluster, room)?;
            }
        }
        slots.rows.iter_mut().for_each(Row::rank);
        Some(slots)
    }

    pub fn group(&self) -> GroupIdx {
        self.group
    }

    fn room_of(&self, node: NodeIdx) -> Option<usize> {
        self.nodes.binary_search(&node).ok()
    }

    /// Tested nodes that counting can decide about.
    fn counted(&self) -> impl Iterator<Item = NodeIdx> + '_ {
        self.nodes
            .iter()
            .zip(&self.residents)
            .filter(|(_, residents)| residents.is_some())
            .map(|(node, _)| *node)
    }

    /// Whether counting can decide about this node.
    pub fn counts(&self, node: NodeIdx) -> bool {
        self.nodes.binary_search(&node).is_ok_and(|room| self.residents[room].is_some())
    }

    /// Adds the claims of a node's instances if they can be counted. Returns `None` if the table grows too
    /// large.
    fn count(&mut self, cluster: &Cluster, room: usize) -> Option<()> {
        let residents = countable(cluster, self.group, self.nodes[room]);
        for (last, size) in sizes(residents.as_deref().unwrap_or_default()) {
            let row = self.row(&size)?;
            let row = &mut self.rows[row];
            let instances = residents.as_deref().unwrap_or_default();
            let claim = row.claim(room, instances, last);
            let at = row.claims.partition_point(|claim| claim.room < room);
            row.claims.insert(at, claim);
        }
        self.residents[room] = residents;
        Some(())
    }

    fn row(&mut self, size: &Size) -> Option<usize> {
        if let Some(row) = self.row_of.get(size) {
            return Some(*row);
        }
        let row = self.rows.len();
        if (row + 1) * self.nodes.len() > MOST_ENTRIES {
            return None;
        }
        self.rows.push(Row::new(*size, &self.rooms));
        self.row_of.insert(*size, row);
        Some(row)
    }

    /// Records that a node changed. `tested` is whether it must stay evacuable. Returns `None` if the table
    /// grows too large.
    pub fn update(&mut self, cluster: &Cluster, node: NodeIdx, tested: bool) -> Option<()> {
        let Ok(room) = self.nodes.binary_search(&node) else { return Some(()) };
        self.rooms[room] = self::room(cluster, node);
        for (at, witness) in self.witnesses.get_mut().iter_mut().enumerate() {
            if at == room || witness.as_ref().is_some_and(|witness| !witness.allows(room, &self.rooms[room]))
            {
                *witness = None;
            }
        }
        let mut stale = vec![false; self.rows.len()];
        for (row, stale) in self.rows.iter_mut().zip(&mut stale) {
            let outdated = row.set(room, &self.rooms[room]);
            let leaving = row.claims.binary_search_by_key(&room, |claim| claim.room);
            if let Ok(claim) = leaving {
                row.claims.remove(claim);
            }
            if outdated {
                row.claim_again(&self.residents);
            }
            *stale = outdated || leaving.is_ok();
        }
        self.residents[room] = None;
        if tested {
            self.count(cluster, room)?;
        }
        for (at, row) in self.rows.iter_mut().enumerate() {
            let stale = stale.get(at).is_none_or(|stale| *stale);
            if stale || row.claims.binary_search_by_key(&room, |claim| claim.room).is_ok() {
                row.rank();
            }
        }
        Some(())
    }

    /// Describes an instance to be placed as the group sees it. `is_new` is whether the same record leads to
    /// it when its node is evacuated.
    pub fn newcomer(&self, cluster: &Cluster, instance: &Instance, is_new: bool) -> Newcomer {
        let size = Size::of(instance);
        let supply = self.rooms.iter().map(|room| Supply::of(slots(room, &size))).sum();
        let nodes = instance.template.required_nodes() as i64;
        let gone = |row: &Row| Supply { slots: nodes * destroyed(&size, &row.size), rooms: nodes };
        let critical =
            self.rows.iter().enumerate().filter(|(_, row)| row.scarce(gone(row))).map(|(at, _)| at).collect();
        let countable = is_new
            && !instance.forthcoming
            && size.is_sensible()
            && match Rescue::of(instance.template) {
                Rescue::Failover => false,
                Rescue::Evacuate => true,
                Rescue::Recreate => cluster.group(self.group).policy.check(instance, false).is_ok(),
            };
        Newcomer { size, countable, supply, critical }
    }

    /// Result of counting for the current state. `sure` is whether verdicts against a node are reliable.
    pub fn standing(&self, sure: bool) -> Count {
        self.judge(0..self.rows.len(), usize::MAX, &[], sure)
    }

    /// Like [`Self::standing`], for placements on nodes in `nodes` outside the group, if there are any.
    pub fn standing_beside(&self, nodes: &[NodeIdx], sure: bool) -> Count {
        if nodes.len() == self.nodes.len() { Count::Unsettled(Vec::new()) } else { self.standing(sure) }
    }

    /// Result of counting after the placement of `newcomer`; see [`Self::standing`].
    pub fn after(&self, cluster: &Cluster, newcomer: &Newcomer, outcome: &Outcome, sure: bool) -> Count {
        if !newcomer.size.is_sensible() {
            return Count::Unsettled(self.counted().collect());
        }
        let changed: Vec<(usize, Room)> = outcome
            .changes()
            .iter()
            .filter_map(|change| {
                let room = self.nodes.binary_search(&change.node).ok()?;
                Some((room, room_of(cluster, change.node, &change.figures)))
            })
            .collect();
        let critical = newcomer.critical.iter().copied();
        let &[(room, _)] = changed.as_slice() else {
            let mut count = self.judge(critical, usize::MAX, &changed, false);
            if let Count::Unsettled(nodes) = &mut count {
                nodes.extend(changed.iter().map(|(at, _)| self.nodes[*at]).filter(|n| self.counts(*n)));
            }
            return count;
        };
        if self.residents[room].is_none() {
            return self.judge(critical, usize::MAX, &changed, sure);
        }
        if sure && self.surely_stuck_with(newcomer, room) {
            return Count::Stuck;
        }
        let mut count = self.judge(critical, room, &changed, sure);
        if let Count::Unsettled(nodes) = &mut count
            && !(sure && self.can_be_emptied_with(cluster, newcomer, room))
        {
            nodes.push(self.nodes[room]);
        }
        count
    }

    /// Checks all counted nodes except the one in room `but`, given the `changed` rooms.
    fn judge(
        &self,
        rows: impl Iterator<Item = usize>,
        but: usize,
        changed: &[(usize, Room)],
        sure: bool,
    ) -> Count {
        let mut unsettled: Vec<usize> = Vec::new();
        for row in rows.map(|row| &self.rows[row]) {
            let gone = |(at, room): &(usize, Room)| row.supply_in(*at) - Supply::of(slots(room, &row.size));
            let left = row.supply() - changed.iter().map(gone).sum();
            if sure && left.slots < row.sure.but_of(but) {
                return Count::Stuck;
            }
            unsettled.extend(row.unsettled(left, but));
        }
        unsettled.sort_unstable();
        unsettled.dedup();
        Count::Unsettled(unsettled.into_iter().map(|room| self.nodes[room]).collect())
    }

    /// Whether a witness proves that the node in room `own`, which hasn't `changed`, can be evacuated. A
    /// witness found with the changes is also valid without them if the changes only use up capacity.
    fn proves(&self, own: usize, changed: &Changed) -> bool {
        let Some(instances) = &self.residents[own] else { return false };
        let only_take = |(at, now): &(usize, Room)| {
            *at != own && now.memory <= self.rooms[*at].memory && now.disk <= self.rooms[*at].disk
        };
        if !changed.rooms.iter().all(only_take) {
            return false;
        }
        let allows = |witness: &Witness| changed.rooms.iter().all(|(at, now)| witness.allows(*at, now));
        let mut witnesses = self.witnesses.borrow_mut();
        if !witnesses[own].as_ref().is_some_and(allows) {
            let all = changed.all.get_or_init(|| {
                let mut rooms = self.rooms.clone();
                changed.rooms.iter().for_each(|(at, now)| rooms[*at] = *now);
                Rooms::new(rooms)
            });
            witnesses[own] = Witness::find(instances, all, own);
        }
        witnesses[own].is_some()
    }

    /// Whether the node in `room` surely can't be evacuated once it also has the newcomer.
    fn surely_stuck_with(&self, newcomer: &Newcomer, room: usize) -> bool {
        if !newcomer.countable {
            return false;
        }
        let size = &newcomer.size;
        let mut covering = 1;
        for row in &self.rows {
            let Ok(claim) = row.claims.binary_search_by_key(&room, |claim| claim.room) else { continue };
            let wanted = row.claims[claim].sure + i64::from(size.covers(&row.size));
            if wanted > row.total - i64::from(row.slots[room]) {
                return true;
            }
            if row.size.covers(size) {
                covering = covering.max(row.claims[claim].sure + 1);
            }
        }
        covering > newcomer.supply.slots - slots(&self.rooms[room], size)
    }

    /// Whether the node in `room` can surely be evacuated. In `cluster`, it already has the newcomer.
    fn can_be_emptied_with(&self, cluster: &Cluster, newcomer: &Newcomer, room: usize) -> bool {
        if !newcomer.countable {
            return false;
        }
        let Some(instances) = countable(cluster, self.group, self.nodes[room]) else { return false };
        sizes(&instances).all(|(last, size)| match self.row_of.get(&size).map(|row| &self.rows[*row]) {
            Some(row) => row.claim(room, &instances, last).is_met(row.supply() - row.supply_in(room)),
            None if size == newcomer.size => {
                let left = newcomer.supply - Supply::of(slots(&self.rooms[room], &size));
                let gone: i64 = instances[..last].iter().map(|other| destroyed(other, &size)).sum();
                left.slots > gone || left.rooms > last as i64
            }
            None => false,
        })
    }
}

fn room(cluster: &Cluster, node: NodeIdx) -> Room {
    room_of(cluster, node, cluster.figures(node))
}

fn room_of(cluster: &Cluster, node: NodeIdx, figures: &cluster::Figures) -> Room {
    Room { memory: figures.unallocated_memory(cluster.node(node)), disk: figures.free_disk, willing: true }
}

/// Sizes of a node's instances in the order in which they get new nodes. `None` unless nothing but sizes
/// matters: no instance fails over, and each can go to any node of a group without exclusive storage.
fn countable(cluster: &Cluster, group: GroupIdx, node: NodeIdx) -> Option<Vec<Size>> {
    let policy = &cluster.group(group).policy;
    let free_to_migrate = cluster.node(node).migration.tags.is_empty();
    let mut displaced = Displaced::default();
    // The reference processes the latest instance first.
    for &index in cluster.state(node).primaries.iter().rev() {
        let instance = cluster.instance(index);
        let goes_anywhere = match Rescue::of(instance.template) {
            Rescue::Failover => false,
            Rescue::Evacuate => free_to_migrate,
            Rescue::Recreate => policy.check(instance, false).is_ok(),
        };
        if !goes_anywhere || !Size::of(instance).is_sensible() {
            return None;
        }
        displaced.add(index, instance);
    }
    Some(displaced.in_order())
}
