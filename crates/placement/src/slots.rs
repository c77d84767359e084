//! Global N+1 for many placements at once, told by counting slots (HT-redundancy).
//!
//! A *slot* of a size is room for one instance of that size. A group keeps a table of how many slots of each size
//! its instances have on each of its nodes. Two counts per node and size then tell most verdicts:
//!
//! - *Surely wanted:* so many instances of the node are at least as large. With fewer slots elsewhere, some
//!   instance is left over, and the node cannot be emptied.
//! - *Possibly wanted:* so many slots can be gone, at worst, when the last instance of that size has got its own. An
//!   instance of size A destroys at most ⌈A/B⌉ slots of size B, of memory or disk, whichever is more, and no more than
//!   one node has. And it goes to one node: so many nodes can cease to take the size as there are instances before.
//!   With as many slots, or as many nodes that take it, elsewhere for each size, the node can be emptied whatever
//!   path the reference takes.
//!
//! A placement destroys slots on the nodes that it changes only. So whether all other nodes still find theirs can
//! be asked of the greatest claim on each size, and only sizes that are scarce need be looked at.

mod row;
mod witness;

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;

use cluster::{Cluster, GroupIdx, Instance, NodeIdx, Outcome};

use crate::displaced::{Displaced, Rescue};
use crate::evacuation::{Room, Size};

use row::{Row, Supply, destroyed, sizes, slots};
use witness::{Rooms, Witness};

/// Larger tables are not kept. In tests few are.
const MOST_ENTRIES: usize = if cfg!(test) { 24 } else { 1 << 22 };

/// The slots of a group's nodes, and which of its nodes need them.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    group: GroupIdx,
    /// The group's nodes at hand, ascending; positions among them are called rooms.
    nodes: Vec<NodeIdx>,
    /// What is free on them.
    rooms: Vec<Room>,
    /// By room: the sizes of the node's instances in the order in which they get new nodes, if it must stay
    /// evacuable and counting slots can tell.
    residents: Vec<Option<Vec<Size>>>,
    /// One row per size.
    rows: Vec<Row>,
    row_of: HashMap<Size, usize>,
    /// By room: why its node can be emptied though counting cannot tell. Found when asked for.
    witnesses: RefCell<Vec<Option<Witness>>>,
}

/// An instance to be placed, as a group sees it.
#[derive(Debug)]
pub(crate) struct Newcomer {
    size: Size,
    /// Whether its node can be counted with it; not if it needs no other node because it doesn't exist yet.
    countable: bool,
    /// What there is of its size in the group.
    supply: Supply,
    /// Rows that its placement can make scarce.
    critical: Vec<usize>,
}

/// Rooms of a group that a placement changed.
#[derive(Debug)]
pub(crate) struct Changed {
    rooms: Vec<(usize, Room)>,
    /// All rooms with these changes, once somebody asks for them.
    all: OnceCell<Rooms>,
}

/// What counting says about the nodes of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Count {
    /// Some node cannot be emptied.
    Stuck,
    /// All can be emptied but for these, which counting cannot tell.
    Unsettled(Vec<NodeIdx>),
}

/// The slots of all groups whose table is kept.
#[derive(Clone, Debug)]
pub(crate) struct Tables(pub Vec<Slots>);

impl Tables {
    /// The slots of the nodes in `list`; of these, the nodes `tested` must stay evacuable. Both ascending.
    pub fn new(cluster: &Cluster, list: &[NodeIdx], tested: &[NodeIdx]) -> Self {
        let mut groups: Vec<GroupIdx> = list.iter().map(|n| cluster.node(*n).group).collect();
        groups.sort_unstable();
        groups.dedup();
        Self(groups.into_iter().filter_map(|group| Slots::new(cluster, group, list, tested)).collect())
    }

    /// Whether counting can tell about that node.
    pub fn counts(&self, node: NodeIdx) -> bool {
        self.0.iter().any(|slots| slots.counts(node))
    }

    /// Takes over that nodes changed; `cluster` is the cluster *after* it.
    pub fn update(&mut self, cluster: &Cluster, changed: &[NodeIdx], tested: &[NodeIdx]) {
        for node in changed {
            let is_tested = tested.binary_search(node).is_ok();
            self.0.retain_mut(|slots| slots.update(cluster, *node, is_tested).is_some());
        }
    }

    /// Prepares [`Self::prove`]; `cluster` is the cluster after the nodes `changed`.
    pub fn changed(&self, cluster: &Cluster, changed: &[NodeIdx]) -> Vec<Changed> {
        let of_group = |slots: &Slots| {
            let rooms =
                changed.iter().filter_map(|n| Some((slots.room_of(*n)?, room(cluster, *n)))).collect();
            Changed { rooms, all: OnceCell::new() }
        };
        self.0.iter().map(of_group).collect()
    }

    /// Whether a witness says that a node can be emptied, after changes.
    pub fn prove(&self, node: NodeIdx, changed: &[Changed]) -> bool {
        let proves = |(slots, changed): (&Slots, &Changed)| {
            slots.room_of(node).is_some_and(|own| slots.proves(own, changed))
        };
        self.0.iter().zip(changed).any(proves)
    }

    /// Whether some node cannot be emptied once an instance is placed so, and could not even if more were placed.
    pub fn stuck_after(&self, cluster: &Cluster, instance: &Instance, outcome: &Outcome) -> bool {
        let group = cluster.node(outcome.primary).group;
        self.0.iter().filter(|slots| slots.group == group).any(|slots| {
            let newcomer = slots.newcomer(cluster, instance, true);
            slots.after(cluster, &newcomer, outcome, true) == Count::Stuck
        })
    }

    /// What counting says of things as they are.
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
    /// The slots of `group`, of whose nodes `tested` must stay evacuable to those in `list`, both ascending. None if
    /// the table would be too large, or with exclusive storage, where disks are not all that matters.
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

    /// The group.
    pub fn group(&self) -> GroupIdx {
        self.group
    }

    fn room_of(&self, node: NodeIdx) -> Option<usize> {
        self.nodes.binary_search(&node).ok()
    }

    /// The tested nodes that counting can tell about.
    fn counted(&self) -> impl Iterator<Item = NodeIdx> + '_ {
        self.nodes
            .iter()
            .zip(&self.residents)
            .filter(|(_, residents)| residents.is_some())
            .map(|(node, _)| *node)
    }

    /// Whether counting can tell about that node.
    pub fn counts(&self, node: NodeIdx) -> bool {
        self.nodes.binary_search(&node).is_ok_and(|room| self.residents[room].is_some())
    }

    /// Takes the claims of a node's instances in, if they can be counted; fails if the table grows too large.
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

    /// Takes over that a node changed; `tested` says whether it must stay evacuable. Fails if the table grows too
    /// large.
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

    /// How the group sees an instance to be placed. `is_new` is whether it finds another node by the same record.
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

    /// What counting says of things as they are. `sure` is whether verdicts against a node can be relied on.
    pub fn standing(&self, sure: bool) -> Count {
        self.judge(0..self.rows.len(), usize::MAX, &[], sure)
    }

    /// As [`Self::standing`], for placements on those of `nodes` that are not the group's, if there are any.
    pub fn standing_beside(&self, nodes: &[NodeIdx], sure: bool) -> Count {
        if nodes.len() == self.nodes.len() { Count::Unsettled(Vec::new()) } else { self.standing(sure) }
    }

    /// What counting says once `newcomer` was placed so; see [`Self::standing`].
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

    /// Looks at all counted nodes but the one in room `but`, when rooms have `changed` so.
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

    /// Whether a witness says that the node in room `own` can be emptied, which has not `changed`. A witness found
    /// with the changes is good without them as well if they only take room.
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

    /// The node in `room` cannot be emptied once the newcomer is there as well.
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

    /// The node in `room` can be emptied; the newcomer is there already as far as `cluster` goes.
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

/// The sizes of a node's instances in the order in which they get new nodes, if that is all that matters: none
/// fails over, and each may go to any node of a group without exclusive storage.
fn countable(cluster: &Cluster, group: GroupIdx, node: NodeIdx) -> Option<Vec<Size>> {
    let policy = &cluster.group(group).policy;
    let free_to_migrate = cluster.node(node).migration.tags.is_empty();
    let mut displaced = Displaced::default();
    // The reference goes through the latest first.
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
