//! Balancing: makes the best move, one step at a time (HT-hbal).

use cluster::{Cluster, Instance, InstanceIdx, MirrorClass, Move, NodeIdx, Outcome, Probe};

use crate::board::Board;
use crate::classes::Classes;
use crate::score::optimal_score;
use crate::search;

/// Allowed moves and stop conditions of balancing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BalanceOptions {
    /// Allow moves that copy disks.
    pub disk_moves: bool,
    /// Allow moves that change the primary.
    pub instance_moves: bool,
    /// Skip moves that migrate a running instance twice or off a healthy node.
    pub restricted_migration: bool,
    /// Move only instances with an offline node.
    pub evacuate_only: bool,
    /// Skip moves that copy from a node whose data cannot be read. The reference tries them.
    pub readable_only: bool,
    /// Place instances even if policies or redundancy suffer.
    pub ignore_soft_errors: bool,
    /// At or below this score, a step must gain at least [`Self::min_gain`].
    pub min_gain_limit: f64,
    /// Minimum gain of a step; see [`Self::min_gain_limit`].
    pub min_gain: f64,
    /// Stop when the score is within this distance of the optimum.
    pub min_score: f64,
    /// Maximum number of moves; `None` means no limit.
    pub max_moves: Option<usize>,
}

impl Default for BalanceOptions {
    fn default() -> Self {
        Self {
            disk_moves: true,
            instance_moves: true,
            restricted_migration: false,
            evacuate_only: false,
            readable_only: false,
            ignore_soft_errors: false,
            min_gain_limit: 0.1,
            min_gain: 0.01,
            min_score: 1e-9,
            max_moves: None,
        }
    }
}

/// A move that balancing decided on.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub instance: InstanceIdx,
    pub mov: Move,
    /// Primary and secondary before the move.
    pub from: (NodeIdx, Option<NodeIdx>),
    /// Primary and secondary after the move.
    pub to: (NodeIdx, Option<NodeIdx>),
    /// Score after the move.
    pub score: f64,
}

/// Moves to try for one instance, in this order: first the plain failover; then, for each online node that
/// the instance doesn't use, ascending, the kinds in [`Self::kinds`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidates {
    pub failover: bool,
    pub kinds: &'static [Kind],
}

/// Kinds of move to another node, in the order in which they are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    FailoverTo,
    ReplaceSecondary,
    ReplaceAndFailover,
    ReplacePrimary,
    FailoverAndReplace,
}

impl Kind {
    pub(crate) fn to(self, target: NodeIdx) -> Move {
        match self {
            Self::FailoverTo => Move::FailoverTo(target),
            Self::ReplaceSecondary => Move::ReplaceSecondary(target),
            Self::ReplaceAndFailover => Move::ReplaceAndFailover(target),
            Self::ReplacePrimary => Move::ReplacePrimary(target),
            Self::FailoverAndReplace => Move::FailoverAndReplace(target),
        }
    }
}

impl Candidates {
    /// Whether a move is one of the candidates.
    pub(crate) fn allow(&self, mov: Move) -> bool {
        let kind = match mov {
            Move::Failover => return self.failover,
            Move::FailoverTo(_) => Kind::FailoverTo,
            Move::ReplaceSecondary(_) => Kind::ReplaceSecondary,
            Move::ReplaceAndFailover(_) => Kind::ReplaceAndFailover,
            Move::ReplacePrimary(_) => Kind::ReplacePrimary,
            Move::FailoverAndReplace(_) => Kind::FailoverAndReplace,
        };
        self.kinds.contains(&kind)
    }

    /// Candidates that the options allow for an instance.
    pub(crate) fn of(cluster: &Cluster, instance: &Instance, options: &BalanceOptions) -> Self {
        use Kind::{FailoverAndReplace, FailoverTo, ReplaceAndFailover, ReplacePrimary, ReplaceSecondary};
        let none = Self { failover: false, kinds: &[] };
        let primary_online = cluster.node(instance.primary).online();
        match instance.template.mirror() {
            MirrorClass::None => none,
            MirrorClass::External if !options.instance_moves => none,
            MirrorClass::External => Self { failover: false, kinds: &[FailoverTo] },
            MirrorClass::Internal => {
                let Some(secondary) = instance.secondary else { return none };
                let failover = cluster.node(secondary).online() && options.instance_moves;
                let dead = options.readable_only && !cluster.node(instance.primary).readable();
                let kinds: &[Kind] = if !options.disk_moves || (dead && !failover) {
                    &[]
                } else if dead && options.restricted_migration {
                    &[FailoverAndReplace]
                } else if dead {
                    &[ReplacePrimary, FailoverAndReplace]
                } else if !options.instance_moves || (options.restricted_migration && primary_online) {
                    &[ReplaceSecondary]
                } else if !failover {
                    &[ReplaceSecondary, ReplaceAndFailover]
                } else if options.restricted_migration {
                    &[ReplaceSecondary, ReplaceAndFailover, FailoverAndReplace]
                } else {
                    &[ReplaceSecondary, ReplaceAndFailover, ReplacePrimary, FailoverAndReplace]
                };
                Self { failover, kinds }
            }
        }
    }
}

/// A balancing run on one set of nodes.
#[derive(Debug)]
pub struct Balancer<'a> {
    pub(crate) cluster: &'a mut Cluster,
    pub(crate) nodes: Vec<NodeIdx>,
    pub(crate) online: Vec<NodeIdx>,
    pub(crate) instances: Vec<InstanceIdx>,
    pub(crate) options: BalanceOptions,
    pub(crate) board: Board,
    pub(crate) classes: Classes,
    /// Number of instances from which the search is spread over threads. Tests lower it.
    pub(crate) parallel_from: usize,
    optimal: f64,
    score: f64,
    moves: usize,
}

impl<'a> Balancer<'a> {
    /// Prepares a run over `nodes` that moves only the movable, auto-balanced instances of `instances`. Both
    /// lists are ascending.
    pub fn new(
        cluster: &'a mut Cluster,
        nodes: &[NodeIdx],
        instances: &[InstanceIdx],
        options: BalanceOptions,
    ) -> Self {
        let board = Board::new(cluster, nodes);
        let optimal = optimal_of(cluster, nodes);
        let online: Vec<NodeIdx> = nodes.iter().copied().filter(|n| cluster.node(*n).online()).collect();
        let eligible = |i: &InstanceIdx| {
            let instance = cluster.instance(*i);
            instance.movable && instance.auto_balance
        };
        let instances: Vec<InstanceIdx> = instances.iter().copied().filter(eligible).collect();
        let score = board.score();
        let classes = Classes::new(cluster, &instances, &online);
        Self {
            cluster,
            nodes: nodes.to_vec(),
            online,
            instances,
            options,
            board,
            classes,
            parallel_from: search::PARALLEL_FROM,
            optimal,
            score,
            moves: 0,
        }
    }

    /// Current score.
    pub fn score(&self) -> f64 {
        self.score
    }

    pub fn board(&self) -> &Board {
        &self.board
    }

    pub fn cluster(&self) -> &Cluster {
        self.cluster
    }

    /// Score that no arrangement can beat.
    pub fn optimal(&self) -> f64 {
        self.optimal
    }

    /// Whether the score is already less than `min_score` above the optimum, so that no move is needed.
    pub fn well_balanced(&self) -> bool {
        self.score - self.optimal < self.options.min_score
    }

    /// Whether the score is more than `min_score` above the optimum. With `-e NaN` no comparison holds, so
    /// nothing moves.
    pub(crate) fn can_improve(&self) -> bool {
        self.score > self.optimal + self.options.min_score
    }

    /// Whether `min_gain` and `min_gain_limit` allow a step with this gain.
    pub(crate) fn gains_enough(&self, gain: f64) -> bool {
        self.score > self.options.min_gain_limit || gain >= self.options.min_gain
    }

    /// Chooses the next move and makes it; `None` when balancing is done.
    pub fn step(&mut self) -> Option<Step> {
        if !self.can_improve() || self.options.max_moves.is_some_and(|limit| self.moves >= limit) {
            return None;
        }
        let best = search::best_move(self)?;
        if !(best.score < self.score && self.gains_enough(self.score - best.score)) {
            return None;
        }
        let probe = Probe::new(self.cluster, best.instance);
        let from = (probe.primary, probe.secondary);
        let outcome = probe.judge(best.mov, self.options.ignore_soft_errors).ok()?;
        self.cluster.apply(best.instance, &outcome);
        let changed: Vec<NodeIdx> = outcome.changes().iter().map(|c| c.node).collect();
        self.board.update(self.cluster, &self.nodes, &changed);
        let positions: Vec<usize> = changed.iter().filter_map(|n| self.board.online_slot(*n)).collect();
        self.classes.update(self.cluster, &self.online, &positions);
        self.score = best.score;
        self.moves += 1;
        let to = (outcome.primary, outcome.secondary);
        Some(Step { instance: best.instance, mov: best.mov, from, to, score: best.score })
    }

    /// Whether the options allow the instance to move now: with `evacuate_only`, one of its nodes must be
    /// offline.
    pub(crate) fn eligible(&self, index: InstanceIdx) -> bool {
        !self.options.evacuate_only
            || self.cluster.instance(index).involved_nodes().any(|n| self.cluster.node(n).offline)
    }

    /// Exact score after an outcome.
    pub(crate) fn exact(&self, index: InstanceIdx, outcome: &Outcome) -> f64 {
        let located = self.board.located_delta_of(self.cluster, self.cluster.instance(index), outcome);
        self.board.exact(self.cluster, outcome.changes(), located)
    }

    /// Lower bound of [`Self::exact`].
    pub(crate) fn lower_bound(&self, index: InstanceIdx, outcome: &Outcome) -> f64 {
        let located = self.board.located_delta_of(self.cluster, self.cluster.instance(index), outcome);
        self.board.lower_bound(self.cluster, outcome.changes(), located)
    }
}

/// Score that no arrangement of the instances on `nodes` can beat.
pub fn optimal_of(cluster: &Cluster, nodes: &[NodeIdx]) -> f64 {
    let figures = nodes.iter().map(|n| {
        let reserved: i64 = cluster.state(*n).peers.iter().map(|(_, memory)| *memory).sum();
        (cluster.node(*n).total_memory, reserved)
    });
    optimal_score(figures)
}
