//! Score board: the score of a set of nodes, now and after changes to a few of them.
//!
//! [`Board::exact`] is the canonical formula, bit for bit. [`Board::lower_bound`] is a rigorous bound in
//! constant time: a candidate whose bound is above the best exact score cannot win, not even a tie
//! (HT-score).

use cluster::{Change, Cluster, Figures, Instance, Node, NodeIdx, Outcome, TagId};

use crate::located::Located;
use crate::score::{Counts, DEVIATIONS, LANE_WEIGHT, RESERVED_MEMORY_LANE, Row, Values, row};

/// A node's place on a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    /// Not one of the board's nodes.
    Absent,
    /// On the board, but its ratios don't count.
    Offline,
    /// Online, at this position among the online nodes.
    Online(u32),
}

/// Effect of changes on the lanes: the total change of values, the new sum of squared distances from the
/// *old* mean, and the largest magnitude.
#[derive(Clone, Copy, Debug)]
pub struct Effect {
    moved: Row,
    squares: Row,
    magnitude: Row,
}

/// Factors that turn a node's figures into its row without divisions. Accurate enough for bounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    memory: f64,
    disk: f64,
    /// 1 if the node has no disk (or spindles), which counts as all free; otherwise 0.
    no_disk: f64,
    cpus: f64,
    spindles: f64,
}

impl Scale {
    pub fn of(node: &Node) -> Self {
        let disk = if node.exclusive_storage { node.total_spindles as f64 } else { node.total_disk };
        Self {
            memory: 1.0 / node.total_memory,
            disk: if disk == 0.0 { 0.0 } else { 1.0 / disk },
            no_disk: if disk == 0.0 { 1.0 } else { 0.0 },
            cpus: 1.0 / (node.total_cpus * node.cpu_speed),
            spindles: 1.0 / node.max_spindles,
        }
    }

    /// Share of the node's memory that one reserved MiB takes.
    #[inline]
    pub fn reserved(&self) -> f64 {
        self.memory
    }

    /// Same as [`row`] up to a few units in the last place.
    #[inline]
    pub fn row(&self, node: &Node, figures: &Figures) -> Row {
        let (free, booked_free) = if node.exclusive_storage {
            (figures.free_spindles, figures.booked_free_spindles)
        } else {
            (figures.free_disk, figures.booked_free_disk)
        };
        [
            figures.unallocated_memory(node) as f64 * self.memory,
            free as f64 * self.disk + self.no_disk,
            figures.reserved_memory as f64 * self.memory,
            figures.used_vcpus as f64 * self.cpus,
            figures.load[0],
            figures.load[1],
            figures.load[2],
            figures.load[3],
            figures.instance_spindles * self.spindles,
            figures.booked_free_memory as f64 * self.memory,
            booked_free as f64 * self.disk + self.no_disk,
            figures.booked_used_vcpus as f64 * self.cpus,
            figures.booked_instance_spindles * self.spindles,
            0.0,
        ]
    }
}

/// The score of a set of nodes.
#[derive(Clone, Debug)]
pub struct Board {
    slots: Vec<Slot>,
    rows: Vec<Row>,
    scales: Vec<Scale>,
    counts: Counts,
    /// Counts contributed by each of the board's nodes, by node index.
    shares: Vec<Counts>,
    located: Located,
    values: Values,
    /// Whether all values are finite, so that bounds hold.
    bounded: bool,
    mean: Row,
    /// Sum of squared distances from the mean.
    squares: Row,
    magnitude: Row,
    reserved_sum: f64,
}

/// Unit roundoff of binary64.
const UNIT: f64 = 1.110_223_024_625_156_5e-16;

impl Board {
    /// `nodes` must be ascending.
    pub fn new(cluster: &Cluster, nodes: &[NodeIdx]) -> Self {
        let mut slots = vec![Slot::Absent; cluster.nodes.len()];
        let mut rows = Vec::with_capacity(nodes.len());
        let mut scales = Vec::with_capacity(nodes.len());
        let mut counts = Counts::default();
        let mut shares = vec![Counts::default(); cluster.nodes.len()];
        let mut bounded = true;
        for &index in nodes {
            let (node, state) = (cluster.node(index), cluster.state(index));
            let values = row(node, &state.figures);
            bounded &= values.iter().all(|v| v.is_finite()) || node.offline;
            bounded &= state.figures.load.iter().all(|v| v.is_finite());
            shares[index.at()] = Counts::of(node, &state.figures);
            counts = counts.replace(&Counts::default(), &shares[index.at()]);
            slots[index.at()] = if node.offline {
                Slot::Offline
            } else {
                rows.push(values);
                scales.push(Scale::of(node));
                Slot::Online(rows.len() as u32 - 1)
            };
        }
        let located = Located::of(cluster, nodes);
        counts.located_exclusion = located.beyond_first();
        let mut board = Self {
            slots,
            rows,
            scales,
            counts,
            shares,
            located,
            values: Values { deviations: [0.0; 14], counts, reserved_total: 0.0 },
            bounded,
            mean: [0.0; 14],
            squares: [0.0; 14],
            magnitude: [0.0; 14],
            reserved_sum: 0.0,
        };
        board.refresh();
        board
    }

    /// Adopts a change of the cluster. `cluster` is the state *after* the change.
    pub fn update(&mut self, cluster: &Cluster, nodes: &[NodeIdx], changed: &[NodeIdx]) {
        if cluster_has_located_tags(cluster, changed) {
            *self = Self::new(cluster, nodes);
            return;
        }
        for &index in changed.iter().filter(|n| self.slots[n.at()] != Slot::Absent) {
            let share = Counts::of(cluster.node(index), cluster.figures(index));
            self.counts = self.counts.replace(&self.shares[index.at()], &share);
            self.shares[index.at()] = share;
            if let Slot::Online(slot) = self.slots[index.at()] {
                self.rows[slot as usize] = row(cluster.node(index), cluster.figures(index));
            }
        }
        self.refresh();
    }

    fn refresh(&mut self) {
        let passes = two_passes(&self.rows, &[]);
        self.mean = passes.mean;
        self.squares = passes.squares;
        self.reserved_sum = passes.sums[RESERVED_MEMORY_LANE];
        self.values = self.values_from(&passes, self.counts);
        self.magnitude = [0.0; 14];
        for values in &self.rows {
            for (most, value) in self.magnitude.iter_mut().zip(values) {
                *most = most.max(value.abs());
            }
        }
    }

    fn values_from(&self, passes: &Passes, counts: Counts) -> Values {
        if self.rows.is_empty() {
            return Values { deviations: [0.0; 14], counts: Counts::default(), reserved_total: 0.0 };
        }
        Values { deviations: passes.deviations(), counts, reserved_total: passes.sums[RESERVED_MEMORY_LANE] }
    }

    /// Current values of all components.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// Current score.
    pub fn score(&self) -> f64 {
        self.values.score()
    }

    /// Number of online nodes.
    pub fn online(&self) -> usize {
        self.rows.len()
    }

    /// The rows of the online nodes, in order.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Means of the lanes over the online nodes.
    pub fn mean(&self) -> &Row {
        &self.mean
    }

    /// Sums of squared distances from the mean.
    pub fn squares(&self) -> &Row {
        &self.squares
    }

    /// Largest magnitude per lane.
    pub fn magnitude(&self) -> &Row {
        &self.magnitude
    }

    /// Whether bounds hold: no value is infinite or undefined.
    pub fn bounded(&self) -> bool {
        self.bounded
    }

    /// Position of a node among the board's online nodes; `None` if it is offline or not on the board.
    #[inline]
    pub fn online_slot(&self, node: NodeIdx) -> Option<usize> {
        match self.slots[node.at()] {
            Slot::Online(slot) => Some(slot as usize),
            _ => None,
        }
    }

    /// Change of the (location, exclusion) count when `tags` leave `from` and arrive at `to`.
    pub fn located_delta(
        &self,
        cluster: &Cluster,
        tags: &[TagId],
        from: Option<NodeIdx>,
        to: Option<NodeIdx>,
    ) -> i64 {
        if tags.is_empty() {
            return 0;
        }
        let locations = |node: Option<NodeIdx>| -> &[TagId] {
            node.filter(|n| self.online_slot(*n).is_some()).map_or(&[], |n| &cluster.node(n).locations)
        };
        self.located.delta(tags, locations(from), locations(to))
    }

    /// [`Self::located_delta`] for a new instance.
    pub fn located_delta_of_new(&self, cluster: &Cluster, instance: &Instance, primary: NodeIdx) -> i64 {
        if instance.forthcoming {
            return 0;
        }
        self.located_delta(cluster, &instance.exclusion_tags, None, Some(primary))
    }

    /// [`Self::located_delta`] for a move of `instance`.
    #[inline]
    pub fn located_delta_of(&self, cluster: &Cluster, instance: &Instance, outcome: &Outcome) -> i64 {
        if instance.exclusion_tags.is_empty() || instance.forthcoming || instance.primary == outcome.primary {
            return 0;
        }
        self.located_delta(cluster, &instance.exclusion_tags, Some(instance.primary), Some(outcome.primary))
    }

    #[inline]
    pub fn counts_with(&self, cluster: &Cluster, changes: &[Change], located_delta: i64) -> Counts {
        let mut counts = self.counts;
        for change in changes {
            if self.slots[change.node.at()] == Slot::Absent {
                continue;
            }
            let node = cluster.node(change.node);
            let old = Counts::of(node, cluster.figures(change.node));
            counts = counts.replace(&old, &Counts::of(node, &change.figures));
        }
        counts.located_exclusion += located_delta;
        counts
    }

    /// Canonical values of all components after `changes`; at most four nodes change.
    pub fn exact_values(&self, cluster: &Cluster, changes: &[Change], located_delta: i64) -> Values {
        let mut substitutes: [(usize, Row); 4] = [(usize::MAX, [0.0; 14]); 4];
        let mut used = 0;
        for change in changes {
            if let Some(slot) = self.online_slot(change.node) {
                substitutes[used] = (slot, row(cluster.node(change.node), &change.figures));
                used += 1;
            }
        }
        let substitutes = &mut substitutes[..used];
        substitutes.sort_unstable_by_key(|(slot, _)| *slot);
        let passes = two_passes(&self.rows, substitutes);
        self.values_from(&passes, self.counts_with(cluster, changes, located_delta))
    }

    /// Canonical score after `changes`; at most four nodes change.
    pub fn exact(&self, cluster: &Cluster, changes: &[Change], located_delta: i64) -> f64 {
        self.exact_values(cluster, changes, located_delta).score()
    }

    /// Lower bound of [`Self::exact`], in constant time; minus infinity if no bound holds.
    #[inline]
    pub fn lower_bound(&self, cluster: &Cluster, changes: &[Change], located_delta: i64) -> f64 {
        let effect = self.effect(cluster, changes.iter());
        self.bound(&effect, self.counts_with(cluster, changes, located_delta))
    }

    /// Effect of changes, each of a different node.
    #[inline]
    pub fn effect<'a>(&self, cluster: &Cluster, changes: impl Iterator<Item = &'a Change>) -> Effect {
        let mut effect = Effect { moved: [0.0; 14], squares: self.squares, magnitude: self.magnitude };
        for change in changes {
            self.add_effect(cluster, change, &mut effect);
        }
        effect
    }

    /// Adds the effect of one more change, whose node must differ from those before it.
    #[inline]
    pub fn add_effect(&self, cluster: &Cluster, change: &Change, effect: &mut Effect) {
        let Some(slot) = self.online_slot(change.node) else { return };
        let old = &self.rows[slot];
        let new = self.scales[slot].row(cluster.node(change.node), &change.figures);
        for lane in 0..14 {
            let delta = new[lane] - old[lane];
            effect.moved[lane] += delta;
            effect.squares[lane] += delta * ((new[lane] - self.mean[lane]) + (old[lane] - self.mean[lane]));
            effect.magnitude[lane] = effect.magnitude[lane].max(new[lane].abs());
        }
    }

    /// A lower bound of the score after changes with this effect and these counts.
    #[inline]
    pub fn bound(&self, effect: &Effect, counts: Counts) -> f64 {
        if !self.bounded || self.rows.is_empty() {
            return f64::NEG_INFINITY;
        }
        let n = self.rows.len() as f64;
        let inverse = 1.0 / n;
        let rounding = self.rounding();
        let mut deviations = [0.0; 14];
        for lane in 0..14 {
            let moved = effect.moved[lane];
            let variance = (effect.squares[lane] - moved * moved * inverse) * inverse;
            let slack = rounding * effect.magnitude[lane] * effect.magnitude[lane];
            deviations[lane] = LANE_WEIGHT[lane] * (variance - slack).max(0.0).sqrt();
        }
        let reserved = self.reserved_sum + effect.moved[RESERVED_MEMORY_LANE];
        let total = deviations.iter().sum::<f64>() + counts.weighted() + 0.25 * reserved;
        total - self.sum_slack(total)
    }

    /// Bound of the relative rounding error of a variance; multiply it by the squared magnitude.
    #[inline]
    pub fn rounding(&self) -> f64 {
        (64.0 + 4.0 * self.rows.len() as f64) * UNIT
    }

    /// Bound of the rounding error of the final additions and of the sum of reserved memory.
    #[inline]
    pub fn sum_slack(&self, total: f64) -> f64 {
        1e-12 * (1.0 + total.abs()) + 2.0 * self.rows.len() as f64 * UNIT * (self.reserved_sum.abs() + 4.0)
    }

    /// Sum of the reserved memory ratios.
    pub fn reserved_sum(&self) -> f64 {
        self.reserved_sum
    }
}

fn cluster_has_located_tags(cluster: &Cluster, changed: &[NodeIdx]) -> bool {
    changed.iter().any(|n| !cluster.node(*n).locations.is_empty())
}

/// Results of [`two_passes`].
struct Passes {
    n: f64,
    sums: Row,
    mean: Row,
    squares: Row,
}

impl Passes {
    fn deviations(&self) -> Row {
        let mut deviations = [0.0; 14];
        for lane in 0..DEVIATIONS {
            deviations[lane] = (self.squares[lane] / self.n).sqrt();
        }
        deviations
    }
}

/// Sums the values, then the squared distances from the mean, each lane strictly left to right. `substitutes`
/// (sorted by slot) replace rows.
fn two_passes(rows: &[Row], substitutes: &[(usize, Row)]) -> Passes {
    let n = rows.len() as f64;
    let mut sums = [0.0; 14];
    each_row(rows, substitutes, |values| {
        for lane in 0..14 {
            sums[lane] += values[lane];
        }
    });
    let mut mean = [0.0; 14];
    for lane in 0..14 {
        mean[lane] = sums[lane] / n;
    }
    let mut squares = [0.0; 14];
    each_row(rows, substitutes, |values| {
        for lane in 0..14 {
            let distance = values[lane] - mean[lane];
            squares[lane] += distance * distance;
        }
    });
    Passes { n, sums, mean, squares }
}

#[inline]
fn each_row(rows: &[Row], substitutes: &[(usize, Row)], mut visit: impl FnMut(&Row)) {
    let mut start = 0;
    for (slot, values) in substitutes {
        for row in &rows[start..*slot] {
            visit(row);
        }
        visit(values);
        start = slot + 1;
    }
    for row in &rows[start..] {
        visit(row);
    }
}
