//! The scavenger hunt: which nodes to clear of other tenants' guests so that they can be used as a whole,
//! where the guests go, in which order, and at what cost.
//!
//! Requests and plans are plain values; nothing here knows of leases, clocks or machines. Equal requests get
//! equal answers, regardless of the order of their nodes and guests.
//!
//! # Rules
//!
//! After every move of a [`Plan`]:
//!
//! - The moved guest is on a node with capacity for it in every dimension that it uses, with all labels that
//!   it requires, and without guests of its exclusion groups. The guest doesn't avoid the node. Avoided nodes
//!   matter for moves only, not for the loss of nodes.
//! - Taken nodes have received no guests since the beginning of the plan, and neither have closed nodes.
//! - Any one of the nodes of [`NPlusOne`] can be lost: the remaining nodes of the set, neither taken nor
//!   closed, together have capacity for its current guests by the rules above, but only in the dimensions
//!   that [`NPlusOne`] names. For a node being cleared, the guests' places are those that the plan moves them
//!   to. For all other nodes, waited-for nodes included, they are found at the end of the plan by *first fit
//!   decreasing*: guests are ordered by size in the first dimension named, the largest first, and among
//!   equals the smallest identifier first. Each guest goes to the node that takes it and that had the most
//!   free capacity in that dimension before the first guest was assigned, among equals the smallest
//!   identifier. If that finds nothing, the plan states where the guests go ([`Plan::refuges`]). Capacity
//!   that suffices at the end suffices before, since receiving nodes lose no guests.
//! - A node for which first fit decreasing finds nothing even before the plan doesn't cause a refusal. It
//!   receives no guests.
//!
//! Each guest moves at most once, and only guests of cleared nodes move.
//!
//! # Limits
//!
//! Guests of nodes that aren't taken never make room for other guests, so plans that need this are missed.
//! For the same reason, no order of moves gets stuck. Beyond the limits of [`Effort`] the search is
//! incomplete: plans can cost more than necessary ([`Plan::lower_bound`] limits by how much), and a request
//! refused with [`Refusal::SearchExhausted`] might be possible. Costs that depend on a move's destination
//! aren't modeled.

mod arrangement;
mod bound;
mod check;
mod choice;
mod cover;
mod exhaustive;
mod ground;
mod plan;
mod request;
mod stand;
#[cfg(test)]
mod tests;

use cluster::{InstanceIdx, NodeIdx};

pub use check::{Violation, check};
pub use plan::{Cost, Malformed, Move, Plan, Refuge, Refusal, Shortage, Unclearable};
pub use request::{
    CostWeights, Effort, ExclusionGroup, Guest, GuestId, LARGEST_AMOUNT, Label, MOST_NODES_OR_GUESTS,
    NPlusOne, Node, NodeId, Request, Role,
};

use arrangement::Arrangement;
use bound::{Entry, Sums};
use choice::{Attempt, Task};
use cover::{Cover, Covers, Redundancy};
use ground::Ground;
use stand::{Stand, Status};

/// Plans to obtain the wanted number of nodes, at the lowest cost that the search finds.
pub fn plan(request: &Request, effort: Effort) -> Result<Plan, Refusal> {
    plan_counting(request, effort, &mut 0)
}

/// Same as [`plan()`], but adds the number of looks to `looks`.
pub fn plan_counting(request: &Request, effort: Effort, looks: &mut u64) -> Result<Plan, Refusal> {
    let ground = Ground::new(request)?;
    let ranked: Vec<usize> = match &request.n_plus_one {
        Some(asked) => {
            check_redundancy(&ground, asked)?;
            vec![scarcest(&ground), asked.dimensions[0]]
        }
        None => vec![scarcest(&ground)],
    };
    let mut stand = Stand::new(&ground, &ranked);
    let redundancy = request.n_plus_one.as_ref().map(|asked| Redundancy::new(&ground, asked, &stand));
    if let Some(redundancy) = &redundancy {
        stand.receives = redundancy.exempt().iter().map(|exempt| !exempt).collect();
    }
    let (entries, others) = entries(&stand);
    let mut nodes: Vec<NodeIdx> = entries.iter().map(|entry| entry.node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    if nodes.len() < request.wanted {
        return Err(Refusal::TooFewCandidates { wanted: request.wanted, clearable: nodes.len(), others });
    }
    let room = ground.room(stand.all_free(), |node| stand.is_open(node) && stand.receives[node.at()]);
    let sums = Sums::new(&entries, &room, request.wanted);
    let shortages = sums.shortages();
    if !shortages.is_empty() {
        return Err(Refusal::NoRoom { wanted: request.wanted, shortages });
    }
    let bound = sums.cost();
    let hardness = ground.hardness();
    let task = Task {
        ground: &ground,
        entries: &entries,
        wanted: request.wanted,
        hardness: &hardness,
        redundancy: redundancy.as_ref(),
        room: &room,
    };
    search(task, stand, (bound, effort), looks)
}

/// The cheapest plan that the search finds.
fn search<'a>(
    task: Task<'a>,
    stand: Stand<'a>,
    (bound, effort): (u64, Effort),
    used: &mut u64,
) -> Result<Plan, Refusal> {
    let before = *used;
    let at_most = |looks: u64, used: u64| looks.min(effort.most.saturating_sub(used - before));
    let (nodes, guests) = (task.ground.nodes.len() as u64, task.ground.guests.len() as u64);
    let covers = task.redundancy.map(|rule| Covers::new(rule, &stand));
    let pristine = Arrangement::new(stand.clone(), covers);
    let looks = at_most(effort.constructing_looks.saturating_mul(nodes + guests), *used);
    let (mut best, most) = choice::construct(task, &pristine, bound, looks, used);
    if let Some(attempt) = best.as_mut().filter(|attempt| attempt.cost() > bound) {
        *used += attempt.improve(at_most(effort.improving_looks.saturating_mul(guests), *used));
    }
    let cost = best.as_ref().map(Attempt::cost);
    if cost.is_some_and(|cost| cost <= bound) || effort.exhaustive_looks == 0 {
        return match best {
            Some(attempt) => Ok(of_attempt(task, &attempt, bound)),
            None => Err(Refusal::SearchExhausted { wanted: task.wanted, found: most }),
        };
    }
    let looks = at_most(effort.exhaustive_looks.saturating_mul(guests + 100), *used);
    let outcome = exhaustive::search(task, stand, cost, looks);
    *used += outcome.looks;
    let proved = |cost: u64| if outcome.complete { cost } else { bound };
    match (outcome.best, best) {
        (Some(found), _) => {
            let place = |guest: InstanceIdx| {
                let position = found.places.binary_search_by_key(&guest, |(guest, _)| *guest);
                position.map_or(task.ground.home[guest.at()], |position| found.places[position].1)
            };
            let bound = proved(task.cost(&found.taken));
            Ok(assemble(task, &found.taken, place, (&found.covers, bound)))
        }
        (None, Some(attempt)) => Ok(of_attempt(task, &attempt, proved(attempt.cost()))),
        (None, None) if outcome.complete => {
            Err(Refusal::NoRoom { wanted: task.wanted, shortages: Vec::new() })
        }
        (None, None) => Err(Refusal::SearchExhausted { wanted: task.wanted, found: most }),
    }
}

fn check_redundancy(ground: &Ground<'_>, asked: &NPlusOne) -> Result<(), Malformed> {
    if let Some(unknown) = asked.nodes.iter().find(|node| ground.node_of(**node).is_none()) {
        return Err(Malformed::UnknownMember(*unknown));
    }
    if asked.dimensions.is_empty() || asked.dimensions.iter().any(|d| *d >= ground.dimensions) {
        return Err(Malformed::RedundantDimensions);
    }
    Ok(())
}

/// The dimension in which the candidates' guests need the largest share of the free capacity; the first among
/// equals.
fn scarcest(ground: &Ground<'_>) -> usize {
    let mut needed = vec![0; ground.dimensions];
    for node in ground.node_indices().filter(|node| ground.nodes[node.at()].role == Role::Candidate) {
        for guest in &ground.residents[node.at()] {
            needed.iter_mut().zip(ground.size(*guest)).for_each(|(needed, size)| *needed += size);
        }
    }
    let share = |dimension: &usize| ground.worth(*dimension, needed[*dimension]);
    (0..ground.dimensions).rev().max_by(|a, b| share(a).total_cmp(&share(b))).unwrap_or(0)
}

/// Ways to obtain candidates, cheapest first, and the reasons against all other nodes.
fn entries(stand: &Stand<'_>) -> (Vec<Entry>, Unclearable) {
    let ground = stand.ground;
    let weights = &ground.request.weights;
    let mut others = Unclearable::default();
    let mut entries = Vec::new();
    for index in ground.node_indices() {
        let node = ground.nodes[index.at()];
        if node.role != Role::Candidate {
            others.not_candidates += 1;
            continue;
        }
        let guests = &ground.residents[index.at()];
        // Free capacity of a node that receives no guests doesn't count as a loss.
        let free = |d: usize| if stand.receives[index.at()] { stand.free(index)[d].max(0) } else { 0 };
        let waiting = node.free_in_seconds.filter(|_| !guests.is_empty());
        if let Some(seconds) = waiting {
            let cost = seconds.saturating_mul(weights.per_second_of_waiting).saturating_add(node.surcharge);
            let room = (0..ground.dimensions).map(free).collect();
            entries.push(Entry { node: index, way: Status::Waited, cost, room });
        }
        let unmovable = guests.iter().any(|guest| !ground.guests[guest.at()].movable);
        if unmovable || guests.iter().any(|guest| !has_destination(stand, *guest)) {
            match (waiting, unmovable) {
                (Some(_), _) => {}
                (None, true) => others.unmovable += 1,
                (None, false) => others.without_destination += 1,
            }
            continue;
        }
        let prices = guests.iter().map(|guest| ground.price[guest.at()]);
        let cost = prices.fold(node.surcharge, u64::saturating_add);
        let moved = |d: usize| guests.iter().map(|guest| ground.size(*guest)[d]).sum::<i64>();
        let room = (0..ground.dimensions).map(|d| free(d) + moved(d)).collect();
        entries.push(Entry { node: index, way: Status::Cleared, cost, room });
    }
    bound::by_cost(&mut entries);
    (entries, others)
}

/// Whether some other node would take the guest in the current state. No node has more free capacity later.
fn has_destination(stand: &Stand<'_>, guest: InstanceIdx) -> bool {
    let home = stand.ground.home[guest.at()];
    let ranking = stand.ranking(0);
    let size = stand.ground.size(guest).get(ranking.dimension).copied().unwrap_or(0);
    let mut roomy = ranking.from(if size == 0 { i64::MIN } else { size }).rev();
    roomy.any(|node| node != home && stand.takes(guest, node))
}

fn of_attempt(task: Task<'_>, attempt: &Attempt<'_>, lower_bound: u64) -> Plan {
    let place = |guest| attempt.arrangement.stand.place(guest);
    assemble(task, &attempt.taken, place, (&attempt.arrangement.hard_covers(), lower_bound))
}

/// Assembles a plan from the entries taken, the guests' places and the covers.
fn assemble(
    task: Task<'_>,
    taken: &[usize],
    place: impl Fn(InstanceIdx) -> NodeIdx,
    (covers, lower_bound): (&[(NodeIdx, Cover)], u64),
) -> Plan {
    let ground = task.ground;
    let place_of =
        |(guest, to): &(InstanceIdx, NodeIdx)| (ground.guests[guest.at()].id, ground.nodes[to.at()].id);
    let refuge = |(node, cover): &(NodeIdx, Cover)| Refuge {
        node: ground.nodes[node.at()].id,
        places: cover.iter().map(place_of).collect(),
    };
    let mut taken = taken.to_vec();
    // Entries are sorted by cost.
    taken.sort_unstable();
    let mut plan = Plan {
        cleared: Vec::new(),
        waits: Vec::new(),
        moves: Vec::new(),
        refuges: covers.iter().map(refuge).collect(),
        cost: Cost::default(),
        lower_bound,
    };
    let cost = &mut plan.cost;
    for entry in taken.iter().map(|position| &task.entries[*position]) {
        let node = ground.nodes[entry.node.at()];
        cost.surcharge = cost.surcharge.saturating_add(node.surcharge);
        cost.weighted = cost.weighted.saturating_add(entry.cost);
        if let (Status::Waited, Some(seconds)) = (entry.way, node.free_in_seconds) {
            cost.waiting_seconds = cost.waiting_seconds.saturating_add(seconds);
            plan.waits.push((node.id, seconds));
            continue;
        }
        plan.cleared.push(node.id);
        let mut guests = ground.residents[entry.node.at()].clone();
        // The hardest guest first: if one cannot be moved after all, it is better to know early.
        task.sort(&mut guests);
        for index in guests {
            let guest = ground.guests[index.at()];
            cost.memory_mib = cost.memory_mib.saturating_add(guest.memory_mib);
            cost.disk_gib = cost.disk_gib.saturating_add(guest.disk_gib);
            cost.downtime_ms = cost.downtime_ms.saturating_add(guest.downtime_ms);
            let to = ground.nodes[place(index).at()].id;
            plan.moves.push(Move { guest: guest.id, from: node.id, to });
        }
    }
    plan
}
