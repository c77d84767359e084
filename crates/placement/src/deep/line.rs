//! Plans under way: how they are begun, cut back and continued.
//!
//! A walk's arrangement cannot always be reached, since moves may wait for each other in a circle. So a plan's last
//! moves are taken back, and another walk starts from where the first ones lead, with what is left to spend. Each
//! walk after the first is shorter and cooler.

use cluster::{Cluster, InstanceIdx, Move, NodeIdx, Probe};
use rayon::prelude::*;

use super::arrangement::Arrangement;
use super::atlas::{Atlas, Pair};
use super::walk::{Country, Goal, Walk};
use super::{Cost, Effort, Plan, Scene, schedule};
use crate::balance::Step;
use crate::board::Board;

/// Number of plans that are worked on. It is not that of threads, so that results do not depend on it.
const LINES: usize = 2;
/// Walks of each line.
const PHASES: usize = 5;
/// The share of the effort that goes into the first walks.
const FIRST_SHARE: f64 = 0.8;
/// Of a plan that spends all it may, this share is kept when it is cut back; of another, more.
const KEPT_WHOLE: f64 = 0.6;
const KEPT_STUCK: f64 = 0.85;
/// The temperature at the start of a first walk, in units of what a random move changes.
const HOT: f64 = 0.008;
/// The temperature falls in so many steps, each to the same share of the one before.
const COOLING_STEPS: u32 = 64;
/// That share: a tenth in the end.
const COOLING: f64 = 0.964_661_619_911_199;
/// How hot later walks start, compared with first ones.
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
}

/// Plans that keep the limit, found with that effort; `start` is one to begin with.
pub(super) fn search(scene: &Scene<'_>, start: &Plan, seed: u64, effort: &mut Effort<'_>) -> Vec<Plan> {
    let nothing = Plan { steps: Vec::new(), values: start.values[..1].to_vec() };
    let goals: Vec<Goal> = start.steps.iter().map(|step| (step.instance, step.to)).collect();
    let mut drafts = vec![Draft { plan: nothing, goals }; LINES];
    let mut clock = Clock { effort, done: 0, share: 0.0 };
    clock.look();
    for phase in 0..PHASES {
        let later = phase as f64 / (PHASES - 1) as f64;
        let until = FIRST_SHARE + (1.0 - FIRST_SHARE) * later;
        if clock.share >= until {
            continue;
        }
        let stubs: Vec<Line> = drafts.iter().map(|draft| scene.line(kept(scene, draft))).collect();
        let heat = if phase == 0 { 1.0 } else { LATER };
        let seeds = seed.wrapping_mul(0x1_0000).wrapping_add((phase * LINES) as u64);
        let found = walk(scene, &stubs, &drafts, (heat, seeds), until, &mut clock);
        for (draft, found) in drafts.iter_mut().zip(found) {
            if let Some(found) = found
                && found.plan.score() < draft.plan.score()
            {
                *draft = found;
            }
        }
    }
    drafts.into_iter().map(|draft| draft.plan).collect()
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

/// The moves of a plan that stay when it is cut back: the first ones, which gain most.
fn kept<'d>(scene: &Scene<'_>, draft: &'d Draft) -> &'d [Step] {
    let steps = &draft.plan.steps;
    let share = if steps.len() < scene.limit.steps { KEPT_STUCK } else { KEPT_WHOLE };
    &steps[..(steps.len() as f64 * share) as usize]
}

/// Continues each plan by a walk; `None` where none was found that keeps the limit.
fn walk(
    scene: &Scene<'_>,
    stubs: &[Line],
    drafts: &[Draft],
    (heat, seed): (f64, u64),
    until: f64,
    clock: &mut Clock<'_, '_>,
) -> Vec<Option<Draft>> {
    let countries: Vec<Country<'_>> = stubs.iter().map(|stub| country(scene, stub)).collect();
    let mut walks: Vec<Walk<'_>> = countries
        .iter()
        .zip(drafts)
        .zip(seed..)
        .map(|((country, draft), seed)| {
            let start = Arrangement::new(country.cluster, scene.nodes, scene.options.ignore_soft_errors);
            let mut walk = Walk::new(country, &start, seed);
            walk.go(&draft.goals);
            walk
        })
        .collect();
    let begun = clock.share;
    while clock.share < until {
        let part = (clock.share - begun) / (until - begun);
        let coolings = (part * f64::from(COOLING_STEPS)) as u32;
        let temperature = (0..coolings).fold(heat * HOT, |warm, _| warm * COOLING);
        walks.par_iter_mut().for_each(|walk| walk.round(temperature, part >= SOFT));
        clock.round_is_done();
    }
    let arrived = walks.par_iter().zip(stubs).map(|(walk, stub)| {
        let targets = walk.best()?;
        let line = schedule::schedule(scene, stub.clone(), targets);
        let mut goals: Vec<Goal> = line.plan.steps.iter().map(|step| (step.instance, step.to)).collect();
        let missed = |i: &InstanceIdx| line.pair(*i) != targets[i.at()];
        goals.extend(scene.free.iter().filter(|i| missed(i)).map(|i| (*i, targets[i.at()])));
        Some(Draft { plan: line.plan, goals })
    });
    arrived.collect()
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
