//! Guests that go: those that a lease takes along when it ends, and preemptible ones, which are asked first.

use jiff::Timestamp;

use super::Claims;
use super::World;
use super::effort::{Effort, Waiting};
use super::observed::{Guest, GuestOwner, ObservedHost};
use super::rules::overdue_at;
use super::step::Action;
use crate::ids::{GuestId, HostId, LeaseId};
use crate::lease::Lease;
use crate::window::{earlier, later};

/// Guests that a lease leaves behind and that go with it. Those of a lease that nobody knows stay: what is not
/// understood is not deleted.
pub(super) fn doomed<'o>(
    lease: Option<&Lease>,
    observed: &'o ObservedHost,
) -> impl Iterator<Item = &'o Guest> {
    let doomed = lease.filter(|lease| lease.end_action.deletes()).map(|lease| lease.id);
    observed
        .guests
        .iter()
        .filter(move |guest| doomed.is_some_and(|lease| guest.owner == GuestOwner::Lease(lease)))
}

/// When a preemptible guest that others have started is asked to leave because of its lifetime, if that is limited and the
/// fleet says since when it runs. Instances are asked once that is on record.
pub(super) fn expires_at(world: &World<'_>, claims: &Claims<'_>, guest: &Guest) -> Option<Timestamp> {
    let foreign = guest.owner == GuestOwner::Preemptible && !claims.preemptible.contains(&guest.id);
    let ends_at = world.rules.lifetime_ends_at(guest.launched_at.filter(|_| foreign))?;
    Some(earlier(ends_at, world.rules.grace))
}

/// Whether a guest leaves now whatever becomes of leases: an instance for which that is on record, or a guest that others
/// have started and whose lifetime is over.
pub(super) fn leaves_anyway(effort: &mut Effort<'_>, claims: &Claims<'_>, guest: &Guest) -> bool {
    let expires_at = expires_at(&effort.world, claims, guest);
    if let Some(at) = expires_at
        && effort.world.now < at
    {
        effort.wake(at);
    }
    claims.leaves_anyway(guest.id) || expires_at.is_some_and(|at| at <= effort.world.now)
}

/// A preemptible guest is asked to shut down, and deleted when its grace time has passed. The lease says so if it stays
/// there.
pub(super) fn stop(
    effort: &mut Effort<'_>,
    claims: &Claims<'_>,
    host: HostId,
    guest: &Guest,
    lease: Option<&Lease>,
) {
    let lease = lease.map(|lease| lease.id);
    let Some(since) = guest.stopping_since else {
        effort.step(Action::StopGuest(host, guest.id), lease);
        return;
    };
    let notice = claims.notice(guest.id, effort.world.rules);
    let deadline = if guest.has_shut_down { since } else { later(since, notice) };
    if deadline <= effort.world.now {
        effort.step(Action::DeleteGuest(host, guest.id), lease);
        if let Some(lease) = lease {
            explain_delay(effort, host, guest.id, deadline, lease);
        }
    } else {
        effort.wake(deadline);
    }
}

/// Says that the lease waits for a guest whose deletion was due then, once that takes longer than usual.
pub(super) fn explain_delay(
    effort: &mut Effort<'_>,
    host: HostId,
    guest: GuestId,
    due: Timestamp,
    lease: LeaseId,
) {
    let overdue = overdue_at(due);
    if overdue <= effort.world.now {
        effort.waits(lease, Waiting::NotDeleted { host, guest, since: due });
    } else {
        effort.wake(overdue);
    }
}
