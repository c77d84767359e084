//! Emptying nodes: which moves take everything off them, in which order, and what cannot leave.
//!
//! Every step is judged by [`Probe::judge`] in the state that the steps before it leave behind, so that the list can
//! be carried out from top to bottom. What is down starts first; then what runs leaves, without copying disks where
//! that is possible; the mirrors follow. Where something finds no room, other orders are tried.

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

/// Why nodes are emptied, which decides what must leave them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// They are taken out of service: nothing may stay.
    Retire,
    /// They are restarted: only what would stop leaves. Mirrors stay, and so does what does not run.
    Reboot,
    /// They are dead, and marked offline: what was on them is started elsewhere, then mirrored again.
    Lost,
}

/// How nodes are emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainOptions {
    /// Why, and so what leaves.
    pub purpose: Purpose,
    /// Accept violations of policies, exclusion tags and N+1.
    pub ignore_soft_errors: bool,
    /// Whether moves that copy disks are allowed.
    pub disk_moves: bool,
}

/// Why a copy of an instance stays where it is.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Obstacle {
    /// Its data is on one node only.
    #[error("{}: its data is on this node only and cannot be moved", .0.name())]
    NotMirrored(DiskTemplate),
    /// It should have a mirror, and has none.
    #[error("it has no secondary node")]
    NoSecondary,
    /// A tag keeps it on its nodes.
    #[error("it is pinned by the tag {PINNED}")]
    Pinned,
    /// Both its nodes are lost or offline.
    #[error("both its nodes are offline, nothing can read its data")]
    BothOffline,
    /// Its data can be read on its secondary node only, where nothing may be started.
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

/// What refuses all moves of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusals {
    /// The secondary that could take over, and why it does not.
    pub failover: Option<(NodeIdx, FailMode)>,
    /// Moves to other nodes that were judged, by the reason of the refusal.
    pub targets: Failures,
    /// Memory that it needs, MiB.
    pub memory: i64,
    /// Disk that it needs, MiB.
    pub disk: i64,
    /// Whether some move would be possible if soft errors were ignored.
    pub is_soft: bool,
    /// The most memory that a target has to give, MiB.
    pub most_memory: i64,
    /// The most disk that a target has to give, MiB.
    pub most_disk: i64,
    /// Memory that the target lacks which lacks least of it, what it must keep for failovers included, MiB.
    pub least_memory_short: i64,
    /// Disk that the target lacks which lacks least of it, MiB.
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

/// What is lacking, if it is the target that lacks it: a node must have more than what is placed on it. All in MiB.
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
    /// Whose copy.
    pub instance: InstanceIdx,
    /// Which copy.
    pub role: Role,
    /// Where.
    pub node: NodeIdx,
    /// Why.
    pub obstacle: Obstacle,
}

/// A step of a plan, and how the nodes are doing after it.
#[derive(Clone, Debug, PartialEq)]
pub struct DrainStep {
    /// The move.
    pub step: Step,
    /// Health of the groups concerned, the nodes being emptied included: until the end they still work.
    pub health: Health,
}

/// How to empty nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Health before the first step, as in [`DrainStep::health`].
    pub before: Health,
    /// The moves, in order.
    pub steps: Vec<DrainStep>,
    /// What stays behind.
    pub stays: Vec<Stay>,
    /// Forthcoming instances that are planned for the nodes: nothing of them leaves or stays.
    pub planned: Vec<InstanceIdx>,
    /// Health of the other nodes alone once the emptied ones are gone.
    pub after: Health,
}

impl Plan {
    /// Instances that stay for lack of room, which is not proven.
    pub fn refused(&self) -> Vec<InstanceIdx> {
        let refused = self.stays.iter().filter(|stay| matches!(stay.obstacle, Obstacle::Refused(_)));
        refused.map(|stay| stay.instance).collect()
    }

    /// How much stays, and how much is moved; less is better.
    fn cost(&self) -> (usize, usize, usize) {
        let primaries = self.stays.iter().filter(|stay| stay.role == Role::Primary).count();
        (primaries, self.stays.len(), self.steps.len())
    }
}

/// So many orders are tried until nothing stays for lack of room.
const ORDERS: usize = 12;

/// Plans to empty `leaving`, and leaves the cluster as the plan does.
///
/// The scores are those of the other nodes of the groups concerned.
pub fn drain(cluster: &mut Cluster, leaving: &[NodeIdx], options: DrainOptions) -> Plan {
    let mut first = Vec::new();
    let (mut after, mut best) = attempt(cluster, leaving, options, &first, false);
    let mut refused = best.refused();
    for _ in 0..ORDERS {
        refused.retain(|i| !first.contains(i));
        // What stayed has the first choice.
        let has_new = !refused.is_empty();
        first.splice(0..0, refused);
        // Nothing new to learn: at last, others make room. Those who save lost instances leave the rest in place.
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

/// A plan in which the instances `first` choose their nodes before others, and the cluster after it.
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
    // A move makes room elsewhere at times, so that what was refused is asked again.
    while run.pass() || (makes_room && run.make_room()) {}
    let stays = run.stays();
    let planned = run.planned();
    let steps = run.steps;
    let health = Health::of(run.cluster, &run.remaining);
    (after, Plan { before, steps, stays, planned, after: health })
}

/// How many of the best targets are tried in the hope of one that leaves every node evacuable.
const ALTERNATIVES: usize = 32;

struct Drain<'a> {
    cluster: &'a mut Cluster,
    leaving: Vec<NodeIdx>,
    remaining: Vec<NodeIdx>,
    options: DrainOptions,
    /// Instances that choose before others.
    first: Vec<InstanceIdx>,
    /// How many more moves are judged to make room.
    budget: usize,
    watch: Watch,
    steps: Vec<DrainStep>,
}

/// Which moves of an instance are considered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pick {
    /// Those of the first rank after which no more nodes are stuck.
    FirstChoice,
    /// All: the first rank that has one after which no more nodes are stuck, or else the first that has any.
    Best,
}

/// A move and what it does.
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

    /// Moves what can be moved now; whether anything was.
    ///
    /// What needs no second best comes first: each failover may make the next one possible.
    fn pass(&mut self) -> bool {
        let before = self.steps.len();
        while self.stage(Role::Primary, Pick::FirstChoice)
            || (self.options.purpose != Purpose::Lost && self.make_room_to_start())
        {}
        self.stage(Role::Primary, Pick::Best);
        self.stage(Role::Secondary, Pick::Best);
        self.steps.len() > before
    }

    /// Moves copies; whether anything was moved.
    fn stage(&mut self, role: Role, pick: Pick) -> bool {
        let before = self.steps.len();
        let mut pending = self.pending(role);
        pending.retain(|i| self.fixed(*i, role).is_none());
        // The largest first: the small ones fit into what is left.
        pending.sort_by_key(|i| {
            let turn = self.first.iter().position(|first| first == i).unwrap_or(usize::MAX);
            (!self.is_down(*i), turn, Reverse(self.cluster.instance(*i).memory))
        });
        for index in pending {
            self.relocate(index, role, pick);
        }
        self.steps.len() > before
    }

    /// Forthcoming instances that need other nodes, unless the nodes are only restarted.
    fn planned(&self) -> Vec<InstanceIdx> {
        let concerned = |i: &InstanceIdx| {
            let instance = self.cluster.instance(*i);
            instance.forthcoming && instance.involved_nodes().any(|n| self.leaves(n))
        };
        let instances = self.cluster.instance_indices().filter(|_| self.options.purpose != Purpose::Reboot);
        instances.filter(concerned).collect()
    }

    /// Instances that have this copy on a node to be emptied, and may not.
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

    /// Why a copy cannot move whatever room there is.
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

    /// The move of a mirrored instance that copies its disks to another node, from where they can be read. Where only
    /// the secondary is left, the instance runs there meanwhile.
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

    /// Whether an instance that is down can start where its mirror is, even if it must leave that node as well.
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

    /// The moves that take a copy away, in ranks: those of a rank are better than those of later ones.
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
                // One copy of the disks ends it; or else the mirror that stays behind costs a second one.
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
            // What is down starts now; its mirror follows. Nothing else is as urgent.
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

    /// The move with the best score after which no more nodes are stuck; failing that, the one with the best score.
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

    /// What is left, and why, as things are in the end.
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
