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

pub(crate) mod record;
mod refusal;
mod scene;

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use placement::clear::CostWeights;

pub use self::record::{Cost, Hunt, Move};
pub use self::refusal::HuntRefusal;
pub(crate) use self::scene::{Moving, Scene};
use crate::host::{Health, Inventory};
use crate::ids::{GuestId, HostId, LeaseId};
use crate::lease::{Allocation, Lease};
use crate::lease_type::LeaseType;
use crate::plan::{Action, Guest, GuestOwner, GuestSize, History, Observed, ObservedHost, Place};
use crate::status::LeaseStatus;

/// After so many failures a guest is not moved to that host any more.
const ATTEMPTS: u32 = 3;
/// A guest that so many hosts have not got in the end is left alone.
pub(crate) const DESTINATIONS: usize = 3;

/// Operator settings for hunts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hunting {
    /// Whether there are any.
    pub enabled: bool,
    /// Whether there must be room for the guests of any one host that is lost, before and after every move.
    pub n_plus_one: bool,
    /// How fast guests are copied, MiB per second, at least 1: how long a hunt takes is estimated with it.
    pub mib_per_second: u32,
    /// A hunt that would take longer than that is not begun.
    pub longest: SignedDuration,
    /// What counts how much, waiting included.
    pub weights: CostWeights,
}

impl Default for Hunting {
    /// Allowed, with room for one lost host, at 1,000 MiB per second, an hour at most.
    fn default() -> Self {
        Self {
            enabled: true,
            n_plus_one: true,
            mib_per_second: 1000,
            longest: SignedDuration::from_hours(1),
            weights: CostWeights::default(),
        }
    }
}

impl Hunting {
    /// How long a hunt of that cost may take: a minute, and twice as long as copying takes one after the other; in
    /// whole minutes, and two at least.
    pub(crate) fn allowance(&self, cost: &Cost) -> SignedDuration {
        let mib = cost.memory_mib.saturating_add(cost.disk_gib.saturating_mul(1024));
        let seconds = mib.saturating_mul(2) / u64::from(self.mib_per_second.max(1));
        let minutes = i64::try_from(seconds.div_ceil(60)).unwrap_or(i64::MAX).clamp(1, i64::MAX / 60 - 1);
        SignedDuration::from_mins(minutes + 1)
    }
}

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

/// What a hunt goes by, beside what there is and what is taken.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// What was last seen.
    pub observed: &'a Observed,
    /// What became of earlier moves.
    pub history: &'a History,
    /// Leases that hunt: guests that are on their way to a host count there already.
    pub hunting: &'a [&'a Lease],
}

impl Surroundings<'_> {
    /// Guests that are to go to another host by one of these hunts, or are on their way to one.
    fn incoming(&self, counts: impl Fn(&Lease) -> bool) -> BTreeMap<GuestId, (HostId, &Guest)> {
        let mut incoming = BTreeMap::new();
        for lease in self.hunting.iter().filter(|lease| counts(lease)) {
            for mov in lease.hunt.iter().flat_map(|hunt| hunt.open(self.observed)) {
                if let Some(guest) = guest_on(self.observed, mov.guest, mov.from) {
                    incoming.insert(mov.guest, (mov.to, guest));
                }
            }
        }
        for guest in self.observed.hosts.values().flat_map(|host| &host.guests) {
            if let Some(to) = guest.moving_to {
                incoming.insert(guest.id, (to, guest));
            }
        }
        incoming
    }

    /// Hosts that the guest has not got to in the end.
    fn failed_destinations(&self, guest: GuestId) -> impl Iterator<Item = HostId> + '_ {
        failed_destinations(self.history, guest)
    }

    /// Whether somebody stands in the lease's way who is not about to leave: whom no move concerns, or one that
    /// cannot be carried out as things are.
    pub(crate) fn obstructs(
        &self,
        lease: &Lease,
        inventory: &Inventory,
        booked: impl Fn(HostId) -> bool,
    ) -> bool {
        let mut room = None;
        lease.reservations.iter().flat_map(|r| r.allocation.hosts()).any(|id| {
            let Some(host) = self.observed.hosts.get(&id) else { return false };
            let stays = |guest: &&Guest| is_foreign(guest, lease.id) && guest.moving_to.is_none();
            host.guests.iter().filter(stays).any(|guest| {
                let mov = lease.hunt.as_ref().and_then(|hunt| hunt.move_of(guest.id, id));
                mov.is_none_or(|mov| {
                    let room = room.get_or_insert_with(|| Room::new(self, inventory, lease));
                    booked(mov.to) || !self.possible(mov, guest, inventory) || !room.suffices(mov.to)
                })
            })
        })
    }

    /// Whether a guest of a lease that is over is to go where it cannot go, or nobody has said yet where its guests go.
    pub(crate) fn stranded(
        &self,
        lease: &Lease,
        inventory: &Inventory,
        booked: impl Fn(HostId) -> bool,
    ) -> bool {
        let Some(hunt) = &lease.hunt else { return true };
        let mut room = None;
        hunt.open(self.observed).any(|mov| {
            let room = room.get_or_insert_with(|| Room::new(self, inventory, lease));
            let possible = |guest: &Guest| guest.moving_to.is_some() || self.possible(mov, guest, inventory);
            let guest = guest_on(self.observed, mov.guest, mov.from);
            booked(mov.to) || !guest.is_some_and(possible) || !room.suffices(mov.to)
        })
    }

    /// Hosts that the lease holds and that guests of it are on.
    pub(crate) fn left_to_clear(&self, lease: &Lease) -> BTreeSet<HostId> {
        let held =
            |host: &ObservedHost| host.place.holder().is_some_and(|id| lease.reservation(id).is_some());
        let own = |host: &ObservedHost| host.guests.iter().any(|g| g.owner == GuestOwner::Lease(lease.id));
        let clearable = |host: &ObservedHost| host.health != Health::Failed && held(host) && own(host);
        self.observed.hosts.iter().filter(|(_, host)| clearable(host)).map(|(id, _)| *id).collect()
    }

    /// Whether the guest may be moved so, as far as the guest and the host that it goes to are concerned. A host that
    /// is to be switched off may still be seen as it was.
    fn possible(&self, mov: &Move, guest: &Guest, inventory: &Inventory) -> bool {
        let failed = self.failed_destinations(guest.id).any(|to| to == mov.to);
        let stays_on = inventory.host(mov.to).is_some_and(|host| host.power.is_on());
        guest.mobility.is_some() && !failed && stays_on && receives(self.observed.hosts.get(&mov.to))
    }
}

/// What is left on hosts once everybody is there who is to go there.
struct Room {
    free: BTreeMap<HostId, [i64; 3]>,
}

impl Room {
    fn new(surroundings: &Surroundings<'_>, inventory: &Inventory, lease: &Lease) -> Self {
        let mut free: BTreeMap<HostId, [i64; 3]> = BTreeMap::new();
        for host in inventory.hosts() {
            let Some(observed) = surroundings.observed.hosts.get(&host.id) else { continue };
            let mut left = [host.vcpus, host.memory_mib, host.disk_gib].map(i64::from);
            observed.guests.iter().for_each(|guest| subtract(&mut left, guest.size));
            free.insert(host.id, left);
        }
        // Of several hunts that count on the same room those that were begun later are planned again.
        let order = |lease: &Lease| (lease.window.start(), lease.id);
        for (to, guest) in surroundings.incoming(|other| order(other) <= order(lease)).into_values() {
            if let Some(left) = free.get_mut(&to) {
                subtract(left, guest.size);
            }
        }
        Self { free }
    }

    fn suffices(&self, host: HostId) -> bool {
        self.free.get(&host).is_some_and(|left| left.iter().all(|left| *left >= 0))
    }
}

fn subtract(left: &mut [i64; 3], size: GuestSize) {
    for (left, used) in left.iter_mut().zip([size.vcpus, size.memory_mib, size.disk_gib]) {
        *left -= i64::from(used);
    }
}

/// Hosts that a guest has not got to in the end.
pub(crate) fn failed_destinations(history: &History, guest: GuestId) -> impl Iterator<Item = HostId> + '_ {
    history.failures.iter().filter_map(move |(action, failures)| match action {
        Action::MoveGuest(_, moved, to) if *moved == guest && failures.times >= ATTEMPTS => Some(*to),
        _ => None,
    })
}

/// The guest, if it is on that host.
fn guest_on(observed: &Observed, guest: GuestId, host: HostId) -> Option<&Guest> {
    observed.hosts.get(&host)?.guests.iter().find(|other| other.id == guest)
}

/// Whether guests of others may come to that host, as far as it is concerned.
fn receives(host: Option<&ObservedHost>) -> bool {
    host.is_some_and(|host| host.place == Place::FreePool && host.health == Health::Up)
}

/// Whether the guest is not preempted for the lease by itself.
fn is_foreign(guest: &Guest, lease: LeaseId) -> bool {
    match guest.owner {
        GuestOwner::Preemptible => false,
        GuestOwner::Lease(owner) => owner != lease,
        GuestOwner::Other => true,
    }
}

/// Whether the lease hunts, or would if somebody stood in its way.
pub fn may_hunt(lease: &Lease) -> bool {
    matches!(lease.lease_type, LeaseType::BestEffort { .. })
        && matches!(lease.status, LeaseStatus::Pending | LeaseStatus::Starting)
        && lease.reservations.iter().all(|r| matches!(r.allocation, Allocation::Hosts(_)))
}
