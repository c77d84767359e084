//! `--search=deep`: balancing with a longer search. Allotment's own feature.

use std::io;
use std::time::{Duration, Instant};

use cluster::Cluster;
use placement::balance::{BalanceOptions, Balancer};
use placement::deep::{self, Cost, DeepOptions};
use serde::Serialize;

use super::{HbalError, Scope, Solution, idle, score, show};
use crate::io::Io;
use crate::number::fixed;
use crate::options::Options;
use crate::progress::Progress;

/// Cost of a deep search's moves, compared with the default search.
#[derive(Clone, Copy, Debug)]
pub(super) struct Comparison {
    deep: Cost,
    greedy: Cost,
    greedy_score: f64,
}

/// Share of the search that is done, by rounds or time, whichever limit is closer.
fn effort(rounds: Option<usize>, time: Option<Duration>) -> impl FnMut(usize) -> f64 {
    let rounds = rounds.or_else(|| time.is_none().then_some(deep::ROUNDS));
    let begin = Instant::now();
    move |done| {
        let counted = rounds.map_or(0.0, |rounds| done as f64 / rounds as f64);
        let timed = time.map_or(0.0, |time| begin.elapsed().as_secs_f64() / time.as_secs_f64());
        counted.max(timed)
    }
}

/// Finds the moves, then prints them. Their order is only known at the end.
pub(super) fn solve(
    cluster: &mut Cluster,
    scope: &Scope,
    options: &Options,
    io: &mut Io<'_>,
) -> Result<Solution, HbalError> {
    let listing = show::Listing::new(cluster, scope);
    // Data on offline nodes cannot be read.
    let balance = BalanceOptions { readable_only: true, ..BalanceOptions::from(options) };
    let run = Balancer::new(cluster, &scope.nodes, &scope.instances, balance);
    let mut solution = Solution::begin(&run, options, io)?;
    if solution.well_balanced {
        return Ok(solution);
    }
    let idle = options.explain.then(|| run.idle(&scope.instances));
    let wanted = DeepOptions { max_copies: options.max_copies, seed: options.search_seed };
    let mut effort = effort(options.search_rounds, options.search_time);
    let progress = Progress::start("Searching");
    let mut noted = |done| {
        let share = effort(done);
        progress.note(share);
        share
    };
    let found = deep::balance(cluster, &scope.nodes, &scope.instances, &balance, &wanted, &mut noted);
    drop(progress);
    solution.explained = show::steps(cluster, &listing, &found.plan.steps, &found.plan.values, options, io)?;
    solution.after = found.plan.values.last().copied().unwrap_or(solution.before);
    solution.comparison = Some(Comparison {
        deep: Cost::of(cluster, &found.plan.steps),
        greedy: found.greedy_cost,
        greedy_score: found.greedy_score,
    });
    solution.steps = found.plan.steps;
    if let Some(idle) = idle.filter(|_| solution.steps.is_empty()) {
        solution.reasons = idle::reasons(cluster, &idle, options);
    }
    Ok(solution)
}

/// Prints the cost of the moves, and the cost without the deep search.
pub(super) fn show_comparison(comparison: &Comparison, after: f64, io: &mut Io<'_>) -> io::Result<()> {
    writeln!(io.out, "This takes {}, for a score of {}", in_words(&comparison.deep), score(after))?;
    let (greedy, greedy_score) = (in_words(&comparison.greedy), score(comparison.greedy_score));
    writeln!(io.out, "(without --search=deep: {greedy}, for a score of {greedy_score})")
}

fn in_words(cost: &Cost) -> String {
    let gib = fixed(cost.copied_mib as f64 / 1024.0, 1);
    let counted = |number: usize, one: &str, several: &str| {
        format!("{number} {}", if number == 1 { one } else { several })
    };
    format!(
        "{}, {} of disks ({gib} GiB), {}",
        counted(cost.moves, "move", "moves"),
        counted(cost.copies, "copy", "copies"),
        counted(cost.migrations, "migration", "migrations"),
    )
}

/// [`Comparison`] in a JSON document.
#[derive(Serialize)]
pub(super) struct Document {
    cost: CostDocument,
    greedy: GreedyDocument,
}

#[derive(Serialize)]
struct GreedyDocument {
    score: f64,
    cost: CostDocument,
}

#[derive(Serialize)]
struct CostDocument {
    moves: usize,
    copies: usize,
    copied_mib: i64,
    migrations: usize,
}

impl From<&Cost> for CostDocument {
    fn from(cost: &Cost) -> Self {
        Self {
            moves: cost.moves,
            copies: cost.copies,
            copied_mib: cost.copied_mib,
            migrations: cost.migrations,
        }
    }
}

impl From<&Comparison> for Document {
    fn from(comparison: &Comparison) -> Self {
        Self {
            cost: CostDocument::from(&comparison.deep),
            greedy: GreedyDocument {
                score: comparison.greedy_score,
                cost: CostDocument::from(&comparison.greedy),
            },
        }
    }
}
