//! The deep search: never worse than greedy balancing, never with more moves, and every move is possible.

use cluster::{Cluster, InstanceIdx, Move, NodeIdx, Probe};
use placement::balance::{BalanceOptions, Balancer, Step};
use placement::board::Board;
use placement::deep::{self, CopyLimit, Cost, DeepOptions, Found, Price, Rules, Violation};
use proptest::prelude::*;

use crate::generate::{cases, recipes};

/// Nodes and instances of the first node's group.
fn scope(cluster: &Cluster) -> (Vec<NodeIdx>, Vec<InstanceIdx>) {
    let group = cluster.nodes[0].group;
    (cluster.nodes_of(group), cluster.instances_of(group))
}

fn search(cluster: &mut Cluster, options: &BalanceOptions, deep: &DeepOptions, rounds: usize) -> Found {
    let (nodes, instances) = scope(cluster);
    deep::balance(cluster, &nodes, &instances, options, deep, &mut deep::rounds(rounds))
}

/// Steps of greedy balancing, as the reference does it, and the final score.
fn greedy(mut cluster: Cluster, options: &BalanceOptions) -> (Vec<Step>, f64) {
    let (nodes, instances) = scope(&cluster);
    let mut run = Balancer::new(&mut cluster, &nodes, &instances, *options);
    let steps = std::iter::from_fn(|| run.step()).collect();
    (steps, run.score())
}

/// Options that restrict moves.
fn options() -> impl Strategy<Value = BalanceOptions> {
    let switches = prop::array::uniform5(prop::bool::weighted(0.2));
    (switches, prop::option::weighted(0.3, 0..6_usize)).prop_map(
        |([no_disk_moves, no_instance_moves, restricted, evacuate, force], max_moves)| BalanceOptions {
            disk_moves: !no_disk_moves,
            instance_moves: !no_instance_moves,
            restricted_migration: restricted,
            evacuate_only: evacuate,
            ignore_soft_errors: force,
            max_moves,
            ..BalanceOptions::default()
        },
    )
}

/// Checks a plan with the search's own checker.
fn verdict(
    cluster: &Cluster,
    options: &BalanceOptions,
    limit: Price,
    steps: &[Step],
) -> Result<(), Violation> {
    let (nodes, instances) = scope(cluster);
    let movable = |i: &InstanceIdx| cluster.instance(*i).movable && cluster.instance(*i).auto_balance;
    let free: Vec<InstanceIdx> = instances.into_iter().filter(movable).collect();
    deep::verify(cluster, &Rules { nodes: &nodes, free: &free, options, limit }, steps)
}

const UNLIMITED: Price = Price { steps: usize::MAX, copies: usize::MAX };

proptest! {
    #![proptest_config(cases(384))]

    #[test]
    fn the_deep_search_is_never_worse_and_never_takes_more_moves(recipe in recipes(), options in options()) {
        let mut cluster = recipe.build();
        let (steps, score) = greedy(cluster.clone(), &options);
        let found = search(&mut cluster, &options, &DeepOptions::default(), 8);
        prop_assert!(found.plan.score() <= score || score.is_nan());
        prop_assert!(found.plan.steps.len() <= options.max_moves.unwrap_or(steps.len()));
        prop_assert_eq!(found.greedy_cost.moves, steps.len());
        prop_assert_eq!(found.greedy_score.to_bits(), score.to_bits());
    }

    #[test]
    fn every_step_is_possible_when_its_turn_comes(recipe in recipes(), options in options(), seed: u64) {
        let mut cluster = recipe.build();
        let mut replay = cluster.clone();
        let deep = DeepOptions { seed, ..DeepOptions::default() };
        let found = search(&mut cluster, &options, &deep, 8);
        let (nodes, _) = scope(&replay);
        prop_assert_eq!(found.plan.values.len(), found.plan.steps.len() + 1);
        for (step, values) in found.plan.steps.iter().zip(&found.plan.values[1..]) {
            let Ok(outcome) = Probe::new(&replay, step.instance).judge(step.mov, options.ignore_soft_errors) else {
                return Err(TestCaseError::fail(format!("{step:?} is impossible")));
            };
            prop_assert_eq!((outcome.primary, outcome.secondary), step.to);
            replay.apply(step.instance, &outcome);
            let board = Board::new(&replay, &nodes);
            prop_assert!(board.score() == step.score || board.score().is_nan());
            prop_assert!(board.score() == values.score() || board.score().is_nan());
        }
        prop_assert_eq!(&replay.instances, &cluster.instances);
    }

    #[test]
    fn the_checker_accepts_what_is_better_than_the_reference(recipe in recipes(), options in options()) {
        let mut cluster = recipe.build();
        let before = cluster.clone();
        let found = search(&mut cluster, &options, &DeepOptions::default(), 8);
        if found.plan.score() < found.greedy_score {
            prop_assert_eq!(verdict(&before, &options, UNLIMITED, &found.plan.steps), Ok(()));
        }
    }

    #[test]
    fn a_limit_of_copies_is_kept(recipe in recipes(), max_copies in 0..4_usize) {
        let mut cluster = recipe.build();
        let deep = DeepOptions { max_copies: CopyLimit::AtMost(max_copies), seed: 1 };
        let found = search(&mut cluster, &BalanceOptions::default(), &deep, 8);
        prop_assert!(Cost::of(&cluster, &found.plan.steps).copies <= max_copies);
    }

    #[test]
    fn with_as_many_copies_as_usual_there_may_be_more_moves_for_a_better_score(recipe in recipes(), seed: u64) {
        let mut cluster = recipe.build();
        let before = cluster.clone();
        let deep = DeepOptions { max_copies: CopyLimit::AsUsual, seed };
        let found = search(&mut cluster, &BalanceOptions::default(), &deep, 8);
        let cost = Cost::of(&before, &found.plan.steps);
        prop_assert!(cost.copies <= found.greedy_cost.copies);
        prop_assert!(cost.moves <= found.greedy_cost.moves || found.plan.score() < found.greedy_score);
    }

    #[test]
    fn the_same_seed_finds_the_same_with_any_number_of_threads(recipe in recipes(), seed: u64) {
        let deep = DeepOptions { seed, ..DeepOptions::default() };
        let run = || search(&mut recipe.build(), &BalanceOptions::default(), &deep, 8).plan;
        let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(run);
        prop_assert_eq!(format!("{alone:?}"), format!("{:?}", run()));
    }

    #[test]
    fn the_checker_refuses_plans_that_are_spoilt(recipe in recipes(), place: prop::sample::Index) {
        let mut cluster = recipe.build();
        let before = cluster.clone();
        let found = search(&mut cluster, &BalanceOptions::default(), &DeepOptions::default(), 8);
        let steps = found.plan.steps;
        prop_assume!(!steps.is_empty());
        let options = BalanceOptions::default();
        let at = place.index(steps.len());
        let judge = |steps: &[Step]| verdict(&before, &options, UNLIMITED, steps);

        let mut repeated = steps.clone();
        repeated.insert(at, steps[at].clone());
        prop_assert!(judge(&repeated).is_err());

        let mut elsewhere = steps.clone();
        elsewhere[at].mov = Move::ReplaceSecondary(steps[at].from.0);
        prop_assert!(judge(&elsewhere).is_err());

        let fewer = Price { steps: steps.len() - 1, copies: usize::MAX };
        prop_assert!(matches!(verdict(&before, &options, fewer, &steps), Err(Violation::TooMuch(_))));

        let mut closed = before.clone();
        let target = steps[at].mov.target();
        if let Some(target) = target {
            closed.nodes[target.at()].offline = true;
            prop_assert!(verdict(&closed, &options, UNLIMITED, &steps).is_err());
        }
    }
}
