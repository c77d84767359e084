//! A hunt as an integer program. Its solution is the cheapest plan that the rules of [`placement::clear`]
//! allow, redundancy excepted.

use std::collections::{BTreeMap, BTreeSet};

use highs::{Col, HighsModelStatus, RowProblem, Sense};
use placement::clear::{Cost, Guest, GuestId, Move, Node, NodeId, Plan, Request, Role};

/// Result of the solver.
#[derive(Debug)]
pub enum Exact {
    /// A plan of minimal cost.
    Cheapest(Plan),
    Impossible,
    /// The time limit expired first.
    Unknown,
}

/// Threshold above which a 0/1 variable counts as set.
const SET: f64 = 0.5;

/// The integer program and its variables.
struct Variables {
    problem: RowProblem,
    /// Whether the node is cleared.
    cleared: BTreeMap<NodeId, Col>,
    /// Whether to wait for the node to become free.
    waited: BTreeMap<NodeId, Col>,
    /// Whether the guest moves to the node.
    moves: BTreeMap<(GuestId, NodeId), Col>,
}

/// Solves the integer program within this time limit.
pub fn solve(request: &Request, seconds: f64) -> Exact {
    let mut variables = declare(request);
    constrain(request, &mut variables);
    let Variables { problem, cleared, waited, moves } = variables;
    let mut model = problem.optimise(Sense::Minimise);
    model.make_quiet();
    model.set_option("time_limit", seconds);
    model.set_option("mip_rel_gap", 0.0);
    model.set_option("mip_abs_gap", 0.5);
    let solved = model.solve();
    match solved.status() {
        HighsModelStatus::Optimal => {}
        HighsModelStatus::Infeasible => return Exact::Impossible,
        _ => return Exact::Unknown,
    }
    let values = solved.get_solution();
    let value = |column: &Col| values.columns()[column.index()] > SET;
    let set = |columns: &BTreeMap<NodeId, Col>| -> Vec<NodeId> {
        columns.iter().filter(|(_, column)| value(column)).map(|(node, _)| *node).collect()
    };
    let chosen = moves.iter().filter(|(_, column)| value(column)).map(|(chosen, _)| *chosen);
    Exact::Cheapest(plan(request, set(&cleared), &set(&waited), &chosen.collect()))
}

fn declare(request: &Request) -> Variables {
    let weights = &request.weights;
    let (mut cleared, mut waited, mut moves) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let mut problem = RowProblem::new();
    for node in request.nodes.iter().filter(|node| node.role == Role::Candidate) {
        let guests: Vec<&Guest> = guests_on(request, node.id).collect();
        if let Some(seconds) = node.free_in_seconds.filter(|_| !guests.is_empty()) {
            let price = seconds * weights.per_second_of_waiting + node.surcharge;
            waited.insert(node.id, problem.add_integer_column(price as f64, 0..=1));
        }
        if guests.iter().any(|guest| !guest.movable) {
            continue;
        }
        let price = node.surcharge + guests.iter().map(|guest| weights.of_move(guest)).sum::<u64>();
        cleared.insert(node.id, problem.add_integer_column(price as f64, 0..=1));
        for guest in guests {
            for to in request.nodes.iter().filter(|to| to.id != node.id && receives(to, guest)) {
                moves.insert((guest.id, to.id), problem.add_integer_column(0.0, 0..=1));
            }
        }
    }
    Variables { problem, cleared, waited, moves }
}

fn constrain(request: &Request, variables: &mut Variables) {
    let Variables { problem, cleared, waited, moves } = variables;
    let one = |columns: &BTreeMap<NodeId, Col>, node| columns.get(&node).map(|column| (*column, 1.0));
    // Exactly the wanted number of nodes, each cleared or waited for.
    let taken: Vec<(Col, f64)> =
        cleared.values().chain(waited.values()).map(|column| (*column, 1.0)).collect();
    problem.add_row(request.wanted as f64..=request.wanted as f64, &taken);
    for node in &request.nodes {
        let ways: Vec<_> = one(cleared, node.id).into_iter().chain(one(waited, node.id)).collect();
        problem.add_row(..=1, &ways);
        // Guests move only to nodes that aren't taken and have enough capacity.
        let coming =
            request.guests.iter().filter_map(|guest| Some((guest, *moves.get(&(guest.id, node.id))?)));
        let coming: Vec<(&Guest, Col)> = coming.collect();
        for (_, column) in &coming {
            let excluded: Vec<_> = ways.iter().copied().chain([(*column, 1.0)]).collect();
            problem.add_row(..=1, &excluded);
        }
        for dimension in 0..node.capacity.len() {
            let used: u64 = guests_on(request, node.id).map(|guest| guest.size[dimension]).sum();
            let free = node.capacity[dimension].saturating_sub(used);
            let needs = coming.iter().map(|(guest, column)| (*column, guest.size[dimension] as f64));
            problem.add_row(..=free as f64, needs.collect::<Vec<_>>());
        }
        let groups: BTreeSet<_> = coming.iter().flat_map(|(guest, _)| &guest.exclusion).collect();
        for group in groups {
            let there = guests_on(request, node.id).any(|guest| guest.exclusion.contains(group));
            let members = coming.iter().filter(|(guest, _)| guest.exclusion.contains(group));
            let members: Vec<_> = members.map(|(_, column)| (*column, 1.0)).collect();
            problem.add_row(..=if there { 0 } else { 1 }, &members);
        }
    }
    // All guests of a cleared node move, and no others.
    for guest in &request.guests {
        let Some(clears) = cleared.get(&guest.node) else { continue };
        let goes =
            request.nodes.iter().filter_map(|to| moves.get(&(guest.id, to.id))).map(|column| (*column, 1.0));
        let row: Vec<_> = goes.chain([(*clears, -1.0)]).collect();
        problem.add_row(0..=0, &row);
    }
}

fn guests_on(request: &Request, node: NodeId) -> impl Iterator<Item = &Guest> {
    request.guests.iter().filter(move |guest| guest.node == node)
}

fn receives(node: &Node, guest: &Guest) -> bool {
    node.role != Role::Closed && guest.requires.is_subset(&node.labels) && !guest.avoided.contains(&node.id)
}

/// Converts the solution to a plan, which is then checked like any other.
fn plan(
    request: &Request,
    cleared: Vec<NodeId>,
    waited: &[NodeId],
    chosen: &BTreeSet<(GuestId, NodeId)>,
) -> Plan {
    let node = |id: &NodeId| request.nodes.iter().find(|node| node.id == *id).expect("a node of the request");
    let mut cost = Cost::default();
    let mut moves = Vec::new();
    for guest in &request.guests {
        if let Some((_, to)) = chosen.iter().find(|(id, _)| *id == guest.id) {
            moves.push(Move { guest: guest.id, from: guest.node, to: *to });
            cost.memory_mib += guest.memory_mib;
            cost.disk_gib += guest.disk_gib;
            cost.downtime_ms += guest.downtime_ms;
            cost.weighted += request.weights.of_move(guest);
        }
    }
    let seconds = |id: &NodeId| node(id).free_in_seconds.expect("it is waited for");
    let waits: Vec<(NodeId, u64)> = waited.iter().map(|id| (*id, seconds(id))).collect();
    for (_, seconds) in &waits {
        cost.waiting_seconds += seconds;
        cost.weighted += seconds * request.weights.per_second_of_waiting;
    }
    cost.surcharge = cleared.iter().chain(waited).map(|id| node(id).surcharge).sum();
    cost.weighted += cost.surcharge;
    Plan { cleared, waits, moves, refuges: Vec::new(), cost, lower_bound: 0 }
}
