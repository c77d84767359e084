//! Moving given instances off their nodes (HT-evacuate).

use cluster::{
    Cluster, DiskTemplate, FailMode, InstanceIdx, MirrorClass, Move, NodeIdx, Outcome, PINNED, Probe, Undo,
};
use thiserror::Error;

use crate::allocate::Failures;
use crate::board::{Board, Effect};

/// Nodes that an instance must leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvacuateMode {
    PrimaryOnly,
    SecondaryOnly,
    All,
}

/// Reason why an instance cannot be moved.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EvacuateError {
    /// Its data is on one node only.
    #[error("Instances of type {} cannot be relocated", .0.name())]
    NotMirrored(DiskTemplate),
    /// It has no secondary to change.
    #[error("Instances with disk template '{}' can't execute change secondary", .0.name())]
    NoSecondary(DiskTemplate),
    /// A tag keeps it on its nodes.
    #[error("Instance is pinned by the tag {PINNED}")]
    Pinned,
    /// Every node refused. Holds names and reasons.
    #[error("Can't find any good node: {}", refusals(.0))]
    NoGoodNode(Vec<(String, FailMode)>),
    /// There are no two nodes to move to.
    #[error("Can't find any good nodes for relocation: no nodes available")]
    NoPairs,
    /// Every pair of nodes refused. Holds the step at which the last pair failed, and the reason.
    #[error("Can't find any good nodes for relocation: Allocation failed: {0}: {1}")]
    NoGoodPair(&'static str, FailMode),
    /// The only possible move is refused.
    #[error("{0}")]
    Refused(FailMode),
}

fn refusals(nodes: &[(String, FailMode)]) -> String {
    nodes.iter().fold(String::new(), |text, (name, mode)| text + &format!(" Node {name} failed: {mode};"))
}

/// Possible destinations of evacuated instances.
#[derive(Clone, Debug)]
pub struct Destination {
    /// Nodes whose score decides, ascending.
    pub group: Vec<NodeIdx>,
    /// Possible targets, ascending.
    pub available: Vec<NodeIdx>,
}

impl Destination {
    /// The nodes of the instance's own group. Its primary and the `excluded` nodes aren't available.
    pub fn in_group(cluster: &Cluster, instance: InstanceIdx, excluded: &[NodeIdx]) -> Self {
        let group = cluster.nodes_of(cluster.group_of(instance));
        let primary = cluster.instance(instance).primary;
        let usable = |n: &NodeIdx| cluster.node(*n).online() && !excluded.contains(n) && *n != primary;
        let available = group.iter().copied().filter(usable).collect();
        Self { group, available }
    }
}

/// Nodes that the instances must leave, and to which nothing may be moved.
pub fn nodes_to_leave(cluster: &Cluster, instances: &[InstanceIdx], mode: EvacuateMode) -> Vec<NodeIdx> {
    let mut nodes: Vec<NodeIdx> = Vec::new();
    for &index in instances {
        let instance = cluster.instance(index);
        let secondary = instance.secondary.filter(|_| instance.template == DiskTemplate::Drbd);
        match mode {
            EvacuateMode::PrimaryOnly => nodes.push(instance.primary),
            EvacuateMode::SecondaryOnly => nodes.extend(secondary),
            EvacuateMode::All => nodes.extend(std::iter::once(instance.primary).chain(secondary)),
        }
    }
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// Moves one instance and returns its moves. A refusal changes nothing.
pub fn evacuate(
    cluster: &mut Cluster,
    index: InstanceIdx,
    mode: EvacuateMode,
    to: &Destination,
    force: bool,
) -> Result<Vec<Move>, EvacuateError> {
    let template = cluster.instance(index).template;
    match (template.mirror(), mode) {
        (MirrorClass::None, _) => Err(EvacuateError::NotMirrored(template)),
        (MirrorClass::External, EvacuateMode::SecondaryOnly) => Err(EvacuateError::NoSecondary(template)),
        _ if cluster.instance(index).is_pinned() => Err(EvacuateError::Pinned),
        (MirrorClass::External, _) => best_single(cluster, index, Move::FailoverTo, to, force),
        (MirrorClass::Internal, EvacuateMode::PrimaryOnly) => {
            let outcome =
                Probe::new(cluster, index).judge(Move::Failover, force).map_err(EvacuateError::Refused)?;
            cluster.apply(index, &outcome);
            Ok(vec![Move::Failover])
        }
        (MirrorClass::Internal, EvacuateMode::SecondaryOnly) => {
            best_single(cluster, index, Move::ReplaceSecondary, to, force)
        }
        (MirrorClass::Internal, EvacuateMode::All) => best_pair(cluster, index, to, force),
    }
}

/// The best choice so far by exact score; among equals, the latest.
#[derive(Debug)]
pub(crate) struct Latest<T>(pub Option<(f64, T)>);

impl<T> Latest<T> {
    /// Choices with a score above this needn't be offered.
    pub fn limit(&self) -> f64 {
        self.0.as_ref().map_or(f64::INFINITY, |(score, _)| *score)
    }

    /// Accepts a choice that is no worse.
    pub fn offer(&mut self, score: f64, choice: T) {
        // A NaN score replaces, and is replaced by, any score.
        let keep = self.0.as_ref().is_some_and(|(old, _)| *old < score);
        if !keep {
            self.0 = Some((score, choice));
        }
    }
}

/// Scores moves of one kind of one instance to different targets. Their effect on the instance's own nodes is
/// the same for all targets, except for the location.
struct Scorer<'a> {
    cluster: &'a Cluster,
    board: &'a Board,
    index: InstanceIdx,
    own_nodes: Option<Effect>,
}

impl Scorer<'_> {
    /// Exact score; `None` if it is certainly above `limit`.
    fn score(&mut self, outcome: &Outcome, target: NodeIdx, limit: f64) -> Option<f64> {
        let (cluster, board) = (self.cluster, self.board);
        let located = board.located_delta_of(cluster, cluster.instance(self.index), outcome);
        let own_nodes = self.own_nodes.get_or_insert_with(|| {
            board.effect(cluster, outcome.changes().iter().filter(|c| c.node != target))
        });
        let mut effect = *own_nodes;
        for change in outcome.changes().iter().filter(|c| c.node == target) {
            board.add_effect(cluster, change, &mut effect);
        }
        let counts = board.counts_with(cluster, outcome.changes(), located);
        if board.bound(&effect, counts) > limit {
            return None;
        }
        Some(board.exact(cluster, outcome.changes(), located))
    }
}

/// Moves the instance to the best available node.
fn best_single(
    cluster: &mut Cluster,
    index: InstanceIdx,
    kind: fn(NodeIdx) -> Move,
    to: &Destination,
    force: bool,
) -> Result<Vec<Move>, EvacuateError> {
    let board = Board::new(cluster, &to.group);
    let probe = Probe::new(cluster, index);
    let mut scorer = Scorer { cluster, board: &board, index, own_nodes: None };
    let mut best = Latest(None);
    let mut refused = Vec::new();
    for &target in &to.available {
        match probe.judge(kind(target), force) {
            Ok(outcome) => {
                if let Some(score) = scorer.score(&outcome, target, best.limit()) {
                    best.offer(score, (target, outcome));
                }
            }
            Err(mode) => refused.push((cluster.node(target).name.clone(), mode)),
        }
    }
    let Some((_, (target, outcome))) = best.0 else { return Err(EvacuateError::NoGoodNode(refused)) };
    cluster.apply(index, &outcome);
    Ok(vec![kind(target)])
}

/// Moves both copies of a DRBD instance to the best ordered pair of available nodes.
fn best_pair(
    cluster: &mut Cluster,
    index: InstanceIdx,
    to: &Destination,
    force: bool,
) -> Result<Vec<Move>, EvacuateError> {
    let mut failure = EvacuateError::NoPairs;
    let mut best = Latest(None);
    for &first in to.available.iter().filter(|_| to.available.len() > 1) {
        let mut undo = Vec::new();
        match make_primary(cluster, index, first, force, &mut undo) {
            Ok(_) => {
                let board = Board::new(cluster, &to.group);
                let probe = Probe::new(cluster, index);
                let mut scorer = Scorer { cluster, board: &board, index, own_nodes: None };
                for &second in to.available.iter().filter(|second| **second != first) {
                    match probe.judge(Move::ReplaceSecondary(second), force) {
                        Ok(outcome) => {
                            if let Some(score) = scorer.score(&outcome, second, best.limit()) {
                                best.offer(score, (first, second));
                            }
                        }
                        Err(mode) => {
                            failure =
                                EvacuateError::NoGoodPair("Changing secondary to final secondary", mode);
                        }
                    }
                }
            }
            Err(refusal) => failure = refusal,
        }
        for step in undo.into_iter().rev() {
            cluster.undo(step);
        }
    }
    let Some((_, (first, second))) = best.0 else { return Err(failure) };
    let mut moves = make_primary(cluster, index, first, force, &mut Vec::new())?;
    let last = Move::ReplaceSecondary(second);
    let outcome = Probe::new(cluster, index).judge(last, force).map_err(EvacuateError::Refused)?;
    cluster.apply(index, &outcome);
    moves.push(last);
    Ok(moves)
}

/// Result of [`evacuate`] with [`EvacuateMode::All`] if `first` becomes the primary: the possible
/// secondaries, and the reasons against all other nodes. Leaves the cluster unchanged.
pub fn pairs_with(
    cluster: &mut Cluster,
    index: InstanceIdx,
    first: NodeIdx,
    to: &Destination,
    force: bool,
) -> Result<(Vec<NodeIdx>, Failures), EvacuateError> {
    let mut undo = Vec::new();
    let made = make_primary(cluster, index, first, force, &mut undo);
    let (mut possible, mut failures) = (Vec::new(), Failures::default());
    if made.is_ok() {
        let probe = Probe::new(cluster, index);
        for &second in to.available.iter().filter(|second| **second != first) {
            match probe.judge(Move::ReplaceSecondary(second), force) {
                Ok(_) => possible.push(second),
                Err(mode) => failures.add(mode),
            }
        }
    }
    for step in undo.into_iter().rev() {
        cluster.undo(step);
    }
    made.map(|_| (possible, failures))
}

/// Makes `first` the primary. The node that was the primary just before becomes the secondary. On refusal,
/// `undo` holds the moves already made.
fn make_primary(
    cluster: &mut Cluster,
    index: InstanceIdx,
    first: NodeIdx,
    force: bool,
    undo: &mut Vec<Undo>,
) -> Result<Vec<Move>, EvacuateError> {
    let mut steps = Vec::with_capacity(4);
    if cluster.node(cluster.instance(index).primary).offline {
        steps.push((Move::Failover, "Failing over to the secondary"));
    }
    steps.push((Move::ReplaceSecondary(first), "Changing secondary to new primary"));
    steps.push((Move::Failover, "Failing over to new primary"));
    for (mov, name) in &steps {
        let outcome = Probe::new(cluster, index)
            .judge(*mov, force)
            .map_err(|mode| EvacuateError::NoGoodPair(name, mode))?;
        undo.push(cluster.apply(index, &outcome));
    }
    Ok(steps.into_iter().map(|(mov, _)| mov).collect())
}
