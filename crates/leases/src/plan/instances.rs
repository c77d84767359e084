//! Changes of [instances](crate::instance), and the steps that start and destroy their guests (CLS-08).

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::Claims;
use super::backfill;
use super::effort::Effort;
use super::observed::{Guest, Observed, Place};
use super::step::Action;
use crate::host::Health;
use crate::ids::{GuestId, HostId, LeaseId};
use crate::instance::{Cause, Departure, Instance, InstanceKind, InstanceStatus};
use crate::lease::Lease;
use crate::reason::{reason, tries};
use crate::status::LeaseStatus;
use crate::window::earlier;

/// Change of an instance to commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstanceChange {
    Becomes(Box<Instance>),
    /// The instance has been destroyed, or has ended by itself, and is forgotten.
    Gone(GuestId),
}

impl InstanceChange {
    pub fn instance(&self) -> GuestId {
        match self {
            Self::Becomes(instance) => instance.id,
            Self::Gone(id) => *id,
        }
    }
}

/// Observed guests with their hosts.
type Whereabouts<'a> = BTreeMap<GuestId, (HostId, &'a Guest)>;

/// Plans the steps of all instances, and returns their changes.
pub(super) fn plan_instances(effort: &mut Effort<'_>, claims: &Claims<'_>) -> Vec<InstanceChange> {
    let world = effort.world;
    if world.instances.is_empty() {
        return Vec::new();
    }
    let seen = whereabouts(world.observed);
    let mut changes = Vec::new();
    for instance in world.instances {
        if let Some(change) = next(effort, claims, instance, seen.get(&instance.id).copied()) {
            changes.push(change);
        } else {
            plan_steps(effort, claims, instance, seen.get(&instance.id).copied());
        }
    }
    changes
}

fn whereabouts(observed: &Observed) -> Whereabouts<'_> {
    let mut whereabouts = Whereabouts::new();
    for (&host, seen) in &observed.hosts {
        whereabouts.extend(seen.guests.iter().map(|guest| (guest.id, (host, guest))));
    }
    whereabouts
}

/// Next change of an instance, if any. Further changes follow in later plans.
fn next(
    effort: &Effort<'_>,
    claims: &Claims<'_>,
    instance: &Instance,
    seen: Option<(HostId, &Guest)>,
) -> Option<InstanceChange> {
    let changed = |after: Instance| Some(InstanceChange::Becomes(Box::new(after)));
    let becomes = |status| changed(instance.becoming(status));
    let runs = || changed(instance.running(effort.world.now));
    let left_alone = has_lost_its_lease(claims, instance);
    match (instance.status, seen) {
        // The guest has moved, whether the move was expected or not.
        (status, Some((host, _))) if host != instance.host => {
            changed(Instance { host, backfills: None, ..instance.becoming(status) })
        }
        // The lease is over and no longer holds the host.
        _ if instance.backfills.is_some_and(|lease| {
            is_over(claims, lease) && !backfill::is_held(&effort.world, claims, instance.host, lease)
        }) =>
        {
            changed(Instance { backfills: None, ..instance.clone() })
        }
        (InstanceStatus::Building | InstanceStatus::Error, Some(_)) => runs(),
        (InstanceStatus::Building, None) if started(effort, instance) => runs(),
        // A guest that isn't seen any more has gone or ended by itself, so there is nothing to ask.
        (InstanceStatus::Building, _) | (InstanceStatus::Active, Some(_))
            if backfill::has_to_leave(&effort.world, claims, instance) =>
        {
            let (now, notice) = (effort.world.now, effort.world.rules.notice(instance.class.as_ref()));
            let departure = Some(Departure::at_once(Cause::Holder, now, notice));
            changed(Instance { departure, ..instance.clone() })
        }
        (InstanceStatus::Active, Some(_))
            if expires_at(effort, instance).is_some_and(|at| at <= effort.world.now) =>
        {
            let (now, notice) = (effort.world.now, effort.world.rules.notice(instance.class.as_ref()));
            let departure = Some(Departure::at_once(Cause::Lifetime, now, notice));
            changed(Instance { departure, ..instance.clone() })
        }
        (InstanceStatus::Building, None) if claims.leaving.contains_key(&instance.id) => {
            if instance.requeue {
                // Destroys it wherever it was started. The kept guest that it would have resumed is left for
                // its successor.
                return changed(Instance { resumes: None, ..instance.becoming(InstanceStatus::Deleting) });
            }
            let whose = match instance.departure.map(|departure| departure.cause) {
                Some(Cause::OwnProject) => "an instance of its project",
                Some(Cause::Holder) => "whoever has leased its host",
                Some(Cause::Lease | Cause::Lifetime) | None => "a lease",
            };
            let reason = Some(format!("{whose} needs its place before it could be started"));
            changed(Instance { reason, ..instance.becoming(InstanceStatus::Error) })
        }
        // Its start may be under way, so it is destroyed like a running instance.
        (InstanceStatus::Building | InstanceStatus::Error, None) if left_alone => {
            becomes(InstanceStatus::Deleting)
        }
        (InstanceStatus::Building, None) => {
            let start = Action::StartGuest(instance.host, instance.id);
            let failures = effort.world.history.failures.get(&start)?;
            if failures.times < effort.world.rules.start_attempts {
                return None;
            }
            // The fleet's message can name hosts, so only the operator sees it.
            let owner = format!("it could not be started ({})", tries(failures.times));
            let operator = format!("it could not be started: {}", failures.message);
            changed(Instance {
                reason: Some(reason(&owner, &operator)),
                ..instance.becoming(InstanceStatus::Error)
            })
        }
        // Its lease has ended and left it running.
        (InstanceStatus::Active, Some(_)) if left_alone => {
            let kind = InstanceKind::Regular;
            changed(Instance { kind, ..instance.becoming(instance.status) })
        }
        (InstanceStatus::Active, None) if effort.world.gone.contains(&instance.id) => {
            let requeued = instance.requeue && instance.gone_as_preempted(effort.world.now);
            if instance.is_kept() && !requeued {
                changed(instance.shelved())
            } else {
                Some(InstanceChange::Gone(instance.id))
            }
        }
        (InstanceStatus::Deleting, None) if destroyed(effort, instance) => {
            Some(InstanceChange::Gone(instance.id))
        }
        _ => None,
    }
}

/// Whether the lease is over. Unknown leases are, because `claims` has all leases that aren't.
fn is_over(claims: &Claims<'_>, lease: LeaseId) -> bool {
    claims.leases.get(&lease).is_none_or(|lease| lease.over())
}

/// Whether the instance has lost the lease that it is part of. A running instance keeps it until the lease is
/// over. Any other instance needs an active lease, so it isn't started after the lease's end.
fn has_lost_its_lease(claims: &Claims<'_>, instance: &Instance) -> bool {
    let Some(lease) = instance.kind.lease() else { return false };
    let is_active = |lease: &Lease| lease.status == LeaseStatus::Active;
    match instance.status {
        InstanceStatus::Active => is_over(claims, lease),
        _ => claims.leases.get(&lease).is_none_or(|lease| !is_active(lease)),
    }
}

/// Time at which a preemptible instance is asked to leave because of its limited lifetime. `None` if the
/// lifetime isn't limited, or if the instance leaves already.
fn expires_at(effort: &Effort<'_>, instance: &Instance) -> Option<Timestamp> {
    let rules = effort.world.rules;
    let ends_at = rules.lifetime_ends_at(instance.launched_at)?;
    let stays = instance.kind == InstanceKind::Preemptible
        && !instance.leaves_anyway()
        && !instance.is_departing(effort.world.now);
    stays.then(|| earlier(ends_at, rules.notice(instance.class.as_ref())))
}

fn started(effort: &Effort<'_>, instance: &Instance) -> bool {
    effort.world.history.done.contains_key(&Action::StartGuest(instance.host, instance.id))
}

/// Whether it was destroyed, or its host has been given back. Not being seen isn't enough, because the guest
/// may be about to appear.
fn destroyed(effort: &Effort<'_>, instance: &Instance) -> bool {
    let world = effort.world;
    let done = |id| world.history.done.contains_key(&Action::DestroyGuest(instance.host, id));
    let host_is_gone =
        !world.observed.hosts.contains_key(&instance.host) && world.gone.contains(&instance.id);
    (done(instance.id) && instance.resumes.is_none_or(done)) || host_is_gone
}

fn plan_steps(
    effort: &mut Effort<'_>,
    claims: &Claims<'_>,
    instance: &Instance,
    seen: Option<(HostId, &Guest)>,
) {
    let host = effort.world.observed.hosts.get(&instance.host);
    let lease = instance.kind.lease();
    if host.is_none() && instance.status == InstanceStatus::Building {
        // The host may never be seen again. Trying to start the guest makes the fleet report that, and after
        // some attempts its owner is told.
        effort.step(Action::StartGuest(instance.host, instance.id), lease);
        return;
    }
    // A host that is off runs no guests and stores no kept ones, so the instance can be destroyed.
    let destroys = || {
        instance.status == InstanceStatus::Deleting
            && seen.is_none()
            && effort.world.asleep.contains(&instance.host)
    };
    let Some(host) = host.filter(|host| host.health != Health::Failed || destroys()) else { return };
    let in_the_way = || match instance.kind {
        InstanceKind::Regular => host.guests.iter().any(|guest| claims.leaves_anyway(guest.id)),
        InstanceKind::Reserved { reservation, .. } => {
            host.place == Place::Held(reservation) && backfill::is_backfilled(host)
        }
        InstanceKind::Preemptible => false,
    };
    match (instance.status, seen) {
        (InstanceStatus::Active, Some(_)) => {
            if let Some(at) = expires_at(effort, instance) {
                effort.wake(at);
            }
        }
        // Starts once the guests that are preempted for it have gone.
        (InstanceStatus::Building, None) if in_the_way() => {}
        (InstanceStatus::Building, None) => {
            effort.step(Action::StartGuest(instance.host, instance.id), lease);
        }
        // A guest that is moving is destroyed at its destination.
        (InstanceStatus::Deleting, Some((_, guest))) if guest.moving_to.is_some() => {}
        (InstanceStatus::Deleting, _) => {
            // Also destroys the kept guest that it would have resumed. Skips a guest that is destroyed
            // already: if few steps run at a time, repeating it would keep the other one from its turn
            // forever.
            for id in [Some(instance.id), instance.resumes].into_iter().flatten() {
                let action = Action::DestroyGuest(instance.host, id);
                let there = seen.is_some() && id == instance.id;
                if there || !effort.world.history.done.contains_key(&action) {
                    effort.step(action, lease);
                }
            }
        }
        _ => {}
    }
}
