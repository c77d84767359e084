//! Global N+1 for many placements at once, told by counting slots (algorithms spec §5.1).
//!
//! A *slot* of a size is room for one instance of that size. A group keeps a table of how many slots of each size
//! its instances have on each of its nodes. Two counts per node and size then tell most verdicts:
//!
//! - *Surely wanted:* so many instances of the node are at least as large. With fewer slots elsewhere, some
//!   instance is left over, and the node cannot be emptied.
//! - *Possibly wanted:* so many slots can be gone, at worst, when the last instance of that size has got its own. An
//!   instance of size A destroys at most ⌈A/B⌉ slots of size B, of memory or disk, whichever is more, and no more than
//!   one node has. With as many slots elsewhere for each size, the node can be emptied whatever path the reference takes.
//!
//! A placement destroys slots on the nodes that it changes only. So whether all other nodes still find theirs can
//! be asked of the greatest claim on each size, and only sizes that are scarce need be looked at.

use std::collections::HashMap;

use cluster::{Cluster, GroupIdx, Instance, NodeIdx, Outcome};

use crate::homeless::{Homeless, Rescue};
use crate::rehousing::{Room, Size, slots_in};

/// More slots than this on one node count as so many; more instances than that are on no node.
const MOST_SLOTS: i64 = 1 << 20;
/// Larger tables are not kept.
const MOST_ENTRIES: usize = 1 << 22;

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
}

/// The slots of one size.
#[derive(Clone, Debug)]
struct Row {
    size: Size,
    /// By room.
    slots: Vec<u32>,
    total: i64,
    /// The most in one room.
    most: u32,
    /// What the instances of counted nodes want, by ascending room.
    claims: Vec<Claim>,
    /// The greatest claims to what is elsewhere, sure and possible ones.
    sure: Greatest,
    possible: Greatest,
}

/// How many slots of a size the instances of a lost node want.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Claim {
    room: usize,
    sure: i64,
    possible: i64,
}

/// The greatest of some numbers, and the greatest of those of other rooms.
#[derive(Clone, Copy, Debug)]
struct Greatest {
    value: i64,
    room: usize,
    second: i64,
}

impl Greatest {
    const NONE: Self = Self { value: i64::MIN / 2, room: usize::MAX, second: i64::MIN / 2 };

    fn take(&mut self, value: i64, room: usize) {
        if value > self.value {
            *self = Self { value, room, second: self.value };
        } else {
            self.second = self.second.max(value);
        }
    }

    /// The greatest that is not of that room.
    fn but_of(&self, room: usize) -> i64 {
        if room == self.room { self.second } else { self.value }
    }
}

impl Row {
    fn new(size: Size, rooms: &[Room]) -> Self {
        let slots: Vec<u32> = rooms.iter().map(|room| slots(room, &size) as u32).collect();
        let total = slots.iter().copied().map(i64::from).sum();
        let most = slots.iter().copied().max().unwrap_or(0);
        Self { size, slots, total, most, claims: Vec::new(), sure: Greatest::NONE, possible: Greatest::NONE }
    }

    /// How many slots can be gone when an instance has got its own, after those before it.
    fn possible(&self, before: &[Size]) -> i64 {
        let most = i64::from(self.most);
        1 + before.iter().map(|other| destroyed(other, &self.size).min(most)).sum::<i64>()
    }

    /// Takes over what a room has now; returns whether claims must be made anew.
    fn set(&mut self, at: usize, room: &Room) -> bool {
        let (old, now) = (self.slots[at], slots(room, &self.size) as u32);
        self.slots[at] = now;
        self.total += i64::from(now) - i64::from(old);
        let unchanged = now <= self.most && (old < self.most || self.slots.contains(&self.most));
        if !unchanged {
            self.most = self.slots.iter().copied().max().unwrap_or(0);
        }
        !unchanged
    }

    /// Makes the possible claims anew, after the most slots in one room changed.
    fn claim_anew(&mut self, residents: &[Option<Vec<Size>>]) {
        let mut claims = std::mem::take(&mut self.claims);
        for claim in &mut claims {
            let instances = residents[claim.room].as_deref().unwrap_or_default();
            let last = instances.iter().rposition(|size| *size == self.size).unwrap_or(0);
            claim.possible = self.possible(&instances[..last]);
        }
        self.claims = claims;
    }

    /// Finds the greatest claims.
    fn rank(&mut self) {
        (self.sure, self.possible) = (Greatest::NONE, Greatest::NONE);
        for claim in &self.claims {
            // What is on the lost node itself is no use.
            let own = i64::from(self.slots[claim.room]);
            self.sure.take(own + claim.sure, claim.room);
            self.possible.take(own + claim.possible, claim.room);
        }
    }

    /// Rooms other than `room` whose instances may want more than `left` slots in total.
    fn unsettled(&self, left: i64, room: usize) -> impl Iterator<Item = usize> + '_ {
        let wants_more = move |claim: &&Claim| {
            claim.room != room && i64::from(self.slots[claim.room]) + claim.possible > left
        };
        self.claims.iter().filter(wants_more).map(|claim| claim.room)
    }
}

fn slots(room: &Room, size: &Size) -> i64 {
    slots_in(room, size).min(MOST_SLOTS)
}

/// How many slots of size `other` an instance of size `taken` destroys at most.
fn destroyed(taken: &Size, other: &Size) -> i64 {
    let by = |taken: i64, other: i64| if other == 0 { 0 } else { (taken + other - 1) / other };
    let by_disk = other.disk.map_or(0, |wanted| by(taken.disk.unwrap_or(0), wanted));
    by(taken.memory, other.memory).max(by_disk).min(MOST_SLOTS)
}

/// The sizes that occur, and where each occurs last.
fn sizes(instances: &[Size]) -> impl Iterator<Item = (usize, Size)> + '_ {
    let last_of_size = |(position, size): &(usize, &Size)| !instances[position + 1..].contains(size);
    instances.iter().enumerate().filter(last_of_size).map(|(position, size)| (position, *size))
}

/// How many slots of a size instances surely want.
fn sure(instances: &[Size], size: &Size) -> i64 {
    instances.iter().filter(|other| other.covers(size)).count() as i64
}

/// An instance to be placed, as a group sees it.
#[derive(Debug)]
pub(crate) struct Newcomer {
    size: Size,
    /// Whether the group's nodes can be counted with it.
    countable: bool,
    /// Slots of its size in the group.
    total: i64,
    /// Rows that its placement can make scarce.
    critical: Vec<usize>,
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
        let mut slots = Self { group, nodes, rooms, residents, rows: Vec::new(), row_of: HashMap::new() };
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
            let claim =
                Claim { room, sure: sure(instances, &size), possible: row.possible(&instances[..last]) };
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
        for row in &mut self.rows {
            let outdated = row.set(room, &self.rooms[room]);
            let leaving = row.claims.binary_search_by_key(&room, |claim| claim.room);
            if let Ok(claim) = leaving {
                row.claims.remove(claim);
            }
            if outdated {
                row.claim_anew(&self.residents);
            }
            if outdated || leaving.is_ok() {
                row.rank();
            }
        }
        self.residents[room] = None;
        if !tested {
            return Some(());
        }
        self.count(cluster, room)?;
        for row in &mut self.rows {
            if row.claims.binary_search_by_key(&room, |claim| claim.room).is_ok() {
                row.rank();
            }
        }
        Some(())
    }

    /// How the group sees an instance to be placed.
    pub fn newcomer(&self, cluster: &Cluster, instance: &Instance) -> Newcomer {
        let size = Size::of(instance);
        let total = self.rooms.iter().map(|room| slots(room, &size)).sum();
        let nodes = instance.template.required_nodes() as i64;
        let scarce = |row: &Row| row.possible.value > row.total - nodes * destroyed(&size, &row.size);
        let critical =
            self.rows.iter().enumerate().filter(|(_, row)| scarce(row)).map(|(at, _)| at).collect();
        let countable = size.is_sensible()
            && match Rescue::of(instance.template) {
                Rescue::Failover => false,
                Rescue::Evacuate => true,
                Rescue::Recreate => cluster.group(self.group).policy.check(instance, false).is_ok(),
            };
        Newcomer { size, countable, total, critical }
    }

    /// What counting says of things as they are. `sure` is whether verdicts against a node can be relied on.
    pub fn standing(&self, sure: bool) -> Count {
        self.judge(0..self.rows.len(), usize::MAX, |_| 0, sure)
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
        let drop = |row: &Row| -> i64 {
            let on = |(at, room): &(usize, Room)| i64::from(row.slots[*at]) - slots(room, &row.size);
            changed.iter().map(on).sum()
        };
        let critical = newcomer.critical.iter().copied();
        let &[(room, _)] = changed.as_slice() else {
            let mut count = self.judge(critical, usize::MAX, drop, false);
            if let Count::Unsettled(nodes) = &mut count {
                nodes.extend(changed.iter().map(|(at, _)| self.nodes[*at]).filter(|n| self.counts(*n)));
            }
            return count;
        };
        if self.residents[room].is_none() {
            return self.judge(critical, usize::MAX, drop, sure);
        }
        if sure && self.surely_stuck_with(newcomer, room) {
            return Count::Stuck;
        }
        let mut count = self.judge(critical, room, drop, sure);
        if let Count::Unsettled(nodes) = &mut count
            && !(sure && self.can_be_emptied_with(cluster, newcomer, room))
        {
            nodes.push(self.nodes[room]);
        }
        count
    }

    /// Looks at all counted nodes but the one in room `but`, when so many slots of a size are gone.
    fn judge(
        &self,
        rows: impl Iterator<Item = usize>,
        but: usize,
        drop: impl Fn(&Row) -> i64,
        sure: bool,
    ) -> Count {
        let mut unsettled: Vec<usize> = Vec::new();
        for row in rows.map(|row| &self.rows[row]) {
            let left = row.total - drop(row);
            if sure && left < row.sure.but_of(but) {
                return Count::Stuck;
            }
            if left < row.possible.but_of(but) {
                unsettled.extend(row.unsettled(left, but));
            }
        }
        unsettled.sort_unstable();
        unsettled.dedup();
        Count::Unsettled(unsettled.into_iter().map(|room| self.nodes[room]).collect())
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
        covering > newcomer.total - slots(&self.rooms[room], size)
    }

    /// The node in `room` can be emptied; the newcomer is there already as far as `cluster` goes.
    fn can_be_emptied_with(&self, cluster: &Cluster, newcomer: &Newcomer, room: usize) -> bool {
        let Some(instances) = countable(cluster, self.group, self.nodes[room]) else { return false };
        sizes(&instances).all(|(last, size)| match self.row_of.get(&size).map(|row| &self.rows[*row]) {
            Some(row) => row.total - i64::from(row.slots[room]) >= row.possible(&instances[..last]),
            None if size == newcomer.size => {
                let gone: i64 = instances[..last].iter().map(|other| destroyed(other, &size)).sum();
                newcomer.total - slots(&self.rooms[room], &size) > gone
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
    let mut homeless = Homeless::default();
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
        homeless.add(index, instance);
    }
    Some(homeless.in_order())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(memory: i64, disk: i64) -> Size {
        Size { memory, disk: Some(disk) }
    }

    fn rooms(free: &[(i64, i64)]) -> Vec<Room> {
        free.iter().map(|&(memory, disk)| Room { memory, disk, willing: true }).collect()
    }

    #[test]
    fn an_instance_destroys_slots_by_what_it_takes_most_of() {
        assert_eq!(destroyed(&size(4, 10), &size(4, 10)), 1);
        assert_eq!(destroyed(&size(5, 10), &size(4, 10)), 2);
        assert_eq!(destroyed(&size(4, 31), &size(4, 10)), 4);
        assert_eq!(destroyed(&Size { memory: 4, disk: None }, &size(4, 10)), 1);
        assert_eq!(destroyed(&size(4, 10), &size(0, 0)), 0);
    }

    #[test]
    fn no_node_loses_more_slots_than_one_node_has() {
        let row = Row::new(size(2, 1), &rooms(&[(5, 99), (3, 99), (2, 99)]));
        assert_eq!((row.total, row.most), (3, 2));
        assert_eq!(row.possible(&[size(9, 1), size(2, 1)]), 2 + 1 + 1);
    }

    #[test]
    fn the_most_in_one_room_follows_the_rooms() {
        let mut free = rooms(&[(5, 99), (5, 99), (3, 99)]);
        let mut row = Row::new(size(2, 1), &free);
        free[0].memory = 3;
        assert!(!row.set(0, &free[0]), "another room has as many");
        free[1].memory = 3;
        assert!(row.set(1, &free[1]));
        assert_eq!((row.total, row.most), (3, 1));
        free[1].memory = 9;
        assert!(row.set(1, &free[1]));
        assert_eq!((row.total, row.most), (6, 4));
    }

    #[test]
    fn a_node_needs_slots_elsewhere() {
        let mut row = Row::new(size(2, 1), &rooms(&[(5, 99), (3, 99), (2, 99)]));
        row.claims = vec![Claim { room: 0, sure: 2, possible: 2 }, Claim { room: 2, sure: 3, possible: 4 }];
        row.rank();
        assert_eq!((row.sure.but_of(usize::MAX), row.sure.but_of(0), row.sure.but_of(2)), (4, 3, 4));
        assert_eq!(row.unsettled(3, usize::MAX).collect::<Vec<_>>(), [0, 2]);
        assert_eq!(row.unsettled(3, 0).collect::<Vec<_>>(), [2]);
    }
}
