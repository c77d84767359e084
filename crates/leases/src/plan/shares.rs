//! Handover of slots on shared hosts, and of floating IPs.
//!
//! Shared hosts stay in the free pool. Preemptible guests stay there as long as capacity suffices for them
//! and for the reserved slots. Departures were decided earlier
//! ([`crate::admission::Admission::preempted_for_leases`]): those of instances are on record, those of guests
//! started outside the service are part of the world.

use jiff::Timestamp;

use super::Claims;
use super::effort::{Effort, Waiting};
use super::handover::{is_near, move_or_stop};
use super::leaving::{doomed, leaves_anyway, stop};
use super::life;
use super::observed::{ObservedHost, Place};
use super::reservations;
use super::step::Action;
use super::taking::preempted_at;
use crate::host::Health;
use crate::ids::{HostId, ReservationId};
use crate::lease::Allocation;

/// Plans steps for slots on one host. Unwanted slots are withdrawn before new ones are granted (W5), so the
/// host is never overcommitted.
pub(super) fn plan_slots(
    effort: &mut Effort<'_>,
    claims: &Claims<'_>,
    host: HostId,
    observed: &ObservedHost,
) {
    let failed = observed.health == Health::Failed;
    let in_the_way = !failed && make_room(effort, claims, host, observed);
    let mut others_leave = false;
    for &reservation in observed.slots.keys() {
        if claims.slots(host).all(|(wanted, ..)| wanted != reservation) {
            others_leave = true;
            if !failed {
                withdraw(effort, claims, host, reservation, observed);
            }
        }
        // A lease kept active beyond its end by a late snapshot has lost its claim to capacity, too.
        others_leave |= claims.lease_of(reservation).is_some_and(|l| l.window.end() <= effort.world.now);
    }
    for (reservation, lease, count) in claims.slots(host) {
        if observed.slots.get(&reservation) == Some(&count) {
            continue;
        }
        if effort.world.asleep.contains(&host) {
            effort.waits(lease, Waiting::Booting(host));
        } else if failed {
            effort.waits(lease, Waiting::HostFailed(host));
        } else if others_leave || observed.place != Place::FreePool {
            effort.waits(lease, Waiting::TakingBack(host));
        } else if in_the_way {
            effort.waits(lease, Waiting::Leaving(host));
        } else if claims
            .reservations
            .get(&reservation)
            .is_none_or(|(_, known)| reservations::can_get_hosts(effort, lease, known))
        {
            effort.step(Action::Grant(host, reservation, count), Some(lease));
        }
    }
}

/// Plans the departure of preemptible guests that occupy a place needed by a lease. Returns whether any guest
/// is still there that should be gone by now.
fn make_room(effort: &mut Effort<'_>, claims: &Claims<'_>, host: HostId, observed: &ObservedHost) -> bool {
    if observed.place == Place::FreePool {
        for guest in &observed.guests {
            if leaves_anyway(effort, claims, guest) {
                stop(effort, claims, host, guest, None);
            }
        }
    }
    let whole = claims.hosts.contains_key(&host)
        || claims.coming.get(&host).is_some_and(|lease| is_near(effort, lease));
    let lease = claims.sharing.get(&host).filter(|_| observed.place == Place::FreePool && !whole);
    let Some(lease) = lease else { return false };
    // A service with a clock ahead of ours has begun to start a lease. Any guest that must be gone by that
    // start is in its way.
    let starts =
        claims.slots(host).filter_map(|(_, lease, _)| Some(claims.leases.get(&lease)?.window.start()));
    let due = starts.fold(effort.world.now, Timestamp::max);
    let mut in_the_way = claims.taken_until_gone.get(&host).is_some_and(|start| *start <= due);
    for guest in &observed.guests {
        if claims.going.contains(&guest.id) {
            continue;
        }
        if let Some((asked_at, gone_by)) = preempted_at(&effort.world, claims, guest) {
            move_or_stop(effort, claims, (host, observed), (guest, asked_at), lease);
            in_the_way |= gone_by <= due;
        }
    }
    in_the_way
}

/// Takes a reservation's slots on the host back: first guests of a lease that has nothing there anymore are
/// deleted, then the slots are withdrawn.
fn withdraw(
    effort: &mut Effort<'_>,
    claims: &Claims<'_>,
    host: HostId,
    reservation: ReservationId,
    observed: &ObservedHost,
) {
    let lease = claims.lease_of(reservation);
    let stays = lease.is_some_and(|lease| life::wants_host(lease, host, effort.world.now));
    let mut empty = true;
    for guest in doomed(lease.filter(|_| !stays), observed) {
        effort.step(Action::DeleteGuest(host, guest.id), lease.map(|lease| lease.id));
        empty = false;
    }
    if empty {
        effort.step(Action::Withdraw(host, reservation), lease.map(|lease| lease.id));
    }
}

pub(super) fn plan_floating_ips(effort: &mut Effort<'_>, claims: &Claims<'_>) {
    let world = effort.world;
    for (lease, reservation) in claims.reservations.values() {
        let Allocation::FloatingIps(ips) = &reservation.allocation else { continue };
        if !life::wants_resources(lease, world.now) {
            continue;
        }
        for &ip in ips {
            match world.observed.floating_ips.get(&ip) {
                None => effort.step(Action::Assign(ip, reservation.id), Some(lease.id)),
                Some(holder) if *holder == reservation.id => {}
                // It is unassigned first, below.
                Some(_) => effort.waits(lease.id, Waiting::TakingBackFloatingIp(ip)),
            }
        }
    }
    for (&ip, holder) in &world.observed.floating_ips {
        let wanted = claims.reservations.get(holder).is_some_and(|(lease, reservation)| {
            life::wants_resources(lease, world.now)
                && matches!(&reservation.allocation, Allocation::FloatingIps(ips) if ips.contains(&ip))
        });
        if !wanted {
            effort.step(Action::Unassign(ip, *holder), claims.lease_of(*holder).map(|lease| lease.id));
        }
    }
}
