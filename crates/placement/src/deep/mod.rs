//! Balancing better than by one best move after another.
//!
//! The reference takes the best move of the moment until none helps (so does [`crate::balance`]). It never
//! exchanges two instances, nor accepts a move that pays only later. Here random walks look for an arrangement that
//! can be had for no more moves (`walk`), and the way there is laid out in moves, each of them judged as any
//! other when its turn comes (`schedule`). The plan is cut back and continued several times (`line`). In the end it
//! is checked by code that shares nothing with the search ([`verify`]); if it is not better than what the reference
//! finds, that is the result.
//!
//! The search reads no clock: whoever asks says how much of the effort is spent. With an effort that is counted in
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

/// Number of rounds that find most of what there is to find.
pub const ROUNDS: usize = 2_000;

/// How often disks may be copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CopyLimit {
    /// As often as there are moves.
    #[default]
    None,
    /// At most so often.
    AtMost(usize),
    /// As often as on the reference's way. Then moves have no limit but [`BalanceOptions::max_moves`]: more
    /// migrations may make up for copies.
    AsUsual,
}

/// What a deep search may do beyond what [`BalanceOptions`] say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeepOptions {
    /// How often disks may be copied.
    pub max_copies: CopyLimit,
    /// Where the random numbers start.
    pub seed: u64,
}

/// Told how many rounds are done, answers which share of the effort is spent, from 0 to 1.
pub type Effort<'a> = dyn FnMut(usize) -> f64 + 'a;

/// The effort of so many rounds.
pub fn rounds(number: usize) -> impl FnMut(usize) -> f64 {
    move |done| done as f64 / number.max(1) as f64
}

/// What it takes to carry moves out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Number of moves.
    pub moves: usize,
    /// Number of times that an instance's disks are copied to another node.
    pub copies: usize,
    /// Size of these disks, MiB.
    pub copied_mib: i64,
    /// Number of migrations, or failovers of instances that do not run.
    pub migrations: usize,
}

impl Cost {
    /// The cost of some moves.
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

/// Moves, and what becomes of the score.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The moves.
    pub steps: Vec<Step>,
    /// The components of the score: before, and after each move.
    pub values: Vec<Values>,
}

impl Plan {
    /// The score after all moves.
    pub fn score(&self) -> f64 {
        self.values.last().map_or(f64::INFINITY, Values::score)
    }
}

/// What a deep search found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The plan.
    pub plan: Plan,
    /// The score that the reference's way ends with.
    pub greedy_score: f64,
    /// What the reference's way takes.
    pub greedy_cost: Cost,
}

/// Balances `nodes` by moving some of `instances`, both ascending, and leaves the cluster balanced.
///
/// There are no more moves than [`BalanceOptions::max_moves`], or without it, than the reference's way takes (but
/// see [`CopyLimit::AsUsual`]). The score is never above that of the reference's way, as far as that keeps the limits.
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

/// What may be spent where the reference's way costs `greedy`.
fn limit(options: &BalanceOptions, copies: CopyLimit, greedy: &Cost) -> Price {
    let (moves, copies) = match copies {
        CopyLimit::None => (greedy.moves, usize::MAX),
        CopyLimit::AtMost(copies) => (greedy.moves, copies),
        CopyLimit::AsUsual => (usize::MAX, greedy.copies),
    };
    Price { steps: options.max_moves.unwrap_or(moves), copies }
}

/// What a search is about.
#[derive(Debug)]
struct Scene<'a> {
    /// The cluster before any move.
    original: &'a Cluster,
    nodes: &'a [NodeIdx],
    /// The nodes that may be targets.
    online: Vec<NodeIdx>,
    /// The instances that may move.
    free: Vec<InstanceIdx>,
    options: &'a BalanceOptions,
    /// What may be spent.
    limit: Price,
}

impl Scene<'_> {
    /// Leaves out the last moves of a plan as long as it takes more than it may.
    fn cut_to_limit(&self, plan: &mut Plan) {
        while !Cost::of(self.original, &plan.steps).price().within(self.limit) {
            plan.steps.pop();
            plan.values.pop();
        }
    }

    /// The best plan that is found, if it is correct.
    fn search(&self, start: &Plan, seed: u64, effort: &mut Effort<'_>) -> Option<Plan> {
        let plan = line::search(self, start, seed, effort);
        let verdict = verify(self.original, &self.rules(), &plan.steps);
        debug_assert_eq!(verdict, Ok(()), "the search and the checker disagree");
        verdict.is_ok().then_some(plan)
    }

    fn rules(&self) -> Rules<'_> {
        Rules { nodes: self.nodes, free: &self.free, options: self.options, limit: self.limit }
    }

    /// What comes of making moves.
    fn line(&self, steps: &[Step]) -> Line {
        let mut line = Line::new(self.original, self.nodes);
        for step in steps {
            // What was possible once, in the same order, is possible again.
            if line.make(self, step.instance, step.mov).is_none() {
                break;
            }
        }
        line
    }
}
