//! A lower bound of the score that decomposes into one number per node.
//!
//! A candidate changes one copy of an instance on each of a few nodes. Let V be the sum of squared distances
//! of a lane's values from their mean, and let a node's value move by δ from a distance y. Then n times the
//! new variance is V + d, where d is the sum over the touched nodes of δ(δ + 2y), minus (Σδ)²/n. The lane's
//! deviation √((V + d) / n) is concave in d. So on the range of d that is possible for a class of instances,
//! it lies above the chord between the ends of that range, and the chord is *linear* in d. This bounds the
//! score of every candidate of a class from below by a constant, plus a number for the node that the instance
//! leaves, plus a number for the node that it moves to. The best target is then known for all instances of
//! the class at once.
//!
//! Rounding is accounted for as in [`crate::board::Board::lower_bound`]: variances by their bound in terms of
//! the largest magnitude, sums by a relative slack.

use cluster::{Cluster, Demand, Figures, Node, NodeIdx};

use crate::board::Board;
use crate::cells::{Cells, LOAD_LANES, LoadTable};
use crate::chord::{Chord, Range, SLACK};
use crate::classes::{Class, Classes, Fits};
use crate::score::{DEVIATIONS, RESERVED_MEMORY_LANE, Row};

/// Lanes that a secondary changes as a primary does: disk, disk load and spindles, real and booked.
const MIRROR_LANES: [bool; 14] =
    [false, true, false, false, false, false, true, false, true, false, true, false, true, false];

/// Response of a node's values to a demand.
#[derive(Clone, Copy, Debug)]
struct Sensitivity {
    /// Change of each lane per unit of demand.
    per_unit: Row,
    exclusive: bool,
}

impl Sensitivity {
    fn of(node: &Node) -> Self {
        let inverse = |total: f64| if total == 0.0 { 0.0 } else { 1.0 / total };
        let memory = -inverse(node.total_memory);
        let disk = if node.exclusive_storage {
            -inverse(node.total_spindles as f64)
        } else {
            -inverse(node.total_disk)
        };
        let cpu = inverse(node.total_cpus * node.cpu_speed);
        let spindles = if node.exclusive_storage { 0.0 } else { inverse(node.max_spindles) };
        let per_unit =
            [memory, disk, 0.0, cpu, 1.0, 1.0, 1.0, 1.0, spindles, memory, disk, cpu, spindles, 0.0];
        Self { per_unit, exclusive: node.exclusive_storage }
    }
}

/// Demand of a class, lane by lane. On nodes with exclusive storage, spindles take the place of disk.
fn units(demand: &Demand, exclusive: bool) -> Row {
    let disk = if exclusive {
        demand.spindles.unwrap_or(0) as f64
    } else if demand.local_storage {
        demand.disk as f64
    } else {
        0.0
    };
    let spindles = if demand.local_storage { demand.spindle_use } else { 0.0 };
    let booked = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, demand.memory as f64, disk];
    let mut row = [0.0; 14];
    row[..booked.len()].copy_from_slice(&booked);
    row[11] = demand.vcpus as f64;
    row[12] = spindles;
    if !demand.forthcoming {
        row[0] = demand.used_memory as f64;
        row[1] = disk;
        row[3] = demand.vcpus as f64;
        row[4..8].copy_from_slice(&demand.utilisation);
        row[8] = spindles;
    }
    row
}

/// State of a balancing step that all classes share.
#[derive(Debug)]
pub(crate) struct Frame<'a> {
    cluster: &'a Cluster,
    board: &'a Board,
    classes: &'a Classes,
    online: &'a [NodeIdx],
    /// Groups of nodes that look alike to the search.
    pub cells: Cells,
    /// Load tables by [`Class::load`]; empty if cells don't distinguish loads.
    tables: Vec<LoadTable>,
    sensitivity: Vec<Sensitivity>,
    /// Distances from the mean, by position in `online`.
    distances: Vec<Row>,
    /// Whether instances can leave offline nodes, whose values don't count.
    any_offline: bool,
}

/// Contribution to the bound when a copy arrives at a node or leaves it, split by the lanes it changes.
#[derive(Clone, Copy, Debug, Default)]
struct Worth {
    /// Lanes that only primaries change.
    primary_only: f64,
    /// Lanes that mirrors also change.
    mirror: f64,
}

/// Bound for one class: a constant, and numbers per node.
#[derive(Debug)]
pub(crate) struct Minorant {
    /// Bound of a candidate that changes nothing.
    pub base: f64,
    /// Contributions of arriving at and leaving a node, by position.
    arrive: Vec<Worth>,
    leave: Vec<Worth>,
    /// Slope of the chord and mean of the reserved-memory lane.
    reserve_slope: f64,
    reserve_mean: f64,
    /// Contribution of a target as primary, by position.
    pub as_primary: Vec<f64>,
    /// Contribution of a target as secondary, by position.
    pub as_secondary: Vec<f64>,
}

impl<'a> Frame<'a> {
    /// Prepares a step. The board must be [bounded](Board::bounded).
    pub fn new(
        cluster: &'a Cluster,
        board: &'a Board,
        classes: &'a Classes,
        online: &'a [NodeIdx],
        any_offline: bool,
    ) -> Self {
        let sensitivity = online.iter().map(|n| Sensitivity::of(cluster.node(*n))).collect();
        let mean = board.mean();
        let distances =
            board.rows().iter().map(|values| std::array::from_fn(|lane| values[lane] - mean[lane])).collect();
        let cells = Cells::new(cluster, board, online, classes.loads.len());
        let told_apart = classes.loads.iter().filter(|_| cells.by_load);
        let tables = told_apart.map(|asked| LoadTable::new(board, &cells, *asked)).collect();
        Self { cluster, board, classes, online, cells, tables, sensitivity, distances, any_offline }
    }

    pub fn minorant(&self, class: &Class) -> Minorant {
        let units = [units(&class.demand, false), units(&class.demand, true)];
        let reserved = if class.demand.forthcoming { 0.0 } else { class.demand.reserved_memory as f64 };
        let ranges = self.ranges(&units, reserved);
        let chords = self.chords(&ranges);
        let count = self.online.len();
        // If the number of spindles is unknown, an exclusive-storage node's free spindles become -1,
        // regardless of their previous number, so no bound holds.
        let erratic = class.demand.spindles.is_none() && self.sensitivity.iter().any(|s| s.exclusive);
        let mut minorant = Minorant {
            base: if erratic { f64::NEG_INFINITY } else { chords.base },
            arrive: Vec::with_capacity(count),
            leave: Vec::with_capacity(count),
            reserve_slope: chords.slopes[RESERVED_MEMORY_LANE],
            reserve_mean: self.board.mean()[RESERVED_MEMORY_LANE],
            as_primary: Vec::with_capacity(count),
            as_secondary: Vec::with_capacity(count),
        };
        for (position, node) in self.online.iter().enumerate() {
            let (arrive, leave) = self.worths(position, &units, &chords.slopes);
            let (node, figures) = (self.cluster.node(*node), self.cluster.figures(*node));
            let (penalty, reserve) = if class.demand.forthcoming {
                (0.0, 0.0)
            } else {
                let least = figures.reserved_memory.max(class.demand.reserved_memory);
                (arrival_penalty(node, figures), minorant.reserve(node, figures, least))
            };
            let mirror = arrive.mirror + reserve + penalty;
            minorant.as_primary.push(arrive.primary_only + arrive.mirror + penalty);
            minorant.as_secondary.push(mirror);
            minorant.arrive.push(arrive);
            minorant.leave.push(leave);
        }
        minorant
    }

    /// The load's part of the bound for a class, if it isn't in the minorant.
    pub fn load_table(&self, class: &Class) -> Option<&LoadTable> {
        self.tables.get(class.load)
    }

    #[inline]
    fn moved(&self, position: usize, units: &[Row; 2]) -> Row {
        let sensitivity = &self.sensitivity[position];
        let units = &units[usize::from(sensitivity.exclusive)];
        std::array::from_fn(|lane| units[lane] * sensitivity.per_unit[lane])
    }

    #[inline]
    fn worths(&self, position: usize, units: &[Row; 2], slopes: &Row) -> (Worth, Worth) {
        let moved = self.moved(position, units);
        let distance = &self.distances[position];
        let mut arrive = Worth::default();
        let mut leave = Worth::default();
        for lane in 0..14 {
            let delta = moved[lane];
            let added = slopes[lane] * (delta * (delta + 2.0 * distance[lane]));
            let taken = slopes[lane] * (delta * (delta - 2.0 * distance[lane]));
            if MIRROR_LANES[lane] {
                arrive.mirror += added;
                leave.mirror += taken;
            } else {
                arrive.primary_only += added;
                leave.primary_only += taken;
            }
        }
        (arrive, leave)
    }

    /// Range of d over all candidates of the class, and bound of (Σδ)²/n, for each lane.
    fn ranges(&self, units: &[Row; 2], reserved: f64) -> [Range; 14] {
        let mut low_added = [0.0_f64; 14];
        let mut high_added = [0.0_f64; 14];
        let mut low_taken = [0.0_f64; 14];
        let mut high_taken = [0.0_f64; 14];
        let mut least = [f64::INFINITY; 14];
        let mut most = [f64::NEG_INFINITY; 14];
        for position in 0..self.online.len() {
            let mut moved = self.moved(position, units);
            // Any part of the memory can start or stop being reserved.
            let reserve = reserved * self.sensitivity[position].per_unit[0].abs();
            moved[RESERVED_MEMORY_LANE] = reserve;
            let distance = &self.distances[position];
            for lane in 0..14 {
                let delta = moved[lane];
                let added = delta * (delta + 2.0 * distance[lane]);
                let taken = delta * (delta - 2.0 * distance[lane]);
                low_added[lane] = low_added[lane].min(added);
                high_added[lane] = high_added[lane].max(added);
                low_taken[lane] = low_taken[lane].min(taken);
                high_taken[lane] = high_taken[lane].max(taken);
                least[lane] = least[lane].min(delta);
                most[lane] = most[lane].max(delta);
            }
            // Between the ends, the parabola can dip to its vertex.
            let lane = RESERVED_MEMORY_LANE;
            if distance[lane].abs() < reserve {
                let dip = -distance[lane] * distance[lane];
                low_added[lane] = low_added[lane].min(dip);
                low_taken[lane] = low_taken[lane].min(dip);
            }
        }
        let n = self.online.len() as f64;
        std::array::from_fn(|lane| {
            let reach = least[lane].abs().max(most[lane].abs());
            // Two nodes can reserve more memory and one less. Every other lane loses one copy and gains one.
            let (arrivals, drift) = if lane == RESERVED_MEMORY_LANE {
                (2.0, 2.0 * reach)
            } else if self.any_offline {
                (1.0, reach)
            } else {
                (1.0, most[lane] - least[lane])
            };
            Range {
                low: low_taken[lane] + arrivals * low_added[lane],
                high: high_taken[lane] + arrivals * high_added[lane],
                drift: drift * drift / n,
                reach,
            }
        })
    }

    fn chords(&self, ranges: &[Range; 14]) -> Chords {
        let mut chords = Chords { base: 0.0, slopes: [0.0; 14] };
        for lane in (0..DEVIATIONS).filter(|lane| !(self.cells.by_load && LOAD_LANES.contains(lane))) {
            let chord = Chord::new(self.board, lane, ranges[lane]);
            chords.slopes[lane] = chord.slope;
            chords.base += chord.at_rest;
        }
        let total = chords.base + self.board.values().counts.weighted() + 0.25 * self.board.reserved_sum();
        chords.base =
            total - SLACK * (1.0 + total.abs() + self.board.score().abs()) - self.board.sum_slack(total);
        chords
    }
}

/// Slopes of the chords, and the bound at d = 0.
struct Chords {
    base: f64,
    slopes: Row,
}

/// Minimum change, caused by an arrival at the node, in the number of instances on nodes that fail N+1.
fn arrival_penalty(node: &Node, figures: &Figures) -> f64 {
    if !figures.fails_n1 {
        0.0
    } else if figures.unallocated_memory(node) <= figures.reserved_memory {
        1.0
    } else {
        // It fails by its reported figures. Once they are updated from the records, it can turn out to pass.
        -((figures.primaries + figures.secondaries) as f64)
    }
}

impl Minorant {
    /// Minimum contribution of a node that reserves `least` MiB or more instead of its current amount.
    pub fn reserve(&self, node: &Node, figures: &Figures, least: i64) -> f64 {
        let inverse = 1.0 / node.total_memory;
        let old = figures.reserved_memory as f64 * inverse;
        let vertex = if self.reserve_slope > 0.0 {
            self.reserve_mean - 0.125 / self.reserve_slope
        } else {
            f64::NEG_INFINITY
        };
        let new = (least as f64 * inverse).max(vertex);
        let delta = new - old;
        self.reserve_slope * delta * (new + old - 2.0 * self.reserve_mean) + 0.25 * delta
    }

    /// A primary leaves the node at `position`.
    pub fn leave_primary(&self, position: usize) -> f64 {
        self.leave[position].primary_only + self.leave[position].mirror
    }

    /// A secondary leaves the node at `position`.
    pub fn leave_secondary(&self, position: usize) -> f64 {
        self.leave[position].mirror
    }

    /// A primary becomes the secondary.
    pub fn demote(&self, position: usize) -> f64 {
        self.leave[position].primary_only
    }

    /// A secondary becomes the primary.
    pub fn promote(&self, position: usize) -> f64 {
        self.arrive[position].primary_only
    }
}

/// The three best targets of a set. Three are enough to know the best one other than the instance's two
/// nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Podium([(f64, u32); 3]);

impl Podium {
    pub const EMPTY: Self = Self([(f64::INFINITY, u32::MAX); 3]);

    pub fn offer(&mut self, worth: f64, position: u32) {
        if worth >= self.0[2].0 {
            return;
        }
        self.0[2] = (worth, position);
        if self.0[2].0 < self.0[1].0 {
            self.0.swap(1, 2);
        }
        if self.0[1].0 < self.0[0].0 {
            self.0.swap(0, 1);
        }
    }

    /// Worth of the best target that isn't at one of the positions `not`.
    pub fn best(&self, not: [u32; 2]) -> f64 {
        self.0.iter().find(|(_, position)| !not.contains(position)).map_or(f64::INFINITY, |(worth, _)| *worth)
    }
}

/// Best targets per cell, for both roles, with strict and forced checks.
#[derive(Debug)]
pub(crate) struct Podiums {
    primary: Vec<[Podium; 2]>,
    secondary: Vec<[Podium; 2]>,
    best_primary: [Vec<f64>; 2],
    best_secondary: [Vec<f64>; 2],
}

impl Podiums {
    pub fn new(frame: &Frame<'_>, class: &Class, minorant: &Minorant) -> Self {
        let cells = frame.cells.nodes.len();
        let mut podiums = Self {
            primary: vec![[Podium::EMPTY; 2]; cells],
            secondary: vec![[Podium::EMPTY; 2]; cells],
            best_primary: [Vec::new(), Vec::new()],
            best_secondary: [Vec::new(), Vec::new()],
        };
        let fits: &[Fits] = &frame.classes.shapes[class.shape].fits;
        for (position, fits) in fits.iter().enumerate() {
            let cell = frame.cells.of[position] as usize;
            for force in 0..2 {
                if fits.primary[force] {
                    podiums.primary[cell][force].offer(minorant.as_primary[position], position as u32);
                }
                if fits.secondary[force] {
                    podiums.secondary[cell][force].offer(minorant.as_secondary[position], position as u32);
                }
            }
        }
        for force in 0..2 {
            let best = |podiums: &[[Podium; 2]]| podiums.iter().map(|podium| podium[force].0[0].0).collect();
            podiums.best_primary[force] = best(&podiums.primary);
            podiums.best_secondary[force] = best(&podiums.secondary);
        }
        podiums
    }

    /// Worth of the best primary of each cell, without excluding any node.
    pub fn best_primary(&self, force: bool) -> &[f64] {
        &self.best_primary[usize::from(force)]
    }

    /// Worth of the best secondary of each cell, without excluding any node.
    pub fn best_secondary(&self, force: bool) -> &[f64] {
        &self.best_secondary[usize::from(force)]
    }

    pub fn primary(&self, cell: usize, force: bool) -> &Podium {
        &self.primary[cell][usize::from(force)]
    }

    pub fn secondary(&self, cell: usize, force: bool) -> &Podium {
        &self.secondary[cell][usize::from(force)]
    }
}
