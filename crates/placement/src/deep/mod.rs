//! Deep search: balancing better than by one best move after another.
//!
//! The reference takes the best move of the moment until none helps (so does [`crate::balance`]). It never
//! exchanges two instances, nor accepts a move that pays off only later. Here random walks look for an
//! arrangement that takes no more moves to reach (`walk`). The way there is laid out in moves, each judged
//! like any other move when its turn comes (`schedule`). The plan is cut back and continued several times
//! (`line`). In the end it is checked by code that shares nothing with the search ([`verify`]). If it isn't
//! better than the reference's plan, the result is the reference's plan.
//!
//! The search reads no clock: the caller reports how much of the effort is spent. If effort is counted in
//! rounds, results are the same on every machine and with any number of threads.

mod arrangement;
mod atlas;
mod check;
mod ledger;
mod line;
mod reserves;
mod schedule;
mod sketch;
mod walk;

use cluster::{Cluster, InstanceIdx, Move, NodeIdx};

pub use atlas::{Pair, Price};
pub use check::{Rules, Violation, verify};
pub use ledger::Rule;

use crate::balance::{BalanceOptions, Balancer, Step};
use crate::score::Values;
use line::Line;

/// Number of rounds that achieve most of the possible improvement.
pub const ROUNDS: usize = 2_000;

/// Limit on copies of disks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CopyLimit {
    /// No limit other than the number of moves.
    #[default]
    None,
    /// A fixed limit.
    AtMost(usize),
    /// The number of copies in the reference's plan. Then [`BalanceOptions::max_moves`] is the only limit on
    /// moves, because more migrations can replace copies.
    AsUsual,
}

/// Options of a deep search in addition to [`BalanceOptions`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeepOptions {
    pub max_copies: CopyLimit,
    /// Seed of the random numbers.
    pub seed: u64,
}

/// Receives the number of finished rounds and returns the share of the effort that is spent, from 0 to 1.
pub type Effort<'a> = dyn FnMut(usize) -> f64 + 'a;

/// Effort of a fixed number of rounds.
pub fn rounds(number: usize) -> impl FnMut(usize) -> f64 {
    move |done| done as f64 / number.max(1) as f64
}

/// Cost of carrying out moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Number of moves.
    pub moves: usize,
    /// Number of times that an instance's disks are copied to another node.
    pub copies: usize,
    /// Total size of these disks, MiB.
    pub copied_mib: i64,
    /// Number of migrations, or failovers of instances that aren't running.
    pub migrations: usize,
}

impl Cost {
    pub fn of(cluster: &Cluster, steps: &[Step]) -> Self {
        let mut cost = Self { moves: steps.len(), ..Self::default() };
        for step in steps {
            let (copies, migrations) = match step.mov {
                Move::Failover | Move::FailoverTo(_) => (0, 1),
                Move::ReplaceSecondary(_) => (1, 0),
                Move::ReplaceAndFailover(_) | Move::FailoverAndReplace(_) => (1, 1),
                Move::ReplacePrimary(_) => (1, 2),
            };
            cost.copies += copies;
            cost.copied_mib += copies as i64 * cluster.instance(step.instance).disk;
            cost.migrations += migrations;
        }
        cost
    }

    fn price(&self) -> Price {
        Price { steps: self.moves, copies: self.copies }
    }
}

/// Moves and the resulting scores.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub steps: Vec<Step>,
    /// Components of the score: before the first move, and after each move.
    pub values: Vec<Values>,
}

impl Plan {
    /// The score after all moves.
    pub fn score(&self) -> f64 {
        self.values.last().map_or(f64::INFINITY, Values::score)
    }
}

/// Result of a deep search.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    pub plan: Plan,
    /// Final score of the reference's plan.
    pub greedy_score: f64,
    /// Cost of the reference's plan.
    pub greedy_cost: Cost,
}

/// Balances `nodes` by moving some of `instances`, both ascending. Leaves the cluster balanced.
///
/// The number of moves is at most [`BalanceOptions::max_moves`] or, without it, that of the reference's plan
/// (but see [`CopyLimit::AsUsual`]). The score is never above that of the reference's plan, as far as that
/// plan keeps the limits.
pub fn balance(
    cluster: &mut Cluster,
    nodes: &[NodeIdx],
    instances: &[InstanceIdx],
    options: &BalanceOptions,
    deep: &DeepOptions,
    effort: &mut Effort<'_>,
) -> Found {
    let original = cluster.clone();
    let mut run = Balancer::new(cluster, nodes, instances, *options);
    let mut greedy = Plan { steps: Vec::new(), values: vec![*run.board().values()] };
    while let Some(step) = run.step() {
        greedy.values.push(*run.board().values());
        greedy.steps.push(step);
    }
    let (greedy_score, greedy_cost) = (greedy.score(), Cost::of(&original, &greedy.steps));
    let scene = Scene {
        original: &original,
        nodes,
        online: run.online.clone(),
        free: run.instances.clone(),
        options,
        limit: limit(options, deep.max_copies, &greedy_cost),
    };
    scene.cut_to_limit(&mut greedy);
    let searchable = run.board().bounded() && scene.limit.steps > 0 && scene.online.len() > 1;
    let best = if searchable { scene.search(&greedy, deep.seed, effort) } else { None };
    let plan = best.filter(|best| best.score() < greedy.score()).unwrap_or(greedy);
    *cluster = scene.line(&plan.steps).cluster;
    Found { plan, greedy_score, greedy_cost }
}

/// Maximum number of moves and copies if the reference's plan costs `greedy`.
fn limit(options: &BalanceOptions, copies: CopyLimit, greedy: &Cost) -> Price {
    let (moves, copies) = match copies {
        CopyLimit::None => (greedy.moves, usize::MAX),
        CopyLimit::AtMost(copies) => (greedy.moves, copies),
        CopyLimit::AsUsual => (usize::MAX, greedy.copies),
    };
    Price { steps: options.max_moves.unwrap_or(moves), copies }
}

/// Input of a search.
#[derive(Debug)]
struct Scene<'a> {
    /// The cluster before any move.
    original: &'a Cluster,
    nodes: &'a [NodeIdx],
    /// Nodes that can be targets.
    online: Vec<NodeIdx>,
    /// Instances that may move.
    free: Vec<InstanceIdx>,
    options: &'a BalanceOptions,
    /// Maximum number of moves and copies.
    limit: Price,
}

impl Scene<'_> {
    /// Drops the last moves of a plan until it is within the limit.
    fn cut_to_limit(&self, plan: &mut Plan) {
        while !Cost::of(self.original, &plan.steps).price().within(self.limit) {
            plan.steps.pop();
            plan.values.pop();
        }
    }

    /// The best plan found, if the checker accepts it.
    fn search(&self, start: &Plan, seed: u64, effort: &mut Effort<'_>) -> Option<Plan> {
        let plan = line::search(self, start, seed, effort);
        let verdict = verify(self.original, &self.rules(), &plan.steps);
        debug_assert_eq!(verdict, Ok(()), "the search and the checker disagree");
        verdict.is_ok().then_some(plan)
    }

    fn rules(&self) -> Rules<'_> {
        Rules { nodes: self.nodes, free: &self.free, options: self.options, limit: self.limit }
    }

    /// Replays moves on the original cluster.
    fn line(&self, steps: &[Step]) -> Line {
        let mut line = Line::new(self.original, self.nodes);
        for step in steps {
            // Moves that were possible once are possible again in the same order.
            if line.make(self, step.instance, step.mov).is_none() {
                break;
            }
        }
        line
    }
}
