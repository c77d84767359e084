//! What a hunt goes by: who is on which host, what has failed, and what other hunts count on.

use std::collections::{BTreeMap, BTreeSet};

use super::record::Move;
use crate::host::{Health, Inventory};
use crate::ids::{GuestId, HostId, LeaseId};
use crate::lease::Lease;
use crate::plan::{Action, Guest, GuestOwner, GuestSize, History, Observed, ObservedHost, Place};

/// After so many failures a guest is not moved to that host any more.
const ATTEMPTS: u32 = 3;

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
    pub(super) fn incoming(&self, counts: impl Fn(&Lease) -> bool) -> BTreeMap<GuestId, (HostId, &Guest)> {
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

    /// Whether a preemptible guest on the host was asked to leave.
    pub(crate) fn is_anybody_stopping(&self, host: HostId) -> bool {
        let asked = |guest: &Guest| guest.owner == GuestOwner::Preemptible && guest.stopping_since.is_some();
        self.observed.hosts.get(&host).is_some_and(|host| host.guests.iter().any(asked))
    }

    /// Hosts that the guest has not got to in the end.
    pub(super) fn failed_destinations(&self, guest: GuestId) -> impl Iterator<Item = HostId> + '_ {
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
pub(super) fn guest_on(observed: &Observed, guest: GuestId, host: HostId) -> Option<&Guest> {
    observed.hosts.get(&host)?.guests.iter().find(|other| other.id == guest)
}

/// Whether guests of others may come to that host, as far as it is concerned.
pub(super) fn receives(host: Option<&ObservedHost>) -> bool {
    host.is_some_and(|host| host.place == Place::FreePool && host.health == Health::Up)
}

/// Whether the guest is not preempted for the lease by itself.
pub(super) fn is_foreign(guest: &Guest, lease: LeaseId) -> bool {
    match guest.owner {
        GuestOwner::Preemptible => false,
        GuestOwner::Lease(owner) => owner != lease,
        GuestOwner::Other => true,
    }
}
