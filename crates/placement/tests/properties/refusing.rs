//! Refusals by `drain`, `whatif` and `fit` on small clusters, checked by exhaustive search.

use std::cell::Cell;
use std::collections::HashSet;

use cluster::{Cluster, DiskTemplate, InstanceIdx, LoadOptions, Move, NodeIdx};
use placement::capacity::{CapacityOptions, Shape};
use placement::drain::{DrainOptions, Obstacle, Plan, Purpose, Role, Stay, drain};
use placement::fit::{FitQuestion, fit};
use placement::whatif::Changes;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::generate::{Recipe, cases, recipes_of};
use crate::ledger::{Ledger, Limits, Permissions, Place};

/// Maximum number of states that a search visits.
const MOST_STATES: usize = 5_000;

/// All kinds of moves to all nodes.
fn moves(cluster: &Cluster) -> Vec<Move> {
    let kinds: [fn(NodeIdx) -> Move; 5] = [
        Move::FailoverTo,
        Move::ReplaceSecondary,
        Move::ReplaceAndFailover,
        Move::ReplacePrimary,
        Move::FailoverAndReplace,
    ];
    let to = cluster.node_indices().flat_map(|t| kinds.map(|kind| kind(t)));
    std::iter::once(Move::Failover).chain(to).collect()
}

/// Whether some sequence of moves of the instances for which `moves_too` holds reaches the goal. `None` if
/// the search was cut short.
fn can_reach(
    start: &Ledger<'_>,
    moves: &[Move],
    may: &Permissions<'_>,
    moves_too: impl Fn(InstanceIdx) -> bool,
    is_goal: impl Fn(&[Place]) -> bool,
) -> Option<bool> {
    let mut seen = HashSet::from([start.places.clone()]);
    let mut open = vec![start.clone()];
    while let Some(state) = open.pop() {
        if is_goal(&state.places) {
            return Some(true);
        }
        let exists = |i: &InstanceIdx| !start.cluster.instance(*i).forthcoming;
        for index in start.cluster.instance_indices().filter(exists).filter(|i| moves_too(*i)) {
            for to in moves.iter().filter_map(|mov| state.destination(index, *mov, may.leaving).ok()) {
                let mut next = state.clone();
                if next.put(index, to, may).is_ok() && seen.insert(next.places.clone()) {
                    open.push(next);
                }
            }
        }
        if seen.len() > MOST_STATES {
            return None;
        }
    }
    Some(false)
}

/// Whether a copy that must leave is on one of the nodes.
fn remains(
    cluster: &Cluster,
    at: usize,
    role: Role,
    place: Place,
    nodes: &[NodeIdx],
    purpose: Purpose,
) -> bool {
    let instance = &cluster.instances[at];
    let is_mirrored = instance.template == DiskTemplate::Drbd;
    !instance.forthcoming
        && match role {
            Role::Primary => {
                nodes.contains(&place.0) && (purpose != Purpose::Reboot || instance.uses_memory())
            }
            Role::Secondary => {
                purpose != Purpose::Reboot && is_mirrored && place.1.is_some_and(|s| nodes.contains(&s))
            }
        }
}

/// Checks that obstacles other than a lack of capacity hold with unlimited capacity. Returns their number.
fn check_obstacles(
    cluster: &Cluster,
    leaving: &[NodeIdx],
    options: DrainOptions,
    plan: &Plan,
) -> Result<u32, TestCaseError> {
    let mut moves = moves(cluster);
    moves.retain(|mov| options.disk_moves || matches!(mov, Move::Failover | Move::FailoverTo(_)));
    let start = Ledger::new(cluster);
    let is_fixed = |stay: &&Stay| !matches!(stay.obstacle, Obstacle::Refused(_));
    let mut checked = 0;
    for stay in plan.stays.iter().filter(is_fixed) {
        let index = stay.instance.at();
        let may = Permissions { leaving, limits: Limits::Data };
        // A mirror that stays can be the copy that the primary left behind.
        let has_left = |places: &[Place]| {
            let is_there = |role| remains(cluster, index, role, places[index], leaving, options.purpose);
            !is_there(Role::Primary) && (stay.role == Role::Primary || !is_there(Role::Secondary))
        };
        let found = can_reach(&start, &moves, &may, |i| i == stay.instance, has_left);
        prop_assert_eq!(found, Some(false), "{:?}", stay);
        checked += 1;
    }
    Ok(checked)
}

/// Disables tags and exclusive storage, whose rules the ledger doesn't have.
fn plain(recipe: &Recipe) -> Recipe {
    let mut recipe = recipe.recorded();
    (recipe.style.tagged, recipe.style.exclusive) = (false, false);
    recipe
}

fn nodes_of(cluster: &Cluster, bits: u8) -> Vec<NodeIdx> {
    cluster.node_indices().filter(|n| bits >> n.0 & 1 == 1).collect()
}

fn counted(name: &str, counts: [(&str, &Cell<u32>); 3]) {
    let counts = counts.map(|(what, count)| format!("{} {what}", count.get()));
    println!("{name}: {}", counts.join(", "));
}

fn add(count: &Cell<u32>) {
    add_many(count, 1);
}

fn add_many(count: &Cell<u32>, more: u32) {
    count.set(count.get() + more);
}

#[test]
fn drain_names_obstacles_that_no_sequence_of_moves_avoids() {
    let (proven, no_way, missed) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let purpose = prop_oneof![Just(Purpose::Retire), Just(Purpose::Reboot), Just(Purpose::Lost)];
    let questions = (recipes_of(4, 4), 1..16_u8, purpose, any::<bool>(), (0..16_u8, 0..16_u8));
    let checked =
        TestRunner::new(cases(256)).run(&questions, |(recipe, bits, purpose, disk_moves, drained)| {
            let mut cluster = plain(&recipe).build();
            let leaving = nodes_of(&cluster, bits);
            for node in nodes_of(&cluster, drained.0 & drained.1) {
                let is_offline = cluster.node(node).offline;
                cluster.nodes[node.at()].set_flags(is_offline, true, true);
            }
            for node in leaving.iter().filter(|_| purpose == Purpose::Lost) {
                cluster.nodes[node.at()].lose();
            }
            let options = DrainOptions { purpose, ignore_soft_errors: false, disk_moves };
            let plan = drain(&mut cluster.clone(), &leaving, options);
            let mut moves = moves(&cluster);
            moves.retain(|mov| disk_moves || matches!(mov, Move::Failover | Move::FailoverTo(_)));
            let start = Ledger::new(&cluster);
            add_many(&proven, check_obstacles(&cluster, &leaving, options, &plan)?);
            if !plan.refused().is_empty() {
                add(&no_way);
                let may = Permissions { leaving: &leaving, limits: Limits::Everything };
                let all_left = |places: &[Place]| {
                    let refused = plan.refused();
                    refused.into_iter().all(|i| {
                        [Role::Primary, Role::Secondary]
                            .iter()
                            .all(|role| !remains(&cluster, i.at(), *role, places[i.at()], &leaving, purpose))
                    })
                };
                if can_reach(&start, &moves, &may, |_| true, all_left) == Some(true) {
                    add(&missed);
                }
            }
            Ok(())
        });
    let counts =
        [("copies stay", &proven), ("times no way was found", &no_way), ("of them with one", &missed)];
    counted("drain", counts);
    checked.unwrap();
    assert!(proven.get() > 0 && missed.get() * 10 < no_way.get());
}

fn shapes() -> impl Strategy<Value = Shape> {
    let template = prop_oneof![Just(DiskTemplate::Drbd), Just(DiskTemplate::Plain), Just(DiskTemplate::Rbd)];
    (1..8_i64, 1..16_i64, 1..5_i64, template).prop_map(|(memory, disk, vcpus, template)| Shape {
        memory_mib: 1024 * memory,
        disk_mib: 1024 * disk,
        vcpus,
        spindles: 1,
        spindle_use: 1,
        template,
        metadata_mib: 0,
    })
}

/// Maximum number of instances of the ledger's shape that fit. `None` if the search was cut short.
fn most_that_fit(start: &Ledger<'_>, places: &[Place]) -> Option<usize> {
    let existing = start.places.len();
    let mut seen = HashSet::new();
    let mut open = vec![start.clone()];
    let mut most = 0;
    while let Some(state) = open.pop() {
        most = most.max(state.places.len() - existing);
        for place in places {
            let mut next = state.clone();
            if next.add(*place) {
                // Instances of the same shape are interchangeable.
                next.places[existing..].sort_unstable();
                if seen.insert(next.places.clone()) {
                    open.push(next);
                }
            }
        }
        if seen.len() > MOST_STATES {
            return None;
        }
    }
    Some(most)
}

/// Places for an instance of `template`, regardless of capacity.
fn places_for(cluster: &Cluster, template: DiskTemplate) -> Vec<Place> {
    let nodes: Vec<NodeIdx> = cluster.node_indices().filter(|n| !cluster.node(*n).offline).collect();
    if template != DiskTemplate::Drbd {
        return nodes.into_iter().map(|n| (n, None)).collect();
    }
    let pairs = nodes.iter().flat_map(|p| nodes.iter().map(|s| (*p, *s)));
    let is_pair = |(p, s): &(NodeIdx, NodeIdx)| p != s && cluster.node(*p).group == cluster.node(*s).group;
    pairs.filter(is_pair).map(|(p, s)| (p, Some(s))).collect()
}

/// `whatif` refuses in two ways: an instance of a lost node doesn't run or has no mirror, or fewer new
/// instances are placed than requested. Rescues and placements are made as in `drain` and `fit`, on the
/// changed cluster.
#[test]
fn whatif_refuses_rescues_and_instances_for_which_there_is_no_way() {
    let (stays, refused, too_few) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let questions = (recipes_of(4, 4), shapes(), 0..16_u8, 0..16_u8, 1..4_usize);
    let checked = TestRunner::new(cases(256)).run(&questions, |(recipe, shape, lost, removed, wanted)| {
        let cluster = plain(&recipe).build();
        prop_assume!(cluster.instances.iter().all(|instance| !instance.forthcoming));
        let remove = cluster.instance_indices().filter(|i| removed >> i.0 & 1 == 1).collect();
        let rules = CapacityOptions { capacity_checks: false, ..CapacityOptions::HAIL };
        let lose = Changes { remove, lose: nodes_of(&cluster, lost), rules, ..Changes::default() };
        let changed = lose.reshape(&cluster, &LoadOptions::default()).unwrap();
        let mut rescued = changed.clone();
        let rescue = lose.enact(&mut rescued).rescue;
        if let Some(plan) = rescue {
            let mut dead = changed.clone();
            lose.lose.iter().for_each(|node| dead.nodes[node.at()].lose());
            let options =
                DrainOptions { purpose: Purpose::Lost, ignore_soft_errors: false, disk_moves: true };
            add_many(&stays, check_obstacles(&dead, &lose.lose, options, &plan)?);
        }
        let all = Changes { add_instances: vec![(wanted, shape)], ..lose };
        let enacted = all.enact(&mut changed.clone());
        let added = &enacted.added[0];
        let instance = shape.instance("");
        let allows = |node: &cluster::Node| {
            rescued.group(node.group).policy.check(&instance, node.exclusive_storage).is_ok()
        };
        prop_assume!(rescued.nodes.iter().filter(|node| !node.offline).all(allows));
        if added.refused.is_some() {
            let places = places_for(&rescued, shape.template);
            let most = most_that_fit(&Ledger::for_shape(&rescued, &instance), &places);
            let count = added.placed.len();
            let is_proven = count == 0 || shape.template != DiskTemplate::Drbd;
            prop_assert!(most.is_none_or(|most| most >= count), "{:?} fit, {} placed", most, count);
            prop_assert!(
                !is_proven || most.is_none_or(|most| most == count),
                "{:?} fit, {} placed",
                most,
                count
            );
            add(&refused);
            if most.is_some_and(|most| most > count) {
                add(&too_few);
            }
        }
        Ok(())
    });
    counted("whatif", [("copies stay", &stays), ("refusals", &refused), ("of them too low", &too_few)]);
    checked.unwrap();
    assert!(stays.get() > 0 && refused.get() > 0);
}

#[test]
fn fit_refuses_instances_that_no_placement_holds() {
    let (proven, no_way, missed) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let questions = (recipes_of(4, 4), shapes());
    let checked = TestRunner::new(cases(256)).run(&questions, |(recipe, shape)| {
        let cluster = plain(&recipe).build();
        prop_assume!(cluster.instances.iter().all(|instance| !instance.forthcoming));
        let rules = CapacityOptions { capacity_checks: false, ..CapacityOptions::HAIL };
        let question = FitQuestion { shape, most: 100, rules };
        let answer = fit(&cluster, &question);
        prop_assume!(answer.refused.is_some() && answer.outside_policy.is_empty());
        let instance = shape.instance("");
        let places = places_for(&cluster, shape.template);
        let most = most_that_fit(&Ledger::for_shape(&cluster, &instance), &places);
        let count = answer.placed.len();
        if answer.is_proven(&question) {
            prop_assert!(most.is_none_or(|most| most == count), "{:?} fit, {} placed", most, count);
            add(&proven);
        } else {
            prop_assert!(most.is_none_or(|most| most >= count), "{:?} fit, {} placed", most, count);
            add(&no_way);
            if most.is_some_and(|most| most > count) {
                add(&missed);
            }
        }
        Ok(())
    });
    counted("fit", [("answers", &proven), ("of mirrored instances", &no_way), ("of them too low", &missed)]);
    checked.unwrap();
    assert!(proven.get() > 0);
}
