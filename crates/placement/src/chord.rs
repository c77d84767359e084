//! The chord of a lane's deviation: a linear lower bound on a range.
//!
//! Let V be the sum of squared distances of a lane's values from their mean. A candidate that changes a few
//! values turns n times the variance into V + d. The deviation √((V + d) / n) is concave in d, so between two
//! points it lies above the line through them, whose value is linear in d. See [`crate::minorant`].

use crate::board::Board;
use crate::score::LANE_WEIGHT;

/// Relative slack for rounding in a bound's own sums.
pub(crate) const SLACK: f64 = 1e-11;

/// Range of the changes that candidates make to a lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    /// Minimum sum, over the nodes touched, of their additions to V, measured from the old mean.
    pub low: f64,
    /// Maximum of that sum.
    pub high: f64,
    /// Maximum (Σδ)²/n, where δ are the changes of values: the reduction of V when the mean moves.
    pub drift: f64,
    /// Maximum growth of a value in magnitude.
    pub reach: f64,
}

/// A line below a lane's weighted deviation: `at_rest + slope · (addition to V)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Chord {
    pub at_rest: f64,
    pub slope: f64,
}

impl Chord {
    /// The chord for a range of changes. It holds despite all rounding in canonical and approximate sums.
    pub fn new(board: &Board, lane: usize, range: Range) -> Self {
        let n = board.online() as f64;
        let slack = n * variance_slack(board, lane, range.reach);
        let squares = board.squares()[lane];
        let root = |d: f64| ((squares + d - slack).max(0.0) / n).sqrt() * LANE_WEIGHT[lane];
        let least = range.low - range.drift;
        // Below `slack - squares` the root is 0. At that very point it must be 0 too, but cancellation leaves
        // a residue. Its root, though tiny, would lift the chord above scores of 0.
        let (low, at_low) =
            if least > slack - squares { (least, root(least)) } else { (slack - squares, 0.0) };
        let slope = if range.high > low { (root(range.high) - at_low) / (range.high - low) } else { 0.0 };
        if slope > 0.0 {
            Self { at_rest: at_low - slope * (low + range.drift), slope }
        } else {
            // All that is known is that the deviation doesn't fall below its minimum.
            Self { at_rest: root(least), slope: 0.0 }
        }
    }
}

/// Bound of the rounding error of a lane's variance, canonical or approximate, if values grow by `reach`.
pub(crate) fn variance_slack(board: &Board, lane: usize, reach: f64) -> f64 {
    let magnitude = board.magnitude()[lane] + reach;
    board.rounding() * magnitude * magnitude
}
