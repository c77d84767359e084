//! Surveys a balancing step: finds instances and kinds of moves that are worth exploring.

use cluster::{Cluster, Instance, InstanceIdx, NodeIdx};

use crate::balance::{Balancer, Candidates, Kind};
use crate::cells::{Cells, LoadTable};
use crate::minorant::{Minorant, Podiums};
use crate::terms::Terms;

/// One instance and one kind of move, to any target (or a plain failover).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prospect {
    /// Lower bound of the scores of all candidates.
    pub bound: f64,
    /// The bound without the target's contribution.
    pub fixed: f64,
    pub class: u32,
    pub instance: InstanceIdx,
    /// Kind of move and its number in the order of trial; `None` for a plain failover.
    pub kind: Option<(Kind, u8)>,
}

/// Role of a move's target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Primary,
    Secondary,
}

/// Role of the target for a kind of move, and whether the placement is forced.
pub(crate) fn role_of(run: &Balancer<'_>, instance: &Instance, kind: Kind) -> (Role, bool) {
    let offline = |node: NodeIdx| run.cluster.node(node).offline;
    let global = run.options.ignore_soft_errors;
    match kind {
        Kind::FailoverTo | Kind::ReplacePrimary => (Role::Primary, global || offline(instance.primary)),
        Kind::ReplaceAndFailover => (Role::Primary, global),
        Kind::ReplaceSecondary => (Role::Secondary, global || instance.secondary.is_some_and(offline)),
        Kind::FailoverAndReplace => (Role::Secondary, global || offline(instance.primary)),
    }
}

/// Finds prospects for the instances of a class.
pub(crate) struct Surveyor<'a> {
    pub run: &'a Balancer<'a>,
    pub cells: &'a Cells,
    pub loads: Option<&'a LoadTable>,
    /// Number of the class.
    pub number: u32,
    pub minorant: &'a Minorant,
}

/// Change in the copies on a node.
#[derive(Clone, Copy, Debug, Default)]
struct Swap {
    primaries: i64,
    secondaries: i64,
    /// Change of unallocated memory, MiB.
    memory: i64,
    /// Minimum of reserved memory after the move, MiB.
    reserve: i64,
    conflicts: i64,
    /// Change of the location score.
    location: i64,
}

impl Surveyor<'_> {
    /// Adds the prospects of an instance that could beat the current score.
    pub fn prospects(&self, index: InstanceIdx, podiums: &Podiums, out: &mut Vec<Prospect>) {
        let run = self.run;
        let instance = run.cluster.instance(index);
        let candidates = Candidates::of(run.cluster, instance, &run.options);
        if !candidates.failover && candidates.kinds.is_empty() {
            return;
        }
        let ends = Ends::new(run.cluster, instance);
        let limit = run.score();
        if candidates.failover {
            let bound = self.minorant.base + self.failover(&ends);
            if bound <= limit {
                let (class, kind) = (self.number, None);
                out.push(Prospect { bound, fixed: bound, class, instance: index, kind });
            }
        }
        let own = [ends.primary, ends.secondary.unwrap_or(ends.primary)]
            .map(|n| run.board.online_slot(n).map_or(u32::MAX - 1, |slot| slot as u32));
        for (number, &kind) in candidates.kinds.iter().enumerate() {
            let fixed = self.minorant.base + self.fixed(&ends, kind);
            let best = self.best_target(&ends, kind, podiums, own);
            let bound = fixed + best;
            if bound <= limit {
                let kind = Some((kind, number as u8));
                out.push(Prospect { bound, fixed, class: self.number, instance: index, kind });
            }
        }
    }

    /// Lowest contribution of any target other than the instance's own nodes.
    fn best_target(&self, ends: &Ends<'_>, kind: Kind, podiums: &Podiums, own: [u32; 2]) -> f64 {
        let (role, force) = role_of(self.run, ends.instance, kind);
        let terms = self.terms(ends);
        let best = match role {
            Role::Primary => podiums.best_primary(force),
            Role::Secondary => podiums.best_secondary(force),
        };
        if let Some(least) = terms.least(kind, best) {
            return least;
        }
        let podium = |cell: usize| match role {
            Role::Primary => podiums.primary(cell, force),
            Role::Secondary => podiums.secondary(cell, force),
        };
        let cells = 0..self.cells.nodes.len();
        cells.map(|cell| podium(cell).best(own) + terms.of(kind, cell)).fold(f64::INFINITY, f64::min)
    }

    fn terms<'b>(&'b self, ends: &'b Ends<'_>) -> Terms<'b> {
        Terms { run: self.run, cells: self.cells, loads: self.loads, instance: ends.instance }
    }

    /// Change of a node's weighted counts.
    fn counts(&self, ends: &Ends<'_>, index: NodeIdx, swap: Swap) -> f64 {
        let (node, figures) = (self.run.cluster.node(index), self.run.cluster.figures(index));
        if ends.forthcoming {
            return if node.online() { 2.0 * swap.conflicts as f64 } else { 0.0 };
        }
        if node.offline {
            return (4 * (swap.primaries + swap.secondaries) + 16 * swap.primaries) as f64;
        }
        let all = figures.primaries + figures.secondaries;
        let before = if figures.fails_n1 { all } else { 0 };
        let fails = figures.unallocated_memory(node) + swap.memory <= swap.reserve;
        let after = if fails { all + swap.primaries + swap.secondaries } else { 0 };
        (after - before + 2 * swap.conflicts + swap.location) as f64
    }

    fn reserve(&self, ends: &Ends<'_>, index: NodeIdx, least: i64) -> f64 {
        let node = self.run.cluster.node(index);
        if ends.forthcoming || node.offline {
            return 0.0;
        }
        self.minorant.reserve(node, self.run.cluster.figures(index), least)
    }

    fn slot(&self, node: NodeIdx) -> Option<usize> {
        self.run.board.online_slot(node)
    }

    /// The primary leaves its node altogether.
    fn primary_leaves(&self, ends: &Ends<'_>) -> f64 {
        let swap = Swap {
            primaries: -1,
            memory: ends.used,
            reserve: ends.primary_reserve,
            conflicts: -ends.conflicts,
            location: -ends.location - ends.unmet,
            ..Swap::default()
        };
        let lanes = self.slot(ends.primary).map_or(0.0, |slot| self.minorant.leave_primary(slot));
        lanes + self.counts(ends, ends.primary, swap)
    }

    /// The primary becomes the secondary and reserves at least `least`.
    fn primary_steps_down(&self, ends: &Ends<'_>, least: i64) -> f64 {
        let swap = Swap {
            primaries: -1,
            secondaries: 1,
            memory: ends.used,
            reserve: least,
            conflicts: -ends.conflicts,
            location: -ends.location - ends.unmet,
        };
        let lanes = self.slot(ends.primary).map_or(0.0, |slot| self.minorant.demote(slot));
        lanes + self.reserve(ends, ends.primary, least) + self.counts(ends, ends.primary, swap)
    }

    /// The secondary leaves its node.
    fn secondary_leaves(&self, ends: &Ends<'_>) -> f64 {
        let Some(secondary) = ends.secondary else { return 0.0 };
        let swap = Swap { secondaries: -1, reserve: ends.reserve_without, ..Swap::default() };
        let lanes = self.slot(secondary).map_or(0.0, |slot| self.minorant.leave_secondary(slot));
        lanes + self.reserve(ends, secondary, ends.reserve_without) + self.counts(ends, secondary, swap)
    }

    /// The secondary becomes the primary and has `shared` location tags in common with the new secondary.
    fn secondary_steps_up(&self, ends: &Ends<'_>, shared: i64) -> f64 {
        let Some(secondary) = ends.secondary else { return 0.0 };
        let cluster = &*self.run.cluster;
        let tags = &ends.instance.exclusion_tags;
        let swap = Swap {
            primaries: 1,
            secondaries: -1,
            memory: -ends.used,
            reserve: ends.reserve_without,
            conflicts: cluster.state(secondary).tag_effect(tags).conflicts,
            location: shared + cluster.unmet_wishes(ends.instance, secondary),
        };
        let located = if ends.forthcoming {
            0
        } else {
            self.run.board.located_delta(cluster, tags, Some(ends.primary), Some(secondary))
        };
        let lanes = self.slot(secondary).map_or(0.0, |slot| self.minorant.promote(slot));
        lanes
            + self.reserve(ends, secondary, ends.reserve_without)
            + self.counts(ends, secondary, swap)
            + located as f64
    }

    fn failover(&self, ends: &Ends<'_>) -> f64 {
        let reserved = ends.secondary.map_or(0, |s| self.run.cluster.state(ends.primary).reserved_for(s));
        let least = ends.primary_reserve.max(reserved + ends.need);
        self.primary_steps_down(ends, least)
            + self.secondary_steps_up(ends, ends.location)
            + self.terms(ends).of_failover()
    }

    /// Changes on the instance's own nodes that a kind of move makes for any target.
    fn fixed(&self, ends: &Ends<'_>, kind: Kind) -> f64 {
        let grown = |reserve: i64| reserve.max(ends.need);
        match kind {
            Kind::FailoverTo => self.primary_leaves(ends),
            Kind::ReplaceSecondary => {
                let swap =
                    Swap { reserve: ends.primary_reserve, location: -ends.location, ..Swap::default() };
                self.secondary_leaves(ends) + self.counts(ends, ends.primary, swap)
            }
            Kind::ReplaceAndFailover => {
                self.primary_steps_down(ends, grown(ends.primary_reserve)) + self.secondary_leaves(ends)
            }
            Kind::ReplacePrimary => {
                let stays = ends.secondary.map_or(0.0, |secondary| {
                    let least = grown(ends.reserve_without);
                    let swap = Swap { reserve: least, ..Swap::default() };
                    self.reserve(ends, secondary, least) + self.counts(ends, secondary, swap)
                });
                self.primary_leaves(ends) + stays
            }
            Kind::FailoverAndReplace => self.primary_leaves(ends) + self.secondary_steps_up(ends, 0),
        }
    }
}

/// An instance's nodes, with precomputed input for the search.
struct Ends<'a> {
    instance: &'a Instance,
    primary: NodeIdx,
    secondary: Option<NodeIdx>,
    forthcoming: bool,
    /// Memory that the instance uses, MiB.
    used: i64,
    /// Memory reserved for the instance, MiB.
    need: i64,
    primary_reserve: i64,
    /// Reserve of the secondary without the instance.
    reserve_without: i64,
    /// Tag conflicts that end when the instance leaves.
    conflicts: i64,
    location: i64,
    unmet: i64,
}

impl<'a> Ends<'a> {
    fn new(cluster: &'a Cluster, instance: &'a Instance) -> Self {
        let (primary, secondary) = (instance.primary, instance.secondary);
        let need = if instance.reserves_secondary_memory() { instance.memory } else { 0 };
        Self {
            instance,
            primary,
            secondary,
            forthcoming: instance.forthcoming,
            used: if instance.uses_memory() { instance.memory } else { 0 },
            need,
            primary_reserve: cluster.figures(primary).reserved_memory,
            reserve_without: secondary.map_or(0, |s| cluster.state(s).reserve_without(primary, need)),
            conflicts: cluster.state(primary).conflicts_freed(&instance.exclusion_tags),
            location: instance.location_score,
            unmet: cluster.unmet_wishes(instance, primary),
        }
    }
}
