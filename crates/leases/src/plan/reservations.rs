//! Reservations as a whole. A cloud's other resources for a reservation, apart from hosts, are made once the
//! lease exists, before it gets anything, and are removed after its last host was taken back.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::World;
use super::effort::{Effort, Waiting};
use super::observed::{Observed, Recipe};
use super::step::{Action, Step};
use crate::ids::{LeaseId, ReservationId};
use crate::lease::{Lease, Reservation};
use crate::status::LeaseStatus;

/// Plans the steps that prepare and finish reservations, and when to plan them again. Hosts are handed over
/// when their lease starts, but reservations are prepared as soon as their lease exists. So `leases` must be
/// all leases that aren't over, and `lease_of` must know the lease of every reservation.
pub fn plan_reservations<'a>(
    leases: impl Iterator<Item = &'a Lease>,
    lease_of: impl Fn(ReservationId) -> Option<&'a Lease>,
    world: World<'_>,
) -> (Vec<Step>, Option<Timestamp>) {
    let mut effort = Effort::new(world);
    if !world.prepares {
        return effort.finish();
    }
    for lease in leases.filter(|lease| wants_prepared(lease)) {
        for reservation in &lease.reservations {
            if !is_prepared(world.observed, reservation) {
                effort.step(Action::Prepare(reservation.id), Some(lease.id));
            }
        }
    }
    let used = used(world.observed);
    for (&id, seen) in &world.observed.reservations {
        let lease = lease_of(id);
        // Without our mark, it might belong to another project, unless one of our leases is known to want it.
        let ours = lease.is_some() || seen.marked;
        if ours && !used.contains(&id) && !lease.is_some_and(wants_prepared) {
            effort.step(Action::Finish(id), lease.map(|lease| lease.id));
        }
    }
    effort.finish()
}

/// Whether the reservation has everything it needs as a whole.
pub fn is_prepared(observed: &Observed, reservation: &Reservation) -> bool {
    let Some(recipe) = Recipe::of(&reservation.terms) else { return true };
    observed.reservations.get(&reservation.id).is_some_and(|seen| seen.complete == Some(recipe))
}

/// Whether anything made for the lease's reservations as a whole still exists.
pub(super) fn is_any_left(lease: &Lease, observed: &Observed) -> bool {
    lease.reservations.iter().any(|reservation| observed.reservations.contains_key(&reservation.id))
}

/// Whether the reservation can get hosts. An unprepared reservation waits, and if preparing it has failed,
/// its lease reports that.
pub(super) fn can_get_hosts(effort: &mut Effort<'_>, lease: LeaseId, reservation: &Reservation) -> bool {
    let world = effort.world;
    if !world.prepares || is_prepared(world.observed, reservation) {
        return true;
    }
    let action = Action::Prepare(reservation.id);
    if let Some(failures) = world.history.failures.get(&action) {
        effort.waits(lease, Waiting::retrying(action, failures));
    }
    false
}

/// Whether the lease's reservations must be prepared: it has its hosts or will get them.
fn wants_prepared(lease: &Lease) -> bool {
    matches!(
        lease.status,
        LeaseStatus::Creating
            | LeaseStatus::Pending
            | LeaseStatus::Starting
            | LeaseStatus::Active
            | LeaseStatus::Updating
    )
}

/// Reservations that hold a host or have slots on one.
fn used(observed: &Observed) -> BTreeSet<ReservationId> {
    let mut used = BTreeSet::new();
    for host in observed.hosts.values() {
        used.extend(host.place.holder());
        used.extend(host.slots.keys());
    }
    used
}
