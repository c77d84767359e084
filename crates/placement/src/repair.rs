//! Repairs violations with as few moves as possible and moves nothing else.
//!
//! This is Allotment's own; the reference only balances. First, all instances that are down are started, each
//! once and before any disk is copied. Then violations are handled one after another, the worst first. Each
//! move must make the [`Measure`] smaller and no class of violations worse, so that stopping early never
//! leaves the cluster worse than before. The only exception is starting an instance that is down, which is
//! allowed to worsen lesser classes. Among the moves that could end a violation, the smallest resulting
//! measure wins, then the fewest copied disks, then the lowest score.

mod tidy;
mod violations;

use cluster::{Cluster, InstanceIdx, Move, NodeIdx, Outcome, Probe};

pub use violations::{Class, Measure, Violation};

use crate::allocate::Failures;
use crate::balance::{BalanceOptions, Candidates, Step};
use crate::board::Board;
use crate::idle::Immovable;
use crate::score::Values;
use violations::Gauge;

/// Reason why a violation remains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The limit on moves is reached.
    Limit,
    /// The involved instances are all immovable. Lists the distinct reasons.
    Unmovable(Vec<Immovable>),
    /// Both nodes of every involved instance are offline.
    Unreadable,
    /// The options allow no move of the involved instances.
    Forbidden,
    /// Every move is refused.
    Refused(Failures),
    /// No possible move would help.
    Useless,
    /// The possible moves would worsen or cause violations of this class.
    Harmful(Class),
}

/// Result of [`repair`].
#[derive(Clone, Debug, PartialEq)]
pub struct Repair {
    pub steps: Vec<Step>,
    /// Components of the score: before the first move, and after each move.
    pub values: Vec<Values>,
    /// Violations before the repair, worst first.
    pub found: Vec<Violation>,
    pub before: Measure,
    pub after: Measure,
    /// Violations that couldn't be repaired, with the reasons.
    pub remaining: Vec<(Violation, Obstacle)>,
}

/// Repairs violations on `nodes` by moving some of `instances`, both ascending.
///
/// With [`BalanceOptions::ignore_soft_errors`], moves are allowed to worsen lesser classes of violations.
/// Apart from that, only options that restrict moves have an effect.
pub fn repair(
    cluster: &mut Cluster,
    nodes: &[NodeIdx],
    instances: &[InstanceIdx],
    options: &BalanceOptions,
) -> Repair {
    let options = &BalanceOptions { readable_only: true, ..*options };
    let mut trial = Site::new(cluster.clone(), nodes, instances, *options);
    let before = trial.gauge.measure();
    let found = trial.gauge.violations(cluster);
    let mut plan = trial.find();
    tidy::tidy(&Site::new(cluster.clone(), nodes, instances, *options), &mut plan, trial.gauge.measure());
    let wanted = plan.len();
    plan.truncate(options.max_moves.unwrap_or(wanted));
    let mut site = Site::new(cluster.clone(), nodes, instances, *options);
    let mut values = vec![*site.board.values()];
    let mut steps = Vec::new();
    for (instance, mov) in plan {
        // The trial made the same moves, so they are possible.
        let Some(step) = site.make(instance, mov) else { break };
        values.push(*site.board.values());
        steps.push(step);
    }
    let remaining = site.remaining(steps.len() < wanted);
    let after = site.gauge.measure();
    *cluster = site.cluster;
    Repair { steps, values, found, before, after, remaining }
}

/// Whether a move copies disks.
fn copies(mov: Move) -> bool {
    !matches!(mov, Move::Failover | Move::FailoverTo(_))
}

/// A cluster under repair.
#[derive(Clone, Debug)]
struct Site {
    cluster: Cluster,
    nodes: Vec<NodeIdx>,
    online: Vec<NodeIdx>,
    /// Whether each instance can be moved.
    free: Vec<bool>,
    options: BalanceOptions,
    board: Board,
    gauge: Gauge,
}

/// An improving move. Lower values are preferred.
#[derive(Clone, Copy, Debug)]
struct Remedy {
    measure: Measure,
    copies: u8,
    score: f64,
    instance: InstanceIdx,
    mov: Move,
}

impl Site {
    fn new(cluster: Cluster, nodes: &[NodeIdx], instances: &[InstanceIdx], options: BalanceOptions) -> Self {
        let mut free = vec![false; cluster.instances.len()];
        for &index in instances {
            let instance = cluster.instance(index);
            free[index.at()] = instance.movable && instance.auto_balance;
        }
        let online = nodes.iter().copied().filter(|n| cluster.node(*n).online()).collect();
        let board = Board::new(&cluster, nodes);
        let gauge = Gauge::new(&cluster, nodes);
        Self { cluster, nodes: nodes.to_vec(), online, free, options, board, gauge }
    }

    /// Makes moves as long as they help, and returns them.
    fn find(&mut self) -> Vec<(InstanceIdx, Move)> {
        let mut plan = Vec::new();
        loop {
            let already = plan.len();
            self.start_what_is_down(&mut plan);
            for violation in self.gauge.violations(&self.cluster) {
                // A repair of another violation can already have ended this one.
                while let Some(remedy) = self.remedy(&self.gauge.involved(&self.cluster, violation)) {
                    if self.make(remedy.instance, remedy.mov).is_none() {
                        break;
                    }
                    plan.push((remedy.instance, remedy.mov));
                }
            }
            if plan.len() == already {
                return plan;
            }
        }
    }

    /// Starts instances that have an offline primary if no copying is necessary for that.
    fn start_what_is_down(&mut self, plan: &mut Vec<(InstanceIdx, Move)>) {
        for violation in self.gauge.violations(&self.cluster) {
            let Violation::Offline { instance, node } = violation else { continue };
            if self.cluster.instance(instance).primary != node {
                continue;
            }
            if self.remedy_by(&[instance], |mov| !copies(mov)).is_none() {
                self.make_room_for(instance, plan);
            }
            if let Some(remedy) = self.remedy_by(&[instance], |mov| !copies(mov))
                && self.make(instance, remedy.mov).is_some()
            {
                plan.push((instance, remedy.mov));
            }
        }
    }

    /// Moves another instance off the secondary of `index`, which is down, if `index` can start then. No
    /// disks are copied.
    fn make_room_for(&mut self, index: InstanceIdx, plan: &mut Vec<(InstanceIdx, Move)>) {
        let Some(secondary) = self.cluster.instance(index).secondary else { return };
        for guest in self.cluster.state(secondary).primaries.clone() {
            let Some(remedy) = self.remedy_by(&[guest], |mov| !copies(mov)) else { continue };
            let mut trial = self.clone();
            let moved = trial.make(guest, remedy.mov).is_some();
            if moved && trial.remedy_by(&[index], |mov| !copies(mov)).is_some() {
                *self = trial;
                plan.push((guest, remedy.mov));
                return;
            }
        }
    }

    fn make(&mut self, index: InstanceIdx, mov: Move) -> Option<Step> {
        let probe = Probe::new(&self.cluster, index);
        let from = (probe.primary, probe.secondary);
        let outcome = probe.judge(mov, self.options.ignore_soft_errors).ok()?;
        self.gauge.update(&self.cluster, self.cluster.instance(index), &outcome);
        self.cluster.apply(index, &outcome);
        let changed: Vec<NodeIdx> = outcome.changes().iter().map(|c| c.node).collect();
        self.board.update(&self.cluster, &self.nodes, &changed);
        let to = (outcome.primary, outcome.secondary);
        Some(Step { instance: index, mov, from, to, score: self.board.score() })
    }

    /// Best improving move of some instances.
    fn remedy(&self, instances: &[InstanceIdx]) -> Option<Remedy> {
        self.remedy_by(instances, |_| true)
    }

    /// Like [`Self::remedy`], limited to `allowed` moves.
    fn remedy_by(&self, instances: &[InstanceIdx], allowed: fn(Move) -> bool) -> Option<Remedy> {
        let mut best: Option<Remedy> = None;
        for &index in instances {
            self.try_all(index, |mov, outcome| {
                if let Ok(outcome) = outcome
                    && allowed(mov)
                {
                    self.consider(index, mov, &outcome, &mut best);
                }
            });
        }
        best
    }

    fn consider(&self, index: InstanceIdx, mov: Move, outcome: &Outcome, best: &mut Option<Remedy>) {
        let instance = self.cluster.instance(index);
        let measure = self.gauge.after(&self.cluster, instance, outcome);
        if !self.improves(&measure) {
            return;
        }
        let copies = u8::from(copies(mov));
        let located = self.board.located_delta_of(&self.cluster, instance, outcome);
        if let Some(best) = best {
            let order = (measure, copies).cmp(&(best.measure, best.copies));
            let hopeless = || self.board.lower_bound(&self.cluster, outcome.changes(), located) > best.score;
            if order.is_gt() || (order.is_eq() && hopeless()) {
                return;
            }
        }
        let score = self.board.exact(&self.cluster, outcome.changes(), located);
        let better =
            best.is_none_or(|best| (measure, copies) < (best.measure, best.copies) || score < best.score);
        if better {
            *best = Some(Remedy { measure, copies, score, instance: index, mov });
        }
    }

    /// Whether a move that leads to `measure` is allowed.
    fn improves(&self, measure: &Measure) -> bool {
        let now = self.gauge.measure();
        *measure < now
            && (self.options.ignore_soft_errors || measure.worsens_nothing(&now) || measure.runs_more(&now))
    }

    /// Whether an instance can currently be moved.
    fn may_move(&self, index: InstanceIdx) -> bool {
        self.free[index.at()]
            && (!self.options.evacuate_only
                || self.cluster.instance(index).involved_nodes().any(|n| self.cluster.node(n).offline))
    }

    /// Moves of an instance that the options currently allow.
    fn moves(&self, index: InstanceIdx) -> impl Iterator<Item = Move> + '_ {
        let instance = self.cluster.instance(index);
        let allowed = if self.may_move(index) {
            Candidates::of(&self.cluster, instance, &self.options)
        } else {
            Candidates { failover: false, kinds: &[] }
        };
        let elsewhere = |t: &&NodeIdx| **t != instance.primary && Some(**t) != instance.secondary;
        let targets = self.online.iter().filter(elsewhere);
        let to_others = targets.flat_map(move |t| allowed.kinds.iter().map(|kind| kind.to(*t)));
        allowed.failover.then_some(Move::Failover).into_iter().chain(to_others)
    }

    /// Judges all moves of an instance.
    fn try_all(&self, index: InstanceIdx, mut tell: impl FnMut(Move, Result<Outcome, cluster::FailMode>)) {
        let probe = Probe::new(&self.cluster, index);
        for mov in self.moves(index) {
            tell(mov, probe.judge(mov, self.options.ignore_soft_errors));
        }
    }

    /// Remaining violations and the reasons.
    fn remaining(&self, limited: bool) -> Vec<(Violation, Obstacle)> {
        let explain = |violation| {
            let involved = self.gauge.involved(&self.cluster, violation);
            (violation, self.obstacle(&involved, limited))
        };
        self.gauge.violations(&self.cluster).into_iter().map(explain).collect()
    }

    fn obstacle(&self, involved: &[InstanceIdx], limited: bool) -> Obstacle {
        let immovable = |i: &InstanceIdx| Immovable::find(self.cluster.instance(*i));
        if involved.iter().all(|i| !self.free[i.at()] || immovable(i).is_some()) {
            let mut reasons = Vec::new();
            for reason in involved.iter().filter_map(immovable) {
                if !reasons.contains(&reason) {
                    reasons.push(reason);
                }
            }
            return Obstacle::Unmovable(reasons);
        }
        let free = |i: &&InstanceIdx| self.free[i.at()];
        if involved.iter().filter(free).all(|i| self.cluster.unreadable(*i)) {
            return Obstacle::Unreadable;
        }
        if limited && self.remedy(involved).is_some() {
            return Obstacle::Limit;
        }
        let mut failures = Failures::default();
        let now = self.gauge.measure();
        let mut is_possible = false;
        // Only over moves that improve some class.
        let mut least: Option<Measure> = None;
        for &index in involved {
            self.try_all(index, |_, outcome| match outcome {
                Ok(outcome) => {
                    is_possible = true;
                    let measure = self.gauge.after(&self.cluster, self.cluster.instance(index), &outcome);
                    if now.worse_class(&measure).is_some() {
                        least = Some(least.map_or(measure, |least| least.min(measure)));
                    }
                }
                Err(mode) => failures.add(mode),
            });
        }
        if is_possible {
            let class = least.and_then(|least| least.worse_class(&now));
            class.map_or(Obstacle::Useless, Obstacle::Harmful)
        } else if failures.total() > 0 {
            Obstacle::Refused(failures)
        } else {
            Obstacle::Forbidden
        }
    }
}
