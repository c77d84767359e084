//! Preemptible instances on leased hosts that aren't in use ([`crate::admission::Backfill`], PRE-11).

use super::Claims;
use super::World;
use super::effort::Effort;
use super::leaving::{leaves_anyway, stop};
use super::observed::{Guest, GuestOwner, ObservedHost, Place};
use crate::admission::is_used;
use crate::ids::{HostId, LeaseId};
use crate::instance::Instance;
use crate::lease::Lease;

/// Plans the steps of a host that its lease has and keeps, possibly for another of its reservations:
/// preemptible guests that can't stay leave.
pub(super) fn plan_host(
    effort: &mut Effort<'_>,
    claims: &Claims<'_>,
    (host, observed): (HostId, &ObservedHost),
    lease: &Lease,
) {
    for guest in observed.guests.iter().filter(|guest| guest.owner == GuestOwner::Preemptible) {
        // The departure of an instance is recorded first, so that its owner is notified.
        let leaves = leaves_anyway(effort, claims, guest)
            || (!claims.preemptible.contains(&guest.id)
                && !may_have_others(&effort.world, claims, (host, observed), lease));
        if leaves {
            stop(effort, claims, host, guest, Some(lease));
        }
    }
}

/// Whether a preemptible instance runs, or will be started, on a leased host that it isn't allowed on.
pub(super) fn has_to_leave(world: &World<'_>, claims: &Claims<'_>, instance: &Instance) -> bool {
    // The owner of a departing instance has been notified already.
    if !claims.preemptible.contains(&instance.id)
        || instance.leaves_anyway()
        || instance.is_departing(world.now)
    {
        return false;
    }
    let Some(observed) = world.observed.hosts.get(&instance.host) else { return false };
    let Some((lease, _)) = claims.hosts.get(&instance.host) else { return false };
    // Instances that aren't there by the lease's consent are preempted before the lease holds the host.
    observed.place.holder().is_some_and(|holder| claims.is_of(holder, lease))
        && !may_have_others(world, claims, (instance.host, observed), lease)
}

/// Whether preemptible guests can be on a host of the lease: its owner allows them, no guest of the lease is
/// there or about to be, and the host doesn't have to be emptied for another of its reservations.
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

/// Whether the lease still holds the host, as far as is known. Also true if the holder belongs to no known
/// lease: the host may have failed or been silent when that lease ended.
pub(super) fn is_held(world: &World<'_>, claims: &Claims<'_>, host: HostId, lease: LeaseId) -> bool {
    let holder = world.observed.hosts.get(&host).and_then(|observed| observed.place.holder());
    holder.is_some_and(|holder| claims.lease_of(holder).is_none_or(|holder| holder.id == lease))
}

pub(super) fn is_backfilled(observed: &ObservedHost) -> bool {
    observed.guests.iter().any(|guest: &Guest| guest.owner == GuestOwner::Preemptible)
}
