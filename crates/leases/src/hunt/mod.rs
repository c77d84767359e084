//! The scavenger hunt: instead of waiting, a best-effort lease has guests of other tenants moved out of its
//! way (CLS-03).
//!
//! A hunt is decided before the lease request is answered ([`crate::admission`]): which hosts to clear, and
//! the destination of each guest on them. From then on the hosts belong to the lease in the calendar and are
//! fenced. The planner ([`crate::plan`]) moves the guests, as many at a time as the operator allows, and
//! hands the hosts over once all are empty. If a move fails for good, or its destination has filled up since,
//! the hunt is replanned from the current state. A lease that times out or is deleted stops moving guests;
//! guests that have moved stay where they are.
//!
//! Guests of the lease's own project, and guests that can't be moved, remain in the way. Guests only go to
//! hosts that no lease has booked, and never into capacity that another hunt counts on.
//!
//! [`placement::clear`] chooses the best hosts and destinations.

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
    pub fn action(&self) -> Action {
        Action::MoveGuest(self.from, self.guest, self.to)
    }
}

/// Progress of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveState {
    /// Not begun.
    Waiting,
    /// The guest's memory is being copied.
    Moving {
        /// Share already copied; `None` if unknown.
        percent: Option<u8>,
    },
    /// Failed, and will be retried.
    Failing,
    /// The guest is at its destination.
    Moved,
    /// The guest is on neither host: it has ended, or moved on.
    Gone,
}

impl Hunt {
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

    /// The continuation of this hunt with a new plan. Moves that are done or running, or whose guest is gone,
    /// stay in it, so that it reports everything done for the lease. Guests that no longer need to move are
    /// left out.
    pub(crate) fn continued_by(&self, plan: Self, observed: &Observed) -> Self {
        let done = |mov: &&Move| {
            let waits =
                guest_on(observed, mov.guest, mov.from).is_some_and(|guest| guest.moving_to.is_none());
            !waits && !plan.moves.iter().any(|planned| planned.guest == mov.guest)
        };
        let mut moves: Vec<Move> = self.moves.iter().filter(done).copied().collect();
        // The cost of individual moves isn't recorded, so assume equal shares.
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

    /// Moves whose guest is still on its source host.
    pub fn open<'a>(&'a self, observed: &'a Observed) -> impl Iterator<Item = &'a Move> {
        self.moves.iter().filter(|mov| guest_on(observed, mov.guest, mov.from).is_some())
    }
}

/// Corrects observations of guests that move while hosts are observed one after another. Such a guest can be
/// seen on both hosts, or still on its source. A guest seen at its destination is removed from the source,
/// and a guest whose move has begun is marked as moving.
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

/// Whether the lease hunts, or would if guests were in its way.
pub fn may_hunt(lease: &Lease) -> bool {
    matches!(lease.lease_type, LeaseType::BestEffort { .. })
        && matches!(lease.status, LeaseStatus::Pending | LeaseStatus::Starting)
        && lease.reservations.iter().all(|r| matches!(r.allocation, Allocation::Hosts(_)))
}
