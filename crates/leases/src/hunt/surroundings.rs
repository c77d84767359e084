//! Context of a hunt: guests by host, failed moves, and capacity claimed by other hunts.

use std::collections::{BTreeMap, BTreeSet};

use super::record::Move;
use crate::host::{Health, Inventory};
use crate::ids::{GuestId, HostId, LeaseId};
use crate::lease::Lease;
use crate::plan::{Action, Guest, GuestOwner, GuestSize, History, Observed, ObservedHost, Place};

/// Number of failures after which a guest isn't sent to the same host again.
const ATTEMPTS: u32 = 3;

/// Context of a hunt, other than inventory and bookings.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    pub observed: &'a Observed,
    /// Outcome of earlier moves.
    pub history: &'a History,
    /// Leases with a running hunt. Guests on their way to a host already count there.
    pub hunting: &'a [&'a Lease],
}

impl Surroundings<'_> {
    /// Guests that these hunts will move, or that are moving already, with their destinations.
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

    /// Whether a preemptible guest on the host has been asked to leave.
    pub(crate) fn is_anybody_stopping(&self, host: HostId) -> bool {
        let asked = |guest: &Guest| guest.owner == GuestOwner::Preemptible && guest.stopping_since.is_some();
        self.observed.hosts.get(&host).is_some_and(|host| host.guests.iter().any(asked))
    }

    /// Hosts to which moving the guest has failed for good.
    pub(super) fn failed_destinations(&self, guest: GuestId) -> impl Iterator<Item = HostId> + '_ {
        failed_destinations(self.history, guest)
    }

    /// Whether a guest blocks the lease and isn't about to leave: either no move covers it, or its move isn't
    /// possible at present.
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

    /// Whether an ended lease needs a new plan for its guests: it has none yet, or a planned move isn't
    /// possible at present.
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

    /// Hosts held by the lease that still run the lease's guests. Failed hosts aren't included.
    pub(crate) fn left_to_clear(&self, lease: &Lease) -> BTreeSet<HostId> {
        let held =
            |host: &ObservedHost| host.place.holder().is_some_and(|id| lease.reservation(id).is_some());
        let own = |host: &ObservedHost| host.guests.iter().any(|g| g.owner == GuestOwner::Lease(lease.id));
        let clearable = |host: &ObservedHost| host.health != Health::Failed && held(host) && own(host);
        self.observed.hosts.iter().filter(|(_, host)| clearable(host)).map(|(id, _)| *id).collect()
    }

    /// Whether the move is possible as far as the guest and its destination are concerned. Checks the
    /// recorded power state too, because a host that is about to be switched off can still be observed as on.
    fn possible(&self, mov: &Move, guest: &Guest, inventory: &Inventory) -> bool {
        let failed = self.failed_destinations(guest.id).any(|to| to == mov.to);
        let stays_on = inventory.host(mov.to).is_some_and(|host| host.power.is_on());
        guest.mobility.is_some() && !failed && stays_on && receives(self.observed.hosts.get(&mov.to))
    }
}

/// Capacity left on hosts once all incoming guests have arrived.
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
        // If several hunts count on the same capacity, the later ones are replanned.
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

/// Hosts to which moving the guest has failed [`ATTEMPTS`] times or more.
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

/// Whether the host's own state allows it to receive guests of other tenants.
pub(super) fn receives(host: Option<&ObservedHost>) -> bool {
    host.is_some_and(|host| host.place == Place::FreePool && host.health == Health::Up)
}

/// Whether the guest is neither preemptible nor part of the lease.
pub(super) fn is_foreign(guest: &Guest, lease: LeaseId) -> bool {
    match guest.owner {
        GuestOwner::Preemptible => false,
        GuestOwner::Lease(owner) => owner != lease,
        GuestOwner::Other => true,
    }
}
