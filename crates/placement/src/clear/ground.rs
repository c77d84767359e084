//! The request in the form that the search uses: everything has a number, and constants are computed once.
//!
//! Nodes and guests are numbered by identifier, so the order in which the request lists them has no
//! influence.

use std::collections::{BTreeMap, BTreeSet};

use cluster::{InstanceIdx, NodeIdx};

use super::plan::Malformed;
use super::request::{
    ExclusionGroup, Guest, LARGEST_AMOUNT, Label, MOST_NODES_OR_GUESTS, Node, Request, Role,
};

/// A request with numbered nodes and guests.
#[derive(Clone, Debug)]
pub(super) struct Ground<'a> {
    pub request: &'a Request,
    pub dimensions: usize,
    /// Sorted by identifier.
    pub nodes: Vec<&'a Node>,
    /// Sorted by identifier.
    pub guests: Vec<&'a Guest>,
    /// By guest: its node before the plan.
    pub home: Vec<NodeIdx>,
    /// By node: its guests before the plan, ascending.
    pub residents: Vec<Vec<InstanceIdx>>,
    /// By guest: cost of moving it, in points.
    pub price: Vec<u64>,
    /// By guest and dimension.
    sizes: Vec<i64>,
    /// By guest: its exclusion groups.
    groups: Vec<Vec<u32>>,
    /// By guest: index into `allowed`.
    kind: Vec<u32>,
    /// By kind of guest and by node: whether the node has the labels that the guest requires.
    allowed: Vec<Vec<bool>>,
    /// By dimension: value of a unit, as a share of the total free capacity of nodes that aren't closed.
    worth: Vec<f64>,
}

impl<'a> Ground<'a> {
    pub fn new(request: &'a Request) -> Result<Self, Malformed> {
        if request.nodes.len().max(request.guests.len()) > MOST_NODES_OR_GUESTS {
            return Err(Malformed::TooMany);
        }
        let mut nodes: Vec<&Node> = request.nodes.iter().collect();
        nodes.sort_by_key(|node| node.id);
        if let Some(twice) = nodes.windows(2).find(|pair| pair[0].id == pair[1].id) {
            return Err(Malformed::DuplicateNode(twice[0].id));
        }
        let mut guests: Vec<&Guest> = request.guests.iter().collect();
        guests.sort_by_key(|guest| guest.id);
        if let Some(twice) = guests.windows(2).find(|pair| pair[0].id == pair[1].id) {
            return Err(Malformed::DuplicateGuest(twice[0].id));
        }
        let dimensions = amounts(&nodes, &guests)?;
        let mut home = Vec::with_capacity(guests.len());
        let mut residents = vec![Vec::new(); nodes.len()];
        for (position, guest) in guests.iter().enumerate() {
            let node = nodes.binary_search_by_key(&guest.node, |node| node.id);
            let node = node.map_err(|_| Malformed::UnknownNode { guest: guest.id, node: guest.node })?;
            home.push(NodeIdx::from_usize(node));
            residents[node].push(InstanceIdx::from_usize(position));
        }
        let (kind, allowed) = kinds(&nodes, &guests);
        let mut ground = Self {
            request,
            dimensions,
            home,
            residents,
            price: guests.iter().map(|guest| request.weights.of_move(guest)).collect(),
            sizes: guests.iter().flat_map(|guest| guest.size.iter().map(|amount| *amount as i64)).collect(),
            groups: exclusion(&guests),
            kind,
            allowed,
            worth: Vec::new(),
            nodes,
            guests,
        };
        let room = ground.room(&ground.free(), |node| ground.nodes[node.at()].role != Role::Closed);
        ground.worth = room.iter().map(|room| 1.0 / (*room).max(1) as f64).collect();
        Ok(ground)
    }

    pub fn node_indices(&self) -> impl Iterator<Item = NodeIdx> + use<> {
        (0..self.nodes.len()).map(NodeIdx::from_usize)
    }

    pub fn node_of(&self, id: super::NodeId) -> Option<NodeIdx> {
        self.nodes.binary_search_by_key(&id, |node| node.id).ok().map(NodeIdx::from_usize)
    }

    pub fn size(&self, guest: InstanceIdx) -> &[i64] {
        &self.sizes[guest.at() * self.dimensions..][..self.dimensions]
    }

    pub fn groups(&self, guest: InstanceIdx) -> &[u32] {
        &self.groups[guest.at()]
    }

    /// Whether the node has the labels that the guest requires.
    pub fn allows(&self, guest: InstanceIdx, node: NodeIdx) -> bool {
        self.allowed[self.kind[guest.at()] as usize][node.at()]
    }

    /// Whether the guest's labels and avoided nodes allow a move to the node.
    pub fn may_move(&self, guest: InstanceIdx, node: NodeIdx) -> bool {
        self.allows(guest, node) && !self.guests[guest.at()].avoided.contains(&self.nodes[node.at()].id)
    }

    /// Value of an amount, as a share of the total capacity that was free before the plan.
    pub fn worth(&self, dimension: usize, amount: i64) -> f64 {
        self.worth[dimension] * amount as f64
    }

    /// Free capacity before the plan, by node and dimension; negative if overcommitted.
    pub fn free(&self) -> Vec<i64> {
        let capacities = self.nodes.iter().flat_map(|node| node.capacity.iter().map(|amount| *amount as i64));
        let mut free: Vec<i64> = capacities.collect();
        for (guest, home) in self.home.iter().enumerate() {
            let row = &mut free[home.at() * self.dimensions..][..self.dimensions];
            let sizes = self.size(InstanceIdx::from_usize(guest));
            row.iter_mut().zip(sizes).for_each(|(free, size)| *free -= size);
        }
        free
    }

    /// Total free capacity by dimension of the nodes for which `counts` holds. Overcommitted nodes count as
    /// full.
    pub fn room(&self, free: &[i64], counts: impl Fn(NodeIdx) -> bool) -> Vec<i64> {
        let mut room = vec![0; self.dimensions];
        for node in self.node_indices().filter(|node| counts(*node)) {
            let row = &free[node.at() * self.dimensions..][..self.dimensions];
            room.iter_mut().zip(row).for_each(|(sum, free)| *sum += (*free).max(0));
        }
        room
    }

    /// Difficulty of placing each guest: the largest share of the free capacity that it takes, divided by the
    /// number of nodes that its labels allow.
    pub fn hardness(&self) -> Vec<f64> {
        let count = |allowed: &Vec<bool>| allowed.iter().filter(|allowed| **allowed).count().max(1) as f64;
        let open: Vec<f64> = self.allowed.iter().map(count).collect();
        let share = |guest: usize| {
            let sizes = self.size(InstanceIdx::from_usize(guest)).iter().enumerate();
            sizes.map(|(dimension, size)| self.worth(dimension, *size)).fold(0.0, f64::max)
        };
        let hardness = |guest: usize| share(guest) / open[self.kind[guest] as usize];
        (0..self.guests.len()).map(hardness).collect()
    }
}

/// The number of dimensions, if all agree and no amount is too large.
fn amounts(nodes: &[&Node], guests: &[&Guest]) -> Result<usize, Malformed> {
    let rows = || nodes.iter().map(|node| &node.capacity).chain(guests.iter().map(|guest| &guest.size));
    let dimensions = rows().next().map_or(0, Vec::len);
    if rows().any(|row| row.len() != dimensions) {
        return Err(Malformed::Dimensions);
    }
    if rows().flatten().any(|amount| *amount > LARGEST_AMOUNT) {
        return Err(Malformed::TooLarge);
    }
    Ok(dimensions)
}

/// Groups guests with equal requirements into kinds. Returns the kind of each guest and, for each kind, which
/// nodes meet its requirements.
fn kinds(nodes: &[&Node], guests: &[&Guest]) -> (Vec<u32>, Vec<Vec<bool>>) {
    let mut known: BTreeMap<&BTreeSet<Label>, u32> = BTreeMap::new();
    let mut allowed = Vec::new();
    let mut kinds = Vec::with_capacity(guests.len());
    for guest in guests {
        let next = allowed.len() as u32;
        let kind = *known.entry(&guest.requires).or_insert(next);
        if kind == next {
            allowed.push(nodes.iter().map(|node| guest.requires.is_subset(&node.labels)).collect());
        }
        kinds.push(kind);
    }
    (kinds, allowed)
}

fn exclusion(guests: &[&Guest]) -> Vec<Vec<u32>> {
    let mut known: BTreeMap<ExclusionGroup, u32> = BTreeMap::new();
    let mut number = |group: &ExclusionGroup| {
        let next = known.len() as u32;
        *known.entry(*group).or_insert(next)
    };
    guests.iter().map(|guest| guest.exclusion.iter().map(&mut number).collect()).collect()
}
