//! Places that instances can go to, and the number of moves and disk copies it takes to get there.

use std::ops::{Add, AddAssign, Sub};

use cluster::{Cluster, Instance, InstanceIdx, Migration, MirrorClass, Move, NodeIdx};

use crate::balance::{BalanceOptions, Candidates, Kind};

/// Nodes of an instance: the primary, and the one with its mirror.
pub type Pair = (NodeIdx, Option<NodeIdx>);

/// Price of carrying out moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Price {
    /// Number of moves.
    pub steps: usize,
    /// Number of times that an instance's disks are copied to another node.
    pub copies: usize,
}

impl Price {
    /// Whether neither number exceeds that of `limit`.
    pub fn within(self, limit: Self) -> bool {
        self.steps <= limit.steps && self.copies <= limit.copies
    }
}

impl Add for Price {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { steps: self.steps + other.steps, copies: self.copies + other.copies }
    }
}

impl AddAssign for Price {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Price {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { steps: self.steps - other.steps, copies: self.copies - other.copies }
    }
}

/// The way of an instance from its place at the start to another place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Journey {
    /// It is already there.
    Stay,
    /// One move that copies nothing.
    Migrate,
    /// One move that copies its disks.
    Copy,
    /// Two moves that copy its disks.
    CopyTwice,
}

impl Journey {
    pub const ALL: [Self; 4] = [Self::Stay, Self::Migrate, Self::Copy, Self::CopyTwice];

    #[inline]
    pub fn price(self) -> Price {
        let (steps, copies) = [(0, 0), (1, 0), (1, 1), (2, 2)][self as usize];
        Price { steps, copies }
    }
}

/// Possible moves of an instance at the start.
#[derive(Clone, Copy, Debug)]
struct Entry {
    home: Pair,
    /// Whether it is on external storage: nothing is mirrored, and it can start on any node.
    external: bool,
    /// Allowed kinds of move.
    failover: bool,
    failover_to: bool,
    replace_secondary: bool,
    replace_and_failover: bool,
    replace_primary: bool,
    failover_and_replace: bool,
}

/// Journeys of every instance from its place at the start to every other place.
#[derive(Clone, Debug)]
pub(super) struct Atlas<'a> {
    cluster: &'a Cluster,
    entries: Vec<Entry>,
    /// Whether no node has migration tags.
    free_migration: bool,
}

impl<'a> Atlas<'a> {
    pub fn new(cluster: &'a Cluster, instances: &[InstanceIdx], options: &BalanceOptions) -> Self {
        let nothing = Candidates { failover: false, kinds: &[] };
        let mut candidates = vec![nothing; cluster.instances.len()];
        for &index in instances {
            candidates[index.at()] = Candidates::of(cluster, cluster.instance(index), options);
        }
        let entry = |(instance, candidates): (&Instance, &Candidates)| {
            let has = |kind| candidates.kinds.contains(&kind);
            Entry {
                home: (instance.primary, instance.secondary),
                external: instance.template.mirror() == MirrorClass::External,
                failover: candidates.failover,
                failover_to: has(Kind::FailoverTo),
                replace_secondary: has(Kind::ReplaceSecondary),
                replace_and_failover: has(Kind::ReplaceAndFailover),
                replace_primary: has(Kind::ReplacePrimary),
                failover_and_replace: has(Kind::FailoverAndReplace),
            }
        };
        let entries = cluster.instances.iter().zip(&candidates).map(entry).collect();
        let free_migration = cluster.nodes.iter().all(|n| n.migration == Migration::default());
        Self { cluster, entries, free_migration }
    }

    /// Place of the instance at the start.
    #[inline]
    pub fn home(&self, index: InstanceIdx) -> Pair {
        self.entries[index.at()].home
    }

    /// Whether the instance can change its nodes at all.
    pub fn movable(&self, index: InstanceIdx) -> bool {
        let entry = &self.entries[index.at()];
        entry.failover || entry.failover_to || entry.replace_secondary || entry.replace_and_failover
    }

    /// Journey of an instance to `to`, whose nodes must be online; `None` if the options or migration tags
    /// forbid it.
    #[inline]
    pub fn journey(&self, index: InstanceIdx, to: Pair) -> Option<Journey> {
        let entry = &self.entries[index.at()];
        let (p, s) = entry.home;
        if to == (p, s) {
            return Some(Journey::Stay);
        }
        let may = |from, to| self.free_migration || self.cluster.migration_allowed(from, to);
        if entry.external {
            return (entry.failover_to && may(p, to.0)).then_some(Journey::Migrate);
        }
        let (s, t) = s.zip(to.1)?;
        let here = |node| node == p || node == s;
        let (allowed, journey) = match (here(to.0), here(t)) {
            (true, true) => (entry.failover && may(p, s), Journey::Migrate),
            (true, false) if to.0 == p => (entry.replace_secondary, Journey::Copy),
            (true, false) => (entry.failover_and_replace && may(p, s), Journey::Copy),
            (false, true) if t == p => (entry.replace_and_failover && may(p, to.0), Journey::Copy),
            (false, true) => (entry.replace_primary && may(p, s) && may(s, to.0), Journey::Copy),
            (false, false) => {
                (entry.replace_and_failover && entry.replace_secondary && may(p, to.0), Journey::CopyTwice)
            }
        };
        allowed.then_some(journey)
    }

    /// Node on which an instance runs for a while on its way: its secondary, if only its primary changes.
    #[inline]
    pub fn through(&self, index: InstanceIdx, to: Pair) -> Option<NodeIdx> {
        let (p, s) = self.entries[index.at()].home;
        s.filter(|s| to.1 == Some(*s) && to.0 != p)
    }
}

/// The single move that changes an instance's nodes to `to`, if there is one.
pub(super) fn single_move(instance: &Instance, to: Pair) -> Option<Move> {
    let p = instance.primary;
    if instance.template.mirror() == MirrorClass::External {
        return (to.0 != p).then_some(Move::FailoverTo(to.0));
    }
    let (s, t) = instance.secondary.zip(to.1)?;
    match (to.0, t) {
        (a, b) if (a, b) == (p, s) => None,
        (a, b) if (a, b) == (s, p) => Some(Move::Failover),
        (a, b) if a == p => Some(Move::ReplaceSecondary(b)),
        (a, b) if b == p => Some(Move::ReplaceAndFailover(a)),
        (a, b) if b == s => Some(Move::ReplacePrimary(a)),
        (a, b) if a == s => Some(Move::FailoverAndReplace(b)),
        _ => None,
    }
}
