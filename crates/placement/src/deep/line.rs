//! Plans in progress: they are started, cut back and continued.
//!
//! A walk's arrangement cannot always be reached, because moves can wait for each other in a circle. So a
//! plan's last moves are taken back, and another walk starts from where the first ones lead, with the rest of
//! the budget. Each walk after the first is shorter and cooler.

use cluster::{Cluster, InstanceIdx, Move, NodeIdx, Probe};

use super::arrangement::Arrangement;
use super::atlas::{Atlas, Pair};
use super::walk::{Country, Goal, Walk};
use super::{Cost, Effort, Plan, Scene, schedule};
use crate::balance::Step;
use crate::board::Board;

/// Number of walks.
const WALKS: usize = 5;
/// Share of the effort spent on the first walk.
const FIRST_SHARE: f64 = 0.9;
/// Share of a plan that is kept when it is cut back.
const KEPT: f64 = 0.6;
/// Share that is kept if some of its moves never become possible.
const KEPT_STUCK: f64 = 0.85;
/// Temperature at the start of the first walk, in units of the average score change of a random move.
const HOT: f64 = 0.008;
/// Number of steps in which the temperature falls.
const COOLING_STEPS: u32 = 64;
/// Factor of each cooling step; a twenty-seventh after all steps.
const COOLING: f64 = 0.95;
/// Starting temperature of later walks, relative to the first.
const LATER: f64 = 0.5;
/// Part of a walk after which its spending must be within the limit.
const SOFT: f64 = 0.9;

/// Moves, and the cluster after them.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub plan: Plan,
    pub cluster: Cluster,
    board: Board,
}

impl Line {
    /// A line without moves.
    pub fn new(cluster: &Cluster, nodes: &[NodeIdx]) -> Self {
        let board = Board::new(cluster, nodes);
        let plan = Plan { steps: Vec::new(), values: vec![*board.values()] };
        Self { plan, cluster: cluster.clone(), board }
    }

    pub fn board(&self) -> &Board {
        &self.board
    }

    /// Makes a move; `None` if it isn't possible.
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

    pub fn pair(&self, index: InstanceIdx) -> Pair {
        let instance = self.cluster.instance(index);
        (instance.primary, instance.secondary)
    }
}

/// A plan, and where its walk would have led if all moves had been possible.
#[derive(Clone, Debug)]
struct Draft {
    plan: Plan,
    goals: Vec<Goal>,
    /// Whether some moves never become possible.
    stuck: bool,
}

impl Draft {
    /// A plan that starts with `stub` and brings as many instances as possible to their `targets`.
    fn towards(scene: &Scene<'_>, stub: &Line, targets: &[Pair]) -> Self {
        let line = schedule::schedule(scene, stub, targets);
        let missed = schedule::missed(scene, &line, targets);
        let stuck = !missed.is_empty();
        let reached = line.plan.steps.iter().map(|step| (step.instance, step.to));
        let goals = reached.chain(missed.into_iter().map(|i| (i, targets[i.at()]))).collect();
        Self { plan: line.plan, goals, stuck }
    }
}

/// The best plan within the limit that is found with this effort, starting with the plan `start`.
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

/// Progress of the effort.
struct Clock<'e, 'f> {
    effort: &'e mut Effort<'f>,
    done: usize,
    share: f64,
}

impl Clock<'_, '_> {
    fn look(&mut self) {
        // The share never falls, and NaN ends the search.
        let share = (self.effort)(self.done);
        self.share = if share.is_nan() { 1.0 } else { share.max(self.share) };
    }

    fn round_is_done(&mut self) {
        self.done += 1;
        self.look();
    }
}

/// Part of a plan that is kept when it is cut back: the first moves, which gain most, except those of
/// instances that would stop halfway.
fn cut_back(scene: &Scene<'_>, draft: &Draft) -> Line {
    let steps = &draft.plan.steps;
    let share = if draft.stuck { KEPT_STUCK } else { KEPT };
    let (kept, lost) = steps.split_at((steps.len() as f64 * share) as usize);
    let mut line = Line::new(scene.original, scene.nodes);
    for step in kept {
        // A move can have become impossible without the moves left out.
        let whole = lost.iter().all(|later| later.instance != step.instance);
        if whole && line.pair(step.instance) == step.from {
            let _ = line.make(scene, step.instance, step.mov);
        }
    }
    line
}

/// Runs a walk, ever cooler, until this share of the effort is spent.
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

/// Search space of a walk that continues a plan. Instances that have already moved stay in place.
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
