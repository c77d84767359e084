//! Turns an arrangement into moves, in an order in which every move is possible when its turn comes.
//!
//! Each move brings its instance closer to its target, so no instance moves more often than necessary. The
//! possible move with the best resulting score comes first, so that stopping halfway keeps most of the gain.
//! Moves that wait for each other in a circle are left out.
//!
//! The move with the largest gain can block another one: an instance that changes only its primary runs on
//! its secondary for a while, which has capacity only before other instances arrive. Hence several attempts.

use cluster::{InstanceIdx, Move, Probe};

use super::Scene;
use super::atlas::{Pair, single_move};
use super::line::Line;
use crate::balance::Candidates;

/// One in this many waiting moves is made before all are evaluated again.
const BATCH: usize = 64;
/// Maximum number of attempts to order the moves.
const ATTEMPTS: usize = 8;

/// A possible move. Lower bounds come first.
#[derive(Clone, Copy, Debug)]
struct Chance {
    bound: f64,
    instance: InstanceIdx,
    mov: Move,
}

/// Continues a plan by bringing as many instances as possible to their `targets`.
///
/// Instances that could not move come first in the next attempt, as soon as their move is possible.
pub(super) fn schedule(scene: &Scene<'_>, start: &Line, targets: &[Pair]) -> Line {
    let mut urgent = vec![false; targets.len()];
    let mut best: Option<Line> = None;
    for _ in 0..ATTEMPTS {
        let line = attempt(scene, start.clone(), targets, &urgent);
        let missed = missed(scene, &line, targets);
        let news = missed.iter().any(|i| !urgent[i.at()]);
        for instance in missed {
            urgent[instance.at()] = true;
        }
        if best.as_ref().is_none_or(|best| line.plan.score() < best.plan.score()) {
            best = Some(line);
        }
        if !news {
            break;
        }
    }
    best.unwrap_or_else(|| start.clone())
}

/// Instances that aren't at their target.
pub(super) fn missed(scene: &Scene<'_>, line: &Line, targets: &[Pair]) -> Vec<InstanceIdx> {
    scene.free.iter().copied().filter(|i| line.pair(*i) != targets[i.at()]).collect()
}

fn attempt(scene: &Scene<'_>, mut line: Line, targets: &[Pair], urgent: &[bool]) -> Line {
    let mut waiting = missed(scene, &line, targets);
    loop {
        let best = |i: &InstanceIdx| best_move(scene, &line, *i, targets[i.at()]);
        let mut chances: Vec<Chance> = waiting.iter().filter_map(best).collect();
        if chances.is_empty() {
            return line;
        }
        // A stable sort, so that ties keep the order of instances.
        chances.sort_by(|a, b| {
            urgent[b.instance.at()].cmp(&urgent[a.instance.at()]).then(a.bound.total_cmp(&b.bound))
        });
        chances.truncate(waiting.len().div_ceil(BATCH));
        let mut any = false;
        for chance in chances {
            // If an earlier move of the batch blocks it, it waits for the next batch. The first move is never
            // blocked.
            any |= line.make(scene, chance.instance, chance.mov).is_some();
        }
        if !any {
            return line;
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
        (None, Some(secondary)) => {
            // The second move then leads from the new secondary to the new primary.
            let may = |from| cluster.migration_allowed(from, secondary);
            let onwards = cluster.migration_allowed(secondary, target.0);
            let crosses = |from| onwards && may(from);
            [
                Some(Move::ReplaceAndFailover(target.0)),
                Some(Move::ReplacePrimary(target.0)),
                Some(Move::ReplaceSecondary(secondary)).filter(|_| crosses(instance.primary)),
                Some(Move::FailoverAndReplace(secondary)).filter(|_| instance.secondary.is_some_and(crosses)),
            ]
        }
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
