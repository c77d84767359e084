//! Cells: sets of online nodes that are equal in everything the search treats exactly rather than by a chord.
//!
//! The nodes of a cell have the same location tags and, if this makes few enough cells, the same load. Late
//! in a balancing run most nodes have equal numbers of primaries and secondaries, the deviations of the load
//! are small, and a chord would be a poor bound. But then there are few cells, and the load's part of the
//! score can be tabulated by the cells of the node that a copy leaves and of the node that it moves to.

use std::collections::HashMap;

use cluster::{Cluster, NodeIdx, TagId, Utilisation};

use crate::board::Board;
use crate::score::LANE_WEIGHT;

/// Load lanes. The disk load (lane 6) changes with mirrors, the others only with primaries.
pub(crate) const LOAD_LANES: [usize; 4] = [4, 5, 6, 7];
const DISK_LOAD_LANE: usize = 6;
/// Maximum number of entries in all tables together. If splitting nodes by load needs more, they aren't
/// split.
const MOST_ENTRIES: usize = 64 * 64;

/// The cells of one balancing step.
#[derive(Clone, Debug)]
pub(crate) struct Cells {
    /// Cell of each online node, by position.
    pub of: Vec<u32>,
    /// One node of each cell.
    pub nodes: Vec<NodeIdx>,
    /// Whether the nodes of a cell have the same load.
    pub by_load: bool,
    /// Whether no node has location tags.
    pub plain: bool,
}

impl Cells {
    /// Cells of the `online` nodes. `tables` is the number of load tables that will be built.
    pub fn new(cluster: &Cluster, board: &Board, online: &[NodeIdx], tables: usize) -> Self {
        let plain = online.iter().all(|n| cluster.node(*n).locations.is_empty());
        let most = (MOST_ENTRIES / tables.max(1)).isqrt();
        Self::partition(cluster, online, plain, most, |position| {
            let row = &board.rows()[position];
            Some(LOAD_LANES.map(|lane| row[lane].to_bits()))
        })
        .or_else(|| Self::partition(cluster, online, plain, most, |_| None))
        .unwrap_or_else(|| Self { of: Vec::new(), nodes: Vec::new(), by_load: false, plain })
    }

    /// `None` if splitting by load makes too many cells.
    fn partition(
        cluster: &Cluster,
        online: &[NodeIdx],
        plain: bool,
        most: usize,
        load: impl Fn(usize) -> Option<[u64; 4]>,
    ) -> Option<Self> {
        let mut known: HashMap<(&[TagId], Option<[u64; 4]>), u32> = HashMap::new();
        let mut cells =
            Self { of: Vec::with_capacity(online.len()), nodes: Vec::new(), by_load: false, plain };
        for (position, node) in online.iter().enumerate() {
            let load = load(position);
            cells.by_load = load.is_some();
            let cell = *known.entry((&cluster.node(*node).locations, load)).or_insert_with(|| {
                cells.nodes.push(*node);
                cells.nodes.len() as u32 - 1
            });
            if cells.by_load && cells.nodes.len() > most {
                return None;
            }
            cells.of.push(cell);
        }
        Some(cells)
    }
}

/// The load's part of the score, by the cells of the node left and the node reached. The last row and column
/// stand for a node that doesn't count, or for no node at all.
#[derive(Clone, Debug)]
pub(crate) struct LoadTable {
    width: usize,
    primary: Vec<f64>,
    mirror: Vec<f64>,
}

impl LoadTable {
    /// Table for instances that add `asked` to the load.
    pub fn new(board: &Board, cells: &Cells, asked: Utilisation) -> Self {
        let width = cells.nodes.len() + 1;
        let mut table = Self { width, primary: Vec::new(), mirror: Vec::new() };
        let distance = |cell: usize, lane: usize| {
            let slot = cells.nodes.get(cell).and_then(|n| board.online_slot(*n));
            slot.map(|slot| board.rows()[slot][lane] - board.mean()[lane])
        };
        let n = board.online() as f64;
        for left in 0..width {
            for reached in 0..width {
                let (mut primary, mut mirror) = (0.0, 0.0);
                for (lane, asked) in LOAD_LANES.into_iter().zip(asked) {
                    let taken =
                        distance(left, lane).map_or((0.0, 0.0), |y| (asked * (asked - 2.0 * y), -asked));
                    let added =
                        distance(reached, lane).map_or((0.0, 0.0), |y| (asked * (asked + 2.0 * y), asked));
                    let drift = taken.1 + added.1;
                    let d = taken.0 + added.0 - drift * drift / n;
                    let magnitude = board.magnitude()[lane] + asked.abs();
                    let slack = n * board.rounding() * magnitude * magnitude;
                    let deviation = ((board.squares()[lane] + d - slack).max(0.0) / n).sqrt();
                    if lane == DISK_LOAD_LANE {
                        mirror += LANE_WEIGHT[lane] * deviation;
                    } else {
                        primary += LANE_WEIGHT[lane] * deviation;
                    }
                }
                table.primary.push(primary);
                table.mirror.push(mirror);
            }
        }
        table
    }

    /// Cell number that stands for no node.
    pub fn nowhere(&self) -> usize {
        self.width - 1
    }

    /// CPU, memory and network load after a primary moves from cell `left` to cell `reached`.
    pub fn primary(&self, left: usize, reached: usize) -> f64 {
        self.primary[left * self.width + reached]
    }

    /// Disk load after a copy moves from cell `left` to cell `reached`.
    pub fn mirror(&self, left: usize, reached: usize) -> f64 {
        self.mirror[left * self.width + reached]
    }

    /// [`Self::primary`] for every cell reached.
    pub fn primary_row(&self, left: usize) -> &[f64] {
        &self.primary[left * self.width..][..self.width - 1]
    }

    /// [`Self::mirror`] for every cell reached.
    pub fn mirror_row(&self, left: usize) -> &[f64] {
        &self.mirror[left * self.width..][..self.width - 1]
    }
}
