//! An arrangement of instances on nodes, and the score that follows from it, kept up to date by small changes.
//!
//! This is what the search walks on, so it must be fast rather than canonical: sums are updated and not added
//! anew, and figures are kept without the lists that a [`Cluster`] has. What comes of it is always played through
//! on a real cluster, with the real checks, before it counts.

use cluster::{Cluster, Demand, FailMode, Figures, InstanceIdx, NodeIdx, NodeState};

use super::atlas::Pair;
use crate::board::{Board, Scale};
use crate::located::Located;
use crate::score::{Counts, LANE_WEIGHT, RESERVED_MEMORY_LANE, Row, row};

/// The most nodes that the change of one instance concerns: those that it leaves and those that it comes to.
const MOST_NODES: usize = 4;

/// Sums over the online nodes, from which the score follows.
#[derive(Clone, Copy, Debug)]
struct Sums {
    /// Of the distances from the reference point.
    distances: Row,
    /// Of their squares.
    squares: Row,
    /// Of the reserved memory ratios.
    reserved: f64,
    /// Of the weighted counts.
    counts: f64,
}

/// A node as it would be.
#[derive(Clone, Copy, Debug)]
struct Altered {
    node: NodeIdx,
    figures: Figures,
    row: Row,
}

/// Which of an instance's two nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Primary,
    Secondary,
}

/// What becomes of the nodes if one instance changes its place; once that is made, what takes it back.
#[derive(Clone, Debug)]
pub(super) struct Shift {
    instance: InstanceIdx,
    to: Pair,
    altered: [Altered; MOST_NODES],
    len: usize,
    sums: Sums,
    /// The score of the arrangement after it.
    pub score: f64,
}

/// See the module's description.
#[derive(Clone, Debug)]
pub(super) struct Arrangement<'a> {
    cluster: &'a Cluster,
    /// What each instance asks.
    demands: Vec<Demand>,
    /// Whether an instance is placed even where policies or redundancy suffer.
    forced: Vec<bool>,
    /// Where each instance is.
    pairs: Vec<Pair>,
    /// The nodes, with lists of instances as they were at the start.
    states: Vec<NodeState>,
    rows: Vec<Row>,
    scales: Vec<Scale>,
    /// What a unit of burden changes in each node's row.
    units: Vec<Row>,
    /// What each instance means to its primary and to its secondary.
    burdens: Vec<[Row; 2]>,
    /// Whether each node counts for deviations.
    counted: Vec<bool>,
    /// Whether each node counts at all.
    inside: Vec<bool>,
    located: Located,
    /// The point from which distances are taken: near the means, so that little is lost by subtracting.
    reference: Row,
    inverse: f64,
    sums: Sums,
    score: f64,
}

impl<'a> Arrangement<'a> {
    /// How the instances are arranged in `cluster`; `nodes` are those whose score counts.
    pub fn new(cluster: &'a Cluster, nodes: &[NodeIdx], force: bool) -> Self {
        let board = Board::new(cluster, nodes);
        let offline = |node: NodeIdx| cluster.node(node).offline;
        let mut inside = vec![false; cluster.nodes.len()];
        for node in nodes {
            inside[node.at()] = true;
        }
        let located = Located::of(cluster, nodes);
        let mut arrangement = Self {
            cluster,
            demands: cluster.instances.iter().map(cluster::Instance::demand).collect(),
            forced: cluster.instances.iter().map(|i| force || i.involved_nodes().any(offline)).collect(),
            pairs: cluster.instances.iter().map(|i| (i.primary, i.secondary)).collect(),
            states: cluster.states.clone(),
            rows: vec![[0.0; 14]; cluster.nodes.len()],
            scales: cluster.nodes.iter().map(Scale::of).collect(),
            units: cluster.nodes.iter().map(unit).collect(),
            burdens: cluster.instances.iter().map(|i| burdens(&i.demand())).collect(),
            counted: cluster.node_indices().map(|n| inside[n.at()] && !offline(n)).collect(),
            inside,
            located,
            reference: *board.mean(),
            inverse: 1.0 / board.online().max(1) as f64,
            sums: Sums { distances: [0.0; 14], squares: [0.0; 14], reserved: 0.0, counts: 0.0 },
            score: 0.0,
        };
        arrangement.refresh();
        arrangement
    }

    /// Adds everything anew, which ends the drift of sums that are only ever updated.
    pub fn refresh(&mut self) {
        let mut sums = Sums { distances: [0.0; 14], squares: [0.0; 14], reserved: 0.0, counts: 0.0 };
        for node in self.cluster.node_indices().filter(|n| self.inside[n.at()]) {
            let (record, figures) = (self.cluster.node(node), &self.states[node.at()].figures);
            sums.counts += Counts::of(record, figures).weighted();
            if self.counted[node.at()] {
                let row = row(record, figures);
                for lane in 0..14 {
                    let distance = row[lane] - self.reference[lane];
                    sums.distances[lane] += distance;
                    sums.squares[lane] += distance * distance;
                }
                sums.reserved += row[RESERVED_MEMORY_LANE];
                self.rows[node.at()] = row;
            }
        }
        sums.counts += self.located.beyond_first() as f64;
        self.sums = sums;
        self.score = self.score_of(&sums);
    }

    /// The score of the arrangement.
    pub fn score(&self) -> f64 {
        self.score
    }

    /// Where an instance is.
    pub fn pair(&self, instance: InstanceIdx) -> Pair {
        self.pairs[instance.at()]
    }

    /// Where all instances are.
    pub fn pairs(&self) -> &[Pair] {
        &self.pairs
    }

    #[inline]
    fn score_of(&self, sums: &Sums) -> f64 {
        let mut deviations = 0.0;
        for lane in 0..14 {
            let mean = sums.distances[lane] * self.inverse;
            let variance = sums.squares[lane] * self.inverse - mean * mean;
            deviations += LANE_WEIGHT[lane] * variance.max(0.0).sqrt();
        }
        deviations + sums.counts + 0.25 * sums.reserved
    }

    /// Room for what [`Self::judge`] finds.
    pub fn blank(&self) -> Shift {
        let altered = Altered { node: NodeIdx(0), figures: self.states[0].figures, row: [0.0; 14] };
        Shift {
            instance: InstanceIdx(0),
            to: self.pairs[0],
            altered: [altered; MOST_NODES],
            len: 0,
            sums: self.sums,
            score: self.score,
        }
    }

    /// What would be if an instance went elsewhere; an error if a node would not take it.
    ///
    /// Where it goes is not where it is, and the two nodes of a pair differ. On the way it runs `through` a node,
    /// if there is one, which must be able to bear that.
    #[inline]
    pub fn judge(
        &self,
        instance: InstanceIdx,
        to: Pair,
        through: Option<NodeIdx>,
        shift: &mut Shift,
    ) -> Result<(), FailMode> {
        let demand = &self.demands[instance.at()];
        let record = self.cluster.instance(instance);
        let tags = &record.exclusion_tags;
        let force = self.forced[instance.at()];
        let from = self.pairs[instance.at()];
        let (primary_moves, mirror_moves) = (from.0 != to.0, from != to);
        // What the primary counts for locations hangs on the secondary as well.
        let (before, after) = (self.location(instance, from), self.location(instance, to));
        shift.instance = instance;
        shift.to = to;
        shift.len = 0;
        if primary_moves {
            let freed = self.states[from.0.at()].conflicts_freed(tags);
            self.alter(shift, from.0, |node, f| Ok(f.remove_primary(node, demand, freed, before)))?;
        } else if before != after && !demand.forthcoming {
            let relocated = |f: &Figures| Figures { location_score: f.location_score + after - before, ..*f };
            self.alter(shift, from.0, |_, f| Ok(relocated(f)))?;
        }
        if let Some(secondary) = from.1.filter(|_| mirror_moves) {
            let reserve = self.states[secondary.at()].reserve_without(from.0, demand.reserved_memory);
            self.alter(shift, secondary, |node, f| Ok(f.remove_secondary(node, demand, reserve)))?;
        }
        if primary_moves {
            let effect = self.states[to.0.at()].tag_effect(tags);
            self.alter(shift, to.0, |node, f| f.add_primary(node, demand, effect, after, force))?;
        }
        if let Some(node) = through
            && !self.bears(shift, node, instance)
        {
            return Err(FailMode::Memory);
        }
        if let Some(secondary) = to.1.filter(|_| mirror_moves) {
            let reserved = self.states[secondary.at()].reserved_for(to.0);
            let offline = self.cluster.node(secondary).offline;
            self.alter(shift, secondary, |node, f| f.add_secondary(node, demand, reserved, force, offline))?;
        }
        self.add_up(shift);
        Ok(())
    }

    /// What an instance counts on its primary for locations.
    #[inline]
    fn location(&self, instance: InstanceIdx, pair: Pair) -> i64 {
        let record = self.cluster.instance(instance);
        let shared = match pair.1 {
            Some(secondary) => self.cluster.shared_locations(pair.0, secondary),
            None => record.location_score,
        };
        shared + self.cluster.unmet_wishes(record, pair.0)
    }

    #[inline]
    fn alter(
        &self,
        shift: &mut Shift,
        node: NodeIdx,
        change: impl FnOnce(&cluster::Node, &Figures) -> Result<Figures, FailMode>,
    ) -> Result<(), FailMode> {
        let record = self.cluster.node(node);
        let Shift { altered, len, .. } = shift;
        if let Some(altered) = altered[..*len].iter_mut().find(|altered| altered.node == node) {
            altered.figures = change(record, &altered.figures)?;
        } else {
            altered[*len].figures = change(record, &self.states[node.at()].figures)?;
            altered[*len].node = node;
            *len += 1;
        }
        Ok(())
    }

    /// About the score if a burden left a node for another.
    ///
    /// What nodes reserve, and whatever is counted, is taken to stay as it is: good enough to tell what is worth
    /// judging, many times as fast.
    #[inline]
    pub fn sketch(&self, left: NodeIdx, target: NodeIdx, burden: &Row) -> f64 {
        let mut sums = self.sums;
        for (node, sign) in [(left, -1.0), (target, 1.0)] {
            if !self.counted[node.at()] {
                continue;
            }
            let (unit, row) = (&self.units[node.at()], &self.rows[node.at()]);
            for lane in 0..14 {
                let delta = sign * unit[lane] * burden[lane];
                sums.distances[lane] += delta;
                sums.squares[lane] += delta * (2.0 * (row[lane] - self.reference[lane]) + delta);
            }
        }
        self.score_of(&sums)
    }

    /// What an instance means to a node on which it has a role, in the units of [`Self::sketch`].
    #[inline]
    pub fn burden(&self, instance: InstanceIdx, role: Role) -> &Row {
        &self.burdens[instance.at()][role as usize]
    }

    #[inline]
    fn figures(&self, node: NodeIdx) -> &Figures {
        &self.states[node.at()].figures
    }

    /// Whether an instance that is off its nodes, as `shift` has it, can run on a node for a while.
    fn bears(&self, shift: &Shift, node: NodeIdx, instance: InstanceIdx) -> bool {
        let altered = shift.altered[..shift.len].iter().find(|altered| altered.node == node);
        let figures = altered.map_or(self.figures(node), |altered| &altered.figures);
        let effect = self.states[node.at()].tag_effect(&self.cluster.instance(instance).exclusion_tags);
        let (record, demand) = (self.cluster.node(node), &self.demands[instance.at()]);
        figures.add_primary(record, demand, effect, 0, self.forced[instance.at()]).is_ok()
    }

    /// The sums when a node's figures change, and its row.
    #[inline]
    fn shift_sums(&self, sums: &mut Sums, node: NodeIdx, old: &Figures, row: &mut Row, new: &Figures) {
        let (record, at) = (self.cluster.node(node), node.at());
        if !self.inside[at] {
            return;
        }
        sums.counts += Counts::of(record, new).weighted() - Counts::of(record, old).weighted();
        if !self.counted[at] {
            return;
        }
        let fresh = self.scales[at].row(record, new);
        for lane in 0..14 {
            let delta = fresh[lane] - row[lane];
            sums.distances[lane] += delta;
            sums.squares[lane] += delta * (fresh[lane] + row[lane] - 2.0 * self.reference[lane]);
        }
        sums.reserved += fresh[RESERVED_MEMORY_LANE] - row[RESERVED_MEMORY_LANE];
        *row = fresh;
    }

    /// The sums and the score with the altered nodes.
    #[inline]
    fn add_up(&self, shift: &mut Shift) {
        let mut sums = self.sums;
        for Altered { node, figures, row } in &mut shift.altered[..shift.len] {
            *row = self.rows[node.at()];
            self.shift_sums(&mut sums, *node, &self.states[node.at()].figures, row, figures);
        }
        let record = self.cluster.instance(shift.instance);
        let (from, to) = (self.pairs[shift.instance.at()].0, shift.to.0);
        if from != to && !record.exclusion_tags.is_empty() && !record.forthcoming {
            let (left, reached) = (self.locations(from), self.locations(to));
            sums.counts += self.located.delta(&record.exclusion_tags, left, reached) as f64;
        }
        shift.score = self.score_of(&sums);
        shift.sums = sums;
    }

    /// The location tags that count for a node.
    fn locations(&self, node: NodeIdx) -> &[cluster::TagId] {
        if self.counted[node.at()] { &self.cluster.node(node).locations } else { &[] }
    }

    /// Makes a change that was just judged, or takes back the latest change.
    ///
    /// Whatever it replaces is kept in the change itself, so that doing it again undoes it.
    pub fn exchange(&mut self, shift: &mut Shift) {
        for altered in &mut shift.altered[..shift.len] {
            let at = altered.node.at();
            std::mem::swap(&mut self.states[at].figures, &mut altered.figures);
            std::mem::swap(&mut self.rows[at], &mut altered.row);
        }
        std::mem::swap(&mut self.sums, &mut shift.sums);
        std::mem::swap(&mut self.score, &mut shift.score);
        let from = self.pairs[shift.instance.at()];
        self.enlist(shift.instance, from, shift.to);
        shift.to = from;
    }

    /// Keeps reservations and tags.
    fn enlist(&mut self, instance: InstanceIdx, from: Pair, to: Pair) {
        let record = self.cluster.instance(instance);
        let memory = self.demands[instance.at()].reserved_memory;
        if !record.forthcoming {
            if let Some(secondary) = from.1 {
                self.states[secondary.at()].release_for(from.0, memory);
            }
            if let Some(secondary) = to.1 {
                self.states[secondary.at()].reserve_for(to.0, memory);
            }
        }
        if from.0 != to.0 && !record.exclusion_tags.is_empty() {
            let real = !record.forthcoming;
            self.states[from.0.at()].count_tags(self.cluster.node(from.0), &record.exclusion_tags, -1, real);
            self.states[to.0.at()].count_tags(self.cluster.node(to.0), &record.exclusion_tags, 1, real);
            if real {
                for (node, step) in
                    [(from.0, -1), (to.0, 1)].into_iter().filter(|(n, _)| self.counted[n.at()])
                {
                    self.located.shift(&record.exclusion_tags, &self.cluster.node(node).locations, step);
                }
            }
        }
        self.pairs[instance.at()] = to;
    }
}

/// What a unit of each burden changes in the row of a node.
fn unit(node: &cluster::Node) -> Row {
    let share = |total: f64| if total > 0.0 { 1.0 / total } else { 0.0 };
    let memory = -share(node.total_memory);
    let disk = if node.exclusive_storage { 0.0 } else { -share(node.total_disk) };
    let cpus = share(node.total_cpus * node.cpu_speed);
    let spindles = if node.exclusive_storage { 0.0 } else { share(node.max_spindles) };
    [memory, disk, 0.0, cpus, 1.0, 1.0, 1.0, 1.0, spindles, memory, disk, cpus, spindles, 0.0]
}

/// What an instance burdens its primary with, and its secondary.
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
