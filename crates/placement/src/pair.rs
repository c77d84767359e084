//! Placing a new instance on a pair of nodes: scores by the incremental formula (algorithms spec §2.3, §4.2).
//!
//! The formula's roundings differ from the canonical one's, and both are observable, so it is reproduced as it
//! stands. But few pairs are scored: a secondary is judged once for all primaries except those for which it
//! reserves memory already, and secondaries are looked at in the order of a bound of what they add to the score.

use std::collections::HashSet;

use cluster::{Change, Cluster, Demand, FailMode, Figures, Instance, NodeIdx, Outcome, TagId};

use crate::allocate::{Failures, PairTargets, Placed, Trials};
use crate::board::Board;
use crate::chord::{Chord, Range, SLACK, variance_slack};
use crate::order::BestFirst;
use crate::score::{Counts, DEVIATIONS, LANE_WEIGHT, RESERVED_MEMORY_LANE, Row, Values, row};

/// Running statistics in which one node's values after another are exchanged.
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

    /// Exchanges one online node's values.
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

/// What does not depend on the pair.
struct Trial<'a> {
    instance: &'a Instance,
    demand: Demand,
    board: &'a Board,
    start: Statistics,
    force: bool,
}

/// The primary of a pair, with the instance on it.
struct Primary {
    node: NodeIdx,
    figures: Figures,
    statistics: Statistics,
}

/// Tries all pairs. Inside a primary and across primaries, the latest of equals wins.
pub(crate) fn best_pair(
    cluster: &mut Cluster,
    board: &Board,
    instance: &Instance,
    pairs: &PairTargets,
    force: bool,
    mut acceptable: Option<impl FnMut(&mut Cluster, &Outcome) -> bool>,
) -> Trials<f64> {
    let trial = Trial { instance, demand: instance.demand(), board, start: Statistics::new(board), force };
    let primaries: Vec<Result<Primary, FailMode>> =
        pairs.primaries.iter().map(|(node, _)| trial.primary(cluster, *node)).collect();
    let mut lists: Vec<Secondaries> =
        pairs.partners.iter().map(|nodes| Secondaries::new(cluster, &trial, nodes)).collect();
    let possible: Vec<&Primary> = primaries.iter().filter_map(|p| p.as_ref().ok()).collect();
    let chords = Chords::new(&trial, cluster, &possible, &lists);
    for list in &mut lists {
        list.rank(cluster, &trial, &chords);
    }
    let mut trials: Trials<f64> = Trials::default();
    for (primary, (node, list)) in primaries.iter().zip(&pairs.primaries) {
        let list = &lists[*list];
        let own = match primary {
            Ok(primary) => {
                // Where any pair is acceptable, those worse than the best so far need not be scored.
                let best = trials.best.as_ref().filter(|_| acceptable.is_none());
                let limit = best.map_or(f64::INFINITY, |best: &Placed<f64>| best.score);
                trial.with_primary(cluster, primary, list, &chords, limit, &mut acceptable)
            }
            Err(mode) => {
                let mut failures = Failures::default();
                let partners = list.nodes.len() - usize::from(list.nodes.binary_search(node).is_ok());
                failures.add_many(*mode, partners as u64);
                Trials { best: None, successes: 0, failures }
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

impl Trial<'_> {
    fn primary(&self, cluster: &Cluster, node: NodeIdx) -> Result<Primary, FailMode> {
        let (target, state) = (cluster.node(node), cluster.state(node));
        cluster.group(target.group).policy.check(self.instance, target.exclusive_storage)?;
        // The secondary's share of the location score is added per pair.
        let location = cluster.unmet_wishes(self.instance, node);
        let tags = state.tag_effect(&self.instance.exclusion_tags);
        let figures = state.figures.add_primary(target, &self.demand, tags, location, self.force)?;
        let mut statistics = self.start;
        if let Some(slot) = self.board.online_slot(node) {
            statistics.exchange(&self.board.rows()[slot], &row(target, &figures));
        }
        let (old, new) = (Counts::of(target, &state.figures), Counts::of(target, &figures));
        statistics.counts = statistics.counts.replace(&old, &new);
        statistics.counts.located_exclusion += self.board.located_delta_of_new(cluster, self.instance, node);
        Ok(Primary { node, figures, statistics })
    }

    fn secondary_figures(
        &self,
        cluster: &Cluster,
        node: NodeIdx,
        reserved: i64,
    ) -> Result<Figures, FailMode> {
        cluster.figures(node).add_secondary(cluster.node(node), &self.demand, reserved, false, false)
    }

    /// The exact score of a pair.
    fn score(&self, cluster: &Cluster, primary: &Primary, node: NodeIdx, figures: &Figures) -> f64 {
        let target = cluster.node(node);
        let mut statistics = primary.statistics;
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

    fn with_primary(
        &self,
        cluster: &mut Cluster,
        primary: &Primary,
        list: &Secondaries,
        chords: &Chords,
        limit: f64,
        acceptable: &mut Option<impl FnMut(&mut Cluster, &Outcome) -> bool>,
    ) -> Trials<f64> {
        let base = chords.base(self, cluster, primary, list);
        let mut failures = list.failures;
        let mut successes = list.successes;
        let mut order = BestFirst::empty();
        // Where something is reserved for this primary already, the answer is particular to the pair.
        let mut particular: Vec<(usize, Result<Figures, FailMode>)> = Vec::new();
        for (position, reserved) in particular_partners(cluster, primary.node, list) {
            match &list.verdicts[position] {
                Ok(_) => successes -= 1,
                Err(mode) => failures.remove(*mode),
            }
            let node = list.nodes[position];
            if node == primary.node {
                particular.push((position, Err(FailMode::Internal)));
                continue;
            }
            let verdict = self.secondary_figures(cluster, node, reserved);
            match &verdict {
                Ok(figures) => {
                    successes += 1;
                    // The chords' range does not cover these figures: no bound, an exact score.
                    order.add_exact(position, self.score(cluster, primary, node, figures));
                }
                Err(mode) => failures.add(*mode),
            }
            particular.push((position, verdict));
        }
        let mut ranked = list.ranked.iter();
        let mut upcoming = ranked.next();
        let mut rejected = 0;
        let mut best = None;
        loop {
            while let Some(&(worth, position)) = upcoming {
                if base + worth > limit || order.least().is_some_and(|least| base + worth > least) {
                    break;
                }
                if particular.iter().all(|(other, _)| *other != position)
                    && let Ok(figures) = &list.verdicts[position]
                {
                    order.add_exact(position, self.score(cluster, primary, list.nodes[position], figures));
                }
                upcoming = ranked.next();
            }
            let Some((position, score)) = order.next(|_| f64::NAN) else { break };
            let verdict = particular.iter().find(|(other, _)| *other == position).map(|(_, verdict)| verdict);
            let Ok(figures) = verdict.unwrap_or(&list.verdicts[position]) else { continue };
            let outcome = self.outcome(cluster, primary, list.nodes[position], *figures);
            if acceptable.as_mut().is_none_or(|acceptable| acceptable(cluster, &outcome)) {
                best = Some(Placed { score, outcome });
                break;
            }
            rejected += 1;
        }
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

/// Positions in the list of the primary itself, and of nodes that reserve memory for it, with how much.
fn particular_partners(cluster: &Cluster, primary: NodeIdx, list: &Secondaries) -> Vec<(usize, i64)> {
    let mirrors = cluster.state(primary).primaries.iter().filter_map(|i| cluster.instance(*i).secondary);
    let mut nodes: Vec<NodeIdx> = mirrors.chain([primary]).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let position = |node: NodeIdx| list.nodes.binary_search(&node).ok();
    nodes
        .into_iter()
        .filter_map(|node| Some((position(node)?, cluster.state(node).reserved_for(primary))))
        .collect()
}

/// A list of possible secondaries, judged as if none of them reserved anything for the primary yet.
struct Secondaries {
    nodes: Vec<NodeIdx>,
    verdicts: Vec<Result<Figures, FailMode>>,
    successes: u64,
    failures: Failures,
    /// (bound of what the secondary adds to a primary's base, position), least first.
    ranked: Vec<(f64, usize)>,
    /// Some node of each set of location tags among the possible ones.
    sites: Vec<NodeIdx>,
}

impl Secondaries {
    fn new(cluster: &Cluster, trial: &Trial<'_>, nodes: &[NodeIdx]) -> Self {
        let verdicts = nodes.iter().map(|n| trial.secondary_figures(cluster, *n, 0)).collect();
        let mut list = Self {
            nodes: nodes.to_vec(),
            verdicts,
            successes: 0,
            failures: Failures::default(),
            ranked: Vec::new(),
            sites: Vec::new(),
        };
        let mut known: HashSet<&[TagId]> = HashSet::new();
        for (node, verdict) in nodes.iter().zip(&list.verdicts) {
            match verdict {
                Ok(_) => {
                    list.successes += 1;
                    if known.insert(&cluster.node(*node).locations) {
                        list.sites.push(*node);
                    }
                }
                Err(mode) => list.failures.add(*mode),
            }
        }
        list
    }

    fn rank(&mut self, cluster: &Cluster, trial: &Trial<'_>, chords: &Chords) {
        for (position, (node, verdict)) in self.nodes.iter().zip(&self.verdicts).enumerate() {
            if let Ok(figures) = verdict {
                self.ranked.push((chords.worth(trial, cluster, *node, figures), position));
            }
        }
        self.ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
}

/// How a node's new figures move the lanes: by how much, and what that adds to the squared distances from the
/// mean.
#[derive(Clone, Copy, Debug, Default)]
struct Effect {
    moved: Row,
    squares: Row,
}

impl Effect {
    fn of(board: &Board, cluster: &Cluster, node: NodeIdx, figures: &Figures) -> Self {
        let mut effect = Self::default();
        if let Some(slot) = board.online_slot(node) {
            let (old, new) = (&board.rows()[slot], row(cluster.node(node), figures));
            for lane in 0..14 {
                let delta = new[lane] - old[lane];
                let mean = board.mean()[lane];
                effect.moved[lane] = delta;
                effect.squares[lane] = delta * ((new[lane] - mean) + (old[lane] - mean));
            }
        }
        effect
    }
}

/// Least and greatest values, lane by lane.
#[derive(Clone, Copy, Debug)]
struct Extremes {
    low: Row,
    high: Row,
    moved: Row,
}

impl Extremes {
    fn over(effects: impl Iterator<Item = Effect>) -> Self {
        let mut range = Self { low: [f64::INFINITY; 14], high: [f64::NEG_INFINITY; 14], moved: [0.0; 14] };
        for effect in effects {
            for lane in 0..14 {
                range.low[lane] = range.low[lane].min(effect.squares[lane]);
                range.high[lane] = range.high[lane].max(effect.squares[lane]);
                range.moved[lane] = range.moved[lane].max(effect.moved[lane].abs());
            }
        }
        range
    }
}

/// A lower bound of a pair's score that falls apart into the primary's and the secondary's part; see
/// [`crate::minorant`] for the idea.
struct Chords {
    /// Slopes of the lanes that secondaries change.
    slopes: Row,
    /// The chords of these lanes where nothing changes.
    at_rest: f64,
    /// Whether secondaries change the lane.
    shared: [bool; 14],
    /// Slack of the variance, per lane.
    slack: Row,
    /// Whether bounds hold at all.
    bounded: bool,
}

impl Chords {
    fn new(trial: &Trial<'_>, cluster: &Cluster, primaries: &[&Primary], lists: &[Secondaries]) -> Self {
        let board = trial.board;
        let n = board.online() as f64;
        let first = Extremes::over(primaries.iter().map(|p| Effect::of(board, cluster, p.node, &p.figures)));
        let possible = lists.iter().flat_map(|list| list.nodes.iter().zip(&list.verdicts));
        let second = Extremes::over(possible.filter_map(|(node, verdict)| {
            verdict.as_ref().ok().map(|figures| Effect::of(board, cluster, *node, figures))
        }));
        let mut chords = Self {
            slopes: [0.0; 14],
            at_rest: 0.0,
            shared: [false; 14],
            slack: [0.0; 14],
            bounded: board.bounded(),
        };
        for lane in 0..DEVIATIONS {
            let reach = first.moved[lane] + second.moved[lane];
            chords.slack[lane] = variance_slack(board, lane, reach);
            if second.moved[lane] == 0.0 {
                continue;
            }
            let range = Range {
                low: first.low[lane] + second.low[lane],
                high: first.high[lane] + second.high[lane],
                drift: reach * reach / n,
                reach,
            };
            let chord = Chord::new(board, lane, range);
            chords.shared[lane] = true;
            chords.slopes[lane] = chord.slope;
            chords.at_rest += chord.at_rest;
        }
        chords
    }

    /// Bound of the scores with a primary, but for what the secondary adds.
    fn base(&self, trial: &Trial<'_>, cluster: &Cluster, primary: &Primary, list: &Secondaries) -> f64 {
        if !self.bounded {
            return f64::NEG_INFINITY;
        }
        let effect = Effect::of(trial.board, cluster, primary.node, &primary.figures);
        let mut total = self.at_rest;
        for lane in 0..DEVIATIONS {
            total += if self.shared[lane] {
                self.slopes[lane] * effect.squares[lane]
            } else {
                let variance = primary.statistics.variances[lane] - self.slack[lane];
                LANE_WEIGHT[lane] * variance.max(0.0).sqrt()
            };
        }
        let shared = list.sites.iter().map(|site| cluster.shared_locations(primary.node, *site)).min();
        let shared = if trial.demand.forthcoming { 0 } else { shared.unwrap_or(0) };
        total += primary.statistics.counts.weighted() + shared as f64;
        total += 0.25 * primary.statistics.sums[RESERVED_MEMORY_LANE];
        total - SLACK * (1.0 + total.abs()) - trial.board.sum_slack(total)
    }

    /// What a secondary adds, at least.
    fn worth(&self, trial: &Trial<'_>, cluster: &Cluster, node: NodeIdx, figures: &Figures) -> f64 {
        if !self.bounded {
            return 0.0;
        }
        let effect = Effect::of(trial.board, cluster, node, figures);
        let lanes: f64 = (0..DEVIATIONS).map(|lane| self.slopes[lane] * effect.squares[lane]).sum();
        let target = cluster.node(node);
        let counts =
            Counts::of(target, figures).weighted() - Counts::of(target, cluster.figures(node)).weighted();
        lanes + counts + 0.25 * effect.moved[RESERVED_MEMORY_LANE]
    }
}
