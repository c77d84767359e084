//! The search for the best move of a balancing step.
//!
//! Three sieves, each rigorous: what is worth at most what a class of instances can gain from its best target
//! ([`crate::minorant`], one number per instance and kind of move); what a single candidate can gain
//! ([`Board::lower_bound`](crate::board::Board::lower_bound)); and the canonical score. A candidate is dropped
//! only if its bound is *above* the best exact score, so that ties are decided as the reference decides them: by
//! the order of trial.

use std::cmp::Ordering;

use cluster::{Cluster, Instance, InstanceIdx, Move, NodeIdx, Probe};
use rayon::prelude::*;

use crate::balance::{Balancer, Candidates, Kind};
use crate::cells::{Cells, LoadTable};
use crate::classes::Class;
use crate::minorant::{Frame, Minorant, Podiums};

/// The best move found, and the exact score after it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Best {
    pub score: f64,
    pub instance: InstanceIdx,
    pub mov: Move,
    /// Position among the trials of the instance.
    trial: usize,
}

impl Best {
    /// Whether the reference would prefer this one: a lower score, or else the earlier trial.
    fn beats(&self, other: &Self) -> bool {
        match self.score.partial_cmp(&other.score) {
            Some(Ordering::Less) => true,
            Some(Ordering::Equal) => (self.instance, self.trial) < (other.instance, other.trial),
            _ => false,
        }
    }
}

/// The first move, in canonical order, of those with the least score below the current one.
pub(crate) fn best_move(run: &Balancer<'_>) -> Option<Best> {
    if run.board.bounded() { sieved(run) } else { exhaustive(run) }
}

/// Candidates tried, and the best of them so far.
struct Trials<'a> {
    run: &'a Balancer<'a>,
    best: Option<Best>,
    limit: f64,
}

impl<'a> Trials<'a> {
    fn new(run: &'a Balancer<'_>, limit: f64) -> Self {
        Self { run, best: None, limit }
    }

    fn consider(&mut self, probe: &Probe<'_>, mov: Move, trial: usize) {
        let Ok(outcome) = probe.judge(mov, self.run.options.ignore_soft_errors) else { return };
        let instance = probe.index();
        if self.run.lower_bound(instance, &outcome) > self.limit {
            return;
        }
        let score = self.run.exact(instance, &outcome);
        let found = Best { score, instance, mov, trial };
        if score < self.run.score() && self.best.as_ref().is_none_or(|best| found.beats(best)) {
            self.limit = self.limit.min(score);
            self.best = Some(found);
        }
    }
}

/// Tries everything, without the first sieve.
pub(crate) fn exhaustive(run: &Balancer<'_>) -> Option<Best> {
    let mut trials = Trials::new(run, run.score());
    for &index in run.instances.iter().filter(|i| run.eligible(**i)) {
        let candidates = Candidates::of(run.cluster, run.cluster.instance(index), &run.options);
        let probe = Probe::new(run.cluster, index);
        if candidates.failover {
            trials.consider(&probe, Move::Failover, 0);
        }
        for (position, &target) in run.online.iter().enumerate() {
            if target == probe.primary || Some(target) == probe.secondary {
                continue;
            }
            for (number, kind) in candidates.kinds.iter().enumerate() {
                trials.consider(&probe, kind.to(target), trial_number(position, number));
            }
        }
    }
    trials.best
}

fn trial_number(position: usize, kind: usize) -> usize {
    1 + 4 * position + kind
}

/// One instance and one kind of move, to all targets (or a plain failover).
#[derive(Clone, Copy, Debug)]
struct Prospect {
    /// No candidate scores below this.
    bound: f64,
    /// The bound without the target's part.
    fixed: f64,
    class: u32,
    instance: InstanceIdx,
    /// The kind and its number in the order of trial; `None` is a plain failover.
    kind: Option<(Kind, u8)>,
}

/// Above this many numbers, the tables of all classes are not kept but computed when needed.
const KEPT_NUMBERS: usize = 8 << 20;
/// Prospects looked at first, to find a good move early.
const FAVOURITES: usize = 8;
/// From this many instances on, work is spread over threads.
pub(crate) const PARALLEL_FROM: usize = 2_000;

fn sieved(run: &Balancer<'_>) -> Option<Best> {
    let classes = &run.classes;
    let any_offline = run.online.len() < run.nodes.len();
    let frame = Frame::new(run.cluster, &run.board, classes, &run.online, any_offline);
    let keep = classes.all.len() * run.online.len() * 6 < KEPT_NUMBERS;
    let survey = |(number, class): (usize, &Class)| {
        let minorant = frame.minorant(class);
        let podiums = Podiums::new(&frame, class, &minorant);
        let surveyor = Surveyor {
            run,
            cells: &frame.cells,
            loads: frame.load_table(class),
            number: number as u32,
            minorant: &minorant,
        };
        let mut prospects = Vec::new();
        for &index in class.instances.iter().filter(|i| run.eligible(**i)) {
            surveyor.prospects(index, &podiums, &mut prospects);
        }
        (keep.then_some(minorant), prospects)
    };
    let parallel = run.instances.len() >= run.parallel_from;
    let surveyed: Vec<(Option<Minorant>, Vec<Prospect>)> = if parallel {
        classes.all.par_iter().enumerate().map(survey).collect()
    } else {
        classes.all.iter().enumerate().map(survey).collect()
    };
    let mut prospects: Vec<Prospect> = surveyed.iter().flat_map(|(_, p)| p.iter().copied()).collect();
    let favourites = FAVOURITES.min(prospects.len());
    if favourites < prospects.len() && favourites > 0 {
        prospects.select_nth_unstable_by(favourites - 1, |a, b| a.bound.total_cmp(&b.bound));
    }
    let mut trials = Trials::new(run, run.score());
    let explore = |trials: &mut Trials<'_>, prospects: &[Prospect]| {
        for prospect in prospects {
            if prospect.bound > trials.limit {
                continue;
            }
            let number = prospect.class as usize;
            let class = &classes.all[number];
            if let Some(minorant) = &surveyed[number].0 {
                explore_prospect(&frame, class, minorant, prospect, trials);
            } else {
                explore_prospect(&frame, class, &frame.minorant(class), prospect, trials);
            }
        }
    };
    let (first, rest) = prospects.split_at_mut(favourites);
    first.sort_unstable_by(|a, b| a.bound.total_cmp(&b.bound));
    explore(&mut trials, first);
    let limit = trials.limit;
    let rest: Vec<Prospect> = rest.iter().filter(|p| p.bound <= limit).copied().collect();
    let others: Vec<Option<Best>> = if parallel && rest.len() > 64 {
        let chunk = rest.len().div_ceil(4 * rayon::current_num_threads());
        rest.par_chunks(chunk)
            .map(|chunk| {
                let mut trials = Trials::new(run, limit);
                explore(&mut trials, chunk);
                trials.best
            })
            .collect()
    } else {
        explore(&mut trials, &rest);
        Vec::new()
    };
    others.into_iter().flatten().chain(trials.best).reduce(|a, b| if a.beats(&b) { a } else { b })
}

/// Tries the targets that the bound leaves.
fn explore_prospect(
    frame: &Frame<'_>,
    class: &Class,
    minorant: &Minorant,
    prospect: &Prospect,
    trials: &mut Trials<'_>,
) {
    let run = trials.run;
    let probe = Probe::new(run.cluster, prospect.instance);
    let Some((kind, number)) = prospect.kind else {
        trials.consider(&probe, Move::Failover, 0);
        return;
    };
    let (role, force) = role_of(run, &probe, kind);
    let worths = match role {
        Role::Primary => &minorant.as_primary,
        Role::Secondary => &minorant.as_secondary,
    };
    let instance = run.cluster.instance(prospect.instance);
    let terms = cell_terms(run, &frame.cells, frame.load_table(class), instance, kind);
    let fits = &run.classes.shapes[class.shape].fits;
    for (position, worth) in worths.iter().enumerate() {
        let bound = prospect.fixed + worth + terms[frame.cells.of[position] as usize];
        if bound > trials.limit {
            continue;
        }
        let fit = match role {
            Role::Primary => fits[position].primary[usize::from(force)],
            Role::Secondary => fits[position].secondary[usize::from(force)],
        };
        let target = run.online[position];
        if fit && target != probe.primary && Some(target) != probe.secondary {
            trials.consider(&probe, kind.to(target), trial_number(position, usize::from(number)));
        }
    }
}

/// What a target becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Primary,
    Secondary,
}

/// What the target of a kind of move becomes, and whether that is forced.
fn role_of(run: &Balancer<'_>, probe: &Probe<'_>, kind: Kind) -> (Role, bool) {
    let offline = |node: NodeIdx| run.cluster.node(node).offline;
    let global = run.options.ignore_soft_errors;
    match kind {
        Kind::FailoverTo | Kind::ReplacePrimary => (Role::Primary, global || offline(probe.primary)),
        Kind::ReplaceAndFailover => (Role::Primary, global),
        Kind::ReplaceSecondary => (Role::Secondary, global || probe.secondary.is_some_and(offline)),
        Kind::FailoverAndReplace => (Role::Secondary, global || offline(probe.primary)),
    }
}

/// Per cell of the target, what the bound counts exactly: location tags that it would share with the other
/// node, wishes that it would not meet, the change in pairs of location and exclusion tags, and the load.
fn cell_terms(
    run: &Balancer<'_>,
    cells: &Cells,
    loads: Option<&LoadTable>,
    instance: &Instance,
    kind: Kind,
) -> Vec<f64> {
    let loads = |target: usize| match loads {
        Some(table) => load_term(run, cells, table, instance, Some((kind, target))),
        None => 0.0,
    };
    let mut terms: Vec<f64> = (0..cells.nodes.len()).map(loads).collect();
    if !instance.forthcoming {
        for (term, node) in terms.iter_mut().zip(&cells.nodes) {
            *term += location_term(run, cells, instance, kind, *node) as f64;
        }
    }
    terms
}

/// The load's part of the score after a move to a cell, or after a plain failover.
fn load_term(
    run: &Balancer<'_>,
    cells: &Cells,
    table: &LoadTable,
    instance: &Instance,
    to: Option<(Kind, usize)>,
) -> f64 {
    let nowhere = table.nowhere();
    let cell = |node: NodeIdx| run.board.online_slot(node).map_or(nowhere, |slot| cells.of[slot] as usize);
    let primary = cell(instance.primary);
    let secondary = instance.secondary.map_or(nowhere, cell);
    let stays = nowhere;
    match to {
        None => table.primary(primary, secondary) + table.mirror(stays, stays),
        Some((Kind::FailoverTo | Kind::ReplacePrimary, t)) => {
            table.primary(primary, t) + table.mirror(primary, t)
        }
        Some((Kind::ReplaceSecondary, t)) => table.primary(stays, stays) + table.mirror(secondary, t),
        Some((Kind::ReplaceAndFailover, t)) => table.primary(primary, t) + table.mirror(secondary, t),
        Some((Kind::FailoverAndReplace, t)) => table.primary(primary, secondary) + table.mirror(primary, t),
    }
}

fn location_term(run: &Balancer<'_>, cells: &Cells, instance: &Instance, kind: Kind, target: NodeIdx) -> i64 {
    let cluster = &*run.cluster;
    let (primary, secondary) = (instance.primary, instance.secondary);
    if cells.plain && instance.desired_locations.is_empty() {
        return if kind == Kind::FailoverTo { instance.location_score } else { 0 };
    }
    let counted = |node: NodeIdx| cluster.node(node).online();
    match kind {
        Kind::ReplaceSecondary if counted(primary) => cluster.shared_locations(primary, target),
        Kind::ReplaceSecondary => 0,
        Kind::FailoverAndReplace => match secondary {
            Some(s) if counted(s) => cluster.shared_locations(s, target),
            _ => 0,
        },
        Kind::FailoverTo | Kind::ReplaceAndFailover | Kind::ReplacePrimary => {
            let shared = match (kind, secondary) {
                (Kind::ReplaceAndFailover, _) => cluster.shared_locations(target, primary),
                (Kind::ReplacePrimary, Some(s)) => cluster.shared_locations(target, s),
                _ => instance.location_score,
            };
            let tags = &instance.exclusion_tags;
            let located = run.board.located_delta(cluster, tags, Some(primary), Some(target));
            shared + cluster.unmet_wishes(instance, target) + located
        }
    }
}

/// Finds what is worth exploring for the instances of a class.
struct Surveyor<'a> {
    run: &'a Balancer<'a>,
    cells: &'a Cells,
    loads: Option<&'a LoadTable>,
    number: u32,
    minorant: &'a Minorant,
}

/// How the copies on a node change.
#[derive(Clone, Copy, Debug, Default)]
struct Swap {
    primaries: i64,
    secondaries: i64,
    /// Change of unallocated memory, MiB.
    memory: i64,
    /// Least memory reserved afterwards, MiB.
    reserve: i64,
    /// Change of tag conflicts.
    conflicts: i64,
    /// Change of the location score.
    location: i64,
}

impl Surveyor<'_> {
    fn prospects(&self, index: InstanceIdx, podiums: &Podiums, out: &mut Vec<Prospect>) {
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

    /// The best that a target can be worth, the instance's own nodes aside.
    fn best_target(&self, ends: &Ends<'_>, kind: Kind, podiums: &Podiums, own: [u32; 2]) -> f64 {
        let run = self.run;
        let offline = |node: Option<NodeIdx>| node.is_some_and(|n| run.cluster.node(n).offline);
        let global = run.options.ignore_soft_errors;
        let podium = |cell: usize| match kind {
            Kind::FailoverTo | Kind::ReplacePrimary => {
                podiums.primary(cell, global || offline(Some(ends.primary)))
            }
            Kind::ReplaceAndFailover => podiums.primary(cell, global),
            Kind::ReplaceSecondary => podiums.secondary(cell, global || offline(ends.secondary)),
            Kind::FailoverAndReplace => podiums.secondary(cell, global || offline(Some(ends.primary))),
        };
        let terms = cell_terms(run, self.cells, self.loads, ends.instance, kind);
        (0..terms.len()).map(|cell| podium(cell).best(own) + terms[cell]).fold(f64::INFINITY, f64::min)
    }

    /// The change in counts of a node.
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

    /// The primary becomes the secondary, reserving `least` or more.
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

    /// The secondary becomes the primary; `shared` location tags with the new secondary are counted.
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
        let loads =
            self.loads.map_or(0.0, |table| load_term(self.run, self.cells, table, ends.instance, None));
        self.primary_steps_down(ends, least) + self.secondary_steps_up(ends, ends.location) + loads
    }

    /// What a kind of move changes on the instance's own nodes, whatever the target.
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

/// An instance's nodes, and what the search needs to know of them.
struct Ends<'a> {
    instance: &'a Instance,
    primary: NodeIdx,
    secondary: Option<NodeIdx>,
    forthcoming: bool,
    /// Memory it occupies, MiB.
    used: i64,
    /// Memory reserved for it, MiB.
    need: i64,
    primary_reserve: i64,
    /// Reserve of the secondary once it is gone.
    reserve_without: i64,
    /// Tag conflicts that go away with it.
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

#[cfg(test)]
mod tests;
