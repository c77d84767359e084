//! Preemptible instances on hosts of leases that do not use them ([`crate::admission::Backfill`], PRE-11).

use super::Claims;
use super::World;
use super::effort::Effort;
use super::leaving::{leaves_anyway, stop};
use super::observed::{Guest, GuestOwner, ObservedHost, Place};
use crate::admission::is_used;
use crate::ids::{HostId, LeaseId};
use crate::instance::Instance;
use crate::lease::Lease;

/// The steps of a host that its lease has and goes on to have, be it for another of its reservations: preemptible guests
/// that may not stay there leave.
pub(super) fn plan_host(
    effort: &mut Effort<'_>,
    claims: &Claims<'_>,
    (host, observed): (HostId, &ObservedHost),
    lease: &Lease,
) {
    for guest in observed.guests.iter().filter(|guest| guest.owner == GuestOwner::Preemptible) {
        // Of instances it is on record first, for their owners to be told.
        let leaves = leaves_anyway(effort, claims, guest)
            || (!claims.preemptible.contains(&guest.id)
                && !may_have_others(&effort.world, claims, (host, observed), lease));
        if leaves {
            stop(effort, claims, host, guest, Some(lease));
        }
    }
}

/// Whether a preemptible instance is on a host of a lease, or is to be started there, and may not be.
pub(super) fn has_to_leave(world: &World<'_>, claims: &Claims<'_>, instance: &Instance) -> bool {
    // Whoever leaves already has been told so.
    if !claims.preemptible.contains(&instance.id)
        || instance.leaves_anyway()
        || instance.is_departing(world.now)
    {
        return false;
    }
    let Some(observed) = world.observed.hosts.get(&instance.host) else { return false };
    let Some((lease, _)) = claims.hosts.get(&instance.host) else { return false };
    // What was not started there by consent is preempted before the host is the lease's.
    observed.place.holder().is_some_and(|holder| claims.is_of(holder, lease))
        && !may_have_others(world, claims, (instance.host, observed), lease)
}

/// Whether preemptible guests may be on a host of the lease: its owner lets them, nothing of it is there, or about to
/// be, and the host is not to be emptied for another of its reservations.
fn may_have_others(
    world: &World<'_>,
    claims: &Claims<'_>,
    (host, observed): (HostId, &ObservedHost),
    lease: &Lease,
) -> bool {
    world.rules.backfill
        && lease.backfill
        && claims.hosts.get(&host).is_some_and(|(_, wants)| observed.place == Place::Held(wants.id))
        && !is_used(lease.id, observed)
        && !claims.used.contains(&(host, lease.id))
}

/// Whether the host is still the lease's, as far as is known, or that of one that nobody knows any more: it may have
/// failed, or be silent, when the lease ended.
pub(super) fn is_held(world: &World<'_>, claims: &Claims<'_>, host: HostId, lease: LeaseId) -> bool {
    let holder = world.observed.hosts.get(&host).and_then(|observed| observed.place.holder());
    holder.is_some_and(|holder| claims.lease_of(holder).is_none_or(|holder| holder.id == lease))
}

/// Whether a preemptible guest is on the host.
pub(super) fn is_backfilled(observed: &ObservedHost) -> bool {
    observed.guests.iter().any(|guest: &Guest| guest.owner == GuestOwner::Preemptible)
}
