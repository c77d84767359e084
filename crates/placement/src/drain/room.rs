//! Makes room for a copy that no node takes, by moving another instance out of its way.

use cluster::{InstanceIdx, Move, NodeIdx, Outcome, Probe};

use super::{Drain, Role, lenient};
use crate::balance::{BalanceOptions, Candidates};

/// Maximum number of instances tried per node, those with the smallest disks first.
const GUESTS_TRIED: usize = 12;
/// Maximum number of moves judged in total.
pub(super) const BUDGET: usize = 100_000;

pub(super) fn copies_nothing(mov: Move) -> bool {
    matches!(mov, Move::Failover | Move::FailoverTo(_))
}

impl Drain<'_> {
    /// Moves one instance out of the way of a copy that found no capacity, then that copy. Returns whether it
    /// worked.
    pub(super) fn make_room(&mut self) -> bool {
        for role in [Role::Primary, Role::Secondary] {
            for index in self.pending(role) {
                if self.fixed(index, role).is_none() && self.displace(index, role, |_| true) {
                    return true;
                }
            }
        }
        false
    }

    /// Same as [`Self::make_room`] for an instance that is down, without copying disks.
    pub(super) fn make_room_to_start(&mut self) -> bool {
        for index in self.pending(Role::Primary) {
            let may_start = self.is_down(index) && self.fixed(index, Role::Primary).is_none();
            if may_start && self.displace(index, Role::Primary, copies_nothing) {
                return true;
            }
        }
        false
    }

    fn displace(&mut self, index: InstanceIdx, role: Role, allowed: fn(Move) -> bool) -> bool {
        for mov in self.ranks(index, role).concat().into_iter().filter(|mov| allowed(*mov)) {
            let Some(node) = mov.target().or(self.cluster.instance(index).secondary) else { continue };
            for guest in self.guests(node, index) {
                for other in self.ways_out(guest, node).into_iter().filter(|mov| allowed(*mov)) {
                    if self.budget == 0 {
                        return false;
                    }
                    self.budget -= 1;
                    let Some(first) = self.judged(guest, other) else { continue };
                    if self.leaves(first.primary) {
                        continue;
                    }
                    let undo = self.cluster.apply(guest, &first);
                    let then = self.judged(index, mov);
                    self.cluster.undo(undo);
                    if let Some(then) = then {
                        self.make(guest, (other, first));
                        self.make(index, (mov, then));
                        return true;
                    }
                }
            }
        }
        false
    }

    fn judged(&self, index: InstanceIdx, mov: Move) -> Option<Outcome> {
        let probe = Probe::new(self.cluster, index);
        lenient::judge(self.cluster, &probe, mov, &self.leaving, self.options.ignore_soft_errors).ok()
    }

    /// Movable instances with a copy on the node, except `but`; at most [`GUESTS_TRIED`].
    fn guests(&self, node: NodeIdx, but: InstanceIdx) -> Vec<InstanceIdx> {
        let state = self.cluster.state(node);
        let movable = |i: &InstanceIdx| {
            let instance = self.cluster.instance(*i);
            *i != but && instance.movable && instance.auto_balance
        };
        let mut guests: Vec<InstanceIdx> =
            state.primaries.iter().chain(&state.secondaries).copied().filter(movable).collect();
        guests.sort_by_key(|i| (self.cluster.instance(*i).disk, *i));
        guests.truncate(GUESTS_TRIED);
        guests
    }

    /// Moves that can take a copy of the instance off `node`, which stays.
    fn ways_out(&self, index: InstanceIdx, node: NodeIdx) -> Vec<Move> {
        let instance = self.cluster.instance(index);
        let options = BalanceOptions {
            readable_only: true,
            disk_moves: self.options.disk_moves,
            ..BalanceOptions::default()
        };
        let candidates = Candidates::of(self.cluster, instance, &options);
        let failover = candidates.failover && instance.primary == node;
        let targets = self.targets(index).into_iter();
        let elsewhere = targets.flat_map(|t| candidates.kinds.iter().map(move |kind| kind.to(t)));
        failover.then_some(Move::Failover).into_iter().chain(elsewhere).collect()
    }
}
