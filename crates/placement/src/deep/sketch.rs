//! Sketches: approximate scores, computed many times as fast as by judging.
//!
//! Lanes that follow from another lane (in most clusters more than half) are folded into that lane, and lanes
//! that no instance changes are left out. Memory that nodes reserve for each other is part of a sketch, since
//! it makes up much of the score of a balanced cluster. Counts are assumed to stay unchanged.

use cluster::{Cluster, Demand, InstanceIdx, NodeIdx};

use super::arrangement::{Arrangement, Role, Sums};
use super::reserves::Change;
use crate::score::{LANE_WEIGHT, RESERVED_MEMORY_LANE, Row};

/// Maximum number of blocks. Lanes are processed in blocks of four, as many as needed.
const FOURS: usize = 3;
/// Lanes except the lane of the reserves.
type Lanes = [[f64; 4]; FOURS];

const NOTHING: Lanes = [[0.0; 4]; FOURS];

/// Maximum difference between a folded lane's values and those derived for it.
const FOLDING_ERROR: f64 = 1e-9;

/// An instance leaves one node for another, which gets the same role.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leg {
    pub instance: InstanceIdx,
    pub role: Role,
    pub left: NodeIdx,
    pub target: NodeIdx,
}

/// Data from which an arrangement is sketched.
#[derive(Clone, Debug)]
pub(super) struct Outline {
    /// Lanes that remain, by position in a [`Row`].
    kept: Vec<usize>,
    /// Number of blocks of four lanes in use.
    fours: usize,
    weights: Lanes,
    /// Change of each node's lanes per unit of burden; zero if the node doesn't count.
    units: Vec<Lanes>,
    /// Burden of each instance on its primary and on its secondary.
    burdens: Vec<[Lanes; 2]>,
    /// Distance of each node's values from the reference point.
    rows: Vec<Lanes>,
    /// Means of the distances, and of their squares, over the nodes.
    means: Lanes,
    squares: Lanes,
    inverse: f64,
    /// Score without the deviations of the lanes, the deviation of the reserves and their sum.
    rest: f64,
    /// Score without the deviations of the lanes.
    unchanged: f64,
}

impl Outline {
    /// Outline for instances with these `demands`. `counted` tells which nodes count, and `rows` are the
    /// nodes' rows.
    pub fn new(cluster: &Cluster, demands: &[Demand], counted: &[bool], rows: &[Row]) -> Self {
        let units: Vec<Row> = cluster.nodes.iter().map(unit).collect();
        let burdens: Vec<[Row; 2]> = demands.iter().map(burdens).collect();
        let mut folding = Folding { units: &units, burdens: &burdens, rows, counted, lanes: Vec::new() };
        (0..14).filter(|lane| *lane != RESERVED_MEMORY_LANE).for_each(|lane| folding.add(lane));
        let (kept, kept_weights): (Vec<usize>, Vec<f64>) = folding.lanes.into_iter().unzip();
        let mut weights = NOTHING;
        for (place, weight) in kept_weights.iter().enumerate() {
            weights[place / 4][place % 4] = *weight;
        }
        let unit = |(unit, counts): (&Row, &bool)| if *counts { pick(&kept, unit) } else { NOTHING };
        Self {
            fours: kept.len().div_ceil(4),
            weights,
            units: units.iter().zip(counted).map(unit).collect(),
            burdens: burdens.iter().map(|roles| roles.map(|row| pick(&kept, &row))).collect(),
            rows: vec![NOTHING; rows.len()],
            means: NOTHING,
            squares: NOTHING,
            inverse: 1.0 / counted.iter().filter(|counts| **counts).count().max(1) as f64,
            rest: 0.0,
            unchanged: 0.0,
            kept,
        }
    }

    /// Updates a node's distances from the reference point.
    pub fn note_row(&mut self, node: NodeIdx, row: &Row, reference: &Row) {
        self.rows[node.at()] = pick(&self.kept, &std::array::from_fn(|lane| row[lane] - reference[lane]));
    }

    /// Updates the sums over all nodes, and the score.
    pub fn note_sums(&mut self, sums: &Sums, score: f64) {
        self.means = pick(&self.kept, &sums.distances.map(|sum| sum * self.inverse));
        self.squares = pick(&self.kept, &sums.squares.map(|sum| sum * self.inverse));
        let as_is = Prospect { linear: NOTHING, square: NOTHING, shift: NOTHING };
        self.unchanged = score - self.deviations(&as_is, &NOTHING, &NOTHING);
        self.rest = self.unchanged
            - LANE_WEIGHT[RESERVED_MEMORY_LANE] * self.deviation_of_reserves(sums, &Reserved::default())
            - 0.25 * sums.reserved;
    }

    #[inline]
    fn deviation_of_reserves(&self, sums: &Sums, reserved: &Reserved) -> f64 {
        let mean = (sums.distances[RESERVED_MEMORY_LANE] + reserved.ratio) * self.inverse;
        let variance = (sums.squares[RESERVED_MEMORY_LANE] + reserved.square) * self.inverse - mean * mean;
        variance.max(0.0).sqrt()
    }

    /// Weighted deviations of the lanes if `burden` moves as described by `prospect` and `returned` moves
    /// back.
    #[inline]
    fn deviations(&self, prospect: &Prospect, burden: &Lanes, returned: &Lanes) -> f64 {
        let mut total = [0.0; 4];
        for four in 0..self.fours.min(FOURS) {
            let (gone, back) = (&burden[four], &returned[four]);
            let (linear, square, shift) =
                (&prospect.linear[four], &prospect.square[four], &prospect.shift[four]);
            let (means, squares, weights) = (&self.means[four], &self.squares[four], &self.weights[four]);
            for lane in 0..4 {
                let net = gone[lane] - back[lane];
                let mean = means[lane] + shift[lane] * net;
                let variance = squares[lane] + net * (linear[lane] + square[lane] * net) - mean * mean;
                total[lane] += weights[lane] * variance.max(0.0).sqrt();
            }
        }
        (total[0] + total[1]) + (total[2] + total[3])
    }

    /// Effect on the means of moving a burden from one node to another.
    #[inline]
    fn prospect(&self, left: NodeIdx, target: NodeIdx) -> Prospect {
        let mut prospect = Prospect { linear: NOTHING, square: NOTHING, shift: NOTHING };
        let (left_units, left_row) = (&self.units[left.at()], &self.rows[left.at()]);
        let (units, row) = (&self.units[target.at()], &self.rows[target.at()]);
        for four in 0..self.fours.min(FOURS) {
            for lane in 0..4 {
                let (out, into) = (left_units[four][lane], units[four][lane]);
                prospect.linear[four][lane] =
                    2.0 * self.inverse * (into * row[four][lane] - out * left_row[four][lane]);
                prospect.square[four][lane] = self.inverse * (out * out + into * into);
                prospect.shift[four][lane] = self.inverse * (into - out);
            }
        }
        prospect
    }
}

/// Effect of moving a burden from one node to another: `linear` and `square` are the factors of the burden
/// and of its square in the mean of squared distances, `shift` is the factor of the burden in the mean
/// distance.
#[derive(Clone, Copy, Debug)]
struct Prospect {
    linear: Lanes,
    square: Lanes,
    shift: Lanes,
}

/// Change of the sums of reserved memory ratios and of their squared distances.
#[derive(Clone, Copy, Debug, Default)]
struct Reserved {
    ratio: f64,
    square: f64,
}

/// Sketches of an arrangement in which an instance moves to another node, and perhaps one moves back from
/// there.
#[derive(Clone, Debug)]
pub(super) struct Sketcher<'p> {
    place: &'p Arrangement<'p>,
    leg: Leg,
    prospect: Prospect,
    /// Change of the reserves that doesn't depend on the instance that moves back.
    reserved: Reserved,
    /// Current score without the deviations of the lanes.
    unchanged: f64,
    /// Maximum decrease of the score through reserves that the leg makes smaller.
    relief: f64,
}

impl<'p> Sketcher<'p> {
    /// Prepares sketches of an arrangement after `leg`.
    #[inline]
    pub fn new(place: &'p Arrangement<'p>, leg: Leg) -> Self {
        let prospect = place.outline().prospect(leg.left, leg.target);
        let unchanged = place.outline().unchanged;
        let relieved = if leg.role == Role::Primary { place.pair(leg.instance).1 } else { Some(leg.left) };
        let relief = relieved.map_or(0.0, |node| place.relief(node));
        let mut sketcher = Self { place, leg, prospect, reserved: Reserved::default(), unchanged, relief };
        if leg.role == Role::Primary {
            let mut reserved = Reserved::default();
            sketcher.reserve_for_primary(&mut reserved, &leg);
            sketcher.reserved = reserved;
        }
        sketcher
    }

    /// Approximate score if nothing moves back.
    #[inline]
    pub fn alone(&self) -> f64 {
        let mut reserved = self.reserved;
        if self.leg.role == Role::Secondary {
            let (primary, memory) = self.reservation(self.leg.instance);
            self.reserve(&mut reserved, self.leg.left, Change::less(primary, memory));
            self.reserve(&mut reserved, self.leg.target, Change::more(primary, memory));
        }
        let outline = self.place.outline();
        let burden = &outline.burdens[self.leg.instance.at()][self.leg.role as usize];
        self.score(outline.deviations(&self.prospect, burden, &NOTHING), &reserved)
    }

    /// Approximate score if another instance moves back and keeps its `role`; `None` if it is above `cut`.
    #[inline]
    pub fn with(&self, other: InstanceIdx, role: Role, cut: f64) -> Option<f64> {
        let Leg { instance, left, target, .. } = self.leg;
        let outline = self.place.outline();
        let burden = &outline.burdens[self.leg.instance.at()][self.leg.role as usize];
        let returned = &outline.burdens[other.at()][role as usize];
        let deviations = outline.deviations(&self.prospect, burden, returned);
        let relieved = if role == Role::Primary { self.place.pair(other).1 } else { Some(target) };
        let relief = self.relief + relieved.map_or(0.0, |node| self.place.relief(node));
        if deviations > cut + relief - self.unchanged {
            return None;
        }
        let mut reserved = self.reserved;
        let (mut before, mut after) = (Change::default(), Change::default());
        if self.leg.role == Role::Secondary {
            let (primary, memory) = self.reservation(instance);
            before.less = (primary, memory);
            after.more = (primary, memory);
        }
        if role == Role::Secondary {
            let (primary, memory) = self.reservation(other);
            before.more = (primary, memory);
            after.less = (primary, memory);
        } else {
            let back = Leg { instance: other, role, left: target, target: left };
            self.reserve_for_primary(&mut reserved, &back);
        }
        self.reserve(&mut reserved, left, before);
        self.reserve(&mut reserved, target, after);
        let score = self.score(deviations, &reserved);
        (score <= cut).then_some(score)
    }

    #[inline]
    fn score(&self, deviations: f64, reserved: &Reserved) -> f64 {
        let (outline, sums) = (self.place.outline(), self.place.sums());
        outline.rest
            + deviations
            + LANE_WEIGHT[RESERVED_MEMORY_LANE] * outline.deviation_of_reserves(sums, reserved)
            + 0.25 * (sums.reserved + reserved.ratio)
    }

    /// Node for which an instance's secondary reserves memory, and the amount, MiB.
    #[inline]
    fn reservation(&self, instance: InstanceIdx) -> (NodeIdx, i64) {
        (self.place.pair(instance).0, self.place.reserved_memory(instance))
    }

    /// Adds the change of reserves on the secondary of an instance that gets another primary.
    #[inline]
    fn reserve_for_primary(&self, reserved: &mut Reserved, leg: &Leg) {
        let memory = self.place.reserved_memory(leg.instance);
        if let Some(secondary) = self.place.pair(leg.instance).1 {
            let change = Change { less: (leg.left, memory), more: (leg.target, memory) };
            self.reserve(reserved, secondary, change);
        }
    }

    #[inline]
    fn reserve(&self, reserved: &mut Reserved, node: NodeIdx, change: Change) {
        let (ratio, square) = self.place.reserve_change(node, change);
        reserved.ratio += ratio;
        reserved.square += square;
    }
}

/// Kept lanes, each with its weight plus the scaled weights of the lanes folded into it.
struct Folding<'a> {
    units: &'a [Row],
    burdens: &'a [[Row; 2]],
    rows: &'a [Row],
    counted: &'a [bool],
    lanes: Vec<(usize, f64)>,
}

impl Folding<'_> {
    /// Folds a lane into a kept one, keeps it, or leaves it out if nothing ever changes it.
    fn add(&mut self, lane: usize) {
        let weight = LANE_WEIGHT[lane];
        let moves = self.units.iter().any(|unit| unit[lane] != 0.0)
            && self.burdens.iter().flatten().any(|burden| burden[lane] != 0.0);
        if weight == 0.0 || !moves {
            return;
        }
        for place in 0..self.lanes.len() {
            if let Some(factor) = self.multiple(self.lanes[place].0, lane) {
                self.lanes[place].1 += weight * factor.abs();
                return;
            }
        }
        self.lanes.push((lane, weight));
    }

    /// Constant ratio of the changes of lane `other` to those of lane `one`; `None` if there isn't one.
    fn multiple(&self, one: usize, other: usize) -> Option<f64> {
        let units = common_ratio(self.units.iter().map(|unit| (unit[one], unit[other])))?;
        let burdens = common_ratio(self.burdens.iter().flatten().map(|burden| (burden[one], burden[other])))?;
        let factor = units * burdens;
        let mut differences = self
            .rows
            .iter()
            .zip(self.counted)
            .filter(|(_, counts)| **counts)
            .map(|(row, _)| row[other] - factor * row[one]);
        let first = differences.next()?;
        differences.all(|difference| (difference - first).abs() < FOLDING_ERROR).then_some(factor)
    }
}

/// Ratio of the second number to the first that all pairs share; `None` if they don't share one.
fn common_ratio(pairs: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let mut ratio = None;
    for (one, other) in pairs {
        if one == 0.0 && other == 0.0 {
            continue;
        }
        let here = other / one;
        let known: f64 = *ratio.get_or_insert(here);
        if !here.is_finite() || (here - known).abs() > FOLDING_ERROR * known.abs() {
            return None;
        }
    }
    ratio
}

/// The kept lanes of a row.
#[inline]
fn pick(kept: &[usize], row: &Row) -> Lanes {
    let mut lanes = NOTHING;
    for (place, lane) in kept.iter().enumerate() {
        lanes[place / 4][place % 4] = row[*lane];
    }
    lanes
}

/// Change of a node's row per unit of each burden.
fn unit(node: &cluster::Node) -> Row {
    let share = |total: f64| if total > 0.0 { 1.0 / total } else { 0.0 };
    let memory = -share(node.total_memory);
    let disk = if node.exclusive_storage { 0.0 } else { -share(node.total_disk) };
    let cpus = share(node.total_cpus * node.cpu_speed);
    let spindles = if node.exclusive_storage { 0.0 } else { share(node.max_spindles) };
    [memory, disk, 0.0, cpus, 1.0, 1.0, 1.0, 1.0, spindles, memory, disk, cpus, spindles, 0.0]
}

/// Burden of an instance on its primary, and on its secondary.
fn burdens(demand: &Demand) -> [Row; 2] {
    let local = if demand.local_storage { 1.0 } else { 0.0 };
    let (disk, spindles) = (local * demand.disk as f64, local * demand.spindle_use);
    let real = if demand.forthcoming { 0.0 } else { 1.0 };
    let [cpu, memory, disk_load, network] = demand.utilisation.map(|load| real * load);
    let (booked, vcpus) = (demand.memory as f64, demand.vcpus as f64);
    let used = real * demand.used_memory as f64;
    let (disk_now, spindles_now, vcpus_now) = (real * disk, real * spindles, real * vcpus);
    [
        [
            used,
            disk_now,
            0.0,
            vcpus_now,
            cpu,
            memory,
            disk_load,
            network,
            spindles_now,
            booked,
            disk,
            vcpus,
            spindles,
            0.0,
        ],
        [0.0, disk_now, 0.0, 0.0, 0.0, 0.0, disk_load, 0.0, spindles_now, 0.0, disk, 0.0, spindles, 0.0],
    ]
}

#[cfg(test)]
mod tests {
    use cluster::{DiskTemplate, Group, GroupIdx, Instance, LoadOptions, Node, Policy};

    use super::*;
    use crate::deep::atlas::Pair;
    use crate::dice::Dice;

    const NODES: usize = 6;

    fn node(number: usize) -> Node {
        Node {
            // Two kinds of nodes, so that means change as well.
            total_memory: if number.is_multiple_of(2) { 200_000.0 } else { 300_000.0 },
            reported_free_memory: if number.is_multiple_of(2) { 200_000 } else { 300_000 },
            total_disk: 9_000_000.0,
            reported_free_disk: 9_000_000,
            total_cpus: 64.0,
            ..Node::new(format!("n{number}"), GroupIdx(0))
        }
    }

    fn instance(number: usize, dice: &mut Dice) -> Instance {
        let primary = dice.below(NODES);
        let secondary = (primary + 1 + dice.below(NODES - 1)) % NODES;
        let size = 1 << dice.below(4);
        Instance {
            memory: 1024 * size,
            disk: 10_240 * size,
            vcpus: size,
            secondary: Some(NodeIdx::from_usize(secondary)),
            ..Instance::new(format!("i{number}"), DiskTemplate::Drbd, NodeIdx::from_usize(primary))
        }
    }

    fn random_cluster(dice: &mut Dice) -> Cluster {
        let nodes = (0..NODES).map(node).collect();
        let instances = (0..30).map(|number| instance(number, dice)).collect();
        let groups = vec![Group::new("g", "u")];
        let options = LoadOptions::default();
        let loaded = Cluster::load(groups, nodes, instances, Vec::new(), Policy::default(), &options);
        loaded.expect("the options select nothing").0
    }

    fn changed(pair: Pair, role: Role, target: NodeIdx) -> Pair {
        if role == Role::Primary { (target, pair.1) } else { (pair.0, Some(target)) }
    }

    fn node_of(pair: Pair, role: Role) -> NodeIdx {
        if role == Role::Primary { pair.0 } else { pair.1.unwrap_or(pair.0) }
    }

    fn any_role(dice: &mut Dice) -> Role {
        if dice.below(2) == 0 { Role::Primary } else { Role::Secondary }
    }

    /// Random change of one node of an instance, and its place then; `None` if the node drawn is already one
    /// of its nodes.
    fn any_leg(place: &Arrangement<'_>, dice: &mut Dice) -> Option<(Leg, Pair)> {
        let (instance, role) = (InstanceIdx::from_usize(dice.below(30)), any_role(dice));
        let pair = place.pair(instance);
        let target = NodeIdx::from_usize(dice.below(NODES));
        let leg = Leg { instance, role, left: node_of(pair, role), target };
        let free = target != pair.0 && Some(target) != pair.1;
        free.then_some((leg, changed(pair, role, target)))
    }

    #[test]
    fn sketches_are_what_judging_finds() {
        let mut dice = Dice(3);
        let mut compared = 0;
        for _ in 0..20 {
            let cluster = random_cluster(&mut dice);
            let nodes: Vec<NodeIdx> = cluster.node_indices().collect();
            let mut place = Arrangement::new(&cluster, &nodes, true);
            let mut shift = place.blank();
            for _ in 0..200 {
                let Some((leg, to)) = any_leg(&place, &mut dice) else { continue };
                let sketch = Sketcher::new(&place, leg).alone();
                if place.judge(leg.instance, to, None, &mut shift).is_err() {
                    continue;
                }
                let counted = place.sums().counts;
                place.exchange(&mut shift);
                if counted == place.sums().counts {
                    assert!((sketch - place.score()).abs() < 1e-9, "{sketch} for {}", place.score());
                    compared += 1;
                }
            }
        }
        assert!(compared > 1_000, "{compared}");
    }

    #[test]
    fn sketches_of_exchanges_are_close_and_say_when_they_are_above_a_limit() {
        let mut dice = Dice(4);
        let mut errors: Vec<f64> = Vec::new();
        for _ in 0..20 {
            let cluster = random_cluster(&mut dice);
            let nodes: Vec<NodeIdx> = cluster.node_indices().collect();
            let mut place = Arrangement::new(&cluster, &nodes, true);
            let (mut first, mut second) = (place.blank(), place.blank());
            for _ in 0..400 {
                let Some((leg, to)) = any_leg(&place, &mut dice) else { continue };
                let (other, role) = (InstanceIdx::from_usize(dice.below(30)), any_role(&mut dice));
                let there = place.pair(other);
                let back = changed(there, role, leg.left);
                if node_of(there, role) != leg.target || Some(back.0) == back.1 || other == leg.instance {
                    continue;
                }
                let sketcher = Sketcher::new(&place, leg);
                let Some(sketch) = sketcher.with(other, role, f64::INFINITY) else {
                    panic!("nothing is above infinity");
                };
                assert_eq!(sketcher.with(other, role, sketch), Some(sketch));
                assert_eq!(sketcher.with(other, role, sketch - 1e-6), None);
                if place.judge(leg.instance, to, None, &mut first).is_err() {
                    continue;
                }
                let counted = place.sums().counts;
                place.exchange(&mut first);
                if place.judge(other, back, None, &mut second).is_ok() {
                    place.exchange(&mut second);
                    if counted == place.sums().counts {
                        errors.push((sketch - place.score()).abs());
                    }
                }
            }
        }
        // Exchanges with a common secondary aren't exact.
        errors.sort_by(f64::total_cmp);
        assert!(errors.len() > 300, "{}", errors.len());
        assert!(errors[errors.len() * 3 / 4] < 1e-9, "{errors:?}");
        assert!(errors[errors.len() - 1] < 0.1, "{errors:?}");
    }
}
