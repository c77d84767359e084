//! The scavenger hunt: a best-effort lease that would have to wait has guests of others moved away instead
//! (CLS-03).
//!
//! A hunt is decided before the lease is answered ([`crate::admission`]): which hosts to clear, and where each guest
//! on them goes. From that moment on the hosts are the lease's in the calendar and are fenced. The planner
//! ([`crate::plan`]) has the guests moved, as many at a time as the operator lets it, and hands the hosts over once
//! all of them are empty. Where a move fails for good, or its destination has filled up meanwhile, the hunt is planned
//! again from what is there then. A lease that times out or is deleted moves nobody any more; guests that have moved
//! stay where they are.
//!
//! Guests of the lease's own project, and guests that nobody knows how to move, are in the way as before. Guests go
//! only to hosts that no lease will have, and to none whose room another hunt counts on.
//!
//! Which hosts and destinations are best is decided by [`placement::clear`].

mod hunting;
pub(crate) mod record;
mod refusal;
mod scene;
mod surroundings;

pub use self::hunting::Hunting;
pub use self::record::{Cost, Hunt, Move};
pub use self::refusal::HuntRefusal;
pub(crate) use self::scene::{DESTINATIONS, Moving, Preferred, Scene};
pub use self::surroundings::Surroundings;
pub(crate) use self::surroundings::failed_destinations;
use self::surroundings::guest_on;
use crate::lease::{Allocation, Lease};
use crate::lease_type::LeaseType;
use crate::plan::{Action, History, Observed};
use crate::status::LeaseStatus;

impl Move {
    /// The step that carries it out.
    pub fn action(&self) -> Action {
        Action::MoveGuest(self.from, self.guest, self.to)
    }
}

/// How far a move is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveState {
    /// It is not its turn.
    Waiting,
    /// Its memory is being copied.
    Moving {
        /// How much of it is there already, if anybody says.
        percent: Option<u8>,
    },
    /// It has failed, and is tried again.
    Failing,
    /// It is where it was to go.
    Moved,
    /// It is neither here nor there: it has ended, or moved on.
    Gone,
}

impl Hunt {
    /// How far a move is.
    pub fn state(mov: &Move, observed: &Observed, history: &History) -> MoveState {
        match guest_on(observed, mov.guest, mov.from) {
            Some(guest) if guest.moving_to == Some(mov.to) => {
                MoveState::Moving { percent: guest.copied_percent }
            }
            Some(_) if history.failures.contains_key(&mov.action()) => MoveState::Failing,
            Some(_) => MoveState::Waiting,
            None if guest_on(observed, mov.guest, mov.to).is_some() => MoveState::Moved,
            None => MoveState::Gone,
        }
    }

    /// The hunt that goes on from this one by another plan: what has been moved, is being moved or has gone stays part
    /// of it, so that all that was done for the lease is told of. Guests that need not move any more are left out.
    pub(crate) fn continued_by(&self, plan: Self, observed: &Observed) -> Self {
        let done = |mov: &&Move| {
            let waits =
                guest_on(observed, mov.guest, mov.from).is_some_and(|guest| guest.moving_to.is_none());
            !waits && !plan.moves.iter().any(|planned| planned.guest == mov.guest)
        };
        let mut moves: Vec<Move> = self.moves.iter().filter(done).copied().collect();
        // What each of these moves costs by itself is not on record.
        let part = |whole: u64| {
            let part = u128::from(whole) * moves.len() as u128 / (self.moves.len() as u128).max(1);
            u64::try_from(part).unwrap_or(whole)
        };
        let cost = Cost {
            memory_mib: plan.cost.memory_mib.saturating_add(part(self.cost.memory_mib)),
            disk_gib: plan.cost.disk_gib.saturating_add(part(self.cost.disk_gib)),
            downtime_ms: plan.cost.downtime_ms.saturating_add(part(self.cost.downtime_ms)),
            points: plan.cost.points.saturating_add(part(self.cost.points)),
        };
        moves.extend(plan.moves);
        Self { moves, cost, allowance: self.allowance }
    }

    /// Moves of guests that are where they were.
    pub fn open<'a>(&'a self, observed: &'a Observed) -> impl Iterator<Item = &'a Move> {
        self.moves.iter().filter(|mov| guest_on(observed, mov.guest, mov.from).is_some())
    }
}

/// Hosts are looked at one after the other, so a guest that moves meanwhile may be seen on both of them, or still where
/// it was. Of those that these moves have taken along the first is out of date, and those whose move was begun are on
/// their way.
pub fn follow_moves<'a>(
    observed: &mut Observed,
    moves: impl IntoIterator<Item = &'a Move>,
    begun: impl Fn(&Move) -> bool,
) {
    for mov in moves {
        let arrived = guest_on(observed, mov.guest, mov.to).is_some();
        let Some(from) = observed.hosts.get_mut(&mov.from) else { continue };
        if arrived {
            from.guests.retain(|guest| guest.id != mov.guest);
        } else if begun(mov)
            && let Some(guest) = from.guests.iter_mut().find(|guest| guest.id == mov.guest)
        {
            guest.moving_to = guest.moving_to.or(Some(mov.to));
        }
    }
}

/// Whether the lease hunts, or would if somebody stood in its way.
pub fn may_hunt(lease: &Lease) -> bool {
    matches!(lease.lease_type, LeaseType::BestEffort { .. })
        && matches!(lease.status, LeaseStatus::Pending | LeaseStatus::Starting)
        && lease.reservations.iter().all(|r| matches!(r.allocation, Allocation::Hosts(_)))
}
