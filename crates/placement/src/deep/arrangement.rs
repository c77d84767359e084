//! An arrangement of instances on nodes and its score, updated in small changes.
//!
//! The search walks on it, so it is fast rather than canonical: sums are updated instead of added again, and
//! figures are kept without the lists of a [`Cluster`]. Every result is replayed on a real cluster, with the
//! real checks, before it counts.

use cluster::{Cluster, Demand, FailMode, Figures, InstanceIdx, NodeIdx, NodeState};

use super::atlas::Pair;
use super::reserves::{Change, Reserves};
use super::sketch::Outline;
use crate::board::{Board, Scale};
use crate::located::Located;
use crate::score::{Counts, LANE_WEIGHT, RESERVED_MEMORY_LANE, Row, row};

/// Maximum number of nodes that one instance's move affects: the two it leaves and the two it goes to.
const MOST_NODES: usize = 4;

/// Sums from which the score follows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sums {
    /// Distances from the reference point.
    pub distances: Row,
    /// Squares of the distances.
    pub squares: Row,
    /// Reserved memory ratios.
    pub reserved: f64,
    /// Weighted counts, including offline nodes.
    pub counts: f64,
}

/// A node with changed figures.
#[derive(Clone, Copy, Debug)]
struct Altered {
    node: NodeIdx,
    figures: Figures,
    row: Row,
}

/// Role of a node for an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Primary,
    Secondary,
}

impl Role {
    pub fn other(self) -> Self {
        match self {
            Self::Primary => Self::Secondary,
            Self::Secondary => Self::Primary,
        }
    }
}

/// Effect of moving one instance on the nodes involved. Once the move is made, it holds what undoes it.
#[derive(Clone, Debug)]
pub(super) struct Shift {
    instance: InstanceIdx,
    to: Pair,
    altered: [Altered; MOST_NODES],
    len: usize,
    sums: Sums,
    /// Score of the arrangement after the move.
    pub score: f64,
}

/// An arrangement with its score; see the module documentation.
#[derive(Clone, Debug)]
pub(super) struct Arrangement<'a> {
    cluster: &'a Cluster,
    demands: Vec<Demand>,
    /// Whether each instance is placed even if policies or redundancy suffer.
    forced: Vec<bool>,
    pairs: Vec<Pair>,
    /// States of the nodes. Their lists of instances stay as they were at the start.
    states: Vec<NodeState>,
    rows: Vec<Row>,
    scales: Vec<Scale>,
    /// Whether each node counts for deviations.
    counted: Vec<bool>,
    /// Whether each node counts at all.
    inside: Vec<bool>,
    located: Located,
    /// Point from which distances are measured. It is near the means, so that subtraction loses little
    /// precision.
    reference: Row,
    inverse: f64,
    inverse_root: f64,
    sums: Sums,
    score: f64,
    reserves: Reserves,
    outline: Outline,
}

impl<'a> Arrangement<'a> {
    /// Current arrangement of the instances in `cluster`. `nodes` are those whose score counts.
    pub fn new(cluster: &'a Cluster, nodes: &[NodeIdx], force: bool) -> Self {
        let board = Board::new(cluster, nodes);
        let offline = |node: NodeIdx| cluster.node(node).offline;
        let mut inside = vec![false; cluster.nodes.len()];
        for node in nodes {
            inside[node.at()] = true;
        }
        let located = Located::of(cluster, nodes);
        let demands: Vec<Demand> = cluster.instances.iter().map(cluster::Instance::demand).collect();
        let counted: Vec<bool> = cluster.node_indices().map(|n| inside[n.at()] && !offline(n)).collect();
        let rows: Vec<Row> =
            cluster.node_indices().map(|n| row(cluster.node(n), cluster.figures(n))).collect();
        let mut arrangement = Self {
            cluster,
            outline: Outline::new(cluster, &demands, &counted, &rows),
            reserves: Reserves::new(cluster.states.iter().map(|state| state.peers.as_slice())),
            demands,
            forced: cluster.instances.iter().map(|i| force || i.involved_nodes().any(offline)).collect(),
            pairs: cluster.instances.iter().map(|i| (i.primary, i.secondary)).collect(),
            states: cluster.states.clone(),
            rows,
            scales: cluster.nodes.iter().map(Scale::of).collect(),
            counted,
            inside,
            located,
            reference: *board.mean(),
            inverse: 1.0 / board.online().max(1) as f64,
            inverse_root: 1.0 / (board.online().max(1) as f64).sqrt(),
            sums: Sums { distances: [0.0; 14], squares: [0.0; 14], reserved: 0.0, counts: 0.0 },
            score: 0.0,
        };
        arrangement.refresh();
        arrangement
    }

    /// Adds all sums again, which ends the drift of incremental updates.
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
                self.outline.note_row(node, &row, &self.reference);
            }
        }
        sums.counts += self.located.beyond_first() as f64;
        self.sums = sums;
        self.score = self.score_of(&sums);
        self.outline.note_sums(&self.sums, self.score);
    }

    pub fn score(&self) -> f64 {
        self.score
    }

    pub fn pair(&self, instance: InstanceIdx) -> Pair {
        self.pairs[instance.at()]
    }

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

    /// A placeholder that [`Self::judge`] overwrites.
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

    /// Evaluates moving an instance to `to`. Fails if a node would not take it.
    ///
    /// `to` must differ from the current place, and its two nodes from each other. If there is a node
    /// `through`, the instance runs on it on the way, and that node must be able to carry it.
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
        // The location count of the primary depends on the secondary as well.
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

    /// Location count of an instance on its primary.
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

    pub fn outline(&self) -> &Outline {
        &self.outline
    }

    pub fn sums(&self) -> &Sums {
        &self.sums
    }

    /// Memory reserved by the instance's secondary, MiB.
    #[inline]
    pub fn reserved_memory(&self, instance: InstanceIdx) -> i64 {
        self.demands[instance.at()].reserved_memory
    }

    /// Maximum decrease of the score if a node reserves less for one other node.
    #[inline]
    pub fn relief(&self, node: NodeIdx) -> f64 {
        // A deviation falls by at most the change divided by the root of the number of nodes.
        let weight = 0.25 + LANE_WEIGHT[RESERVED_MEMORY_LANE] * self.inverse_root;
        self.reserves.slack(node) as f64 * self.scales[node.at()].reserved() * weight
    }

    /// Effect of a change of reserves on a node's share of the sums of reserved memory ratios: on the
    /// distances and on their squares.
    #[inline]
    pub fn reserve_change(&self, node: NodeIdx, change: Change) -> (f64, f64) {
        let at = node.at();
        if !self.counted[at] {
            return (0.0, 0.0);
        }
        let growth = self.reserves.growth(node, &self.states[at].peers, change);
        if growth == 0 {
            return (0.0, 0.0);
        }
        let ratio = growth as f64 * self.scales[at].reserved();
        let distance = self.rows[at][RESERVED_MEMORY_LANE] - self.reference[RESERVED_MEMORY_LANE];
        (ratio, ratio * (2.0 * distance + ratio))
    }

    #[inline]
    fn figures(&self, node: NodeIdx) -> &Figures {
        &self.states[node.at()].figures
    }

    /// Whether an instance that has left its nodes, as in `shift`, can run on a node for a while.
    fn bears(&self, shift: &Shift, node: NodeIdx, instance: InstanceIdx) -> bool {
        let altered = shift.altered[..shift.len].iter().find(|altered| altered.node == node);
        let figures = altered.map_or(self.figures(node), |altered| &altered.figures);
        let effect = self.states[node.at()].tag_effect(&self.cluster.instance(instance).exclusion_tags);
        let (record, demand) = (self.cluster.node(node), &self.demands[instance.at()]);
        figures.add_primary(record, demand, effect, 0, self.forced[instance.at()]).is_ok()
    }

    /// Updates the sums, and the node's row, for a change of the node's figures.
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

    /// Computes the sums and the score with the altered nodes.
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

    /// Location tags that count for a node.
    fn locations(&self, node: NodeIdx) -> &[cluster::TagId] {
        if self.counted[node.at()] { &self.cluster.node(node).locations } else { &[] }
    }

    /// Makes a move that was just judged, or takes back the latest move.
    ///
    /// The shift keeps all values that it replaces, so making it again undoes it.
    pub fn exchange(&mut self, shift: &mut Shift) {
        for altered in &mut shift.altered[..shift.len] {
            let at = altered.node.at();
            std::mem::swap(&mut self.states[at].figures, &mut altered.figures);
            std::mem::swap(&mut self.rows[at], &mut altered.row);
            if self.counted[at] {
                self.outline.note_row(altered.node, &self.rows[at], &self.reference);
            }
        }
        std::mem::swap(&mut self.sums, &mut shift.sums);
        std::mem::swap(&mut self.score, &mut shift.score);
        let from = self.pairs[shift.instance.at()];
        self.enlist(shift.instance, from, shift.to);
        self.outline.note_sums(&self.sums, self.score);
        shift.to = from;
    }

    /// Updates reservations, tags and the instance's place.
    fn enlist(&mut self, instance: InstanceIdx, from: Pair, to: Pair) {
        let record = self.cluster.instance(instance);
        let memory = self.demands[instance.at()].reserved_memory;
        if !record.forthcoming {
            if let Some(secondary) = from.1 {
                self.states[secondary.at()].release_for(from.0, memory);
                self.reserves.note(secondary, &self.states[secondary.at()].peers);
            }
            if let Some(secondary) = to.1 {
                self.states[secondary.at()].reserve_for(to.0, memory);
                self.reserves.note(secondary, &self.states[secondary.at()].peers);
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
