//! Clearing nodes: plans keep all rules, and on small pools they are optimal.

use std::collections::BTreeSet;

use placement::clear::{
    Cost, CostWeights, Effort, ExclusionGroup, Guest, GuestId, Label, Move, NPlusOne, Node, NodeId, Plan,
    Refuge, Refusal, Request, Role, Violation, check, plan,
};
use proptest::prelude::*;

use crate::generate::cases;

/// Maximum size of a pool.
#[derive(Clone, Copy, Debug)]
struct Extent {
    nodes: usize,
    guests: usize,
    /// Approximate capacity of a node in each dimension.
    capacity: u64,
    redundant: bool,
}

const TINY: Extent = Extent { nodes: 5, guests: 7, capacity: 10, redundant: false };
const TINY_REDUNDANT: Extent = Extent { nodes: 5, guests: 5, capacity: 14, redundant: true };
const SMALL: Extent = Extent { nodes: 16, guests: 60, capacity: 24, redundant: true };

fn node(extent: Extent) -> impl Strategy<Value = Node> {
    let role = prop_oneof![8 => Just(Role::Candidate), 2 => Just(Role::Receiver), 1 => Just(Role::Closed)];
    let amount = || extent.capacity / 2..=extent.capacity;
    let labels = prop::collection::btree_set((0..3_u32).prop_map(Label), 1..=3);
    let waiting = prop::option::weighted(0.1, 0..40_u64);
    (role, (amount(), amount()), labels, waiting, prop_oneof![Just(0), 0..20_u64]).prop_map(
        |(role, (first, second), labels, free_in_seconds, surcharge)| Node {
            labels,
            free_in_seconds,
            surcharge,
            ..Node::new(NodeId(0), role, vec![first, second])
        },
    )
}

fn guest(nodes: usize) -> impl Strategy<Value = Guest> {
    let costs = (0..20_u64, 0..3_u64, 0..5_u64, 0..3_u64);
    let requires = prop_oneof![
        3 => Just(BTreeSet::new()),
        1 => (0..3_u32).prop_map(|label| BTreeSet::from([Label(label)])),
    ];
    let exclusion = prop_oneof![
        3 => Just(BTreeSet::new()),
        1 => (0..2_u64).prop_map(|group| BTreeSet::from([ExclusionGroup(group)])),
    ];
    let size = (prop_oneof![Just(0), 1..5_u64], 1..5_u64);
    let avoided = prop_oneof![4 => Just(None), 1 => (0..nodes as u64).prop_map(|node| Some(NodeId(node)))];
    let where_to = (requires, exclusion, avoided);
    (0..nodes as u64, size, prop::bool::weighted(0.95), costs, where_to).prop_map(
        |(node, size, movable, costs, (requires, exclusion, avoided))| {
            let (memory_mib, disk_gib, downtime_ms, priority) = costs;
            Guest {
                movable,
                memory_mib,
                disk_gib,
                downtime_ms,
                priority,
                requires,
                exclusion,
                avoided: avoided.into_iter().collect(),
                ..Guest::new(GuestId(0), NodeId(node), vec![size.0, size.1])
            }
        },
    )
}

/// Random requests. Nodes can be overloaded, and a node can have guests that exclude each other.
fn requests(extent: Extent) -> impl Strategy<Value = Request> {
    let nodes = prop::collection::vec(node(extent), extent.nodes / 2..=extent.nodes);
    let pool = nodes.prop_flat_map(move |nodes| {
        let guests = prop::collection::vec(guest(nodes.len()), extent.guests / 2..=extent.guests);
        let members = prop::collection::vec(prop::bool::weighted(0.9), nodes.len());
        let redundant = prop::bool::weighted(0.7).prop_map(move |redundant| redundant && extent.redundant);
        let dimensions = prop_oneof![Just(vec![1]), Just(vec![1, 0])];
        let rule = (redundant, members, dimensions)
            .prop_map(|(redundant, members, dimensions)| redundant.then_some((members, dimensions)));
        (Just(nodes), guests, rule, 1..=extent.nodes / 2)
    });
    pool.prop_map(|(mut nodes, mut guests, rule, wanted)| {
        (0..).zip(&mut nodes).for_each(|(id, node)| node.id = NodeId(id));
        (0..).zip(&mut guests).for_each(|(id, guest)| guest.id = GuestId(id));
        let n_plus_one = rule.map(|(members, dimensions)| {
            let members = nodes.iter().zip(members).filter(|(_, member)| *member);
            NPlusOne { nodes: members.map(|(node, _)| node.id).collect(), dimensions }
        });
        let weights = CostWeights {
            per_mib_of_memory: 1,
            per_gib_of_disk: 10,
            per_ms_of_downtime: 2,
            per_second_of_waiting: 3,
        };
        Request { nodes, guests, wanted, n_plus_one, weights }
    })
}

/// Cost of the cheapest plan, found by trying every choice of nodes and destinations and judged by the
/// checker.
fn cheapest(request: &Request) -> Option<u64> {
    let mut best = None;
    // Each node is left alone, cleared, or waited for.
    for code in 0..3_usize.pow(request.nodes.len() as u32) {
        let way = |node: usize| code / 3_usize.pow(node as u32) % 3;
        let ways = 0..request.nodes.len();
        if ways.clone().filter(|node| way(*node) > 0).count() != request.wanted {
            continue;
        }
        let of = |chosen: usize| {
            ways.clone().filter(move |node| way(*node) == chosen).map(|at| &request.nodes[at])
        };
        let cleared: Vec<NodeId> = of(1).map(|node| node.id).collect();
        let waits: Vec<(NodeId, u64)> =
            of(2).filter_map(|node| Some((node.id, node.free_in_seconds?))).collect();
        let lower_bound = 0;
        let (moves, refuges, cost) = (Vec::new(), Vec::new(), Cost::default());
        let plan = Plan { cleared, waits, moves, refuges, cost, lower_bound };
        let displaced: Vec<&Guest> =
            request.guests.iter().filter(|guest| plan.cleared.contains(&guest.node)).collect();
        let mut costs = Vec::new();
        assign(request, plan, &displaced, &mut costs);
        best = best.into_iter().chain(costs).min();
    }
    best
}

/// Adds the cost of the plan, which doesn't depend on destinations, if the guests can be placed at all.
fn assign(request: &Request, mut plan: Plan, displaced: &[&Guest], costs: &mut Vec<u64>) {
    let Some((guest, rest)) = displaced.split_first() else {
        plan.cost = price(request, &plan);
        if passes(request, &mut plan) {
            costs.push(plan.cost.weighted);
        }
        return;
    };
    let taken =
        |node: NodeId| plan.cleared.contains(&node) || plan.waits.iter().any(|(wait, _)| *wait == node);
    let open = request.nodes.iter().filter(|node| node.role != Role::Closed && !taken(node.id));
    for to in open.map(|node| node.id) {
        if !costs.is_empty() {
            return;
        }
        let mut plan = plan.clone();
        plan.moves.push(Move { guest: guest.id, from: guest.node, to });
        assign(request, plan, rest, costs);
    }
}

/// Whether the plan passes the check, possibly after adding refuges for nodes that the check finds not
/// redundant.
fn passes(request: &Request, plan: &mut Plan) -> bool {
    match check(request, plan) {
        Err(Violation::NotRedundant { node, .. })
            if plan.refuges.iter().all(|refuge| refuge.node != node) =>
        {
            let place = |guest: &Guest| {
                let moved = plan.moves.iter().find(|mov| mov.guest == guest.id);
                moved.map_or(guest.node, |mov| mov.to)
            };
            let there = request.guests.iter().filter(|guest| place(guest) == node);
            let guests: Vec<GuestId> = there.map(|guest| guest.id).collect();
            plan.refuges.push(Refuge { node, places: guests.iter().map(|guest| (*guest, node)).collect() });
            let last = plan.refuges.len() - 1;
            let nodes = request.nodes.len();
            for code in 0..nodes.pow(guests.len() as u32) {
                for (at, place) in plan.refuges[last].places.iter_mut().enumerate() {
                    place.1 = request.nodes[code / nodes.pow(at as u32) % nodes].id;
                }
                if passes(request, plan) {
                    return true;
                }
            }
            plan.refuges.pop();
            false
        }
        verdict => verdict.is_ok(),
    }
}

fn price(request: &Request, plan: &Plan) -> Cost {
    let mut cost = Cost::default();
    for guest in request.guests.iter().filter(|guest| plan.moves.iter().any(|mov| mov.guest == guest.id)) {
        cost.memory_mib += guest.memory_mib;
        cost.disk_gib += guest.disk_gib;
        cost.downtime_ms += guest.downtime_ms;
        cost.weighted += request.weights.of_move(guest);
    }
    cost.waiting_seconds = plan.waits.iter().map(|(_, seconds)| seconds).sum();
    let taken =
        |node: &&Node| plan.cleared.contains(&node.id) || plan.waits.iter().any(|(wait, _)| *wait == node.id);
    cost.surcharge = request.nodes.iter().filter(taken).map(|node| node.surcharge).sum();
    cost.weighted += cost.waiting_seconds * request.weights.per_second_of_waiting + cost.surcharge;
    cost
}

/// Effort that doesn't enumerate all plans.
const HURRIED: Effort =
    Effort { constructing_looks: 4000, improving_looks: 2000, exhaustive_looks: 0, most: u64::MAX };
const CARELESS: Effort =
    Effort { constructing_looks: 0, improving_looks: 0, exhaustive_looks: 0, most: u64::MAX };

fn agrees_with_all_plans(request: &Request) -> Result<(), TestCaseError> {
    let best = cheapest(request);
    match plan(request, Effort::default()) {
        Ok(plan) => {
            prop_assert_eq!(check(request, &plan), Ok(()));
            prop_assert_eq!(Some(plan.cost.weighted), best);
            prop_assert!(plan.lower_bound == plan.cost.weighted);
        }
        Err(refusal) => {
            prop_assert_eq!(best, None, "{}", &refusal);
            prop_assert!(!matches!(refusal, Refusal::SearchExhausted { .. }), "{}", refusal);
        }
    }
    match plan(request, HURRIED) {
        Ok(plan) => {
            prop_assert_eq!(check(request, &plan), Ok(()));
            prop_assert!(Some(plan.lower_bound) <= best && best <= Some(plan.cost.weighted));
        }
        Err(Refusal::SearchExhausted { .. }) => {}
        Err(refusal) => prop_assert_eq!(best, None, "{}", refusal),
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn on_tiny_pools_the_cheapest_plan_is_found_if_there_is_any(request in requests(TINY)) {
        agrees_with_all_plans(&request)?;
    }

    #[test]
    fn on_tiny_redundant_pools_too(request in requests(TINY_REDUNDANT)) {
        agrees_with_all_plans(&request)?;
    }

    #[test]
    fn every_plan_passes_the_check(request in requests(SMALL)) {
        for effort in [Effort::default(), HURRIED, CARELESS] {
            if let Ok(plan) = plan(&request, effort) {
                prop_assert_eq!(check(&request, &plan), Ok(()));
            }
        }
    }

    #[test]
    fn the_order_of_nodes_and_guests_decides_nothing(request in requests(SMALL)) {
        let mut turned = request.clone();
        turned.nodes.reverse();
        turned.guests.reverse();
        let there = plan(&request, Effort::default());
        prop_assert_eq!(&there, &plan(&request, Effort::default()));
        prop_assert_eq!(&there, &plan(&turned, Effort::default()));
    }

    #[test]
    fn more_effort_is_never_dearer(request in requests(SMALL)) {
        let with = |effort| plan(&request, effort).ok().map(|plan| plan.cost.weighted);
        let hurried = with(HURRIED);
        if let (Some(hurried), thorough) = (hurried, with(Effort::default())) {
            prop_assert!(thorough.is_some_and(|thorough| thorough <= hurried));
        }
    }

    #[test]
    fn a_broken_plan_is_noticed(request in requests(SMALL), pick: prop::sample::Index) {
        let Ok(plan) = plan(&request, Effort::default()) else { return Ok(()) };
        prop_assume!(!plan.moves.is_empty());
        let at = pick.index(plan.moves.len());
        let broken = |change: &dyn Fn(&mut Plan)| {
            let mut broken = plan.clone();
            change(&mut broken);
            check(&request, &broken).is_err()
        };
        prop_assert!(broken(&|plan| plan.moves.truncate(at)), "a move is missing");
        prop_assert!(broken(&|plan| plan.moves.push(plan.moves[at])), "a guest moves twice");
        prop_assert!(broken(&|plan| plan.moves[at].to = plan.cleared[0]), "a node that is cleared receives");
        prop_assert!(broken(&|plan| plan.cost.memory_mib += 1), "the cost is wrong");
        prop_assert!(broken(&|plan| plan.lower_bound = plan.cost.weighted + 1), "the bound is wrong");
        prop_assert!(broken(&|plan| plan.cleared.truncate(plan.cleared.len() - 1)), "a node is missing");
    }
}
