//! Placing a new instance on a pair of nodes: scores by the incremental formula (algorithms spec §2.3, §4.2).
//!
//! The formula's roundings differ from the canonical one's, and both are observable, so it is reproduced as it
//! stands.

use cluster::{Change, Cluster, Demand, FailMode, Figures, Instance, NodeIdx, Outcome};

use crate::allocate::{Failures, Placed, Trials};
use crate::board::Board;
use crate::order::BestFirst;
use crate::score::{Counts, RESERVED_MEMORY_LANE, Row, Values, row};

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
    pairs: &[(NodeIdx, Vec<NodeIdx>)],
    force: bool,
    mut acceptable: impl FnMut(&mut Cluster, &Outcome) -> bool,
) -> Trials<f64> {
    let trial = Trial { instance, demand: instance.demand(), board, start: Statistics::new(board), force };
    let mut trials: Trials<f64> = Trials::default();
    for (node, secondaries) in pairs {
        let own = trial.with_primary(cluster, *node, secondaries, &mut acceptable);
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

    fn with_primary(
        &self,
        cluster: &mut Cluster,
        node: NodeIdx,
        secondaries: &[NodeIdx],
        acceptable: &mut impl FnMut(&mut Cluster, &Outcome) -> bool,
    ) -> Trials<f64> {
        let mut failures = Failures::default();
        let primary = match self.primary(cluster, node) {
            Ok(primary) => primary,
            Err(mode) => {
                failures.add_many(mode, secondaries.len() as u64);
                return Trials { best: None, successes: 0, failures };
            }
        };
        let mut possible: Vec<(NodeIdx, Figures, f64)> = Vec::new();
        for &secondary in secondaries {
            match self.secondary(cluster, &primary, secondary) {
                Ok((figures, score)) => possible.push((secondary, figures, score)),
                Err(mode) => failures.add(mode),
            }
        }
        let mut order = BestFirst::new(possible.iter().map(|(_, _, score)| *score));
        let mut rejected = 0;
        let mut best = None;
        while let Some((position, score)) = order.next(|position| possible[position].2) {
            let (secondary, figures, _) = possible[position];
            let outcome = self.outcome(cluster, &primary, secondary, figures);
            if acceptable(cluster, &outcome) {
                best = Some(Placed { score, outcome });
                break;
            }
            rejected += 1;
        }
        failures.add_many(FailMode::N1, rejected);
        Trials { best, successes: possible.len() as u64 - rejected, failures }
    }

    #[inline]
    fn secondary(
        &self,
        cluster: &Cluster,
        primary: &Primary,
        node: NodeIdx,
    ) -> Result<(Figures, f64), FailMode> {
        let (target, state) = (cluster.node(node), cluster.state(node));
        let reserved = state.reserved_for(primary.node);
        let figures = state.figures.add_secondary(target, &self.demand, reserved, false, false)?;
        let mut statistics = primary.statistics;
        if let Some(slot) = self.board.online_slot(node) {
            statistics.exchange(&self.board.rows()[slot], &row(target, &figures));
        }
        let (old, new) = (Counts::of(target, &state.figures), Counts::of(target, &figures));
        statistics.counts = statistics.counts.replace(&old, &new);
        if !self.demand.forthcoming {
            statistics.counts.location += cluster.shared_locations(primary.node, node);
        }
        Ok((figures, statistics.score()))
    }

    fn outcome(&self, cluster: &Cluster, primary: &Primary, secondary: NodeIdx, figures: Figures) -> Outcome {
        let shared = cluster.shared_locations(primary.node, secondary);
        let mut primary_figures = primary.figures;
        if !self.demand.forthcoming {
            primary_figures.location_score += shared;
        }
        let changes =
            [Change { node: primary.node, figures: primary_figures }, Change { node: secondary, figures }];
        Outcome::new(&changes, primary.node, Some(secondary), shared)
    }
}
