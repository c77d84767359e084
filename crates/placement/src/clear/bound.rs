//! What every plan must cost, and whether there can be one at all, from sums alone.
//!
//! Whoever takes nodes takes what is free on them from the others, and their guests' sizes as well. So in each
//! dimension the nodes taken are a choice from a knapsack, and Lagrange's multiplier for its capacity bounds the cost.

use std::cmp::Reverse;

use cluster::NodeIdx;

use super::plan::Shortage;
use super::stand::Status;

/// A way to get a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub node: NodeIdx,
    /// Cleared or waited for.
    pub way: Status,
    /// Points.
    pub cost: u64,
    /// By dimension: how much less room all nodes together have then.
    pub room: Vec<i64>,
}

/// Prices of room are multiples of one part in so many of a point.
const PARTS: i128 = 1 << 20;
/// No price of a unit of room is higher than this times [`PARTS`].
const HIGHEST_PRICE: i128 = 1 << 40;

/// All ways to get nodes, and all room there is.
#[derive(Debug)]
pub(super) struct Sums<'a> {
    /// By node, so that the ways of one follow each other.
    entries: Vec<&'a Entry>,
    room: &'a [i64],
    wanted: usize,
}

impl<'a> Sums<'a> {
    pub fn new(entries: &'a [Entry], room: &'a [i64], wanted: usize) -> Self {
        let mut by_node: Vec<&Entry> = entries.iter().collect();
        by_node.sort_by_key(|entry| entry.node);
        Self { entries: by_node, room, wanted }
    }

    /// The sum of a figure of the `wanted` nodes with the least, with the way of each that has the least.
    fn least(&self, figure: impl Fn(&Entry) -> i128) -> i128 {
        let ways = self.entries.chunk_by(|a, b| a.node == b.node);
        let mut figures: Vec<i128> =
            ways.filter_map(|ways| ways.iter().map(|way| figure(way)).min()).collect();
        if figures.len() > self.wanted {
            figures.select_nth_unstable(self.wanted);
        }
        figures.iter().take(self.wanted).sum()
    }

    /// The dimensions in which there is not room enough whatever is chosen.
    pub fn shortages(&self) -> Vec<Shortage> {
        let lacking = |dimension: usize| {
            let needed = self.least(|entry| entry.room[dimension].into());
            u64::try_from(needed - i128::from(self.room[dimension])).ok().filter(|lacking| *lacking > 0)
        };
        let shortage = |dimension| Some(Shortage { dimension, lacking: lacking(dimension)? });
        (0..self.room.len()).filter_map(shortage).collect()
    }

    /// No choice with enough room costs less, points.
    pub fn cost(&self) -> u64 {
        let cheapest = self.least(|entry| entry.cost.into());
        let bounds = (0..self.room.len()).map(|dimension| self.priced(dimension));
        let bound = bounds.max().unwrap_or(0).max(cheapest);
        u64::try_from(bound).unwrap_or(u64::MAX)
    }

    /// The best bound with a price on one dimension's room, which is concave in the price.
    fn priced(&self, dimension: usize) -> i128 {
        let bound = |price: i128| {
            let of =
                |entry: &Entry| i128::from(entry.cost) * PARTS + price * i128::from(entry.room[dimension]);
            self.least(of) - price * i128::from(self.room[dimension])
        };
        let (mut low, mut high) = (0, HIGHEST_PRICE);
        while high - low > 2 {
            let third = (high - low) / 3;
            if bound(low + third) < bound(high - third) { low += third } else { high -= third }
        }
        // Costs are whole points.
        (low..=high).map(bound).max().map_or(0, |best| (best + PARTS - 1).div_euclid(PARTS))
    }
}

/// The cheapest first; of equals the node that comes first.
pub(super) fn by_cost(entries: &mut [Entry]) {
    entries.sort_by_key(|entry| (entry.cost, entry.node, Reverse(entry.way == Status::Cleared)));
}
