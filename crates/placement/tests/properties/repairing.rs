//! Repairs: every move is an improvement and makes nothing worse, and no move is unnecessary.

use cluster::{Cluster, InstanceIdx, Move, NodeIdx, Probe};
use placement::balance::BalanceOptions;
use placement::repair::{Measure, Repair, repair};
use proptest::prelude::*;

use crate::generate::{cases, recipes};

/// Nodes and instances of the first node's group.
fn scope(cluster: &Cluster) -> (Vec<NodeIdx>, Vec<InstanceIdx>) {
    let group = cluster.nodes[0].group;
    (cluster.nodes_of(group), cluster.instances_of(group))
}

fn run(cluster: &mut Cluster, options: &BalanceOptions) -> Repair {
    let (nodes, instances) = scope(cluster);
    repair(cluster, &nodes, &instances, options)
}

/// Measures at the start and after each move, if every move is possible.
fn measures(mut cluster: Cluster, moves: &[(InstanceIdx, Move)], force: bool) -> Option<Vec<Measure>> {
    let (nodes, _) = scope(&cluster);
    let mut measures = vec![Measure::of(&cluster, &nodes)];
    for (instance, mov) in moves {
        let outcome = Probe::new(&cluster, *instance).judge(*mov, force).ok()?;
        cluster.apply(*instance, &outcome);
        measures.push(Measure::of(&cluster, &nodes));
    }
    Some(measures)
}

fn moves(repair: &Repair) -> Vec<(InstanceIdx, Move)> {
    repair.steps.iter().map(|step| (step.instance, step.mov)).collect()
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn every_move_is_possible_and_makes_something_better_and_nothing_worse(recipe in recipes(), force: bool) {
        let mut cluster = recipe.build();
        let before = cluster.clone();
        let options = BalanceOptions { ignore_soft_errors: force, ..BalanceOptions::default() };
        let repair = run(&mut cluster, &options);
        let Some(measures) = measures(before, &moves(&repair), force) else {
            return Err(TestCaseError::fail("a move is impossible"));
        };
        for pair in measures.windows(2) {
            prop_assert!(pair[1] < pair[0]);
            prop_assert!(force || pair[1].worsens_nothing(&pair[0]) || pair[1].runs_more(&pair[0]));
        }
        prop_assert_eq!(measures[0], repair.before);
        prop_assert_eq!(measures[measures.len() - 1], repair.after);
        prop_assert_eq!(repair.after, Measure::of(&cluster, &scope(&cluster).0));
        prop_assert_eq!(repair.values.len(), repair.steps.len() + 1);
    }

    #[test]
    fn what_is_down_starts_before_anything_else_and_once(recipe in recipes()) {
        let mut cluster = recipe.build();
        let before = cluster.clone();
        let repair = run(&mut cluster, &BalanceOptions::default());
        let is_down = |i: InstanceIdx| before.node(before.instance(i).primary).offline;
        let starts = |mov: Move| matches!(mov, Move::Failover | Move::FailoverTo(_));
        let first_copy = repair.steps.iter().position(|s| !starts(s.mov)).unwrap_or(repair.steps.len());
        for index in before.instance_indices().filter(|i| is_down(*i)) {
            let moves: Vec<usize> =
                (0..repair.steps.len()).filter(|at| repair.steps[*at].instance == index).collect();
            let Some(first) = moves.first() else { continue };
            // An instance that can start immediately does so before the first copy.
            let outcome = Probe::new(&before, index).judge(Move::Failover, false);
            prop_assert!(outcome.is_err() || *first < first_copy || !starts(repair.steps[*first].mov));
        }
    }

    #[test]
    fn a_healthy_cluster_stays_as_it_is(recipe in recipes()) {
        // Most random clusters aren't healthy, but many are after a repair.
        let mut cluster = recipe.build();
        let first = run(&mut cluster, &BalanceOptions::default());
        prop_assert_eq!(first.before.is_healthy(), first.found.is_empty());
        prop_assert_eq!(first.after.is_healthy(), first.remaining.is_empty());
        if first.after.is_healthy() {
            let second = run(&mut cluster, &BalanceOptions::default());
            prop_assert!(second.steps.is_empty());
        }
        prop_assert!(!first.before.is_healthy() || first.steps.is_empty());
    }

    #[test]
    fn no_instance_moves_twice_unless_both_moves_are_necessary(recipe in recipes()) {
        let mut cluster = recipe.build();
        let before = cluster.clone();
        let repair = run(&mut cluster, &BalanceOptions::default());
        let plan = moves(&repair);
        for (position, (instance, _)) in plan.iter().enumerate() {
            if plan.iter().filter(|(other, _)| other == instance).count() < 2 {
                continue;
            }
            // An instance that is down starts immediately instead of waiting for its next move.
            let is_first = plan[..position].iter().all(|(other, _)| other != instance);
            if is_first && before.node(before.instance(*instance).primary).offline {
                continue;
            }
            let mut rest = plan.clone();
            rest.remove(position);
            // Without this move, later moves must be impossible, harmful along the way, or reach less.
            let as_good = measures(before.clone(), &rest, false).is_some_and(|measures| {
                let improves = |pair: &[Measure]| pair[1] < pair[0] && pair[1].worsens_nothing(&pair[0]);
                measures.windows(2).all(improves) && measures[measures.len() - 1].worsens_nothing(&repair.after)
            });
            prop_assert!(!as_good, "move {position} of {plan:?} is not necessary");
        }
    }

    #[test]
    fn what_may_not_move_stays(recipe in recipes(), limit in 0..4_usize) {
        let mut cluster = recipe.build();
        let before = cluster.clone();
        let options = BalanceOptions { max_moves: Some(limit), ..BalanceOptions::default() };
        let repair = run(&mut cluster, &options);
        prop_assert!(repair.steps.len() <= limit);
        for index in cluster.instance_indices() {
            let (was, is) = (before.instance(index), cluster.instance(index));
            prop_assert!(was.movable && was.auto_balance || was == is);
            prop_assert!(repair.steps.iter().any(|s| s.instance == index) || was == is);
        }
    }
}
