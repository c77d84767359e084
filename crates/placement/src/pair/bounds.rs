//! A lower bound of a pair's score that is the sum of a part for the primary and a part for the secondary.

use cluster::{Cluster, Figures, NodeIdx};

use super::{Primary, Secondaries, Trial};
use crate::board::Board;
use crate::chord::{Chord, Range, SLACK, variance_slack};
use crate::score::{Counts, DEVIATIONS, LANE_WEIGHT, RESERVED_MEMORY_LANE as RESERVED, Row, row};

/// Effect of a node's new figures on the lanes: the change of the value, and the change of the sum of squared
/// distances from the mean.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Effect {
    moved: Row,
    squares: Row,
}

impl Effect {
    pub fn of(board: &Board, cluster: &Cluster, node: NodeIdx, figures: &Figures) -> Self {
        let mut effect = Self::default();
        if let Some(slot) = board.online_slot(node) {
            let (old, new) = (&board.rows()[slot], row(cluster.node(node), figures));
            for lane in 0..14 {
                effect.moved[lane] = new[lane] - old[lane];
                effect.squares[lane] = squares(old[lane], new[lane], board.mean()[lane]);
            }
        }
        effect
    }
}

/// Change of the sum of squared distances from the mean when `old` is replaced by `new`.
#[inline]
fn squares(old: f64, new: f64, mean: f64) -> f64 {
    (new - old) * ((new - mean) + (old - mean))
}

/// Extremes over a set of effects, lane by lane.
#[derive(Clone, Copy, Debug)]
struct Extremes {
    low: Row,
    high: Row,
    moved: Row,
}

impl Extremes {
    fn over<'a>(effects: impl Iterator<Item = &'a Effect>) -> Self {
        let mut range = Self { low: [f64::INFINITY; 14], high: [f64::NEG_INFINITY; 14], moved: [0.0; 14] };
        for effect in effects {
            for lane in 0..14 {
                range.include(lane, effect.squares[lane], effect.moved[lane]);
            }
        }
        range
    }

    #[inline]
    fn include(&mut self, lane: usize, squares: f64, moved: f64) {
        self.low[lane] = self.low[lane].min(squares);
        self.high[lane] = self.high[lane].max(squares);
        self.moved[lane] = self.moved[lane].max(moved.abs());
    }

    /// Covers secondaries that reserve more than the list says because they already reserve for the primary:
    /// up to their entire current reserve plus the new instance's.
    fn include_particular(&mut self, trial: &Trial<'_>, cluster: &Cluster, list: &Secondaries) {
        let possible = list.nodes.iter().zip(&list.verdicts);
        for (node, figures) in possible.filter_map(|(node, verdict)| Some((*node, verdict.as_ref().ok()?))) {
            let Some(slot) = trial.board.online_slot(node) else { continue };
            let memory = cluster.node(node).total_memory;
            let mean = trial.board.mean()[RESERVED];
            let old = trial.board.rows()[slot][RESERVED];
            let least = figures.reserved_memory as f64 / memory;
            let most_reserved = cluster.figures(node).reserved_memory + trial.demand.reserved_memory;
            let most = most_reserved as f64 / memory;
            self.include(RESERVED, squares(old, most, mean), most - old);
            if least < mean && mean < most {
                self.include(RESERVED, squares(old, mean, mean), mean - old);
            }
        }
    }
}

/// A lower bound of a pair's score that is the sum of a part for the primary and a part for the secondary.
/// See [`crate::minorant`] for the idea.
pub(super) struct Chords {
    /// Slopes of the lanes that secondaries change.
    slopes: Row,
    /// Sum of these lanes' chords if nothing changes.
    at_rest: f64,
    /// Whether secondaries change the lane.
    shared: [bool; 14],
    /// Slack of the variance, per lane.
    slack: Row,
    /// Whether bounds hold at all; see [`Board::bounded`].
    bounded: bool,
}

impl Chords {
    pub fn new<'a>(
        trial: &Trial<'_>,
        cluster: &Cluster,
        primaries: impl Iterator<Item = &'a Primary>,
        lists: &[Secondaries],
    ) -> Self {
        let board = trial.board;
        let n = board.online() as f64;
        let first = Extremes::over(primaries.map(|primary| &primary.effect));
        let mut second = Extremes::over(lists.iter().flat_map(|list| list.effects.iter().flatten()));
        for list in lists {
            second.include_particular(trial, cluster, list);
        }
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

    /// Lower bound of the scores with a primary, without the secondary's contribution.
    pub fn base(&self, trial: &Trial<'_>, cluster: &Cluster, primary: &Primary, list: &Secondaries) -> f64 {
        if !self.bounded {
            return f64::NEG_INFINITY;
        }
        let effect = &primary.effect;
        let n = trial.board.online() as f64;
        let mut total = self.at_rest;
        for lane in 0..DEVIATIONS {
            total += if self.shared[lane] {
                self.slopes[lane] * effect.squares[lane]
            } else {
                let drift = effect.moved[lane] * effect.moved[lane] / n;
                let variance =
                    (trial.board.squares()[lane] + effect.squares[lane] - drift) / n - self.slack[lane];
                LANE_WEIGHT[lane] * variance.max(0.0).sqrt()
            };
        }
        let shared = list.sites.iter().map(|site| cluster.shared_locations(primary.node, *site)).min();
        let shared = if trial.demand.forthcoming { 0 } else { shared.unwrap_or(0) };
        total += primary.counts.weighted() + shared as f64;
        total += 0.25 * (trial.start.sums[RESERVED] + effect.moved[RESERVED]);
        total - SLACK * (1.0 + total.abs()) - trial.board.sum_slack(total)
    }

    /// Minimum contribution of a secondary.
    pub fn worth(&self, cluster: &Cluster, node: NodeIdx, figures: &Figures, effect: &Effect) -> f64 {
        if !self.bounded {
            return 0.0;
        }
        let lanes: f64 = (0..DEVIATIONS).map(|lane| self.slopes[lane] * effect.squares[lane]).sum();
        let target = cluster.node(node);
        let counts =
            Counts::of(target, figures).weighted() - Counts::of(target, cluster.figures(node)).weighted();
        lanes + counts + 0.25 * effect.moved[RESERVED]
    }

    /// Minimum of [`Self::extra`] over all existing reservations for the primary, which are at most the
    /// secondary's entire current reserve.
    pub fn least_extra(&self, trial: &Trial<'_>, cluster: &Cluster, node: NodeIdx, figures: &Figures) -> f64 {
        let memory = cluster.node(node).total_memory;
        let most = cluster.figures(node).reserved_memory + trial.demand.reserved_memory;
        let (usual, most) = (figures.reserved_memory as f64 / memory, most as f64 / memory);
        let mean = trial.board.mean()[RESERVED];
        // The squared distance from the mean is smallest where the range is closest to it.
        let nearest = mean.clamp(usual, most.max(usual));
        (self.slopes[RESERVED] * squares(usual, nearest, mean)).min(0.0)
    }

    /// Minimum contribution of a secondary beyond [`Self::worth`] because it reserves `reserved` MiB, more
    /// than `figures` say. Failing N+1 as a result could only add more.
    pub fn extra(
        &self,
        board: &Board,
        cluster: &Cluster,
        node: NodeIdx,
        figures: &Figures,
        reserved: i64,
    ) -> f64 {
        if !self.bounded || board.online_slot(node).is_none() {
            return 0.0;
        }
        let memory = cluster.node(node).total_memory;
        let (usual, more) = (figures.reserved_memory as f64 / memory, reserved as f64 / memory);
        self.slopes[RESERVED] * squares(usual, more, board.mean()[RESERVED]) + 0.25 * (more - usual)
    }
}
