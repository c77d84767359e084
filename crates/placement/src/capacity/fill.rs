//! Places instances one after another.

use std::collections::HashMap;

use cluster::{Cluster, DiskTemplate, Instance, InstanceIdx, NodeIdx, Outcome, Undo};

use super::ground::Ground;
use super::options::{CapacityOptions, Rule};
use super::shape::Shape;
use crate::allocate::{self, Failures, NoTargets, Scope, Targets, Trials};
use crate::board::Board;
use crate::dedicated;
use crate::pair;
use crate::redundancy::{self, Redundancy, Tentative, can_evacuate};
use crate::slots::{Count, Tables};

/// Minimum length of a step at first; redundancy is checked only at the end of each step.
const LEAST_BIG_STEP: usize = 20;
/// Length of a step once one was too long.
const SMALL_STEP: usize = 10;
/// Maximum number of instances without memory placed by one fill, since they might fit forever.
const MOST_WITHOUT_MEMORY: usize = 1 << 16;

/// A placed instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    pub instance: InstanceIdx,
    pub shape: Shape,
    pub primary: NodeIdx,
    pub secondary: Option<NodeIdx>,
}

/// A cluster being filled.
pub(super) struct Filler<'a> {
    pub cluster: &'a mut Cluster,
    pub placed: Vec<Placement>,
    ground: &'a Ground,
    targets: &'a Targets,
    /// Whether redundancy matters. It doesn't on dedicated clusters.
    pub capacity_checks: bool,
    rule: Rule,
    /// Nodes whose score counts.
    nodes: Vec<NodeIdx>,
    board: Board,
    /// Cached answers about the current state of the cluster.
    known: Known,
    /// The last node found that could not be emptied.
    suspect: Option<NodeIdx>,
    /// Placements to undo if the step turns out too long; see [`Filler::step`].
    log: Vec<Undo>,
    /// State before the first placement in `log`.
    start: Option<Start>,
}

/// Answers about the current state of a cluster. They hold until the next placement.
#[derive(Default)]
struct Known {
    /// Which nodes can be emptied.
    redundancy: Option<Redundancy>,
    /// Slots needed by the instances of lost nodes. Kept up to date across placements.
    slots: Option<Tables>,
    /// Whether every node can be emptied.
    all_evacuable: Option<bool>,
    /// Reasons that refuse shapes that don't fit, with or without a redundancy check.
    refused: HashMap<(Shape, bool), Failures>,
    /// Target of the next instance of a shape, chosen without a redundancy check.
    next: Option<(Shape, Trials<f64>)>,
}

/// Result of a series of placements without redundancy checks.
enum Step {
    /// Redundancy still holds.
    Taken(Round),
    /// Redundancy is lost; nothing was placed.
    TooLong,
    /// Redundancy is lost from the first instance on, regardless of the instances after it, so no shorter
    /// step can succeed.
    LostAtOnce,
}

/// State at the beginning of a step that has placed something.
struct Start {
    board: Board,
    known: Known,
}

/// Result of placing a number of instances.
struct Round {
    /// Reasons that refused one more instance; `None` if the requested number was reached.
    refused: Option<Failures>,
}

impl<'a> Filler<'a> {
    pub fn new(
        cluster: &'a mut Cluster,
        ground: &'a Ground,
        options: &CapacityOptions,
    ) -> Result<Self, NoTargets> {
        let targets = ground.targets.as_ref().map_err(|error| *error)?;
        let nodes = ground.nodes.clone();
        let board = Board::new(cluster, &nodes);
        Ok(Self {
            cluster,
            placed: Vec::new(),
            ground,
            targets,
            capacity_checks: options.capacity_checks && !ground.dedicated,
            rule: options.rule,
            nodes,
            board,
            known: Known::default(),
            suspect: None,
            log: Vec::new(),
            start: None,
        })
    }

    /// Whether placing instances one by one checks redundancy. DRBD instances are never refused for it: the
    /// memory reserved on their secondaries takes its place.
    fn checks_each(&self, shape: &Shape) -> bool {
        self.capacity_checks && shape.template != DiskTemplate::Drbd
    }

    /// Places instances of a shape until no more fit or `limit` is reached. Returns the reasons that refuse
    /// one more.
    ///
    /// Redundancy is checked only at the end of a step of many instances. A step that loses it is undone and
    /// repeated in smaller steps, and finally one instance at a time.
    pub fn fill(&mut self, shape: &Shape, limit: Option<usize>) -> Failures {
        let mut rest = limit;
        if shape.memory_mib <= 0 {
            rest = Some(limit.map_or(MOST_WITHOUT_MEMORY, |limit| limit.min(MOST_WITHOUT_MEMORY)));
        }
        if let Rule::Hail { .. } = self.rule {
            // `hail` places one instance at a time. The reasons against one beyond the limit aren't needed.
            return self.place_up_to(shape, rest, self.capacity_checks, false).refused.unwrap_or_default();
        }
        if !self.capacity_checks {
            let round = self.place_up_to(shape, rest, false, false);
            return self.failures(shape, &round, false);
        }
        let mut step = self.big_step(shape);
        loop {
            match self.step(shape, rest.map_or(step, |rest| rest.min(step))) {
                Step::Taken(round) => {
                    rest = rest.map(|rest| rest.saturating_sub(step));
                    if round.refused.is_some() || rest == Some(0) {
                        return self.failures(shape, &round, false);
                    }
                    if step != SMALL_STEP {
                        step = self.big_step(shape);
                    }
                }
                Step::TooLong if step != SMALL_STEP => step = SMALL_STEP,
                Step::TooLong | Step::LostAtOnce => {
                    let checked = self.checks_each(shape);
                    let round = self.place_up_to(shape, rest, checked, false);
                    return self.failures(shape, &round, checked);
                }
            }
        }
    }

    /// Approximate number of instances that fit if memory is the bottleneck.
    fn big_step(&self, shape: &Shape) -> usize {
        let available = |n: &NodeIdx| self.cluster.figures(*n).available_memory(self.cluster.node(*n));
        let memory: i64 = self.nodes.iter().map(available).sum();
        let fitting = if shape.memory_mib == 0 { 0 } else { memory.div_euclid(shape.memory_mib) };
        usize::try_from(fitting - self.nodes.len() as i64).unwrap_or(0).max(LEAST_BIG_STEP)
    }

    /// Places up to `most` instances, and undoes them if redundancy is lost.
    fn step(&mut self, shape: &Shape, most: usize) -> Step {
        if most > 0 && shape.only_takes() && self.lost_with_one(shape) {
            return Step::LostAtOnce;
        }
        let before = self.placed.len();
        let mut chunk = 1;
        let round = loop {
            let done = self.placed.len() - before;
            let round = self.place_up_to(shape, Some(chunk.min(most) - done), false, true);
            if round.refused.is_some() || chunk >= most {
                break round;
            }
            if shape.only_takes() && self.surely_stuck() {
                self.take_back();
                return if chunk == 1 { Step::LostAtOnce } else { Step::TooLong };
            }
            chunk *= 2;
        };
        if self.all_evacuable() {
            self.log.clear();
            self.start = None;
            return Step::Taken(round);
        }
        self.take_back();
        Step::TooLong
    }

    /// Undoes the placements of a step.
    fn take_back(&mut self) {
        while let Some(undo) = self.log.pop() {
            self.cluster.undo(undo);
            self.placed.pop();
        }
        if let Some(start) = self.start.take() {
            self.board = start.board;
            self.known = start.known;
        }
    }

    fn all_evacuable(&mut self) -> bool {
        if self.known.all_evacuable.is_none() {
            let stuck = match self.slots().standing() {
                Count::Stuck => true,
                Count::Unsettled(mut nodes) => {
                    if let Some(slots) = &self.known.slots {
                        let changes = slots.changed(self.cluster, &[]);
                        nodes.retain(|node| !slots.prove(*node, &changes));
                    }
                    let stuck = |cluster: &mut Cluster, list: &[NodeIdx], node| {
                        !can_evacuate(cluster, list, node, None)
                    };
                    self.find_among(&nodes, stuck).is_some()
                }
            };
            self.known.all_evacuable = Some(!stuck);
        }
        self.known.all_evacuable == Some(true)
    }

    /// Whether some node cannot be emptied, no matter how many more instances are placed.
    fn surely_stuck(&mut self) -> bool {
        let counted = self.slots().standing();
        counted == Count::Stuck
            || self
                .find_among(&[], |cluster, list, node| redundancy::surely_stuck(cluster, list, node))
                .is_some()
    }

    /// Whether one more instance on its best target, chosen regardless of redundancy, leaves a node that
    /// cannot be emptied, no matter how many more are placed.
    fn lost_with_one(&mut self, shape: &Shape) -> bool {
        let instance = shape.instance("");
        let trials = self.best_or_reasons(shape, &instance, false);
        let lost = trials.best.as_ref().is_some_and(|best| {
            self.slots();
            let slots = self.known.slots.as_ref();
            slots.is_some_and(|slots| slots.stuck_after(self.cluster, &instance, &best.outcome))
        });
        self.known.next = Some((*shape, trials));
        lost
    }

    fn slots(&mut self) -> &Tables {
        let (cluster, tested) = (&*self.cluster, &self.ground.tested);
        self.known.slots.get_or_insert_with(|| Tables::new(cluster, &self.nodes, tested))
    }

    /// Finds a node for which `holds` is true, among `unsettled` and the tested nodes that slot counts don't
    /// decide. The last node found is tried first.
    fn find_among(
        &mut self,
        unsettled: &[NodeIdx],
        mut holds: impl FnMut(&mut Cluster, &[NodeIdx], NodeIdx) -> bool,
    ) -> Option<NodeIdx> {
        let slots = self.known.slots.as_ref();
        let counts = |node: NodeIdx| slots.is_some_and(|slots| slots.counts(node));
        let tested = self.suspect.iter().chain(&self.ground.tested).copied().filter(|node| !counts(*node));
        let found =
            tested.chain(unsettled.iter().copied()).find(|node| holds(self.cluster, &self.nodes, *node));
        self.suspect = found.or(self.suspect);
        found
    }

    /// Places up to `most` instances one by one, as many as fit if `None`. `logged` placements can be undone
    /// by [`Self::take_back`].
    fn place_up_to(&mut self, shape: &Shape, most: Option<usize>, checked: bool, logged: bool) -> Round {
        let mut instance = shape.instance("");
        let mut placed = 0;
        while most.is_none_or(|most| placed < most) {
            if let Some(failures) = self.known.refused.get(&(*shape, checked)) {
                return Round { refused: Some(*failures) };
            }
            let trials = self.best_or_reasons(shape, &instance, checked);
            let Some(best) = trials.best else {
                self.known.refused.insert((*shape, checked), trials.failures);
                return Round { refused: Some(trials.failures) };
            };
            if logged && self.start.is_none() {
                let known = Known { slots: self.known.slots.clone(), ..Known::default() };
                let known = std::mem::replace(&mut self.known, known);
                self.start = Some(Start { board: self.board.clone(), known });
            }
            instance.name = format!("new-{}", self.placed.len());
            let undo = self.place(shape, instance.clone(), &best.outcome, checked);
            if logged {
                self.log.push(undo);
            }
            placed += 1;
        }
        Round { refused: None }
    }

    /// Reasons that refuse one more instance after a round. If one still fits, these are the reasons of the
    /// targets that refuse it.
    fn failures(&mut self, shape: &Shape, round: &Round, checked: bool) -> Failures {
        round.refused.unwrap_or_else(|| self.attempt(&shape.instance(""), checked).failures)
    }

    /// Reasons that refuse an instance of this shape, redundancy included; `None` if one fits.
    pub fn refusal(&mut self, shape: &Shape) -> Option<Failures> {
        let checked = self.capacity_checks;
        if let Some(failures) = self.known.refused.get(&(*shape, checked)) {
            return Some(*failures);
        }
        let trials = self.attempt(&shape.instance(""), checked);
        if trials.best.is_some() {
            return None;
        }
        self.known.refused.insert((*shape, checked), trials.failures);
        Some(trials.failures)
    }

    /// Best placement of one more instance, or the reasons against it if nothing fits.
    fn best_or_reasons(&mut self, shape: &Shape, instance: &Instance, checked: bool) -> Trials<f64> {
        if let Some((_, trials)) = self.known.next.take_if(|(known, _)| !checked && known == shape) {
            return trials;
        }
        let Targets::Pairs(pairs) = self.targets else { return self.attempt(instance, checked) };
        if self.ground.dedicated {
            return self.attempt(instance, checked);
        }
        let trials = pair::best_pair_or_reasons(self.cluster, &self.board, instance, pairs, false);
        // The best pair usually passes the redundancy check as well.
        match &trials.best {
            Some(best) if checked && !self.holds(instance, &best.outcome) => self.attempt(instance, checked),
            _ => trials,
        }
    }

    /// Whether every node could still be emptied after this placement.
    fn holds(&mut self, instance: &Instance, outcome: &Outcome) -> bool {
        let tentative = self.tentative();
        let (cluster, known) = (&mut *self.cluster, &mut self.known);
        let redundancy = known
            .redundancy
            .get_or_insert_with(|| Redundancy::among(cluster, &self.nodes, &self.ground.tested));
        let inquiry = redundancy.inquiry(cluster, instance, tentative);
        let undo = cluster.add(instance.clone(), outcome);
        let holds = inquiry.holds(cluster, outcome);
        cluster.undo(undo);
        holds
    }

    /// The next instance as the redundancy check sees it under the rule of `hail`; `None` under the rule of
    /// `hspace`, which sees it as it is.
    fn tentative(&self) -> Option<Tentative> {
        let Rule::Hail { group } = self.rule else { return None };
        let hidden = group.and_then(|group| Scope::group(self.cluster, group).hidden(self.cluster));
        let instance = InstanceIdx::from_usize(self.cluster.instances.len());
        Some(Tentative { instance, hidden, existing: None })
    }

    /// Tries one more instance on all targets. Leaves the cluster unchanged.
    fn attempt(&mut self, instance: &Instance, checked: bool) -> Trials<f64> {
        let tentative = self.tentative();
        let (cluster, board) = (&mut *self.cluster, &self.board);
        if self.ground.dedicated {
            return dedicated::try_all(cluster, instance, self.targets, false).map(|_| 0.0);
        }
        if !checked {
            return try_all(
                cluster,
                board,
                instance,
                self.targets,
                None::<fn(&mut Cluster, &Outcome) -> bool>,
            );
        }
        let redundancy = self
            .known
            .redundancy
            .get_or_insert_with(|| Redundancy::among(cluster, &self.nodes, &self.ground.tested));
        let inquiry = redundancy.inquiry(cluster, instance, tentative);
        let acceptable = |cluster: &mut Cluster, outcome: &Outcome| {
            let undo = cluster.add(instance.clone(), outcome);
            let holds = inquiry.holds(cluster, outcome);
            cluster.undo(undo);
            holds
        };
        try_all(cluster, board, instance, self.targets, Some(acceptable))
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
        self.known.refused.clear();
        self.known.next = None;
        if let Some(slots) = &mut self.known.slots {
            slots.update(self.cluster, &changed, &self.ground.tested);
        }
        // A placement accepted by the redundancy check leaves every node evacuable.
        self.known.all_evacuable = checked.then_some(true);
        match &mut self.known.redundancy {
            Some(redundancy) if checked => redundancy.update(self.cluster, &changed),
            outdated => *outdated = None,
        }
        undo
    }
}

fn try_all(
    cluster: &mut Cluster,
    board: &Board,
    instance: &Instance,
    targets: &Targets,
    mut acceptable: Option<impl FnMut(&mut Cluster, &Outcome) -> bool>,
) -> Trials<f64> {
    match targets {
        Targets::Single(nodes) => {
            let acceptable = |cluster: &mut Cluster, outcome: &Outcome| {
                acceptable.as_mut().is_none_or(|acceptable| acceptable(cluster, outcome))
            };
            allocate::single(cluster, board, instance, nodes, false, acceptable)
        }
        Targets::Pairs(pairs) => pair::best_pair(cluster, board, instance, pairs, false, acceptable),
    }
}
