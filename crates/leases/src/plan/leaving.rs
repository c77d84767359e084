//! Guests that leave: those deleted when their lease ends, and preemptible guests, which are asked to shut
//! down first.

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

/// Guests of the ended lease that must be deleted with it. If the lease is unknown, none: guests of an
/// unknown owner are never deleted.
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

/// Time at which a preemptible guest not started through the service is asked to leave because its lifetime
/// ends. `None` if lifetimes aren't limited or the fleet doesn't report when the guest was launched.
/// Instances are asked once their departure is on record.
pub(super) fn expires_at(world: &World<'_>, claims: &Claims<'_>, guest: &Guest) -> Option<Timestamp> {
    let foreign = guest.owner == GuestOwner::Preemptible && !claims.preemptible.contains(&guest.id);
    let ends_at = world.rules.lifetime_ends_at(guest.launched_at.filter(|_| foreign))?;
    Some(earlier(ends_at, world.rules.grace))
}

/// Whether the guest leaves now, independent of any lease: an instance with such a departure on record, or an
/// expired guest that was started outside the service.
pub(super) fn leaves_anyway(effort: &mut Effort<'_>, claims: &Claims<'_>, guest: &Guest) -> bool {
    let expires_at = expires_at(&effort.world, claims, guest);
    if let Some(at) = expires_at
        && effort.world.now < at
    {
        effort.wake(at);
    }
    claims.leaves_anyway(guest.id) || expires_at.is_some_and(|at| at <= effort.world.now)
}

/// Asks a preemptible guest to shut down, then deletes it once its grace time has passed. If deletion is
/// overdue, `lease` reports that as the reason why it waits.
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

/// Reports that the lease waits for a guest due to be deleted at `due`, once deletion takes longer than
/// usual.
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
