//! Emptying nodes: the moves that take everything off them, their order, and the copies that cannot leave.
//!
//! Every step is judged by [`Probe::judge`] in the state that the steps before it leave behind, so the list
//! can be carried out from top to bottom. Instances that are down start first. Then running instances leave,
//! without copying disks if possible. Their mirrors follow. If a copy finds no capacity, other orders are
//! tried.

mod lenient;
mod room;

use std::cmp::{Ordering, Reverse};
use std::fmt;

use cluster::{
    Cluster, DiskTemplate, FailMode, InstanceIdx, MirrorClass, Move, NodeIdx, Outcome, PINNED, Probe,
};
use thiserror::Error;

use crate::allocate::Failures;
use crate::balance::Step;
use crate::board::Board;
use crate::evacuate::Destination;
use crate::explain::words;
use crate::fit::lack::{self, Lack};
use crate::order::BestFirst;
pub use crate::role::Role;
use crate::watch::{Health, Watch};

/// Reason for emptying nodes, which decides which instances must leave them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// They are taken out of service: nothing may stay.
    Retire,
    /// They are restarted: only running instances leave. Mirrors and stopped instances stay.
    Reboot,
    /// They are dead and marked offline: their instances are started elsewhere, then mirrored again.
    Lost,
}

/// Options for emptying nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainOptions {
    pub purpose: Purpose,
    /// Accept violations of policies, exclusion tags and N+1.
    pub ignore_soft_errors: bool,
    /// Allow moves that copy disks.
    pub disk_moves: bool,
}

/// Reason why a copy of an instance stays in place.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Obstacle {
    /// Its data is on one node only.
    #[error("{}: its data is on this node only and cannot be moved", .0.name())]
    NotMirrored(DiskTemplate),
    /// It should have a mirror, but has none.
    #[error("it has no secondary node")]
    NoSecondary,
    /// A tag keeps it on its nodes.
    #[error("it is pinned by the tag {PINNED}")]
    Pinned,
    /// Both its nodes are lost or offline.
    #[error("both its nodes are offline, nothing can read its data")]
    BothOffline,
    /// Its data is readable only on its secondary node, where nothing may be started.
    #[error("its primary node is offline, and its secondary node takes no instances")]
    SecondaryDrained,
    /// Its nodes are in different groups.
    #[error("its two nodes are in different groups")]
    DifferentGroups,
    /// Its disks would have to be copied, which the options forbid.
    #[error("its disks would have to be copied to another node")]
    NoDiskMoves,
    /// Every move is refused.
    #[error("{0}")]
    Refused(Refusals),
}

/// Reasons that refuse all moves of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusals {
    /// Secondary that refuses to take over, with the reason.
    pub failover: Option<(NodeIdx, FailMode)>,
    /// Refused moves to other nodes, by reason.
    pub targets: Failures,
    /// Memory that it needs, MiB.
    pub memory: i64,
    /// Disk that it needs, MiB.
    pub disk: i64,
    /// Whether some move would be possible if soft errors were ignored.
    pub is_soft: bool,
    /// Maximum memory available on a target, MiB.
    pub most_memory: i64,
    /// Maximum disk available on a target, MiB.
    pub most_disk: i64,
    /// Memory shortage of the target with the smallest one, including memory that it must keep for failovers,
    /// MiB.
    pub least_memory_short: i64,
    /// Disk shortage of the target with the smallest one, MiB.
    pub least_disk_short: i64,
}

impl fmt::Display for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((_, mode)) = self.failover {
            write!(f, "its secondary node cannot take it over ({})", words(mode))?;
        }
        match (self.failover, self.targets.total()) {
            (Some(_), 0) => return Ok(()),
            (None, 0) => return write!(f, "there is no other node to go to"),
            (Some(_), _) => write!(f, "; ")?,
            (None, _) => {}
        }
        write!(f, "no other node can")?;
        let refused = |mode| self.targets.reasons().any(|(m, _)| m == mode);
        for (position, (mode, count)) in self.targets.reasons().enumerate() {
            let separator = if position == 0 { ":" } else { "," };
            write!(f, "{separator} {} on {count}", words(mode))?;
        }
        if refused(FailMode::Memory) {
            gap(f, "memory", self.memory, self.most_memory, self.least_memory_short)?;
        }
        if refused(FailMode::Disk) {
            gap(f, "disk", self.disk, self.most_disk, self.least_disk_short)?;
        }
        Ok(())
    }
}

/// Writes the shortage, if the targets have one. A node needs more than the amount placed on it. All amounts
/// are in MiB.
fn gap(f: &mut fmt::Formatter<'_>, what: &str, wanted: i64, most: i64, short: i64) -> fmt::Result {
    match wanted.cmp(&most) {
        Ordering::Greater => write!(f, "; it needs {wanted} MiB of {what}, the most available is {most}"),
        Ordering::Equal => {
            write!(f, "; it needs more than {wanted} MiB of {what}, the most available is {most}")
        }
        Ordering::Less if short > 0 => {
            write!(f, "; the node that lacks least is {short} MiB of {what} short")
        }
        Ordering::Less => Ok(()),
    }
}

/// A copy that stays behind.
#[derive(Clone, Debug, PartialEq)]
pub struct Stay {
    pub instance: InstanceIdx,
    pub role: Role,
    pub node: NodeIdx,
    pub obstacle: Obstacle,
}

/// A step of a plan, and the health of the nodes after it.
#[derive(Clone, Debug, PartialEq)]
pub struct DrainStep {
    pub step: Step,
    /// Health of the groups concerned, including the nodes being emptied, since these work until the end.
    pub health: Health,
}

/// A plan to empty nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Health before the first step, as in [`DrainStep::health`].
    pub before: Health,
    pub steps: Vec<DrainStep>,
    /// Copies that stay behind.
    pub stays: Vec<Stay>,
    /// Forthcoming instances planned for the nodes. They have nothing yet that could leave or stay.
    pub planned: Vec<InstanceIdx>,
    /// Health of the remaining nodes alone once the emptied nodes are gone.
    pub after: Health,
}

impl Plan {
    /// Instances that stay for lack of capacity. It isn't proven that they have to.
    pub fn refused(&self) -> Vec<InstanceIdx> {
        let refused = self.stays.iter().filter(|stay| matches!(stay.obstacle, Obstacle::Refused(_)));
        refused.map(|stay| stay.instance).collect()
    }

    /// Number of primaries that stay, of all copies that stay, and of steps. Lower is better.
    fn cost(&self) -> (usize, usize, usize) {
        let primaries = self.stays.iter().filter(|stay| stay.role == Role::Primary).count();
        (primaries, self.stays.len(), self.steps.len())
    }
}

/// Maximum number of further orders that are tried while copies stay for lack of capacity.
const ORDERS: usize = 12;

/// Plans to empty `leaving`, and leaves the cluster in the state after the plan.
///
/// The scores are those of the remaining nodes in the groups concerned.
pub fn drain(cluster: &mut Cluster, leaving: &[NodeIdx], options: DrainOptions) -> Plan {
    let mut first = Vec::new();
    let (mut after, mut best) = attempt(cluster, leaving, options, &first, false);
    let mut refused = best.refused();
    for _ in 0..ORDERS {
        refused.retain(|i| !first.contains(i));
        // Instances that stayed choose first.
        let has_new = !refused.is_empty();
        first.splice(0..0, refused);
        // No new order is left to try. As a last resort, other instances make room, but not if the nodes are
        // lost: a rescue leaves all other instances in place.
        let makes_room = !has_new && options.purpose != Purpose::Lost;
        if best.refused().is_empty() || !(has_new || makes_room) {
            break;
        }
        let (then, plan) = attempt(cluster, leaving, options, &first, makes_room);
        refused = plan.refused();
        if plan.cost() < best.cost() {
            (after, best) = (then, plan);
        }
        if makes_room {
            break;
        }
    }
    *cluster = after;
    best
}

/// A plan in which the instances in `first` choose their nodes before all others, and the cluster after it.
fn attempt(
    cluster: &Cluster,
    leaving: &[NodeIdx],
    options: DrainOptions,
    first: &[InstanceIdx],
    makes_room: bool,
) -> (Cluster, Plan) {
    let mut after = cluster.clone();
    let cluster = &mut after;
    let in_scope = |n: &NodeIdx| leaving.iter().any(|l| cluster.node(*l).group == cluster.node(*n).group);
    let scope: Vec<NodeIdx> = cluster.node_indices().filter(in_scope).collect();
    let remaining: Vec<NodeIdx> = scope.iter().copied().filter(|n| !leaving.contains(n)).collect();
    let watch = Watch::new(cluster, &scope);
    let leaving = leaving.to_vec();
    let (first, budget) = (first.to_vec(), room::BUDGET);
    let mut run = Drain { cluster, leaving, remaining, options, first, budget, watch, steps: Vec::new() };
    let before = run.health();
    // A move sometimes frees capacity elsewhere, so refused moves are tried again.
    while run.pass() || (makes_room && run.make_room()) {}
    let stays = run.stays();
    let planned = run.planned();
    let steps = run.steps;
    let health = Health::of(run.cluster, &run.remaining);
    (after, Plan { before, steps, stays, planned, after: health })
}

/// Maximum number of best targets that are tried to find one that leaves every node evacuable.
const ALTERNATIVES: usize = 32;

struct Drain<'a> {
    cluster: &'a mut Cluster,
    leaving: Vec<NodeIdx>,
    remaining: Vec<NodeIdx>,
    options: DrainOptions,
    /// Instances that choose before all others, in this order.
    first: Vec<InstanceIdx>,
    /// Number of moves that can still be judged to make room.
    budget: usize,
    watch: Watch,
    steps: Vec<DrainStep>,
}

/// Moves of an instance that are considered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pick {
    /// Moves of the first rank after which no more nodes are stuck.
    FirstChoice,
    /// Moves of all ranks. The first rank with a move after which no more nodes are stuck wins, otherwise the
    /// first rank with any move.
    Best,
}

/// A move and its outcome.
type Choice = (Move, Outcome);

impl Drain<'_> {
    fn health(&self) -> Health {
        Health {
            score: Board::new(self.cluster, &self.remaining).score(),
            failing_n1: self.watch.failing_n1(self.cluster),
            stuck: self.watch.stuck().collect(),
        }
    }

    fn leaves(&self, node: NodeIdx) -> bool {
        self.leaving.contains(&node)
    }

    /// Moves everything that can be moved now. Returns whether anything was moved.
    ///
    /// First choices come first, since each failover can make the next one possible.
    fn pass(&mut self) -> bool {
        let before = self.steps.len();
        while self.stage(Role::Primary, Pick::FirstChoice)
            || (self.options.purpose != Purpose::Lost && self.make_room_to_start())
        {}
        self.stage(Role::Primary, Pick::Best);
        self.stage(Role::Secondary, Pick::Best);
        self.steps.len() > before
    }

    /// Moves copies in one role. Returns whether anything was moved.
    fn stage(&mut self, role: Role, pick: Pick) -> bool {
        let before = self.steps.len();
        let mut pending = self.pending(role);
        pending.retain(|i| self.fixed(*i, role).is_none());
        // Largest first, since small instances fit into the remaining gaps.
        pending.sort_by_key(|i| {
            let turn = self.first.iter().position(|first| first == i).unwrap_or(usize::MAX);
            (!self.is_down(*i), turn, Reverse(self.cluster.instance(*i).memory))
        });
        for index in pending {
            self.relocate(index, role, pick);
        }
        self.steps.len() > before
    }

    /// Forthcoming instances that need other nodes; none if the nodes are only restarted.
    fn planned(&self) -> Vec<InstanceIdx> {
        let concerned = |i: &InstanceIdx| {
            let instance = self.cluster.instance(*i);
            instance.forthcoming && instance.involved_nodes().any(|n| self.leaves(n))
        };
        let instances = self.cluster.instance_indices().filter(|_| self.options.purpose != Purpose::Reboot);
        instances.filter(concerned).collect()
    }

    /// Instances whose copy in this role is on a node being emptied and has to leave.
    fn pending(&self, role: Role) -> Vec<InstanceIdx> {
        let instances = self.cluster.instance_indices();
        instances
            .filter(|i| !self.cluster.instance(*i).forthcoming)
            .filter(|i| {
                let instance = self.cluster.instance(*i);
                match role {
                    Role::Primary => {
                        let stops = self.options.purpose != Purpose::Reboot || instance.uses_memory();
                        stops && self.leaves(instance.primary)
                    }
                    Role::Secondary => {
                        self.options.purpose != Purpose::Reboot
                            && instance.template == DiskTemplate::Drbd
                            && instance.secondary.is_some_and(|s| self.leaves(s))
                    }
                }
            })
            .collect()
    }

    /// Reason why a copy cannot move, regardless of free capacity.
    fn fixed(&self, index: InstanceIdx, role: Role) -> Option<Obstacle> {
        let instance = self.cluster.instance(index);
        let node = |n: NodeIdx| self.cluster.node(n);
        match (instance.template.mirror(), instance.secondary) {
            (MirrorClass::None, _) => Some(Obstacle::NotMirrored(instance.template)),
            (MirrorClass::Internal, None) => Some(Obstacle::NoSecondary),
            _ if instance.is_pinned() => Some(Obstacle::Pinned),
            (MirrorClass::External, _) => None,
            (MirrorClass::Internal, Some(s)) => {
                if self.cluster.node(s).group != self.cluster.group_of(index) {
                    return Some(Obstacle::DifferentGroups);
                }
                if self.cluster.unreadable(index) {
                    return Some(Obstacle::BothOffline);
                }
                if !node(instance.primary).readable() && !node(s).online() {
                    return Some(Obstacle::SecondaryDrained);
                }
                let moves_for_free = self.may_fail_over(index) || self.starts_on_mirror(index);
                let copies = role == Role::Secondary || !moves_for_free;
                (!self.options.disk_moves && copies).then_some(Obstacle::NoDiskMoves)
            }
        }
    }

    /// The move that copies a mirrored instance's disks to another node, from where they are readable. If
    /// only the secondary is left, the instance runs there in the meantime.
    fn copying(&self, index: InstanceIdx, role: Role) -> fn(NodeIdx) -> Move {
        match role {
            _ if self.is_down(index) => Move::ReplacePrimary,
            Role::Primary => Move::ReplaceAndFailover,
            Role::Secondary => Move::ReplaceSecondary,
        }
    }

    /// Whether an instance is down until it leaves its primary.
    fn is_down(&self, index: InstanceIdx) -> bool {
        !self.cluster.node(self.cluster.instance(index).primary).readable()
    }

    /// Whether an instance that is down can start on the node of its mirror, even if it must leave that node
    /// as well.
    fn starts_on_mirror(&self, index: InstanceIdx) -> bool {
        let instance = self.cluster.instance(index);
        self.is_down(index)
            && instance.template.mirror() == MirrorClass::Internal
            && instance.secondary.is_some_and(|s| self.cluster.node(s).online())
    }

    fn may_fail_over(&self, index: InstanceIdx) -> bool {
        let instance = self.cluster.instance(index);
        instance.template.mirror() == MirrorClass::Internal
            && instance.secondary.is_some_and(|s| self.cluster.node(s).online() && !self.leaves(s))
    }

    fn targets(&self, index: InstanceIdx) -> Vec<NodeIdx> {
        let secondary = self.cluster.instance(index).secondary;
        let mut targets = Destination::in_group(self.cluster, index, &self.leaving).available;
        targets.retain(|t| Some(*t) != secondary);
        targets
    }

    /// Moves that take a copy away, in ranks. Every move of a rank is better than all moves of later ranks.
    fn ranks(&self, index: InstanceIdx, role: Role) -> Vec<Vec<Move>> {
        let targets = self.targets(index);
        let each = |kinds: &[fn(NodeIdx) -> Move]| -> Vec<Move> {
            targets.iter().flat_map(|t| kinds.iter().map(|kind| kind(*t))).collect()
        };
        if role == Role::Secondary {
            return vec![each(&[self.copying(index, role)])];
        }
        let for_free = self.may_fail_over(index) || self.starts_on_mirror(index);
        if for_free && !self.options.disk_moves {
            return vec![vec![Move::Failover]];
        }
        if for_free && !self.may_fail_over(index) {
            return vec![vec![Move::Failover], each(&[self.copying(index, role)])];
        }
        match self.cluster.instance(index).template.mirror() {
            MirrorClass::None => Vec::new(),
            MirrorClass::External => vec![each(&[Move::FailoverTo])],
            MirrorClass::Internal if !self.may_fail_over(index) => {
                vec![Vec::new(), each(&[self.copying(index, role)])]
            }
            MirrorClass::Internal => match self.options.purpose {
                Purpose::Lost => vec![vec![Move::Failover]],
                // One copy of the disks is enough. If the mirror stays behind, it costs a second copy.
                Purpose::Retire => vec![
                    vec![Move::Failover],
                    each(&[Move::ReplacePrimary, Move::FailoverAndReplace]),
                    each(&[self.copying(index, role)]),
                ],
                Purpose::Reboot => vec![
                    vec![Move::Failover],
                    each(&[self.copying(index, role), Move::ReplacePrimary, Move::FailoverAndReplace]),
                ],
            },
        }
    }

    fn relocate(&mut self, index: InstanceIdx, role: Role, pick: Pick) {
        let ranks = self.ranks(index, role);
        let mut fallback: Option<Choice> = None;
        for moves in ranks.into_iter().take(if pick == Pick::FirstChoice { 1 } else { usize::MAX }) {
            let (best, acceptable) = self.best(index, &moves);
            // Instances that are down start now, and their mirrors follow. Nothing else is as urgent.
            let starts = |(mov, _): &Choice| room::copies_nothing(*mov);
            if acceptable || (self.is_down(index) && best.as_ref().is_some_and(starts)) {
                fallback = best;
                break;
            }
            fallback = fallback.or(best.filter(|_| pick == Pick::Best));
        }
        if let Some(choice) = fallback {
            self.make(index, choice);
        }
    }

    /// The move with the best score after which no more nodes are stuck, and `true`; failing that, the move
    /// with the best score, and `false`.
    fn best(&mut self, index: InstanceIdx, moves: &[Move]) -> (Option<Choice>, bool) {
        let probe = Probe::new(self.cluster, index);
        let possible: Vec<Choice> = moves
            .iter()
            .filter_map(|m| Some((*m, self.judge(&probe, *m, self.options.ignore_soft_errors).ok()?)))
            .collect();
        let board = Board::new(self.cluster, &self.remaining);
        let located = |cluster: &Cluster, outcome: &Outcome| {
            board.located_delta_of(cluster, cluster.instance(index), outcome)
        };
        let bound = |(_, outcome): &Choice| {
            board.lower_bound(self.cluster, outcome.changes(), located(self.cluster, outcome))
        };
        let mut order = BestFirst::new(possible.iter().map(bound));
        let mut best = None;
        for _ in 0..ALTERNATIVES {
            let cluster = &*self.cluster;
            let exact = |position: usize| {
                let outcome: &Outcome = &possible[position].1;
                board.exact(cluster, outcome.changes(), located(cluster, outcome))
            };
            let Some((position, _)) = order.next(exact) else { break };
            let choice = possible[position];
            let undo = self.cluster.apply(index, &choice.1);
            let acceptable = self.watch.no_worse(self.cluster, &choice.1);
            self.cluster.undo(undo);
            if acceptable {
                return (Some(choice), true);
            }
            best = best.or(Some(choice));
        }
        (best, false)
    }

    fn judge(&self, probe: &Probe<'_>, mov: Move, force: bool) -> Result<Outcome, FailMode> {
        lenient::judge(self.cluster, probe, mov, &self.leaving, force)
    }

    fn make(&mut self, index: InstanceIdx, (mov, outcome): Choice) {
        let instance = self.cluster.instance(index);
        let from = (instance.primary, instance.secondary);
        self.cluster.apply(index, &outcome);
        self.watch.update(self.cluster, &outcome);
        let health = self.health();
        let to = (outcome.primary, outcome.secondary);
        let step = Step { instance: index, mov, from, to, score: health.score };
        self.steps.push(DrainStep { step, health });
    }

    /// Copies left on the nodes in the final state, with the reasons.
    fn stays(&self) -> Vec<Stay> {
        let mut stays = Vec::new();
        for role in [Role::Primary, Role::Secondary] {
            for index in self.pending(role) {
                let instance = self.cluster.instance(index);
                let node = match role {
                    Role::Primary => instance.primary,
                    Role::Secondary => instance.secondary.unwrap_or(instance.primary),
                };
                let obstacle =
                    self.fixed(index, role).unwrap_or_else(|| Obstacle::Refused(self.refusals(index, role)));
                stays.push(Stay { instance: index, role, node, obstacle });
            }
        }
        stays.sort_by_key(|s| (s.node, s.role, s.instance));
        stays
    }

    fn refusals(&self, index: InstanceIdx, role: Role) -> Refusals {
        let (cluster, instance) = (&*self.cluster, self.cluster.instance(index));
        let probe = Probe::new(cluster, index);
        let refused = |mov| self.judge(&probe, mov, self.options.ignore_soft_errors).err();
        let is_soft =
            self.ranks(index, role).concat().iter().any(|mov| self.judge(&probe, *mov, true).is_ok());
        let failover = (role == Role::Primary && self.may_fail_over(index))
            .then(|| instance.secondary.zip(refused(Move::Failover)))
            .flatten();
        let kind = match (role, instance.template.mirror()) {
            (Role::Primary, MirrorClass::External) => Move::FailoverTo,
            (role, _) => self.copying(index, role),
        };
        let only_failover = self.options.purpose == Purpose::Lost || !self.options.disk_moves;
        let targets = if only_failover && failover.is_some() { Vec::new() } else { self.targets(index) };
        let mut failures = Failures::default();
        targets.iter().filter_map(|t| refused(kind(*t))).for_each(|mode| failures.add(mode));
        let most = |figure: fn(&Cluster, NodeIdx) -> i64| {
            targets.iter().map(|t| figure(cluster, *t)).max().unwrap_or(0)
        };
        let lacks: Vec<Lack> = targets
            .iter()
            .map(|t| match role {
                Role::Primary => lack::as_primary(cluster, *t, instance).lack,
                Role::Secondary => lack::as_secondary(cluster, *t, instance.primary, instance).lack,
            })
            .collect();
        let least = |figure: fn(&Lack) -> i64| lacks.iter().map(figure).min().unwrap_or(0);
        Refusals {
            failover,
            targets: failures,
            memory: instance.memory,
            disk: instance.disk,
            is_soft,
            most_memory: most(|c, n| c.figures(n).available_memory(c.node(n))),
            most_disk: most(|c, n| c.figures(n).available_disk(c.node(n))),
            least_memory_short: least(|lack| lack.memory_mib),
            least_disk_short: least(|lack| lack.disk_mib),
        }
    }
}
