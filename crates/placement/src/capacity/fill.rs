//! Places instances one after another.

use cluster::{Cluster, DiskTemplate, Instance, InstanceIdx, NodeIdx, Outcome, Undo};

use super::{CapacityOptions, Ground, Placement, Shape};
use crate::allocate::{self, Failures, NoTargets, Targets, Trials};
use crate::board::Board;
use crate::pair;
use crate::redundancy::{self, Redundancy};

/// Steps without a look at redundancy are at least so long at first.
const LEAST_BIG_STEP: usize = 20;
/// They are so long once one was too long.
const SMALL_STEP: usize = 10;
/// Instances that take no memory might fit for ever; no more of them are placed at a time.
const MOST_WITHOUT_MEMORY: usize = 1 << 16;

/// A cluster being filled.
pub(super) struct Filler<'a> {
    pub cluster: &'a mut Cluster,
    /// What was placed so far.
    pub placed: Vec<Placement>,
    ground: &'a Ground,
    targets: &'a Targets,
    /// Whether redundancy matters.
    pub capacity_checks: bool,
    /// All nodes: the score is that of the whole cluster.
    nodes: Vec<NodeIdx>,
    board: Board,
    /// What can be emptied as things are, once somebody asked.
    redundancy: Option<Redundancy>,
    /// What to take back if the step turns out too long; see [`Filler::step`].
    log: Vec<Undo>,
}

/// How placing a number of instances ended.
struct Round {
    /// What refused one more instance; none if the number wanted was reached.
    refused: Option<Failures>,
}

impl<'a> Filler<'a> {
    pub fn new(
        cluster: &'a mut Cluster,
        ground: &'a Ground,
        options: &CapacityOptions,
    ) -> Result<Self, NoTargets> {
        let targets = ground.targets.as_ref().map_err(|error| *error)?;
        let nodes: Vec<NodeIdx> = cluster.node_indices().collect();
        let board = Board::new(cluster, &nodes);
        Ok(Self {
            cluster,
            placed: Vec::new(),
            ground,
            targets,
            capacity_checks: options.capacity_checks,
            nodes,
            board,
            redundancy: None,
            log: Vec::new(),
        })
    }

    /// Whether placing instances one by one looks at redundancy. DRBD instances are never refused for it: the
    /// reserve of their secondaries stands for it.
    fn checks_each(&self, shape: &Shape) -> bool {
        self.capacity_checks && shape.template != DiskTemplate::Drbd
    }

    /// Places instances of a shape until no more fit or `limit` is reached; returns what refuses one more.
    ///
    /// Redundancy is looked at only after many steps; where it is lost, these are taken back and tried again in
    /// smaller steps, at last one by one.
    pub fn fill(&mut self, shape: &Shape, limit: Option<usize>) -> Failures {
        let mut rest = limit;
        if shape.memory_mib <= 0 {
            rest = Some(limit.map_or(MOST_WITHOUT_MEMORY, |limit| limit.min(MOST_WITHOUT_MEMORY)));
        }
        if !self.capacity_checks {
            let round = self.place_up_to(shape, rest, false, false);
            return self.failures(shape, &round, false);
        }
        let mut step = self.big_step(shape);
        loop {
            match self.step(shape, rest.map_or(step, |rest| rest.min(step))) {
                Some(round) => {
                    rest = rest.map(|rest| rest.saturating_sub(step));
                    if round.refused.is_some() || rest == Some(0) {
                        return self.failures(shape, &round, false);
                    }
                    if step != SMALL_STEP {
                        step = self.big_step(shape);
                    }
                }
                None if step == SMALL_STEP => {
                    let checked = self.checks_each(shape);
                    let round = self.place_up_to(shape, rest, checked, false);
                    return self.failures(shape, &round, checked);
                }
                None => step = SMALL_STEP,
            }
        }
    }

    /// About as many instances as fit if memory is what they need.
    fn big_step(&self, shape: &Shape) -> usize {
        let available = |n: &NodeIdx| self.cluster.figures(*n).available_memory(self.cluster.node(*n));
        let memory: i64 = self.nodes.iter().map(available).sum();
        let fitting = if shape.memory_mib == 0 { 0 } else { memory.div_euclid(shape.memory_mib) };
        usize::try_from(fitting - self.nodes.len() as i64).unwrap_or(0).max(LEAST_BIG_STEP)
    }

    /// Places up to `most` instances without a look at redundancy. If it is lost, takes them back: none.
    fn step(&mut self, shape: &Shape, most: usize) -> Option<Round> {
        let (board, placed) = (self.board.clone(), self.placed.len());
        let round = self.place_up_to(shape, Some(most), false, true);
        if redundancy::all_evacuable(self.cluster, &self.nodes, &self.ground.tested) {
            self.log.clear();
            return Some(round);
        }
        while let Some(undo) = self.log.pop() {
            self.cluster.undo(undo);
        }
        self.placed.truncate(placed);
        self.board = board;
        self.redundancy = None;
        None
    }

    /// Places up to `most` instances, one by one.
    fn place_up_to(&mut self, shape: &Shape, most: Option<usize>, checked: bool, logged: bool) -> Round {
        let mut instance = shape.instance("");
        let mut placed = 0;
        while most.is_none_or(|most| placed < most) {
            let trials = self.attempt(&instance, checked);
            let Some(best) = trials.best else { return Round { refused: Some(trials.failures) } };
            instance.name = format!("new-{}", self.placed.len());
            let undo = self.place(shape, instance.clone(), &best.outcome, checked);
            if logged {
                self.log.push(undo);
            }
            placed += 1;
        }
        Round { refused: None }
    }

    /// What refuses one more instance after a round, even if there is room for it.
    fn failures(&mut self, shape: &Shape, round: &Round, checked: bool) -> Failures {
        round.refused.unwrap_or_else(|| self.attempt(&shape.instance(""), checked).failures)
    }

    /// Tries one more instance everywhere. The cluster is left unchanged.
    pub fn attempt(&mut self, instance: &Instance, checked: bool) -> Trials<f64> {
        if checked && self.redundancy.is_none() {
            self.redundancy = Some(Redundancy::among(self.cluster, &self.nodes, &self.ground.tested));
        }
        let redundancy = self.redundancy.as_ref().filter(|_| checked);
        let acceptable = |cluster: &mut Cluster, outcome: &Outcome| {
            let Some(redundancy) = redundancy else { return true };
            let undo = cluster.add(instance.clone(), outcome);
            let holds = redundancy.holds(cluster, outcome, None);
            cluster.undo(undo);
            holds
        };
        let (cluster, board) = (&mut *self.cluster, &self.board);
        match self.targets {
            Targets::Single(nodes) => allocate::single(cluster, board, instance, nodes, false, acceptable),
            Targets::Pairs(pairs) => pair::best_pair(cluster, board, instance, pairs, false, acceptable),
        }
    }

    fn place(&mut self, shape: &Shape, instance: Instance, outcome: &Outcome, checked: bool) -> Undo {
        self.placed.push(Placement {
            instance: InstanceIdx::from_usize(self.cluster.instances.len()),
            shape: *shape,
            primary: outcome.primary,
            secondary: outcome.secondary,
        });
        let undo = self.cluster.add(instance, outcome);
        let changed: Vec<NodeIdx> = outcome.changes().iter().map(|change| change.node).collect();
        self.board.update(self.cluster, &self.nodes, &changed);
        match &mut self.redundancy {
            Some(redundancy) if checked => redundancy.update(self.cluster, &changed),
            known => *known = None,
        }
        undo
    }
}
