//! Terms of the search's bound that are exact, by the target's cell.

use cluster::{Instance, NodeIdx};

use crate::balance::{Balancer, Kind};
use crate::cells::{Cells, LoadTable};

/// Terms for an instance and a kind of move: location tags that the target would share with the instance's
/// remaining node, wishes that it would not meet, the change in pairs of location and exclusion tags, and the
/// load.
#[derive(Clone, Copy)]
pub(crate) struct Terms<'a> {
    pub run: &'a Balancer<'a>,
    pub cells: &'a Cells,
    pub loads: Option<&'a LoadTable>,
    pub instance: &'a Instance,
}

impl Terms<'_> {
    /// Term for a target in `cell`.
    #[inline]
    pub fn of(&self, kind: Kind, cell: usize) -> f64 {
        let load = self.loads.map_or(0.0, |table| self.load(table, Some((kind, cell))));
        let location =
            if self.instance.forthcoming { 0 } else { self.location(kind, self.cells.nodes[cell]) };
        load + location as f64
    }

    /// Load term after a plain failover.
    pub fn of_failover(&self) -> f64 {
        self.loads.map_or(0.0, |table| self.load(table, None))
    }

    /// Minimum, over all cells, of the worth of the cell's best target (`best`, by cell) plus the load term;
    /// `None` if more than the load depends on the cell. Equals the minimum of [`Self::of`] over all cells,
    /// but takes one sweep.
    pub fn least(&self, kind: Kind, best: &[f64]) -> Option<f64> {
        let table = self.loads?;
        if !self.cells.plain || !self.instance.desired_locations.is_empty() || kind == Kind::FailoverTo {
            return None;
        }
        let nowhere = table.nowhere();
        let cell = |node: NodeIdx| {
            self.run.board.online_slot(node).map_or(nowhere, |slot| self.cells.of[slot] as usize)
        };
        let primary = cell(self.instance.primary);
        let secondary = self.instance.secondary.map_or(nowhere, cell);
        let least = |fixed: f64, row: &[f64]| {
            fixed + best.iter().zip(row).fold(f64::INFINITY, |least, (worth, load)| least.min(worth + load))
        };
        Some(match kind {
            Kind::ReplaceSecondary => least(table.primary(nowhere, nowhere), table.mirror_row(secondary)),
            Kind::FailoverAndReplace => least(table.primary(primary, secondary), table.mirror_row(primary)),
            Kind::FailoverTo | Kind::ReplacePrimary | Kind::ReplaceAndFailover => {
                let left = if kind == Kind::ReplaceAndFailover { secondary } else { primary };
                let rows = table.primary_row(primary).iter().zip(table.mirror_row(left));
                best.iter()
                    .zip(rows)
                    .fold(f64::INFINITY, |least, (worth, (first, mirror))| least.min(worth + first + mirror))
            }
        })
    }

    /// Load term after a move to a cell, or after a plain failover.
    fn load(&self, table: &LoadTable, to: Option<(Kind, usize)>) -> f64 {
        let nowhere = table.nowhere();
        let cell = |node: NodeIdx| {
            self.run.board.online_slot(node).map_or(nowhere, |slot| self.cells.of[slot] as usize)
        };
        let primary = cell(self.instance.primary);
        let secondary = self.instance.secondary.map_or(nowhere, cell);
        let stays = nowhere;
        match to {
            None => table.primary(primary, secondary) + table.mirror(stays, stays),
            Some((Kind::FailoverTo | Kind::ReplacePrimary, t)) => {
                table.primary(primary, t) + table.mirror(primary, t)
            }
            Some((Kind::ReplaceSecondary, t)) => table.primary(stays, stays) + table.mirror(secondary, t),
            Some((Kind::ReplaceAndFailover, t)) => table.primary(primary, t) + table.mirror(secondary, t),
            Some((Kind::FailoverAndReplace, t)) => {
                table.primary(primary, secondary) + table.mirror(primary, t)
            }
        }
    }

    fn location(&self, kind: Kind, target: NodeIdx) -> i64 {
        let (cluster, instance) = (&*self.run.cluster, self.instance);
        let (primary, secondary) = (instance.primary, instance.secondary);
        if self.cells.plain && instance.desired_locations.is_empty() {
            return if kind == Kind::FailoverTo { instance.location_score } else { 0 };
        }
        let counted = |node: NodeIdx| cluster.node(node).online();
        match kind {
            Kind::ReplaceSecondary if counted(primary) => cluster.shared_locations(primary, target),
            Kind::ReplaceSecondary => 0,
            Kind::FailoverAndReplace => match secondary {
                Some(s) if counted(s) => cluster.shared_locations(s, target),
                _ => 0,
            },
            Kind::FailoverTo | Kind::ReplaceAndFailover | Kind::ReplacePrimary => {
                let shared = match (kind, secondary) {
                    (Kind::ReplaceAndFailover, _) => cluster.shared_locations(target, primary),
                    (Kind::ReplacePrimary, Some(s)) => cluster.shared_locations(target, s),
                    _ => instance.location_score,
                };
                let tags = &instance.exclusion_tags;
                let located = self.run.board.located_delta(cluster, tags, Some(primary), Some(target));
                shared + cluster.unmet_wishes(instance, target) + located
            }
        }
    }
}
