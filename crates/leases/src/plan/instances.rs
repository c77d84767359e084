//! What becomes of [instances](crate::instance), and the steps that start and destroy their guests (CLS-08).

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

/// An instance that is to be committed as it is here, or forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstanceChange {
    /// The instance as it is now.
    Becomes(Box<Instance>),
    /// It has been destroyed, or has ended by itself.
    Gone(GuestId),
}

impl InstanceChange {
    /// Which instance.
    pub fn instance(&self) -> GuestId {
        match self {
            Self::Becomes(instance) => instance.id,
            Self::Gone(id) => *id,
        }
    }
}

/// Where guests are.
type Whereabouts<'a> = BTreeMap<GuestId, (HostId, &'a Guest)>;

/// The steps of all instances; what becomes of them.
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

/// What becomes of an instance. One change at a time; the next plan makes the next.
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
        // Wherever it was moved to, and whether it was waited for or not.
        (status, Some((host, _))) if host != instance.host => {
            changed(Instance { host, backfills: None, ..instance.becoming(status) })
        }
        // The host is not the lease's any more.
        _ if instance.backfills.is_some_and(|lease| {
            is_over(claims, lease) && !backfill::is_held(&effort.world, claims, instance.host, lease)
        }) =>
        {
            changed(Instance { backfills: None, ..instance.clone() })
        }
        (InstanceStatus::Building | InstanceStatus::Error, Some(_)) => runs(),
        (InstanceStatus::Building, None) if started(effort, instance) => runs(),
        // One that is not seen any more has gone, or ended by itself: there is nobody to be asked.
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
                // Wherever it lands. What it would have gone on with is for who comes after it.
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
        // It may be under way, so it is destroyed like one that runs.
        (InstanceStatus::Building | InstanceStatus::Error, None) if left_alone => {
            becomes(InstanceStatus::Deleting)
        }
        (InstanceStatus::Building, None) => {
            let start = Action::StartGuest(instance.host, instance.id);
            let failures = effort.world.history.failures.get(&start)?;
            if failures.times < effort.world.rules.start_attempts {
                return None;
            }
            // What the fleet said may name hosts, and is the operator's business.
            let owner = format!("it could not be started ({})", tries(failures.times));
            let operator = format!("it could not be started: {}", failures.message);
            changed(Instance {
                reason: Some(reason(&owner, &operator)),
                ..instance.becoming(InstanceStatus::Error)
            })
        }
        // Its lease has left it behind.
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

/// Whether the lease is over. Leases that are not are all known here.
fn is_over(claims: &Claims<'_>, lease: LeaseId) -> bool {
    claims.leases.get(&lease).is_none_or(|lease| lease.over())
}

/// Whether the lease that an instance is part of, if it is, has none any more: what runs stays until it is over, what
/// does not is not started after its end.
fn has_lost_its_lease(claims: &Claims<'_>, instance: &Instance) -> bool {
    let Some(lease) = instance.kind.lease() else { return false };
    let is_active = |lease: &Lease| lease.status == LeaseStatus::Active;
    match instance.status {
        InstanceStatus::Active => is_over(claims, lease),
        _ => claims.leases.get(&lease).is_none_or(|lease| !is_active(lease)),
    }
}

/// When a preemptible instance is asked to leave because of its lifetime, if that is limited and it doesn't leave already.
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

/// Whether it was destroyed, or its host has been given back. That it is not seen is not enough: it may be about to be
/// there.
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
        // It may never be seen again. The fleet says so, and after some tries its owner knows.
        effort.step(Action::StartGuest(instance.host, instance.id), lease);
        return;
    }
    // Nothing runs on a host that is switched off, and what is kept of an instance is not there: it can be destroyed.
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
        // It is started once those have gone that are preempted for it.
        (InstanceStatus::Building, None) if in_the_way() => {}
        (InstanceStatus::Building, None) => {
            effort.step(Action::StartGuest(instance.host, instance.id), lease);
        }
        // One that is moving is destroyed where it arrives.
        (InstanceStatus::Deleting, Some((_, guest))) if guest.moving_to.is_some() => {}
        (InstanceStatus::Deleting, _) => {
            // What was kept for it goes as well. What is destroyed is not destroyed again: where few steps are carried
            // out at once, that would keep the other from its turn forever.
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
