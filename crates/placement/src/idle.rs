//! Why balancing moves nothing: what may not move, what refuses the moves, and what the best of them would gain.

use cluster::{DiskTemplate, FailMode, Instance, InstanceIdx, MirrorClass, Move, NodeIdx, Probe};

use crate::allocate::Failures;
use crate::balance::{Balancer, Candidates};
use crate::fit::lack;

/// Why nothing moves.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Idle {
    /// Instances whose data is on one node only, by disk template.
    pub not_mirrored: Vec<(DiskTemplate, usize)>,
    /// Mirrored instances without a mirror.
    pub without_secondary: usize,
    /// Instances that a tag keeps on their nodes.
    pub pinned: usize,
    /// Instances that are left out of balancing by themselves or by options.
    pub left_out: usize,
    /// Instances for which the options, or a lack of online nodes, leave no move.
    pub without_moves: usize,
    /// Moves that are refused, by reason.
    pub refused: Failures,
    /// The node that lacks least of the memory that a refused move needs: how much, MiB, and for which instance.
    pub least_short: Option<(i64, NodeIdx, InstanceIdx)>,
    /// The possible move that gains most.
    pub best: Option<Best>,
    /// Whether no move may be made at all.
    pub is_limited: bool,
    /// Whether the score is within `min_score` of the optimum.
    pub is_optimal: bool,
}

/// Why an instance stays whatever the nodes are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Immovable {
    /// Its data is on one node only, or it has no data.
    Template(DiskTemplate),
    /// It should have a mirror, and has none.
    NoSecondary,
    /// It has the tag [`PINNED`](cluster::PINNED).
    Pinned,
    /// It is left out of balancing.
    AutoBalanceOff,
    /// Options leave it out.
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

/// The best of the moves that are possible.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Best {
    /// Which instance.
    pub instance: InstanceIdx,
    /// How it would move.
    pub mov: Move,
    /// By how much the score would become less; negative if it would become more.
    pub gain: f64,
    /// Whether `min_gain` allows the move.
    pub gains_enough: bool,
}

impl Balancer<'_> {
    /// Why no move is made as things are. `instances` are all that are at hand, those that may not move included.
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

    /// All moves of an instance that the options allow at this time.
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

    /// How much memory the node lacks that an instance would go to, MiB.
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
