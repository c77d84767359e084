//! Current placement of guests, and free capacity.

use cluster::{InstanceIdx, NodeIdx};

use super::ground::Ground;
use super::request::Role;

/// Current state of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// Receives guests.
    Open,
    /// Being cleared.
    Cleared,
    /// Becomes free by itself.
    Waited,
    /// Takes no part.
    Closed,
}

/// Nodes by free capacity in one dimension, least first; among equals, the last node first.
#[derive(Clone, Debug)]
pub(super) struct Ranking {
    pub dimension: usize,
    list: Vec<(i64, u32)>,
}

impl Ranking {
    fn new(dimension: usize, free: &[i64], dimensions: usize, nodes: impl Iterator<Item = NodeIdx>) -> Self {
        let mut list: Vec<(i64, u32)> =
            nodes.map(|node| (free[node.at() * dimensions + dimension], !node.0)).collect();
        list.sort_unstable();
        Self { dimension, list }
    }

    fn change(&mut self, node: NodeIdx, was: i64, is: i64) {
        let Ok(from) = self.list.binary_search(&(was, !node.0)) else { return };
        let to = self.list.partition_point(|entry| *entry < (is, !node.0));
        if to > from {
            self.list[from..to].rotate_left(1);
            self.list[to - 1].0 = is;
        } else {
            self.list[to..=from].rotate_right(1);
            self.list[to].0 = is;
        }
    }

    /// Nodes with at least this much free capacity, least first.
    pub fn from(&self, least: i64) -> impl DoubleEndedIterator<Item = NodeIdx> + '_ {
        let start = self.list.partition_point(|(free, _)| *free < least);
        self.list[start..].iter().map(|(_, node)| NodeIdx(!node))
    }

    /// Nodes with at least this much free capacity, starting at a position that depends on `seed` and
    /// wrapping around.
    pub fn around(&self, least: i64, seed: u32) -> impl Iterator<Item = NodeIdx> + '_ {
        let start = self.list.partition_point(|(free, _)| *free < least);
        let enough = &self.list[start..];
        // Fibonacci hashing: neighboring seeds start far apart.
        let share = u64::from(seed.wrapping_mul(0x9E37_79B9));
        let (before, after) = enough.split_at(((share * enough.len() as u64) >> 32) as usize);
        after.iter().chain(before).map(|(_, node)| NodeIdx(!node))
    }
}

/// Current placement of guests.
#[derive(Clone, Debug)]
pub(super) struct Stand<'a> {
    pub ground: &'a Ground<'a>,
    /// By guest.
    place: Vec<NodeIdx>,
    /// By node and dimension.
    free: Vec<i64>,
    pub status: Vec<Status>,
    /// By node: whether guests may be moved there while it is open.
    pub receives: Vec<bool>,
    /// By node: exclusion groups of its guests, as often as they occur.
    present: Vec<Vec<u32>>,
    /// By node: guests that were moved there.
    arrivals: Vec<Vec<InstanceIdx>>,
    rankings: Vec<Ranking>,
}

impl<'a> Stand<'a> {
    /// State before the plan, with a ranking for each dimension in `ranked`.
    pub fn new(ground: &'a Ground<'a>, ranked: &[usize]) -> Self {
        let free = ground.free();
        let status = |closed: bool| if closed { Status::Closed } else { Status::Open };
        let mut present = vec![Vec::new(); ground.nodes.len()];
        for (guest, home) in ground.home.iter().enumerate() {
            present[home.at()].extend_from_slice(ground.groups(InstanceIdx::from_usize(guest)));
        }
        let open = || ground.node_indices().filter(|node| ground.nodes[node.at()].role != Role::Closed);
        let rankings = ranked.iter().map(|d| Ranking::new(*d, &free, ground.dimensions, open())).collect();
        Self {
            ground,
            place: ground.home.clone(),
            free,
            status: ground.nodes.iter().map(|node| status(node.role == Role::Closed)).collect(),
            receives: vec![true; ground.nodes.len()],
            present,
            arrivals: vec![Vec::new(); ground.nodes.len()],
            rankings,
        }
    }

    pub fn place(&self, guest: InstanceIdx) -> NodeIdx {
        self.place[guest.at()]
    }

    pub fn free(&self, node: NodeIdx) -> &[i64] {
        &self.free[node.at() * self.ground.dimensions..][..self.ground.dimensions]
    }

    pub fn all_free(&self) -> &[i64] {
        &self.free
    }

    pub fn is_open(&self, node: NodeIdx) -> bool {
        self.status[node.at()] == Status::Open
    }

    pub fn ranking(&self, position: usize) -> &Ranking {
        &self.rankings[position]
    }

    pub fn arrivals(&self, node: NodeIdx) -> &[InstanceIdx] {
        &self.arrivals[node.at()]
    }

    pub fn guests_on(&self, node: NodeIdx) -> impl Iterator<Item = InstanceIdx> + '_ {
        let at_home =
            self.ground.residents[node.at()].iter().filter(move |guest| self.place(**guest) == node);
        at_home.chain(self.arrivals(node)).copied()
    }

    /// Whether a guest on the node shares an exclusion group with this one.
    pub fn excluded(&self, guest: InstanceIdx, node: NodeIdx) -> bool {
        let present = &self.present[node.at()];
        self.ground.groups(guest).iter().any(|group| present.contains(group))
    }

    /// Whether the node has capacity in all dimensions that the guest uses.
    pub fn fits(&self, guest: InstanceIdx, node: NodeIdx) -> bool {
        self.ground.size(guest).iter().zip(self.free(node)).all(|(size, free)| *size == 0 || size <= free)
    }

    /// Whether the guest can be moved to the node now, ignoring redundancy.
    pub fn takes(&self, guest: InstanceIdx, node: NodeIdx) -> bool {
        self.is_open(node)
            && self.receives[node.at()]
            && self.fits(guest, node)
            && self.ground.may_move(guest, node)
            && !self.excluded(guest, node)
    }

    /// Moves a guest without checking that it may be there.
    pub fn shift(&mut self, guest: InstanceIdx, to: NodeIdx) {
        let from = std::mem::replace(&mut self.place[guest.at()], to);
        self.charge(guest, from, -1);
        self.charge(guest, to, 1);
        let present = &mut self.present[from.at()];
        for group in self.ground.groups(guest) {
            if let Some(position) = present.iter().position(|other| other == group) {
                present.swap_remove(position);
            }
        }
        self.present[to.at()].extend_from_slice(self.ground.groups(guest));
        let home = self.ground.home[guest.at()];
        if from != home {
            self.arrivals[from.at()].retain(|other| *other != guest);
        }
        if to != home {
            self.arrivals[to.at()].push(guest);
        }
    }

    /// Subtracts the guest's size from the node's free capacity if `sign` is 1, adds it if -1.
    fn charge(&mut self, guest: InstanceIdx, node: NodeIdx, sign: i64) {
        let dimensions = self.ground.dimensions;
        for dimension in 0..dimensions {
            let amount = sign * self.ground.size(guest)[dimension];
            let free = &mut self.free[node.at() * dimensions + dimension];
            let was = *free;
            *free -= amount;
            let is = *free;
            for ranking in self.rankings.iter_mut().filter(|ranking| ranking.dimension == dimension) {
                ranking.change(node, was, is);
            }
        }
    }
}
