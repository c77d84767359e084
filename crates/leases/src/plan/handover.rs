//! Handover of whole hosts to leases, and taking them back.

use jiff::Timestamp;

use super::Claims;
use super::backfill;
use super::effort::{Effort, Waiting};
use super::leaving::{doomed, explain_delay, stop};
use super::life;
use super::observed::{Guest, GuestOwner, ObservedHost, Place};
use super::reservations;
use super::step::Action;
use super::taking::{blocks, leaver, resume};
use crate::host::Health;
use crate::hunt::Hunt;
use crate::ids::{HostId, LeaseId, ReservationId};
use crate::lease::Lease;
use crate::status::LeaseStatus;
use crate::terms::ReservationTerms;
use crate::window::later;

/// Plans the next steps of a host.
pub(super) fn plan_host(effort: &mut Effort<'_>, claims: &Claims<'_>, host: HostId, observed: &ObservedHost) {
    let wanted = claims.hosts.get(&host).copied();
    if effort.world.asleep.contains(&host) {
        // A fenced host stays fenced while it is off.
        if let Some((lease, _)) = wanted {
            effort.waits(lease.id, Waiting::Booting(host));
        }
        return;
    }
    if observed.health == Health::Failed {
        // The host is planned again once it has recovered. Until then, healing looks for another host.
        if let Some((lease, reservation)) = wanted
            && observed.place != Place::Held(reservation.id)
        {
            effort.waits(lease.id, Waiting::HostFailed(host));
        }
        return;
    }
    let coming = claims.coming.get(&host).copied().filter(|_| effort.world.rules.clear_ahead.is_some());
    match (observed.place, wanted) {
        (Place::FreePool, None) if coming.is_some_and(|lease| is_near(effort, lease)) => {
            effort.step(Action::Fence(host), coming.map(|lease| lease.id));
        }
        (Place::FreePool, None) => {
            clear_strays(effort, claims, host, observed);
            if coming.is_none() {
                resume(effort, claims, host, observed);
            }
        }
        (Place::FreePool, Some((lease, _))) => effort.step(Action::Fence(host), Some(lease.id)),
        (Place::Held(holder), Some((lease, reservation))) if holder == reservation.id => {
            backfill::plan_host(effort, claims, (host, observed), lease);
            if let (Some(told), ReservationTerms::Hosts(terms)) = (observed.overcommit, &reservation.terms)
                && !told.is(terms.pool.ratios)
            {
                effort.step(Action::SetRatios(host, reservation.id, terms.pool.ratios), Some(lease.id));
            }
            if let Some(next) = coming.filter(|next| is_near(effort, next)) {
                ask_to_leave(effort, claims, host, observed, next);
            }
        }
        (Place::Releasing(holder), Some((lease, reservation))) if holder == reservation.id => {
            // The lease wants the host again. Its own guests stay, and the host is handed over again.
            effort.waits(lease.id, Waiting::TakingBack(host));
            effort.step(Action::Release(host, holder), Some(lease.id));
        }
        (Place::Held(holder) | Place::Releasing(holder), wanted) => {
            if let Some((lease, _)) = wanted {
                effort.waits(lease.id, Waiting::TakingBack(host));
            }
            // Preemptible guests are here with the holder's consent. They get their time to leave while the
            // host is taken back.
            let next = wanted.map(|(lease, _)| lease).or(coming).filter(|next| is_near(effort, next));
            match next {
                Some(next) if claims.is_of(holder, next) => {
                    backfill::plan_host(effort, claims, (host, observed), next);
                }
                Some(next) => ask_to_leave(effort, claims, host, observed, next),
                None => {}
            }
            take_back(effort, claims, host, holder, observed);
            let ended = claims.lease_of(holder).filter(|lease| lease.window.end() <= effort.world.now);
            if let Some(ended) = ended
                && let Some(guest) = doomed(Some(ended), observed).next()
            {
                for lease in [Some(ended), wanted.map(|(lease, _)| lease)].into_iter().flatten() {
                    explain_delay(effort, host, guest.id, ended.window.end(), lease.id);
                }
            }
        }
        (Place::Fenced { .. }, None) if coming.is_some() => {
            if let Some(lease) = coming.filter(|lease| is_near(effort, lease)) {
                ask_to_leave(effort, claims, host, observed, lease);
            }
        }
        // The lease that it was fenced for no longer wants it.
        (Place::Fenced { .. }, None) => effort.step(Action::Unfence(host), None),
        (Place::Fenced { verified_for }, Some((lease, reservation))) => {
            if !drained(effort, claims, host, observed, lease) {
                return;
            }
            let verified = verified_for == Some(reservation.id);
            if verified && !reservations::can_get_hosts(effort, lease.id, reservation) {
                return;
            }
            let next = if verified { Action::Hold } else { Action::Verify };
            effort.step(next(host, reservation.id), Some(lease.id));
        }
    }
}

/// Ends a hold: first handles the lease's guests according to its end action, then releases the host.
fn take_back(
    effort: &mut Effort<'_>,
    claims: &Claims<'_>,
    host: HostId,
    holder: ReservationId,
    observed: &ObservedHost,
) {
    let lease = claims.lease_of(holder);
    let lease_id = lease.map(|lease| lease.id);
    let mut empty = true;
    if let Some(lease) = lease.filter(|lease| doomed(Some(lease), observed).next().is_some())
        && life::wants_images(lease, (host, holder), &effort.world)
    {
        // The lease has ended by the clock of another service, which is ahead of ours. An image made now
        // wouldn't count as made after the end.
        if effort.world.now < lease.window.end() {
            effort.wake(lease.window.end());
        } else {
            effort.step(Action::Snapshot(host, holder), lease_id);
        }
        return;
    }
    for guest in doomed(lease, observed) {
        effort.step(Action::DeleteGuest(host, guest.id), lease_id);
        empty = false;
    }
    if empty && !lease.is_some_and(|lease| departs(effort, host, observed, lease)) {
        effort.step(Action::Release(host, holder), lease_id);
    }
}

/// Plans the end migration of guests on a host. Returns whether any guest still has to go.
fn departs(effort: &mut Effort<'_>, host: HostId, observed: &ObservedHost, lease: &Lease) -> bool {
    let mut own =
        observed.guests.iter().filter(|guest| guest.owner == GuestOwner::Lease(lease.id)).peekable();
    let until = later(lease.window.end(), effort.world.rules.longest_departure);
    if !lease.departing() || own.peek().is_none() || until <= effort.world.now {
        return false;
    }
    effort.wake(until);
    // Destinations are chosen outside the planner, by code that knows the inventory. Guests without a
    // destination stay.
    let Some(hunt) = &lease.hunt else { return true };
    let mut going = false;
    for guest in own {
        going |= guest.moving_to.is_some() || moves(effort, hunt, guest, host, lease.id);
    }
    going
}

/// Deletes guests on a free host whose lease no longer has it. They were started between the last observation
/// of the host and its release.
fn clear_strays(effort: &mut Effort<'_>, claims: &Claims<'_>, host: HostId, observed: &ObservedHost) {
    for guest in &observed.guests {
        if let GuestOwner::Lease(owner) = guest.owner
            && let Some(owner) = leaver(&claims.leases, owner, host, effort.world.now)
        {
            effort.step(Action::DeleteGuest(host, guest.id), Some(owner.id));
        }
    }
}

/// Plans the steps that empty a fenced host for a lease. Returns whether the host is empty.
fn drained(
    effort: &mut Effort<'_>,
    claims: &Claims<'_>,
    host: HostId,
    observed: &ObservedHost,
    lease: &Lease,
) -> bool {
    let now = effort.world.now;
    let stays = |guest: &Guest| blocks(guest, host, lease, &effort.world, &claims.leases);
    // No guest is asked to leave a host that the lease might not take.
    let uncertain = claims.uncertain.contains(&lease.id) || observed.guests.iter().any(stays);
    let mut empty = true;
    for guest in &observed.guests {
        match guest.owner {
            GuestOwner::Lease(owner) if owner == lease.id => continue,
            // A guest that was asked earlier isn't deleted either: it can stay if the lease takes another
            // host.
            GuestOwner::Preemptible if uncertain => {}
            GuestOwner::Preemptible => {
                stop(effort, claims, host, guest, Some(lease));
                effort.waits(lease.id, Waiting::Leaving(host));
            }
            GuestOwner::Lease(owner) => match leaver(&claims.leases, owner, host, now) {
                Some(owner) => effort.step(Action::DeleteGuest(host, guest.id), Some(owner.id)),
                None => move_away(effort, host, guest, lease),
            },
            GuestOwner::Other => move_away(effort, host, guest, lease),
        }
        empty = false;
    }
    if !observed.slots.is_empty() {
        effort.waits(lease.id, Waiting::TakingBack(host));
        empty = false;
    }
    empty
}

/// Moves a guest that must not be stopped to its destination in the lease's hunt, when it is its turn.
fn move_away(effort: &mut Effort<'_>, host: HostId, guest: &Guest, lease: &Lease) {
    // A lease that has started is done hunting. The destinations in its plan may belong to other leases by
    // now.
    let hunt = lease.hunt.as_ref().filter(|_| lease.status == LeaseStatus::Starting);
    let moves = hunt.is_some_and(|hunt| moves(effort, hunt, guest, host, lease.id));
    // The guest may be on its way to the destination of an earlier plan.
    if !moves && guest.moving_to.is_none() {
        let can_give_back = lease.can_give_back(host);
        effort.waits(lease.id, Waiting::GuestInTheWay { host, guest: guest.id, can_give_back });
    }
}

/// Plans the move of a guest when it is its turn. Returns whether the hunt includes one.
fn moves(effort: &mut Effort<'_>, hunt: &Hunt, guest: &Guest, host: HostId, lease: LeaseId) -> bool {
    let Some(mov) = hunt.move_of(guest.id, host) else { return false };
    let mut next = hunt.open(effort.world.observed).take(effort.world.rules.moves_at_once);
    if next.any(|next| next == mov) {
        effort.step(mov.action(), Some(lease));
    }
    true
}

/// Whether it is time to clear the lease's hosts for its start. If it isn't, another service can still have
/// begun, by a clock that is ahead.
pub(super) fn is_near(effort: &Effort<'_>, lease: &Lease) -> bool {
    effort.world.rules.clears_at(lease.window.start()) <= effort.world.now
}

/// Asks preemptible guests to leave before the lease starts. All other guests have time until the start.
fn ask_to_leave(
    effort: &mut Effort<'_>,
    claims: &Claims<'_>,
    host: HostId,
    observed: &ObservedHost,
    lease: &Lease,
) {
    let (start, grace) = (lease.window.start(), effort.world.rules.grace);
    let preemptible = |guest: &&Guest| guest.owner == GuestOwner::Preemptible;
    for guest in observed.guests.iter().filter(preemptible) {
        // A recorded departure may be for a lease that starts later, and no departure is recorded for guests
        // started by other means.
        let noted = claims.leaving.get(&guest.id).and_then(|instance| instance.departure);
        let noted = noted.filter(|departure| departure.gone_by <= start);
        let asked_at = noted.map_or(effort.world.rules.asks_at(start, grace), |departure| departure.asked_at);
        move_or_stop(effort, claims, (host, observed), (guest, asked_at), lease);
    }
}

/// Moves a preemptible guest to a host with another gap for it, or asks it to leave when it is time.
pub(super) fn move_or_stop(
    effort: &mut Effort<'_>,
    claims: &Claims<'_>,
    (host, observed): (HostId, &ObservedHost),
    (guest, asked_at): (&Guest, Timestamp),
    lease: &Lease,
) {
    if asked_at <= effort.world.now {
        stop(effort, claims, host, guest, Some(lease));
        return;
    }
    effort.wake(asked_at);
    let Some(to) = claims.moves_to(guest) else { return };
    let earlier = |other: &&Guest| other.id < guest.id && claims.moves_to(other).is_some();
    let first = observed.guests.iter().filter(|other| other.moving_to.is_some() || earlier(other)).count();
    if first < effort.world.rules.moves_at_once {
        effort.step(Action::MoveGuest(host, guest.id, to), Some(lease.id));
    }
}
