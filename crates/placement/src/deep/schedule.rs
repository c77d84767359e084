//! From an arrangement to moves: an order in which every move is possible when its turn comes.
//!
//! Each move brings its instance closer to where it is to go, so that none moves more often than it must. Of the
//! moves that are possible, the one comes first that leaves the best score: whoever stops half-way has most of
//! the gain. Moves that wait for each other in a circle are left out.

use cluster::{InstanceIdx, Move, Probe};

use super::Scene;
use super::atlas::{Pair, single_move};
use super::line::Line;
use crate::balance::Candidates;

/// Of the moves waiting, one in so many is made before all are looked at again.
const BATCH: usize = 64;

/// A move that is possible; what is less comes first.
#[derive(Clone, Copy, Debug)]
struct Chance {
    bound: f64,
    instance: InstanceIdx,
    mov: Move,
}

/// Continues a plan by bringing as many instances as can be to their `targets`.
pub(super) fn schedule(scene: &Scene<'_>, mut line: Line, targets: &[Pair]) -> Line {
    let mut waiting: Vec<InstanceIdx> =
        scene.free.iter().copied().filter(|i| line.pair(*i) != targets[i.at()]).collect();
    loop {
        let best = |i: &InstanceIdx| best_move(scene, &line, *i, targets[i.at()]);
        let mut chances: Vec<Chance> = waiting.iter().filter_map(best).collect();
        if chances.is_empty() {
            return line;
        }
        // Stable, so that ties go by the order of instances.
        chances.sort_by(|a, b| a.bound.total_cmp(&b.bound));
        chances.truncate(waiting.len().div_ceil(BATCH));
        for chance in chances {
            // Moves of the same batch may be in its way; then it waits for the next.
            let _ = line.make(scene, chance.instance, chance.mov);
        }
        waiting.retain(|i| line.pair(*i) != targets[i.at()]);
    }
}

/// The best move that brings an instance closer to its target.
fn best_move(scene: &Scene<'_>, line: &Line, index: InstanceIdx, target: Pair) -> Option<Chance> {
    let (cluster, options) = (&line.cluster, scene.options);
    let instance = cluster.instance(index);
    if options.evacuate_only && !instance.involved_nodes().any(|n| cluster.node(n).offline) {
        return None;
    }
    let ways: [Option<Move>; 4] = match (single_move(instance, target), target.1) {
        (Some(mov), _) => [Some(mov), None, None, None],
        (None, Some(secondary)) => [
            Some(Move::ReplaceAndFailover(target.0)),
            Some(Move::ReplaceSecondary(secondary)),
            Some(Move::FailoverAndReplace(secondary)),
            Some(Move::ReplacePrimary(target.0)),
        ],
        (None, None) => [None; 4],
    };
    let allowed = Candidates::of(cluster, instance, options);
    let probe = Probe::new(cluster, index);
    let judged = ways.into_iter().flatten().filter(|mov| allowed.allow(*mov)).filter_map(|mov| {
        let outcome = probe.judge(mov, options.ignore_soft_errors).ok()?;
        let located = line.board().located_delta_of(cluster, instance, &outcome);
        let bound = line.board().lower_bound(cluster, outcome.changes(), located);
        Some(Chance { bound, instance: index, mov })
    });
    judged.min_by(|a, b| a.bound.total_cmp(&b.bound))
}
