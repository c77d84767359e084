//! Handing over whole hosts, and taking them back.

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

/// The next steps of one host.
pub(super) fn plan_host(effort: &mut Effort<'_>, claims: &Claims<'_>, host: HostId, observed: &ObservedHost) {
    let wanted = claims.hosts.get(&host).copied();
    if effort.world.asleep.contains(&host) {
        // It stays fenced, if it is.
        if let Some((lease, _)) = wanted {
            effort.waits(lease.id, Waiting::Booting(host));
        }
        return;
    }
    if observed.health == Health::Failed {
        // It is looked at again when it has recovered; until then healing finds another.
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
            // It is wanted again. Guests that are its own stay; what they need is handed over again.
            effort.waits(lease.id, Waiting::TakingBack(host));
            effort.step(Action::Release(host, holder), Some(lease.id));
        }
        (Place::Held(holder) | Place::Releasing(holder), wanted) => {
            if let Some((lease, _)) = wanted {
                effort.waits(lease.id, Waiting::TakingBack(host));
            }
            // They have been there with the holder's consent, and have their time to leave while it is taken back.
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
        // Whoever it was fenced for does not want it any more.
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

/// The end of a hold: the lease's guests, as its end action says, then the host.
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
        // By somebody's clock that is ahead of ours it has ended; what we did now would not count as done after its
        // end.
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

/// Plans what moves guests of a lease away that is over; says whether any are still to go.
fn departs(effort: &mut Effort<'_>, host: HostId, observed: &ObservedHost, lease: &Lease) -> bool {
    let mut own =
        observed.guests.iter().filter(|guest| guest.owner == GuestOwner::Lease(lease.id)).peekable();
    let until = later(lease.window.end(), effort.world.rules.longest_departure);
    if !lease.departing() || own.peek().is_none() || until <= effort.world.now {
        return false;
    }
    effort.wake(until);
    // Where they go is planned by somebody who knows what there is; whoever has no place to go to stays.
    let Some(hunt) = &lease.hunt else { return true };
    let mut going = false;
    for guest in own {
        going |= guest.moving_to.is_some() || moves(effort, hunt, guest, host, lease.id);
    }
    going
}

/// Guests on a free host of a lease that does not have it any more: they were started between the last look
/// at the host and its release.
fn clear_strays(effort: &mut Effort<'_>, claims: &Claims<'_>, host: HostId, observed: &ObservedHost) {
    for guest in &observed.guests {
        if let GuestOwner::Lease(owner) = guest.owner
            && let Some(owner) = leaver(&claims.leases, owner, host, effort.world.now)
        {
            effort.step(Action::DeleteGuest(host, guest.id), Some(owner.id));
        }
    }
}

/// Plans what empties a fenced host for a lease; says whether it is empty.
fn drained(
    effort: &mut Effort<'_>,
    claims: &Claims<'_>,
    host: HostId,
    observed: &ObservedHost,
    lease: &Lease,
) -> bool {
    let now = effort.world.now;
    let stays = |guest: &Guest| blocks(guest, host, lease, &effort.world, &claims.leases);
    // Nobody is asked to leave a host that the lease may not take.
    let uncertain = claims.uncertain.contains(&lease.id) || observed.guests.iter().any(stays);
    let mut empty = true;
    for guest in &observed.guests {
        match guest.owner {
            GuestOwner::Lease(owner) if owner == lease.id => continue,
            // One that was asked before isn't deleted either: it may stay if the lease takes another host.
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

/// A guest that must not be stopped goes where the lease's hunt has it, in its turn.
fn move_away(effort: &mut Effort<'_>, host: HostId, guest: &Guest, lease: &Lease) {
    // A lease that has started has hunted: where its plan would have guests go may be others' by now.
    let hunt = lease.hunt.as_ref().filter(|_| lease.status == LeaseStatus::Starting);
    let moves = hunt.is_some_and(|hunt| moves(effort, hunt, guest, host, lease.id));
    // It may be on its way to where an earlier plan had it.
    if !moves && guest.moving_to.is_none() {
        effort.waits(lease.id, Waiting::GuestInTheWay { host, guest: guest.id });
    }
}

/// Plans the move of a guest when it is its turn; says whether there is one.
fn moves(effort: &mut Effort<'_>, hunt: &Hunt, guest: &Guest, host: HostId, lease: LeaseId) -> bool {
    let Some(mov) = hunt.move_of(guest.id, host) else { return false };
    let mut next = hunt.open(effort.world.observed).take(effort.world.rules.moves_at_once);
    if next.any(|next| next == mov) {
        effort.step(mov.action(), Some(lease));
    }
    true
}

/// Whether the hosts of the lease are to be cleared now for its start. One that starts a little later may have been
/// near by somebody else's clock.
pub(super) fn is_near(effort: &Effort<'_>, lease: &Lease) -> bool {
    effort.world.rules.clears_at(lease.window.start()) <= effort.world.now
}

/// Preemptible guests leave before the lease starts. Everybody else has time until then.
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
        // What is noted may be about a lease that starts later, and nothing is of guests that others have started.
        let noted = claims.leaving.get(&guest.id).and_then(|instance| instance.departure);
        let noted = noted.filter(|departure| departure.gone_by <= start);
        let asked_at = noted.map_or(effort.world.rules.asks_at(start, grace), |departure| departure.asked_at);
        move_or_stop(effort, claims, (host, observed), (guest, asked_at), lease);
    }
}

/// A preemptible guest goes where there is another gap for it, or is asked to leave when it is time.
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
