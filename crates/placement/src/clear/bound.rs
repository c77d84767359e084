//! Lower bound on the cost of a plan, and proof that none exists, from sums alone.
//!
//! Taking nodes removes their free capacity from the pool, and clearing them uses capacity elsewhere for
//! their guests. So in each dimension the nodes taken are a choice from a knapsack, and the Lagrange
//! multiplier of its capacity bounds the cost.

use std::cmp::Reverse;

use cluster::NodeIdx;

use super::plan::Shortage;
use super::stand::Status;

/// A way to obtain a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub node: NodeIdx,
    /// Cleared or waited for.
    pub way: Status,
    /// Points.
    pub cost: u64,
    /// Free capacity that all nodes together lose by it, by dimension.
    pub room: Vec<i64>,
}

/// Prices of capacity are multiples of 1/`PARTS` of a point.
const PARTS: i128 = 1 << 20;
/// Maximum price of a unit of capacity, in multiples of 1/[`PARTS`] of a point.
const HIGHEST_PRICE: i128 = 1 << 40;

/// All ways to obtain nodes, and the total free capacity.
#[derive(Debug)]
pub(super) struct Sums<'a> {
    /// Sorted by node, so that the ways to obtain one node are adjacent.
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

    /// Sum of `figure` over the `wanted` nodes with the lowest figures, counting each node's lowest way.
    fn least(&self, figure: impl Fn(&Entry) -> i128) -> i128 {
        let ways = self.entries.chunk_by(|a, b| a.node == b.node);
        let mut figures: Vec<i128> =
            ways.filter_map(|ways| ways.iter().map(|way| figure(way)).min()).collect();
        if figures.len() > self.wanted {
            figures.select_nth_unstable(self.wanted);
        }
        figures.iter().take(self.wanted).sum()
    }

    /// Dimensions in which capacity is insufficient for every choice of nodes.
    pub fn shortages(&self) -> Vec<Shortage> {
        let lacking = |dimension: usize| {
            let needed = self.least(|entry| entry.room[dimension].into());
            u64::try_from(needed - i128::from(self.room[dimension])).ok().filter(|lacking| *lacking > 0)
        };
        let shortage = |dimension| Some(Shortage { dimension, lacking: lacking(dimension)? });
        (0..self.room.len()).filter_map(shortage).collect()
    }

    /// Lower bound on the cost of a choice with enough capacity, in points.
    pub fn cost(&self) -> u64 {
        let cheapest = self.least(|entry| entry.cost.into());
        let bounds = (0..self.room.len()).map(|dimension| self.priced(dimension));
        let bound = bounds.max().unwrap_or(0).max(cheapest);
        u64::try_from(bound).unwrap_or(u64::MAX)
    }

    /// The best bound with a price on one dimension's capacity. It is concave in the price.
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
        // Costs are whole points, so the bound is rounded up.
        (low..=high).map(bound).max().map_or(0, |best| (best + PARTS - 1).div_euclid(PARTS))
    }
}

/// Cheapest first; among equals, the lower node first, and clearing before waiting.
pub(super) fn by_cost(entries: &mut [Entry]) {
    entries.sort_by_key(|entry| (entry.cost, entry.node, Reverse(entry.way == Status::Cleared)));
}
