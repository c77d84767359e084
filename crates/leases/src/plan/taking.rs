//! Whether a starting lease takes the hosts allocated to it, and whether preemptible guests that were asked
//! to leave can stay after all.

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

/// Lets preemptible guests stay that were asked to leave the host, if no lease needs their place anymore. A
/// guest with a failed or overdue deletion still counts as leaving, so leases avoid the host.
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

/// Whether a guest must leave a host that isn't leased as a whole: for slots of a lease, or independent of
/// leases.
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

/// Whether guests on the hosts of a starting lease can make it switch to other hosts, as far as we know. A
/// lease that [hunts](crate::hunt) is replanned as a whole. Its hosts are certain once all are observed to be
/// fenced and every guest there leaves or moves. Other leases have a blocked host replaced and keep the rest.
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

/// Whether a guest blocks a host of a starting lease: nothing makes it leave, and it isn't moved.
pub(super) fn blocks(
    guest: &Guest,
    host: HostId,
    lease: &Lease,
    world: &World<'_>,
    leases: &BTreeMap<LeaseId, &Lease>,
) -> bool {
    // Only a starting lease hunts. Once started, its hunt is over.
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

/// Returns the lease if it is known, doesn't want the host now, and has its guests deleted.
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

/// Times at which the guest is asked to leave for slot leases on its host, and at which it must be gone.
/// `None` if it isn't preempted.
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
