//! Guests that go: those that a lease takes along when it ends, and preemptible ones, which are asked first.

use super::Claims;
use super::effort::Effort;
use super::observed::{Guest, GuestOwner, ObservedHost};
use super::step::Action;
use crate::ids::HostId;
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

/// A preemptible guest is asked to shut down, and deleted when its grace time has passed.
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
    let deadline = later(since, claims.notice(guest.id, effort.world.rules));
    if deadline <= effort.world.now {
        effort.step(Action::DeleteGuest(host, guest.id), lease);
    } else {
        effort.wake(deadline);
    }
}
