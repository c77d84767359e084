//! Making room by moving leases that have not started to other hosts (CLS-10). They keep their dates and
//! terms. Leases that have started keep everything.
//!
//! A move takes one host from a lease and gives it another one. Moves form chains: the first lease goes to a
//! host of the second lease, and the second lease to a free host. Only complete chains count, so each lease
//! keeps its number of hosts.

mod board;
mod effort;
mod instants;
mod narrowing;
mod search;
mod wanted;

use std::collections::BTreeMap;
use std::rc::Rc;

use jiff::Timestamp;

use self::board::{Board, Choice};
use self::effort::Effort;
use self::narrowing::Narrowed;
use self::search::{Mover, Moves};
pub use self::wanted::Wanted;
use super::assignment::{Way, combinations};
use super::replanning::may_move;
use super::{Admission, Changes, Refusal, Replanned, Resource};
use crate::ids::LeaseId;
use crate::lease::Lease;

/// Maximum number of moves per requested host.
pub const MOVES_PER_HOST: usize = 4;
/// Maximum cost of a search for moves. Half of the decision's remaining budget is another limit.
const EFFORT: u64 = 3_000_000;
/// Maximum cost of narrowing the choices, and the cost of the search from which narrowing pays off.
const NARROWING: u64 = 1_000_000;
const NARROWED_AFTER: u64 = 100_000;
/// Maximum number of combinations of ways to try.
const COMBINATIONS: usize = 16;

impl Admission<'_> {
    /// The hosts that a lease needs after these changes.
    pub fn wanted_by(&self, lease: &Lease, changes: &Changes) -> Result<Wanted, Refusal> {
        Ok(Wanted::for_lease(&self.on_changed_terms(lease, changes)?))
    }

    /// Repeats a decision after other leases have moved. `None` if up to [`MOVES_PER_HOST`] moves per host
    /// don't help.
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

    /// Finds the fewest moves that make room, and returns the moved leases with their new hosts.
    fn moves(&self, movable: &BTreeMap<LeaseId, &Lease>, wanted: &Wanted) -> Option<Vec<Lease>> {
        let ways = wanted.ways(*self);
        let mut effort = Effort::new(self.budget, EFFORT);
        let mut board = Board::new(*self, movable, wanted);
        let mut attempts: Vec<Attempt<'_>> = Vec::new();
        for ways in combinations(&ways).take(COMBINATIONS) {
            let choices = board.choices_of_request(&ways);
            board.request(&choices);
            if !instants::too_few_hosts(&mut board, &ways, &mut effort) {
                attempts.push(Attempt { ways, choices, narrowed: None });
            }
        }
        let asked = |ways: &[&Way]| ways.iter().map(|way| way.need).sum::<usize>();
        let most = MOVES_PER_HOST * attempts.iter().map(|attempt| asked(&attempt.ways)).max()?;
        let mut least = usize::MAX;
        for Attempt { ways, choices, .. } in &attempts {
            board.request(choices);
            least = least.min(Mover::new(&mut board, ways, None, &mut effort).lacks()?);
        }
        for count in least.max(1)..=most {
            if effort.spent() >= NARROWED_AFTER {
                attempts.retain_mut(|attempt| attempt.can_succeed(&mut board));
            }
            for Attempt { ways, choices, narrowed } in &attempts {
                board.request(choices);
                let found = Mover::new(&mut board, ways, narrowed.as_ref(), &mut effort).with(count);
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

/// The search for moves in one combination of ways.
struct Attempt<'w> {
    ways: Vec<&'w Way>,
    /// Choices of the request.
    choices: Rc<[Choice]>,
    narrowed: Option<Narrowed>,
}

impl Attempt<'_> {
    /// Narrows the choices of all claims, once. False if no moves can make room.
    fn can_succeed(&mut self, board: &mut Board<'_>) -> bool {
        if self.narrowed.is_none() {
            board.request(&self.choices);
            let mut effort = Effort::new(board.budget(), NARROWING);
            self.narrowed = narrowing::narrow(board, &self.ways, &mut effort);
        }
        self.narrowed.is_some()
    }
}
