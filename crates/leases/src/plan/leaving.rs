//! Guests that go: those that a lease takes along when it ends, and preemptible ones, which are asked first.

use jiff::Timestamp;

use super::Claims;
use super::effort::{Effort, Waiting};
use super::observed::{Guest, GuestOwner, ObservedHost};
use super::rules::overdue_at;
use super::step::Action;
use crate::ids::{GuestId, HostId, LeaseId};
use crate::lease::Lease;
use crate::window::later;

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
