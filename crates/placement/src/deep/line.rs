//! Plans under way: how they are begun, cut back and continued.
//!
//! A walk's arrangement cannot always be reached, since moves may wait for each other in a circle. So a plan's last
//! moves are taken back, and another walk starts from where the first ones lead, with what is left to spend. Each
//! walk after the first is shorter and cooler.

use cluster::{Cluster, InstanceIdx, Move, NodeIdx, Probe};

use super::arrangement::Arrangement;
use super::atlas::{Atlas, Pair};
use super::walk::{Country, Goal, Walk};
use super::{Cost, Effort, Plan, Scene, schedule};
use crate::balance::Step;
use crate::board::Board;

/// How many walks there are.
const WALKS: usize = 5;
/// The share of the effort that goes into the first walk.
const FIRST_SHARE: f64 = 0.9;
/// The share of a plan that is kept when it is cut back.
const KEPT: f64 = 0.6;
/// That share if some of its moves wait for nothing.
const KEPT_STUCK: f64 = 0.85;
/// The temperature at the start of the first walk, in units of what a random move changes.
const HOT: f64 = 0.008;
/// The temperature falls in so many steps, each to the same share of the one before.
const COOLING_STEPS: u32 = 64;
/// That share: a twenty-seventh in the end.
const COOLING: f64 = 0.95;
/// How hot later walks start, compared with the first.
const LATER: f64 = 0.5;
/// From this part of a walk on, no more may be spent than the limit.
const SOFT: f64 = 0.9;

/// Moves, and the cluster after them.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub plan: Plan,
    pub cluster: Cluster,
    board: Board,
}

impl Line {
    /// No moves yet.
    pub fn new(cluster: &Cluster, nodes: &[NodeIdx]) -> Self {
        let board = Board::new(cluster, nodes);
        let plan = Plan { steps: Vec::new(), values: vec![*board.values()] };
        Self { plan, cluster: cluster.clone(), board }
    }

    /// The score as things are, and what it would be.
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// Makes a move, if it is possible.
    pub fn make(&mut self, scene: &Scene<'_>, instance: InstanceIdx, mov: Move) -> Option<()> {
        let probe = Probe::new(&self.cluster, instance);
        let from = (probe.primary, probe.secondary);
        let outcome = probe.judge(mov, scene.options.ignore_soft_errors).ok()?;
        self.cluster.apply(instance, &outcome);
        let changed: Vec<NodeIdx> = outcome.changes().iter().map(|c| c.node).collect();
        self.board.update(&self.cluster, scene.nodes, &changed);
        let to = (outcome.primary, outcome.secondary);
        self.plan.steps.push(Step { instance, mov, from, to, score: self.board.score() });
        self.plan.values.push(*self.board.values());
        Some(())
    }

    /// Where an instance is.
    pub fn pair(&self, index: InstanceIdx) -> Pair {
        let instance = self.cluster.instance(index);
        (instance.primary, instance.secondary)
    }
}

/// A plan, and where its walk would have gone if all moves had been possible.
#[derive(Clone, Debug)]
struct Draft {
    plan: Plan,
    goals: Vec<Goal>,
    /// Some moves wait for nothing.
    stuck: bool,
}

impl Draft {
    /// A plan that begins like `stub` and brings as many instances as can be to their `targets`.
    fn towards(scene: &Scene<'_>, stub: &Line, targets: &[Pair]) -> Self {
        let line = schedule::schedule(scene, stub, targets);
        let missed = schedule::missed(scene, &line, targets);
        let stuck = !missed.is_empty();
        let reached = line.plan.steps.iter().map(|step| (step.instance, step.to));
        let goals = reached.chain(missed.into_iter().map(|i| (i, targets[i.at()]))).collect();
        Self { plan: line.plan, goals, stuck }
    }
}

/// The best plan within the limit that is found with that effort; `start` is one to begin with.
pub(super) fn search(scene: &Scene<'_>, start: &Plan, seed: u64, effort: &mut Effort<'_>) -> Plan {
    let nothing = Plan { steps: Vec::new(), values: start.values[..1].to_vec() };
    let goals = start.steps.iter().map(|step| (step.instance, step.to)).collect();
    let mut draft = Draft { plan: nothing, goals, stuck: false };
    let mut clock = Clock { effort, done: 0, share: 0.0 };
    clock.look();
    for number in 0..WALKS {
        let later = number as f64 / (WALKS - 1) as f64;
        let until = FIRST_SHARE + (1.0 - FIRST_SHARE) * later;
        if clock.share >= until {
            continue;
        }
        let stub = cut_back(scene, &draft);
        let country = country(scene, &stub);
        let begin = Arrangement::new(country.cluster, scene.nodes, scene.options.ignore_soft_errors);
        let seed = seed.wrapping_mul(0x1_0000).wrapping_add(number as u64);
        let mut walk = Walk::new(&country, &begin, seed);
        walk.go(&draft.goals);
        let heat = if number == 0 { HOT } else { LATER * HOT };
        anneal(&mut walk, heat, until, &mut clock);
        if let Some(targets) = walk.best() {
            let found = Draft::towards(scene, &stub, targets);
            if found.plan.score() < draft.plan.score() {
                draft = found;
            }
        }
    }
    draft.plan
}

/// How far the effort has come.
struct Clock<'e, 'f> {
    effort: &'e mut Effort<'f>,
    done: usize,
    share: f64,
}

impl Clock<'_, '_> {
    fn look(&mut self) {
        // Whatever the answer, the search ends.
        let share = (self.effort)(self.done);
        self.share = if share.is_nan() { 1.0 } else { share.max(self.share) };
    }

    fn round_is_done(&mut self) {
        self.done += 1;
        self.look();
    }
}

/// What stays of a plan when it is cut back: the first moves, which gain most, but for those of instances that
/// would stop half-way.
fn cut_back(scene: &Scene<'_>, draft: &Draft) -> Line {
    let steps = &draft.plan.steps;
    let share = if draft.stuck { KEPT_STUCK } else { KEPT };
    let (kept, lost) = steps.split_at((steps.len() as f64 * share) as usize);
    let mut line = Line::new(scene.original, scene.nodes);
    for step in kept {
        // Some may have become impossible without those that are left out.
        let whole = lost.iter().all(|later| later.instance != step.instance);
        if whole && line.pair(step.instance) == step.from {
            let _ = line.make(scene, step.instance, step.mov);
        }
    }
    line
}

/// Lets a walk run, ever cooler, until that share of the effort is spent.
fn anneal(walk: &mut Walk<'_>, heat: f64, until: f64, clock: &mut Clock<'_, '_>) {
    let begun = clock.share;
    while clock.share < until {
        let part = (clock.share - begun) / (until - begun);
        let coolings = (part * f64::from(COOLING_STEPS)) as u32;
        let temperature = (0..coolings).fold(heat, |warm, _| warm * COOLING);
        walk.round(temperature, part >= SOFT);
        clock.round_is_done();
    }
}

/// What a walk that continues a plan may do: nothing moves that has moved already.
fn country<'s>(scene: &'s Scene<'_>, stub: &'s Line) -> Country<'s> {
    let mut moved = vec![false; scene.original.instances.len()];
    for step in &stub.plan.steps {
        moved[step.instance.at()] = true;
    }
    let rest: Vec<InstanceIdx> = scene.free.iter().copied().filter(|i| !moved[i.at()]).collect();
    let atlas = Atlas::new(&stub.cluster, &rest, scene.options);
    let instances = rest.into_iter().filter(|i| atlas.movable(*i)).collect();
    let limit = scene.limit - Cost::of(scene.original, &stub.plan.steps).price();
    Country { cluster: &stub.cluster, atlas, instances, online: scene.online.clone(), limit }
}
