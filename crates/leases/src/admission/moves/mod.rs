//! Making room by giving other hosts to leases that have not started (CLS-10). They keep their dates and what they asked
//! for, and a lease that has started keeps everything.
//!
//! A move takes one host from a lease and gives it another one. Moves form chains: the first lease goes to a host of the
//! second lease, and the second lease to a free host. Only complete chains count, so each lease keeps its number of hosts.

mod board;
mod instants;
mod search;
mod wanted;

use std::collections::BTreeMap;
use std::rc::Rc;

use jiff::Timestamp;

use self::board::{Board, Choice};
use self::search::{Effort, Mover, Moves};
pub use self::wanted::Wanted;
use super::assignment::{Way, combinations};
use super::replanning::may_move;
use super::{Admission, Changes, Refusal, Replanned, Resource};
use crate::ids::LeaseId;
use crate::lease::Lease;

/// Maximum number of moves for each host that is asked for.
pub const MOVES_PER_HOST: usize = 4;
/// Maximum cost of a search for moves. It is also limited to half of the budget that the decision has left.
const EFFORT: u64 = 6_000_000;
/// Ways to serve the reservations that are tried at most.
const COMBINATIONS: usize = 16;

impl Admission<'_> {
    /// The hosts that a changed lease wants.
    pub fn wanted_by(&self, lease: &Lease, changes: &Changes) -> Result<Wanted, Refusal> {
        Ok(Wanted::for_lease(&self.on_changed_terms(lease, changes)?))
    }

    /// Decides again after other leases have moved. None if no moves within [`MOVES_PER_HOST`] help.
    pub(super) fn replan_by_moves<T>(
        &self,
        others: &[&Lease],
        settled: Timestamp,
        (wanted, lack): (&Wanted, &Refusal),
        decide: impl Fn(&Admission<'_>) -> Result<T, Refusal>,
        lease: impl Fn(&T) -> &Lease,
    ) -> Option<Replanned<T>> {
        let of_hosts = match lack.cause() {
            Refusal::NotEnough { resource, .. } => matches!(resource, Resource::Hosts(_)),
            Refusal::WouldLoseHosts(_) => true,
            _ => false,
        };
        if !of_hosts {
            return None;
        }
        let movable: BTreeMap<LeaseId, &Lease> =
            others.iter().filter(|other| may_move(other, settled)).map(|other| (other.id, *other)).collect();
        if movable.is_empty() {
            return None;
        }
        let moved = self.moves(&movable, wanted)?;
        let mut calendar = self.calendar.clone();
        calendar.put_all(&moved, self.now).ok()?;
        let decided = decide(&Admission { calendar: &calendar, ..*self }).ok()?;
        calendar.put(lease(&decided), self.now).ok()?;
        Some(Replanned { decided, moved })
    }

    /// The leases that make room with fewest moves, with the hosts that they have then.
    fn moves(&self, movable: &BTreeMap<LeaseId, &Lease>, wanted: &Wanted) -> Option<Vec<Lease>> {
        let ways = wanted.ways(*self);
        let mut effort = Effort::new(self.budget, EFFORT);
        let mut board = Board::new(*self, movable, wanted);
        let mut attempts: Vec<(Vec<&Way>, Rc<[Choice]>)> = Vec::new();
        for ways in combinations(&ways).take(COMBINATIONS) {
            let choices = board.choices_of_request(&ways);
            board.request(&choices);
            if !instants::too_few_hosts(&mut board, &ways, &mut effort) {
                attempts.push((ways, choices));
            }
        }
        let asked = |ways: &[&Way]| ways.iter().map(|way| way.need).sum::<usize>();
        let most = MOVES_PER_HOST * attempts.iter().map(|(ways, _)| asked(ways)).max()?;
        for count in 1..=most {
            for (ways, choices) in &attempts {
                board.request(choices);
                let found = Mover::new(&mut board, ways, &mut effort).with(count);
                if let Some(Moves { left, placed }) = found {
                    return Some(board.moved(&left, &placed));
                }
                if effort.ended() {
                    return None;
                }
            }
        }
        None
    }
}
