//! The score board: incremental updates against a new board, and bounds against exact scores.

use cluster::{Cluster, InstanceIdx, NodeIdx, Probe};
use placement::board::Board;
use placement::score::COMPONENTS;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::generate::{cases, moves, recipes};

fn all_nodes(cluster: &Cluster) -> Vec<NodeIdx> {
    cluster.node_indices().collect()
}

/// Bits of all components, in order.
fn bits(board: &Board) -> [u64; 20] {
    board.values().in_order().map(f64::to_bits)
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn an_updated_board_is_a_new_board(
        recipe in recipes(),
        picks in prop::collection::vec(any::<(Index, Index)>(), 1..16),
        force: bool,
    ) {
        let mut cluster = recipe.build();
        let nodes = all_nodes(&cluster);
        let mut board = Board::new(&cluster, &nodes);
        for (instance, mov) in picks {
            let index = InstanceIdx::from_usize(instance.index(cluster.instances.len()));
            let moves = moves(&cluster, index);
            if moves.is_empty() {
                continue;
            }
            let mov = moves[mov.index(moves.len())];
            let Ok(outcome) = Probe::new(&cluster, index).judge(mov, force) else { continue };
            let located = board.located_delta_of(&cluster, cluster.instance(index), &outcome);
            let foreseen = board.exact_values(&cluster, outcome.changes(), located);
            cluster.apply(index, &outcome);
            let changed: Vec<NodeIdx> = outcome.changes().iter().map(|c| c.node).collect();
            board.update(&cluster, &nodes, &changed);
            let fresh = Board::new(&cluster, &nodes);
            prop_assert_eq!(bits(&board), bits(&fresh));
            prop_assert_eq!(foreseen.in_order().map(f64::to_bits), bits(&fresh));
            prop_assert_eq!(board.score().to_bits(), fresh.score().to_bits());
        }
    }

    #[test]
    fn a_bound_is_never_above_the_score(recipe in recipes(), uniform: bool, force: bool) {
        let cluster = if uniform { recipe.alike().build() } else { recipe.build() };
        let board = Board::new(&cluster, &all_nodes(&cluster));
        for index in cluster.instance_indices() {
            let probe = Probe::new(&cluster, index);
            for mov in moves(&cluster, index) {
                let Ok(outcome) = probe.judge(mov, force) else { continue };
                let located = board.located_delta_of(&cluster, cluster.instance(index), &outcome);
                let bound = board.lower_bound(&cluster, outcome.changes(), located);
                let exact = board.exact(&cluster, outcome.changes(), located);
                prop_assert!(bound <= exact, "{bound} > {exact}: {mov:?} of {index:?}");
            }
        }
    }

    #[test]
    fn the_score_is_what_its_definition_says(recipe in recipes()) {
        let cluster = recipe.build();
        let board = Board::new(&cluster, &all_nodes(&cluster));
        prop_assert_eq!(board.score().to_bits(), defined(&cluster).to_bits());
    }
}

/// The score by its definition, component by component.
fn defined(cluster: &Cluster) -> f64 {
    let of = |online: bool| cluster.node_indices().filter(move |n| cluster.node(*n).online() == online);
    if of(true).next().is_none() {
        return 0.0;
    }
    let deviation = |value: &dyn Fn(NodeIdx) -> f64| {
        let (mut n, mut sum) = (0.0, 0.0);
        for node in of(true) {
            n += 1.0;
            sum += value(node);
        }
        let mean = sum / n;
        let mut squares = 0.0;
        for node in of(true) {
            let distance = value(node) - mean;
            squares += distance * distance;
        }
        (squares / n).sqrt()
    };
    let sum = |online: bool, value: &dyn Fn(NodeIdx) -> f64| of(online).fold(0.0, |sum, n| sum + value(n));
    let (n, f) = (|index| cluster.node(index), |index| cluster.figures(index));
    let all = |index| (cluster.state(index).primaries.len() + cluster.state(index).secondaries.len()) as f64;
    let load = |k: usize| deviation(&move |i| f(i).load[k]);
    let mut located = std::collections::BTreeMap::new();
    for node in of(true) {
        for index in &cluster.state(node).primaries {
            for tag in &cluster.instance(*index).exclusion_tags {
                for location in &cluster.node(node).locations {
                    *located.entry((*location, *tag)).or_insert(0) += 1;
                }
            }
        }
    }
    let located: i32 = located.values().map(|count| count - 1).sum();
    let values = [
        deviation(&|i| f(i).free_memory_ratio(n(i))),
        deviation(&|i| f(i).free_disk_ratio(n(i))),
        sum(true, &|i| if f(i).fails_n1 { all(i) } else { 0.0 }),
        deviation(&|i| f(i).reserved_memory_ratio(n(i))),
        sum(false, &all),
        sum(false, &|i| cluster.state(i).primaries.len() as f64),
        deviation(&|i| f(i).vcpu_ratio(n(i)) / n(i).cpu_speed),
        load(0),
        load(1),
        load(2),
        load(3),
        sum(true, &|i| {
            cluster.state(i).exclusion_tags.iter().map(|(_, count)| count - 1).sum::<i64>() as f64
        }),
        deviation(&|i| f(i).instance_spindles / n(i).max_spindles),
        deviation(&|i| f(i).booked_free_memory_ratio(n(i))),
        deviation(&|i| f(i).booked_free_disk_ratio(n(i))),
        deviation(&|i| f(i).booked_vcpu_ratio(n(i)) / n(i).cpu_speed),
        deviation(&|i| f(i).booked_instance_spindles / n(i).max_spindles),
        sum(true, &|i| f(i).location_score as f64),
        f64::from(located),
        sum(true, &|i| f(i).reserved_memory_ratio(n(i))),
    ];
    COMPONENTS.iter().zip(values).fold(0.0, |total, (component, value)| total + component.weight * value)
}
