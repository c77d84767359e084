//! Whether a lease takes the hosts that it was given, and what becomes of preemptible guests that were asked to leave if it
//! doesn't.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::effort::Effort;
use super::leaving::expires_at;
use super::life;
use super::observed::{Guest, GuestOwner, ObservedHost, Place};
use super::step::Action;
use super::{Claims, World};
use crate::host::Health;
use crate::hunt::may_hunt;
use crate::ids::{HostId, LeaseId};
use crate::lease::Lease;
use crate::status::LeaseStatus;

/// Preemptible guests that were asked to leave a host, and that no lease takes the place of any more, may stay. Those whose
/// deletion has failed or is overdue still count as leaving, so that leases avoid the host.
pub(super) fn resume(effort: &mut Effort<'_>, claims: &Claims<'_>, host: HostId, observed: &ObservedHost) {
    for guest in &observed.guests {
        let world = effort.world;
        let asked = guest.owner == GuestOwner::Preemptible && guest.stopping_since.is_some();
        let failed = world.history.failures.contains_key(&Action::DeleteGuest(host, guest.id));
        let stuck = failed || (!guest.has_shut_down && world.rules.is_stuck(guest, world.now));
        if asked && !stuck && !has_to_leave(effort, claims, host, guest) {
            effort.step(Action::ResumeGuest(host, guest.id), None);
        }
    }
}

/// Whether a guest on a host that no lease has as a whole leaves for room, or leaves anyway.
fn has_to_leave(effort: &Effort<'_>, claims: &Claims<'_>, host: HostId, guest: &Guest) -> bool {
    let now = effort.world.now;
    let leaving = claims.leaving.get(&guest.id);
    let for_room =
        || claims.sharing.contains_key(&host) && preempted_at(&effort.world, claims, guest).is_some();
    claims.going.contains(&guest.id)
        || leaving.is_some_and(|instance| instance.leaves_anyway() || instance.is_departing(now))
        || expires_at(&effort.world, claims, guest).is_some_and(|at| at <= now)
        || for_room()
}

/// Whether guests on the hosts of a lease that starts make it take other hosts, as far as is known. A lease that
/// [hunts](crate::hunt) is planned again as a whole, so it is certain of its hosts once all of them have been seen fenced
/// and all guests there leave or move. Others have a blocked host replaced and keep the rest.
pub(super) fn may_take_others(lease: &Lease, world: &World<'_>, leases: &BTreeMap<LeaseId, &Lease>) -> bool {
    may_hunt(lease)
        && lease.reservations.iter().flat_map(|reservation| reservation.allocation.hosts()).any(|id| {
            let seen = world.observed.hosts.get(&id).filter(|seen| seen.health != Health::Failed);
            seen.is_some_and(|seen| {
                let unfenced = seen.place == Place::FreePool && !world.asleep.contains(&id);
                unfenced || seen.guests.iter().any(|guest| blocks(guest, id, lease, world, leases))
            })
        })
}

/// Whether a guest on a host of a lease that starts stays there: nobody has it leave, and it is not moved.
pub(super) fn blocks(
    guest: &Guest,
    host: HostId,
    lease: &Lease,
    world: &World<'_>,
    leases: &BTreeMap<LeaseId, &Lease>,
) -> bool {
    // A lease that has started has hunted.
    let hunt = lease.hunt.as_ref().filter(|_| lease.status == LeaseStatus::Starting);
    let moves =
        || guest.moving_to.is_some() || hunt.is_some_and(|hunt| hunt.move_of(guest.id, host).is_some());
    match guest.owner {
        GuestOwner::Preemptible => false,
        GuestOwner::Lease(owner) if owner == lease.id => false,
        GuestOwner::Lease(owner) => leaver(leases, owner, host, world.now).is_none() && !moves(),
        GuestOwner::Other => !moves(),
    }
}

/// The lease, if it is known, does not want the host now, and its guests go with it.
pub(super) fn leaver<'a>(
    leases: &BTreeMap<LeaseId, &'a Lease>,
    lease: LeaseId,
    host: HostId,
    now: Timestamp,
) -> Option<&'a Lease> {
    let lease = leases.get(&lease).copied()?;
    let leaves = !life::wants_host(lease, host, now) && lease.end_action.deletes();
    leaves.then_some(lease)
}

/// When the guest is asked to leave for leases of room on its host, and has to be gone, if it is preempted.
pub(super) fn preempted_at(
    world: &World<'_>,
    claims: &Claims<'_>,
    guest: &Guest,
) -> Option<(Timestamp, Timestamp)> {
    if let Some(instance) = claims.leaving.get(&guest.id) {
        return instance.departure.map(|departure| (departure.asked_at, departure.gone_by));
    }
    let start = *world.others_leaving.get(&guest.id).filter(|_| guest.owner == GuestOwner::Preemptible)?;
    Some((world.rules.asks_at(start, world.rules.grace), start))
}
