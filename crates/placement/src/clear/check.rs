//! Checks whether a plan keeps the rules, without using any code of the search.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use super::plan::{Cost, Move, Plan};
use super::request::{Guest, GuestId, NPlusOne, Node, NodeId, Request, Role};

/// Rule that a plan violates. Steps are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Violation {
    /// The plan takes fewer or more nodes than wanted.
    #[error("the plan takes {taken} nodes, but {wanted} are wanted")]
    Number { taken: usize, wanted: usize },
    /// A node is taken twice, isn't a candidate, or doesn't become free by itself in the stated time.
    #[error("node {} cannot be taken like this", .0.0)]
    Taken(NodeId),
    /// The guest isn't there, isn't movable, has already moved, or doesn't need to move.
    #[error("step {0} is not a move of a guest from a node that is cleared")]
    NoMove(usize),
    /// The node receives no guests, or not this one.
    #[error("step {0} leads to a node that can't receive the guest")]
    Forbidden(usize),
    /// The node lacks capacity in this dimension.
    #[error("step {step} leads to a node without room in dimension {dimension}")]
    NoRoom { step: usize, dimension: usize },
    /// The guest shares an exclusion group with a guest on the node.
    #[error("step {0} brings guests together that exclude each other")]
    Excluded(usize),
    /// After this number of steps, the loss of the node could not be absorbed.
    #[error("node {} could not be lost after {steps} steps", node.0)]
    NotRedundant { steps: usize, node: NodeId },
    /// Guests remain on a node that should be empty.
    #[error("node {} is not empty after the last step", .0.0)]
    NotEmpty(NodeId),
    /// The stated cost isn't the sum of the moves, waits and surcharges.
    #[error("the cost of the plan differs from its stated cost")]
    Cost,
    /// The bound is higher than the cost.
    #[error("the lower bound is above the cost")]
    Bound,
}

/// Checks a plan for a well-formed request: every step in the state that the steps before it leave behind,
/// and the plan's own claims.
pub fn check(request: &Request, plan: &Plan) -> Result<(), Violation> {
    let taken = taken(request, plan)?;
    let mut scene = Scene::new(request, taken);
    let rule = request.n_plus_one.as_ref();
    let exempt = rule.map(|rule| scene.exempt(rule)).unwrap_or_default();
    let start = scene.clone();
    let mut moved = BTreeSet::new();
    for (step, mov) in plan.moves.iter().enumerate() {
        if !plan.cleared.contains(&mov.from) || !moved.insert(mov.guest) {
            return Err(Violation::NoMove(step));
        }
        if exempt.contains(&mov.to) {
            return Err(Violation::Forbidden(step));
        }
        scene.verify(step, mov)?;
        scene.carry_out(mov);
    }
    if let Some(node) = plan.cleared.iter().find(|node| !scene.on[*node].is_empty()) {
        return Err(Violation::NotEmpty(*node));
    }
    if let Some(rule) = rule {
        always_redundant(rule, &exempt, start, &scene, plan)?;
    }
    if plan.cost != cost(request, plan) {
        return Err(Violation::Cost);
    }
    if plan.lower_bound > plan.cost.weighted { Err(Violation::Bound) } else { Ok(()) }
}

/// The nodes that the plan takes, if it is allowed to take them.
fn taken(request: &Request, plan: &Plan) -> Result<BTreeSet<NodeId>, Violation> {
    let mut taken = BTreeSet::new();
    let waits = plan.waits.iter().map(|(node, seconds)| (*node, Some(*seconds)));
    for (id, seconds) in plan.cleared.iter().map(|node| (*node, None)).chain(waits) {
        let node = request.nodes.iter().find(|node| node.id == id);
        let candidate = node.filter(|node| node.role == Role::Candidate);
        let as_said = candidate.is_some_and(|node| seconds.is_none() || node.free_in_seconds == seconds);
        if !as_said || !taken.insert(id) {
            return Err(Violation::Taken(id));
        }
    }
    if taken.len() == request.wanted {
        Ok(taken)
    } else {
        Err(Violation::Number { taken: taken.len(), wanted: request.wanted })
    }
}

/// Cost of the plan, computed from the request.
fn cost(request: &Request, plan: &Plan) -> Cost {
    let guests: BTreeMap<GuestId, &Guest> = request.guests.iter().map(|guest| (guest.id, guest)).collect();
    let nodes: BTreeMap<NodeId, &Node> = request.nodes.iter().map(|node| (node.id, node)).collect();
    let weights = &request.weights;
    let mut cost = Cost::default();
    for guest in plan.moves.iter().map(|mov| guests[&mov.guest]) {
        cost.memory_mib = cost.memory_mib.saturating_add(guest.memory_mib);
        cost.disk_gib = cost.disk_gib.saturating_add(guest.disk_gib);
        cost.downtime_ms = cost.downtime_ms.saturating_add(guest.downtime_ms);
        let memory = guest.memory_mib.saturating_mul(weights.per_mib_of_memory);
        let disk = guest.disk_gib.saturating_mul(weights.per_gib_of_disk);
        let downtime =
            guest.downtime_ms.saturating_mul(guest.priority).saturating_mul(weights.per_ms_of_downtime);
        for points in [memory, disk, downtime] {
            cost.weighted = cost.weighted.saturating_add(points);
        }
    }
    for (_, seconds) in &plan.waits {
        cost.waiting_seconds = cost.waiting_seconds.saturating_add(*seconds);
        let points = seconds.saturating_mul(weights.per_second_of_waiting);
        cost.weighted = cost.weighted.saturating_add(points);
    }
    for node in plan.cleared.iter().chain(plan.waits.iter().map(|(node, _)| node)) {
        cost.surcharge = cost.surcharge.saturating_add(nodes[node].surcharge);
    }
    cost.weighted = cost.weighted.saturating_add(cost.surcharge);
    cost
}

/// Placement of all guests at one step.
#[derive(Clone, Debug)]
struct Scene<'a> {
    nodes: BTreeMap<NodeId, &'a Node>,
    guests: BTreeMap<GuestId, &'a Guest>,
    on: BTreeMap<NodeId, BTreeSet<GuestId>>,
    taken: BTreeSet<NodeId>,
}

impl<'a> Scene<'a> {
    fn new(request: &'a Request, taken: BTreeSet<NodeId>) -> Self {
        let mut on: BTreeMap<NodeId, BTreeSet<GuestId>> =
            request.nodes.iter().map(|node| (node.id, BTreeSet::new())).collect();
        for guest in &request.guests {
            on.entry(guest.node).or_default().insert(guest.id);
        }
        Self {
            nodes: request.nodes.iter().map(|node| (node.id, node)).collect(),
            guests: request.guests.iter().map(|guest| (guest.id, guest)).collect(),
            on,
            taken,
        }
    }

    /// Whether the node receives guests.
    fn is_open(&self, node: NodeId) -> bool {
        self.nodes.get(&node).is_some_and(|node| node.role != Role::Closed) && !self.taken.contains(&node)
    }

    /// Capacity of a dimension that these guests use.
    fn sum(&self, guests: &BTreeSet<GuestId>, dimension: usize) -> i128 {
        guests.iter().map(|guest| i128::from(self.guests[guest].size[dimension])).sum()
    }

    /// Free capacity in a dimension; negative if the node is overcommitted.
    fn free(&self, node: NodeId, dimension: usize) -> i128 {
        i128::from(self.nodes[&node].capacity[dimension]) - self.sum(&self.on[&node], dimension)
    }

    /// Whether the node has the labels that the guest requires (`Err(false)` if not) and has no guest that
    /// excludes it, counting `others` (`Err(true)` if it has one).
    fn suits(&self, guest: &Guest, node: NodeId, others: &BTreeSet<GuestId>) -> Result<(), bool> {
        if !guest.requires.is_subset(&self.nodes[&node].labels) {
            return Err(false);
        }
        let mut others = self.on[&node].iter().chain(others).map(|other| self.guests[other]);
        if others.any(|other| !other.exclusion.is_disjoint(&guest.exclusion)) { Err(true) } else { Ok(()) }
    }

    fn verify(&self, step: usize, mov: &Move) -> Result<(), Violation> {
        let here = self.on.get(&mov.from).is_some_and(|guests| guests.contains(&mov.guest));
        let guest = self.guests.get(&mov.guest).filter(|guest| here && guest.movable);
        let guest = guest.ok_or(Violation::NoMove(step))?;
        if !self.is_open(mov.to) || guest.avoided.contains(&mov.to) {
            return Err(Violation::Forbidden(step));
        }
        match self.suits(guest, mov.to, &BTreeSet::new()) {
            Err(true) => return Err(Violation::Excluded(step)),
            Err(false) => return Err(Violation::Forbidden(step)),
            Ok(()) => {}
        }
        let lacking = |(dimension, size): &(usize, &u64)| {
            **size > 0 && i128::from(**size) > self.free(mov.to, *dimension)
        };
        match guest.size.iter().enumerate().find(lacking) {
            Some((dimension, _)) => Err(Violation::NoRoom { step, dimension }),
            None => Ok(()),
        }
    }

    fn carry_out(&mut self, mov: &Move) {
        self.on.entry(mov.from).or_default().remove(&mov.guest);
        self.on.entry(mov.to).or_default().insert(mov.guest);
    }

    /// Nodes whose loss cannot be absorbed even before anything is taken.
    fn exempt(&self, rule: &NPlusOne) -> BTreeSet<NodeId> {
        let scene = Self { taken: BTreeSet::new(), ..self.clone() };
        let places = scene.places(rule);
        let there = rule.nodes.iter().filter(|node| scene.is_open(**node));
        there.filter(|node| scene.refuge(rule, &places, **node).is_none()).copied().collect()
    }

    /// Nodes for the guests of a lost node, those with the most free capacity first.
    fn places(&self, rule: &NPlusOne) -> Vec<NodeId> {
        let mut places: Vec<NodeId> = rule.nodes.iter().copied().filter(|node| self.is_open(*node)).collect();
        places.sort_by_cached_key(|node| (Reverse(self.free(*node, rule.dimensions[0])), *node));
        places
    }

    /// Destinations for the guests of a node if it is lost, by first fit decreasing; `None` if that finds
    /// nothing.
    fn refuge(&self, rule: &NPlusOne, places: &[NodeId], node: NodeId) -> Option<Guests> {
        let mut guests: Vec<&Guest> = self.on[&node].iter().map(|guest| self.guests[guest]).collect();
        guests.sort_by_key(|guest| (Reverse(guest.size[rule.dimensions[0]]), guest.id));
        let mut refuge = Guests::new();
        for guest in guests {
            let takes = |to: &&NodeId| **to != node && self.takes_refugee(rule, &refuge, guest, **to);
            let to = *places.iter().find(takes)?;
            refuge.entry(to).or_default().insert(guest.id);
        }
        Some(refuge)
    }

    /// Destinations for the guests of a node according to the plan; `None` unless they include all guests and
    /// have capacity for them.
    fn shown_refuge(&self, rule: &NPlusOne, plan: &Plan, node: NodeId) -> Option<Guests> {
        let mut refuge = Guests::new();
        for (guest, to) in &plan.refuges.iter().find(|refuge| refuge.node == node)?.places {
            let known = self.on[&node].contains(guest) && rule.nodes.contains(to) && self.is_open(*to);
            if !known || *to == node || !self.takes_refugee(rule, &refuge, self.guests[guest], *to) {
                return None;
            }
            refuge.entry(*to).or_default().insert(*guest);
        }
        let shown: BTreeSet<GuestId> = refuge.values().flatten().copied().collect();
        (shown == self.on[&node]).then_some(refuge)
    }

    fn takes_refugee(&self, rule: &NPlusOne, refuge: &Guests, guest: &Guest, to: NodeId) -> bool {
        let nobody = BTreeSet::new();
        let others = refuge.get(&to).unwrap_or(&nobody);
        let room = |dimension: &usize| {
            let size = i128::from(guest.size[*dimension]);
            size == 0 || size + self.sum(others, *dimension) <= self.free(to, *dimension)
        };
        rule.dimensions.iter().all(room) && self.suits(guest, to, others).is_ok()
    }

    /// Whether the guests of `refuge` that are on the node now have capacity at their destinations.
    fn is_safe(&self, rule: &NPlusOne, node: NodeId, refuge: &Guests) -> bool {
        refuge.iter().all(|(to, guests)| {
            let mut before = Guests::new();
            guests.intersection(&self.on[&node]).all(|guest| {
                let room = self.takes_refugee(rule, &before, self.guests[guest], *to);
                before.entry(*to).or_default().insert(*guest);
                room
            })
        })
    }
}

/// Guests by the node they would go to.
type Guests = BTreeMap<NodeId, BTreeSet<GuestId>>;

/// Checks that the loss of any one node could be absorbed at the beginning and after each step. The remaining
/// guests of a node being cleared can go where the plan moves them, as the steps have shown.
fn always_redundant(
    rule: &NPlusOne,
    exempt: &BTreeSet<NodeId>,
    mut scene: Scene<'_>,
    end: &Scene<'_>,
    plan: &Plan,
) -> Result<(), Violation> {
    let places = end.places(rule);
    let mut refuges = BTreeMap::new();
    let mut used_by: BTreeMap<NodeId, BTreeSet<NodeId>> = BTreeMap::new();
    for &node in rule.nodes.difference(exempt) {
        if scene.nodes[&node].role == Role::Closed || plan.cleared.contains(&node) {
            continue;
        }
        let shown = || end.shown_refuge(rule, plan, node);
        let refuge = end.refuge(rule, &places, node).or_else(shown);
        let refuge = refuge.ok_or(Violation::NotRedundant { steps: plan.moves.len(), node })?;
        if !scene.is_safe(rule, node, &refuge) {
            return Err(Violation::NotRedundant { steps: 0, node });
        }
        for to in refuge.keys() {
            used_by.entry(*to).or_default().insert(node);
        }
        refuges.insert(node, refuge);
    }
    for (step, mov) in plan.moves.iter().enumerate() {
        scene.carry_out(mov);
        // All other refuges are unaffected.
        let users = used_by.get(&mov.to).into_iter().flatten().chain([&mov.to]);
        for node in users {
            if refuges.get(node).is_some_and(|refuge| !scene.is_safe(rule, *node, refuge)) {
                return Err(Violation::NotRedundant { steps: step + 1, node: *node });
            }
        }
    }
    Ok(())
}
