//! Places a new instance on a pair of nodes, scored by the incremental formula (HT-score, HT-allocate).
//!
//! The formula rounds differently from the canonical one, and both results are observable, so it is
//! reproduced exactly. Few pairs are scored, though: a secondary is checked once for all primaries, except
//! those for which it already reserves memory, and pairs are scored in the order of a lower bound
//! ([`bounds`]).

mod bounds;

use std::collections::HashSet;

use cluster::{Change, Cluster, Demand, FailMode, Figures, Instance, NodeIdx, Outcome, TagId};

use bounds::{Chords, Effect};

use crate::allocate::{Failures, PairTargets, Placed, Trials};
use crate::board::Board;
use crate::order::{BestFirst, Looked};
use crate::score::{Counts, RESERVED_MEMORY_LANE, Row, Values, row};

/// Running statistics, updated by exchanging the values of one node at a time.
#[derive(Clone, Copy, Debug)]
struct Statistics {
    n: f64,
    sums: Row,
    variances: Row,
    counts: Counts,
}

impl Statistics {
    fn new(board: &Board) -> Self {
        let n = board.online() as f64;
        let mut sums = [0.0; 14];
        for values in board.rows() {
            for lane in 0..14 {
                sums[lane] += values[lane];
            }
        }
        let mut variances = [0.0; 14];
        for lane in 0..14 {
            variances[lane] = board.squares()[lane] / n;
        }
        Self { n, sums, variances, counts: board.values().counts }
    }

    /// Exchanges the values of one online node.
    #[inline]
    fn exchange(&mut self, old: &Row, new: &Row) {
        let n = self.n;
        for lane in 0..14 {
            let (x, y) = (old[lane], new[lane]);
            let ds = y - x;
            let dss = y * y - x * x;
            let dnn = (n * dss - 2.0 * self.sums[lane] * ds) - ds * ds;
            self.sums[lane] += ds;
            self.variances[lane] = (self.variances[lane] + dnn / (n * n)).max(0.0);
        }
    }

    #[inline]
    fn score(&self) -> f64 {
        let mut deviations = [0.0; 14];
        for lane in 0..14 {
            deviations[lane] = self.variances[lane].sqrt();
        }
        let reserved_total = self.sums[RESERVED_MEMORY_LANE];
        Values { deviations, counts: self.counts, reserved_total }.score()
    }
}

/// Inputs that all pairs share.
struct Trial<'a> {
    instance: &'a Instance,
    demand: Demand,
    board: &'a Board,
    start: Statistics,
    force: bool,
    /// Whether to count refusals.
    counted: bool,
}

/// The primary of a pair, with the instance placed on it.
struct Primary {
    node: NodeIdx,
    figures: Figures,
    counts: Counts,
    /// Computed only once some pair turns out to be possible.
    effect: Effect,
}

/// Possible secondaries of one primary.
struct Partners<'a> {
    list: &'a Secondaries,
    /// Secondaries that already reserve memory for this primary, by position.
    particulars: Vec<Particular>,
    /// The primary's own position in the list.
    own: Option<usize>,
    /// Lower bound of the scores, without the secondary's contribution.
    base: f64,
    chords: &'a Chords,
}

/// A secondary that already reserves memory for some primary. With that primary it must reserve for one more
/// instance of the same node, so it can be refused although other primaries would be accepted.
#[derive(Clone, Copy, Debug)]
struct Particular {
    /// Position in the list.
    position: usize,
    /// Memory already reserved for the primary's instances, MiB; never 0.
    reserved: i64,
}

impl<'a> Partners<'a> {
    fn new(
        cluster: &Cluster,
        list: &'a Secondaries,
        primary: NodeIdx,
        base: f64,
        chords: &'a Chords,
    ) -> Self {
        let position = |node: NodeIdx| list.nodes.binary_search(&node).ok();
        let mirrors = cluster.state(primary).primaries.iter().filter_map(|i| cluster.instance(*i).secondary);
        let mut particulars: Vec<Particular> = mirrors
            .filter(|node| *node != primary)
            .filter_map(|node| {
                let reserved = cluster.state(node).reserved_for(primary);
                (reserved != 0).then_some(Particular { position: position(node)?, reserved })
            })
            .collect();
        particulars.sort_unstable_by_key(|particular| particular.position);
        particulars.dedup_by_key(|particular| particular.position);
        Self { list, particulars, own: position(primary), base, chords }
    }

    /// Whether the list's verdict applies to this primary as well.
    fn usual(&self, position: usize) -> bool {
        self.own != Some(position) && self.particular(position).is_none()
    }

    fn particular(&self, position: usize) -> Option<&Particular> {
        let at = self.particulars.binary_search_by_key(&position, |particular| particular.position).ok()?;
        Some(&self.particulars[at])
    }

    /// Figures of the secondary with the instance on the pair.
    fn verdict(&self, trial: &Trial<'_>, cluster: &Cluster, position: usize) -> Result<Figures, FailMode> {
        if self.own == Some(position) {
            return Err(FailMode::Internal);
        }
        match self.particular(position) {
            Some(particular) => {
                trial.secondary_figures(cluster, self.list.nodes[position], particular.reserved)
            }
            None => self.list.verdicts[position],
        }
    }

    /// Lower bound of the score with a particular secondary. NaN scores have no bound.
    fn bound(&self, trial: &Trial<'_>, cluster: &Cluster, particular: &Particular) -> f64 {
        let position = particular.position;
        // A node that refuses without any reservation also refuses with one.
        let Ok(figures) = &self.list.verdicts[position] else { return f64::INFINITY };
        let node = self.list.nodes[position];
        let more = particular.reserved + trial.demand.reserved_memory;
        let reserved =
            if trial.demand.forthcoming { 0 } else { more }.max(cluster.figures(node).reserved_memory);
        self.base
            + self.list.worths[position]
            + self.chords.extra(trial.board, cluster, node, figures, reserved)
    }

    /// Number of possible secondaries, and refusal reasons of the rest.
    fn count(&self, trial: &Trial<'_>, cluster: &Cluster) -> (u64, Failures) {
        let (mut successes, mut failures) = (self.list.successes, self.list.failures);
        let unusual = self.particulars.iter().map(|particular| particular.position).chain(self.own);
        for position in unusual {
            match &self.list.verdicts[position] {
                Ok(_) => successes -= 1,
                Err(mode) => failures.remove(*mode),
            }
            match self.verdict(trial, cluster, position) {
                Ok(_) => successes += 1,
                // A node can't be its own mirror, so that pair isn't counted as tried.
                Err(FailMode::Internal) => {}
                Err(mode) => failures.add(mode),
            }
        }
        (successes, failures)
    }
}

/// Tries all pairs and counts refusal reasons. Ties go to the latest pair, both within a primary and across
/// primaries.
pub(crate) fn best_pair(
    cluster: &mut Cluster,
    board: &Board,
    instance: &Instance,
    pairs: &PairTargets,
    force: bool,
    acceptable: Option<impl FnMut(&mut Cluster, &Outcome) -> bool>,
) -> Trials<f64> {
    try_pairs(cluster, board, instance, pairs, (force, true), acceptable)
}

/// Finds the best pair, without an acceptance test. Refusals are counted only if no pair is possible.
/// Otherwise like [`best_pair`].
pub(crate) fn best_pair_or_reasons(
    cluster: &mut Cluster,
    board: &Board,
    instance: &Instance,
    pairs: &PairTargets,
    force: bool,
) -> Trials<f64> {
    let mut search = |counted| {
        let any = None::<fn(&mut Cluster, &Outcome) -> bool>;
        try_pairs(cluster, board, instance, pairs, (force, counted), any)
    };
    let trials = search(false);
    if trials.best.is_some() || trials.failures.total() > 0 { trials } else { search(true) }
}

fn try_pairs(
    cluster: &mut Cluster,
    board: &Board,
    instance: &Instance,
    pairs: &PairTargets,
    (force, counted): (bool, bool),
    mut acceptable: Option<impl FnMut(&mut Cluster, &Outcome) -> bool>,
) -> Trials<f64> {
    let trial =
        Trial { instance, demand: instance.demand(), board, start: Statistics::new(board), force, counted };
    let mut primaries = trial.primaries(cluster, pairs);
    if primaries.iter().all(Result::is_err) {
        return refused_primaries(pairs, &primaries);
    }
    let mut lists: Vec<Secondaries> =
        pairs.partners.iter().map(|nodes| Secondaries::new(cluster, &trial, nodes)).collect();
    if !counted && lists.iter().all(|list| list.successes == 0) {
        return Trials::default();
    }
    for primary in primaries.iter_mut().flatten() {
        primary.effect = Effect::of(board, cluster, primary.node, &primary.figures);
    }
    for list in &mut lists {
        list.measure(cluster, &trial);
    }
    let chords = Chords::new(&trial, cluster, primaries.iter().flatten(), &lists);
    for list in &mut lists {
        list.rank(cluster, &trial, &chords);
    }
    let bases: Vec<f64> = primaries
        .iter()
        .zip(&pairs.primaries)
        .map(|(primary, (_, list))| match primary {
            Ok(primary) => chords.base(&trial, cluster, primary, &lists[*list]),
            Err(_) => f64::INFINITY,
        })
        .collect();
    let least = |at: usize| bases[at] + lists[pairs.primaries[at].1].least_worth;
    let mut trials: Trials<f64> = Trials::default();
    let mut limit = f64::INFINITY;
    if acceptable.is_none() {
        // If every pair is acceptable, pairs worse than a known one need no score. So find a good one first.
        let promising = (0..primaries.len()).min_by(|a, b| least(*a).total_cmp(&least(*b)));
        if let Some((at, Ok(primary))) = promising.map(|at| (at, &primaries[at])) {
            let list = &lists[pairs.primaries[at].1];
            let partners = Partners::new(cluster, list, primary.node, bases[at], &chords);
            let found = trial.with_primary(cluster, primary, &partners, limit, &mut acceptable);
            limit = found.best.map_or(limit, |best| best.score.min(limit));
        }
    }
    for (at, (primary, (node, list))) in primaries.iter().zip(&pairs.primaries).enumerate() {
        let own = match primary {
            Ok(_) if !counted && least(at) > limit => continue,
            Ok(primary) => {
                let best = trials.best.as_ref().filter(|_| acceptable.is_none());
                let limit = best.map_or(limit, |best: &Placed<f64>| best.score.min(limit));
                let partners = Partners::new(cluster, &lists[*list], *node, bases[at], &chords);
                trial.with_primary(cluster, primary, &partners, limit, &mut acceptable)
            }
            Err(_) if !counted => continue,
            Err(mode) => {
                trials.failures.add_many(*mode, partners_of(*node, &pairs.partners[*list]));
                continue;
            }
        };
        trials.successes += own.successes;
        trials.failures.merge(&own.failures);
        if let Some(found) = own.best {
            let keep = trials.best.as_ref().is_some_and(|old| old.score < found.score);
            if !keep {
                trials.best = Some(found);
            }
        }
    }
    trials
}

/// Result when every primary, and therefore every pair, is refused.
fn refused_primaries(pairs: &PairTargets, primaries: &[Result<Primary, FailMode>]) -> Trials<f64> {
    let mut trials = Trials::default();
    for (primary, (node, list)) in primaries.iter().zip(&pairs.primaries) {
        if let Err(mode) = primary {
            trials.failures.add_many(*mode, partners_of(*node, &pairs.partners[*list]));
        }
    }
    trials
}

/// Number of nodes in the list other than `node`.
fn partners_of(node: NodeIdx, list: &[NodeIdx]) -> u64 {
    (list.len() - usize::from(list.binary_search(&node).is_ok())) as u64
}

impl Trial<'_> {
    fn primaries(&self, cluster: &Cluster, pairs: &PairTargets) -> Vec<Result<Primary, FailMode>> {
        // Most nodes of a group have the same kind of storage and so get the same verdict from the group's
        // policy.
        let mut last = None;
        let mut allowed = |node: NodeIdx| {
            let target = cluster.node(node);
            let of = (target.group, target.exclusive_storage);
            match last {
                Some((key, verdict)) if key == of => verdict,
                _ => {
                    let verdict =
                        cluster.group(target.group).policy.check(self.instance, target.exclusive_storage);
                    last = Some((of, verdict));
                    verdict
                }
            }
        };
        let nodes = pairs.primaries.iter().map(|(node, _)| *node);
        nodes.map(|node| allowed(node).and_then(|()| self.primary(cluster, node))).collect()
    }

    /// Assumes that the policy check has passed.
    fn primary(&self, cluster: &Cluster, node: NodeIdx) -> Result<Primary, FailMode> {
        let (target, state) = (cluster.node(node), cluster.state(node));
        // The secondary's share of the location score is added per pair.
        let location = cluster.unmet_wishes(self.instance, node);
        let tags = state.tag_effect(&self.instance.exclusion_tags);
        let figures = state.figures.add_primary(target, &self.demand, tags, location, self.force)?;
        let (old, new) = (Counts::of(target, &state.figures), Counts::of(target, &figures));
        let mut counts = self.start.counts.replace(&old, &new);
        counts.located_exclusion += self.board.located_delta_of_new(cluster, self.instance, node);
        Ok(Primary { node, figures, counts, effect: Effect::default() })
    }

    fn secondary_figures(
        &self,
        cluster: &Cluster,
        node: NodeIdx,
        reserved: i64,
    ) -> Result<Figures, FailMode> {
        cluster.figures(node).add_secondary(cluster.node(node), &self.demand, reserved, false, false)
    }

    /// Statistics with the instance on its primary only.
    fn statistics(&self, cluster: &Cluster, primary: &Primary) -> Statistics {
        let mut statistics = Statistics { counts: primary.counts, ..self.start };
        if let Some(slot) = self.board.online_slot(primary.node) {
            let new = row(cluster.node(primary.node), &primary.figures);
            statistics.exchange(&self.board.rows()[slot], &new);
        }
        statistics
    }

    /// Exact score of a pair. `statistics` already include the primary.
    fn score(
        &self,
        cluster: &Cluster,
        mut statistics: Statistics,
        primary: &Primary,
        node: NodeIdx,
        figures: &Figures,
    ) -> f64 {
        let target = cluster.node(node);
        if let Some(slot) = self.board.online_slot(node) {
            statistics.exchange(&self.board.rows()[slot], &row(target, figures));
        }
        let (old, new) = (Counts::of(target, cluster.figures(node)), Counts::of(target, figures));
        statistics.counts = statistics.counts.replace(&old, &new);
        if !self.demand.forthcoming {
            statistics.counts.location += cluster.shared_locations(primary.node, node);
        }
        statistics.score()
    }

    /// Finds the best acceptable pair of a primary with a score not above `limit`.
    fn with_primary(
        &self,
        cluster: &mut Cluster,
        primary: &Primary,
        partners: &Partners<'_>,
        limit: f64,
        acceptable: &mut Option<impl FnMut(&mut Cluster, &Outcome) -> bool>,
    ) -> Trials<f64> {
        let list = partners.list;
        let statistics = self.statistics(cluster, primary);
        let mut order = BestFirst::empty();
        for particular in &partners.particulars {
            let bound = partners.bound(self, cluster, particular);
            if bound <= limit || bound.is_nan() {
                order.add_bound(particular.position, bound);
            }
        }
        let mut ranked = list.ranked.iter().filter(|(_, position)| partners.usual(*position));
        let mut upcoming = ranked.next();
        let mut rejected = 0;
        let mut best = None;
        loop {
            while let Some(&(worth, position)) = upcoming {
                let bound = partners.base + worth;
                if bound > limit || order.least().is_some_and(|least| bound > least) {
                    break;
                }
                if let Ok(figures) = &list.verdicts[position] {
                    let score = self.score(cluster, statistics, primary, list.nodes[position], figures);
                    order.add_exact(position, score);
                }
                upcoming = ranked.next();
            }
            let looked = order.look(|position| match partners.verdict(self, cluster, position) {
                Ok(figures) => self.score(cluster, statistics, primary, list.nodes[position], &figures),
                Err(_) => f64::INFINITY,
            });
            let (position, score) = match looked {
                None => break,
                Some(Looked::Scored) => continue,
                Some(Looked::Next(position, score)) => (position, score),
            };
            let Ok(figures) = partners.verdict(self, cluster, position) else { continue };
            let outcome = self.outcome(cluster, primary, list.nodes[position], figures);
            if acceptable.as_mut().is_none_or(|acceptable| acceptable(cluster, &outcome)) {
                best = Some(Placed { score, outcome });
                break;
            }
            rejected += 1;
        }
        if !self.counted {
            return Trials { best, ..Trials::default() };
        }
        let (successes, mut failures) = partners.count(self, cluster);
        failures.add_many(FailMode::N1, rejected);
        Trials { best, successes: successes - rejected, failures }
    }

    fn outcome(&self, cluster: &Cluster, primary: &Primary, secondary: NodeIdx, figures: Figures) -> Outcome {
        let shared = cluster.shared_locations(primary.node, secondary);
        let mut primary_figures = primary.figures;
        if !self.demand.forthcoming {
            primary_figures.location_score += shared;
        }
        let changes =
            [Change { node: primary.node, figures: primary_figures }, Change { node: secondary, figures }];
        Outcome::two(changes, primary.node, Some(secondary), shared)
    }
}

/// A list of possible secondaries, checked as if they reserved no memory for the primary yet.
struct Secondaries {
    nodes: Vec<NodeIdx>,
    verdicts: Vec<Result<Figures, FailMode>>,
    successes: u64,
    failures: Failures,
    /// Effects of the possible secondaries on the lanes; `None` for the rest.
    effects: Vec<Option<Effect>>,
    /// Lower bounds of the secondaries' contributions to a primary's base; NaN if a secondary isn't possible.
    worths: Vec<f64>,
    /// (worth, position) of the possible secondaries, smallest first.
    ranked: Vec<(f64, usize)>,
    /// Lower bound of the contribution of any possible secondary, regardless of its existing reservations;
    /// infinite if no secondary is possible.
    least_worth: f64,
    /// One node for each distinct set of location tags among the possible secondaries.
    sites: Vec<NodeIdx>,
}

impl Secondaries {
    fn new(cluster: &Cluster, trial: &Trial<'_>, nodes: &[NodeIdx]) -> Self {
        let verdicts: Vec<_> = nodes.iter().map(|n| trial.secondary_figures(cluster, *n, 0)).collect();
        let mut list = Self {
            nodes: nodes.to_vec(),
            verdicts,
            effects: Vec::new(),
            worths: Vec::new(),
            successes: 0,
            failures: Failures::default(),
            ranked: Vec::new(),
            least_worth: f64::INFINITY,
            sites: Vec::new(),
        };
        let mut known: HashSet<&[TagId]> = HashSet::new();
        let mut nowhere = false;
        for (node, verdict) in nodes.iter().zip(&list.verdicts) {
            match verdict {
                Ok(_) => {
                    list.successes += 1;
                    let locations = &cluster.node(*node).locations;
                    let first = if locations.is_empty() { !nowhere } else { known.insert(locations) };
                    nowhere |= locations.is_empty();
                    if first {
                        list.sites.push(*node);
                    }
                }
                Err(mode) => list.failures.add(*mode),
            }
        }
        list
    }

    /// Computes the effects of the possible secondaries on the lanes.
    fn measure(&mut self, cluster: &Cluster, trial: &Trial<'_>) {
        let effect = |(node, verdict): (&NodeIdx, &Result<Figures, FailMode>)| {
            let figures = verdict.as_ref().ok()?;
            Some(Effect::of(trial.board, cluster, *node, figures))
        };
        self.effects = self.nodes.iter().zip(&self.verdicts).map(effect).collect();
    }

    /// Sorts the possible secondaries by their contribution. [`Self::measure`] must have run.
    fn rank(&mut self, cluster: &Cluster, trial: &Trial<'_>, chords: &Chords) {
        self.worths = vec![f64::NAN; self.nodes.len()];
        for (position, node) in self.nodes.iter().enumerate() {
            if let (Ok(figures), Some(effect)) = (&self.verdicts[position], &self.effects[position]) {
                let worth = chords.worth(cluster, *node, figures, effect);
                self.worths[position] = worth;
                let least = worth + chords.least_extra(trial, cluster, *node, figures);
                self.least_worth = self.least_worth.min(least);
                self.ranked.push((worth, position));
            }
        }
        self.ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
}
