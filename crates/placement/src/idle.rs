//! Explains why balancing makes no move: immovable instances, refused moves, and the gain of the best
//! possible move.

use cluster::{DiskTemplate, FailMode, Instance, InstanceIdx, MirrorClass, Move, NodeIdx, Probe};

use crate::allocate::Failures;
use crate::balance::{Balancer, Candidates};
use crate::fit::lack;

/// Reasons why no instance moves.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Idle {
    /// Instances without a copy on another node, counted by disk template.
    pub not_mirrored: Vec<(DiskTemplate, usize)>,
    /// Instances with a mirrored template but no secondary.
    pub without_secondary: usize,
    /// Instances that a tag pins to their nodes.
    pub pinned: usize,
    /// Instances excluded from balancing by their own setting or by options.
    pub left_out: usize,
    /// Instances left without any move by the options or by a lack of online nodes.
    pub without_moves: usize,
    /// Refused moves, counted by reason.
    pub refused: Failures,
    /// Smallest memory shortage, MiB, that refuses a move, with the node and the instance.
    pub least_short: Option<(i64, NodeIdx, InstanceIdx)>,
    /// Possible move with the largest gain.
    pub best: Option<Best>,
    /// Whether the options allow no moves (`max_moves` is 0).
    pub is_limited: bool,
    /// Whether the score is within `min_score` of the optimum.
    pub is_optimal: bool,
}

/// Reason why an instance can't move, regardless of the state of the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Immovable {
    /// It has no data, or its data is on one node only.
    Template(DiskTemplate),
    /// Its template is mirrored, but it has no secondary.
    NoSecondary,
    /// It has the tag [`PINNED`](cluster::PINNED).
    Pinned,
    AutoBalanceOff,
    /// Excluded by options.
    LeftOut,
}

impl Immovable {
    pub(crate) fn find(instance: &Instance) -> Option<Self> {
        let template = instance.template;
        if !template.movable() || template.mirror() == MirrorClass::None {
            Some(Self::Template(template))
        } else if template.mirror() == MirrorClass::Internal && instance.secondary.is_none() {
            Some(Self::NoSecondary)
        } else if instance.is_pinned() {
            Some(Self::Pinned)
        } else if !instance.auto_balance {
            Some(Self::AutoBalanceOff)
        } else if !instance.movable {
            Some(Self::LeftOut)
        } else {
            None
        }
    }
}

/// The best possible move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Best {
    pub instance: InstanceIdx,
    pub mov: Move,
    /// Decrease of the score; negative if the move would raise it.
    pub gain: f64,
    /// Whether `min_gain` allows the move.
    pub gains_enough: bool,
}

impl Balancer<'_> {
    /// Explains why balancing makes no move right now. `instances` are all instances in scope, movable or
    /// not.
    pub fn idle(&self, instances: &[InstanceIdx]) -> Idle {
        let mut idle = Idle {
            is_limited: self.options.max_moves == Some(0),
            is_optimal: !self.can_improve(),
            ..Idle::default()
        };
        for &index in instances {
            self.look_at(index, &mut idle);
        }
        idle.not_mirrored.sort_unstable_by_key(|(template, _)| template.name());
        idle
    }

    fn look_at(&self, index: InstanceIdx, idle: &mut Idle) {
        match Immovable::find(self.cluster.instance(index)) {
            Some(Immovable::Template(template)) => {
                match idle.not_mirrored.iter_mut().find(|(other, _)| *other == template) {
                    Some((_, count)) => *count += 1,
                    None => idle.not_mirrored.push((template, 1)),
                }
            }
            Some(Immovable::NoSecondary) => idle.without_secondary += 1,
            Some(Immovable::Pinned) => idle.pinned += 1,
            Some(Immovable::AutoBalanceOff | Immovable::LeftOut) => idle.left_out += 1,
            None => {
                let moves = self.moves(index);
                idle.without_moves += usize::from(moves.is_empty());
                self.try_moves(index, &moves, idle);
            }
        }
    }

    /// All moves of an instance that the options currently allow.
    fn moves(&self, index: InstanceIdx) -> Vec<Move> {
        if !self.eligible(index) {
            return Vec::new();
        }
        let instance = self.cluster.instance(index);
        let candidates = Candidates::of(self.cluster, instance, &self.options);
        let elsewhere = |t: &&NodeIdx| **t != instance.primary && Some(**t) != instance.secondary;
        let targets = self.online.iter().filter(elsewhere);
        let to_others = targets.flat_map(|t| candidates.kinds.iter().map(move |kind| kind.to(*t)));
        candidates.failover.then_some(Move::Failover).into_iter().chain(to_others).collect()
    }

    /// Memory, MiB, that the move's target node is short of.
    fn shortage(&self, index: InstanceIdx, mov: Move) -> Option<(i64, NodeIdx, InstanceIdx)> {
        let instance = self.cluster.instance(index);
        let node = mov.target().or(instance.secondary)?;
        let near = match mov {
            Move::ReplaceSecondary(_) => lack::as_secondary(self.cluster, node, instance.primary, instance),
            Move::FailoverAndReplace(_) => {
                lack::as_secondary(self.cluster, node, instance.secondary?, instance)
            }
            _ => lack::as_primary(self.cluster, node, instance),
        };
        (near.lack.memory_mib > 0).then_some((near.lack.memory_mib, node, index))
    }

    fn try_moves(&self, index: InstanceIdx, moves: &[Move], idle: &mut Idle) {
        let probe = Probe::new(self.cluster, index);
        for mov in moves {
            let outcome = match probe.judge(*mov, self.options.ignore_soft_errors) {
                Ok(outcome) => outcome,
                Err(mode) => {
                    idle.refused.add(mode);
                    let short = (mode == FailMode::Memory).then(|| self.shortage(index, *mov)).flatten();
                    idle.least_short = idle.least_short.into_iter().chain(short).min();
                    continue;
                }
            };
            let most = idle.best.map_or(f64::NEG_INFINITY, |best| best.gain);
            if self.score() - self.lower_bound(index, &outcome) <= most {
                continue;
            }
            let gain = self.score() - self.exact(index, &outcome);
            if gain > most {
                idle.best =
                    Some(Best { instance: index, mov: *mov, gain, gains_enough: self.gains_enough(gain) });
            }
        }
    }
}
