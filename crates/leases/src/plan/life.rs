//! Life cycle of a lease: its next status, and when to check it again.
//!
//! Each plan makes at most one change to a lease; the next plan makes the next. Every change is allowed by
//! [`LeaseStatus::may_become`] and leaves the lease consistent.

use jiff::{SignedDuration, Timestamp};

use super::effort::Effort;
use super::leaving::doomed;
use super::observed::{Guest, GuestOwner, Place};
use super::reservations;
use super::step::Action;
use super::{FENCE_TOLERANCE, World};
use crate::host::Health;
use crate::ids::{HostId, ReservationId};
use crate::lease::{Allocation, BeforeStart, EndAction, EventStatuses, Lease, Reservation};
use crate::lease_type::LeaseType;
use crate::reason::prefixed;
use crate::status::{EventStatus, LeaseStatus, ReservationStatus, stable_status};
use crate::terms::{BeforeEndAction, ReservationTerms};
use crate::window::{Window, earlier, later};

/// Outcome of a lease's next transition.
pub(super) enum Next {
    Stay,
    /// The lease changes to this.
    Become(Box<Lease>),
    /// The lease was deleted and no machine has anything left to take back.
    Forget,
}

pub(super) fn wants_resources(lease: &Lease, now: Timestamp) -> bool {
    match lease.status {
        // Also before its start: a service with a clock ahead of ours has begun the start. Otherwise the two
        // would keep undoing each other's assignments.
        LeaseStatus::Starting => now < lease.window.end() && !overdue(lease, now),
        // Until its end event begins: actions due before the end run first, even if they are late.
        LeaseStatus::Active => !lease.window.is_empty(),
        _ => false,
    }
}

fn overdue(lease: &Lease, now: Timestamp) -> bool {
    lease.times_out_at().is_some_and(|at| at <= now)
}

/// Whether the lease should hold the host, or slots on it, now.
pub(super) fn wants_host(lease: &Lease, host: HostId, now: Timestamp) -> bool {
    wants_resources(lease, now) && lease.reservations.iter().any(|r| r.allocation.hosts().contains(&host))
}

pub(super) fn next(lease: &Lease, world: &World<'_>) -> Next {
    let now = world.now;
    let ended = lease.window.end() <= now;
    let events = lease.events;
    let immediate = matches!(lease.lease_type, LeaseType::Immediate { .. });
    let to = match lease.status {
        LeaseStatus::Creating => Change::status(LeaseStatus::Pending, events),
        LeaseStatus::Updating => Change::status(stable_status(events.start, events.end), events),
        LeaseStatus::Pending | LeaseStatus::Starting if immediate && overdue(lease, now) => {
            return Next::Become(Box::new(lease.deleted(now)));
        }
        LeaseStatus::Pending if lease.window.start() <= now || overdue(lease, now) => {
            let events = EventStatuses { start: EventStatus::InProgress, ..events };
            Change::status(LeaseStatus::Starting, events)
        }
        LeaseStatus::Pending => match before_start(lease, world) {
            Some(before_start) => {
                return Next::Become(Box::new(Lease { before_start: Some(before_start), ..lease.clone() }));
            }
            None => return Next::Stay,
        },
        LeaseStatus::Starting if overdue(lease, now) => {
            let events = EventStatuses { start: EventStatus::Error, ..events };
            Change::all(LeaseStatus::Error, events, ReservationStatus::Error)
        }
        LeaseStatus::Starting if lease.window.is_empty() || (!ended && ready(lease, world)) => {
            let events = EventStatuses { start: EventStatus::Done, ..events };
            let active = Change::all(LeaseStatus::Active, events, ReservationStatus::Active).apply(lease);
            return Next::Become(Box::new(after_hunt(active, now)));
        }
        LeaseStatus::Starting if ended => {
            let events = EventStatuses { start: EventStatus::Error, ..events };
            Change::all(LeaseStatus::Error, events, ReservationStatus::Error)
        }
        LeaseStatus::Active => match before_end(lease, world) {
            Some(status) => {
                Change::status(LeaseStatus::Active, EventStatuses { before_end: status, ..events })
            }
            None if ended && events.before_end != EventStatus::InProgress => {
                let events = EventStatuses { end: EventStatus::InProgress, ..events };
                Change::status(LeaseStatus::Terminating, events)
            }
            None => return Next::Stay,
        },
        LeaseStatus::Error if ended && events.end == EventStatus::Undone => {
            let events = EventStatuses { end: EventStatus::InProgress, ..events };
            Change::status(LeaseStatus::Terminating, events)
        }
        LeaseStatus::Terminating if returned(lease, world) => {
            let started = events.start == EventStatus::Done;
            let status = if started { LeaseStatus::Terminated } else { LeaseStatus::Error };
            let events = EventStatuses { end: EventStatus::Done, ..events };
            Change::all(status, events, ReservationStatus::Deleted)
        }
        // The lease is kept until no host has anything left. Without its record, the owner of remaining
        // guests would be unknown.
        LeaseStatus::Deleting if returned(lease, world) && left_behind(lease, world).next().is_none() => {
            return Next::Forget;
        }
        _ => return Next::Stay,
    };
    Next::Become(Box::new(to.apply(lease)))
}

/// Moves the window of a lease that hunted for hosts, so that it starts now. The lease gets its full
/// requested duration, less any time by which the hunt exceeded its allowance.
fn after_hunt(lease: Lease, now: Timestamp) -> Lease {
    // A lease that was shortened to nothing needs no time.
    let Some(hunt) = lease.hunt.as_ref().filter(|_| !lease.window.is_empty()) else { return lease };
    let asked = lease.window.length().saturating_sub(hunt.allowance).max(SignedDuration::ZERO);
    let (before, start) = (lease.window.end(), now.max(lease.window.start()));
    let window = Window::starting(start, asked.min(before.duration_since(start)));
    let shift = before.duration_since(window.end());
    let before_end = lease.before_end.map(|at| earlier(at, shift).max(start));
    Lease { window, before_end, ..lease }
}

struct Change {
    status: LeaseStatus,
    events: EventStatuses,
    reservations: Option<ReservationStatus>,
}

impl Change {
    fn status(status: LeaseStatus, events: EventStatuses) -> Self {
        Self { status, events, reservations: None }
    }

    fn all(status: LeaseStatus, events: EventStatuses, reservations: ReservationStatus) -> Self {
        Self { status, events, reservations: Some(reservations) }
    }

    fn apply(self, lease: &Lease) -> Lease {
        let mut after = Lease { events: self.events, ..lease.clone() };
        after = match self.status {
            LeaseStatus::Terminating => after.ended(self.status),
            status => Lease { status, ..after },
        };
        if lease.status == LeaseStatus::Starting
            && let Some(before_start) = &mut after.before_start
        {
            // Clearing ahead of the start is over by now: it has finished or failed.
            before_start.status = after.events.start;
        }
        if let Some(status) = self.reservations {
            for reservation in &mut after.reservations {
                reservation.status = status;
            }
        }
        if after.status == LeaseStatus::Error && lease.status == LeaseStatus::Starting {
            let (limit, last) = match lease.lease_type {
                LeaseType::Schedule => ("end", "its end came first"),
                _ => ("timeout", "it came first"),
            };
            let last = lease.reason.as_deref().unwrap_or(last);
            let before = format!("the lease could not start before its {limit}: ");
            after.reason = Some(prefixed(&before, last));
        }
        debug_assert!(
            lease.status == after.status || lease.status.may_become(after.status),
            "{:?} to {:?}",
            lease.status,
            after.status
        );
        debug_assert!(!lease.consistent() || after.consistent(), "{after:?}");
        after
    }
}

/// Whether a starting lease holds everything allocated to it. A reservation without any host or slot isn't
/// ready.
fn ready(lease: &Lease, world: &World<'_>) -> bool {
    let observed = world.observed;
    lease.reservations.iter().all(|reservation| match &reservation.allocation {
        Allocation::Hosts(hosts) => {
            let held = |host| observed.hosts.get(host).map(|h| h.place) == Some(Place::Held(reservation.id));
            !hosts.is_empty() && hosts.iter().all(held)
        }
        Allocation::Slots(slots) => {
            let granted = |(host, count): (_, &u32)| {
                observed.hosts.get(host).and_then(|h| h.slots.get(&reservation.id)) == Some(count)
            };
            !slots.is_empty() && slots.iter().all(granted)
        }
        Allocation::FloatingIps(ips) => {
            ips.iter().all(|ip| observed.floating_ips.get(ip) == Some(&reservation.id))
        }
    })
}

/// Whether nothing of the lease is left on any working machine. A failed host is taken back when it recovers;
/// the lease is over regardless.
fn returned(lease: &Lease, world: &World<'_>) -> bool {
    let mut left = left_behind(lease, world).peekable();
    // Resources made for the reservation as a whole stay until the last host is taken back.
    let kept = left.peek().is_some();
    left.all(|(_, health)| health == Health::Failed)
        && (kept || !reservations::is_any_left(lease, world.observed))
        && !world.observed.floating_ips.values().any(|holder| lease.reservation(*holder).is_some())
}

/// Hosts on which the lease still has something, or that still run guests to be deleted with it.
pub(super) fn left_behind<'a>(
    lease: &'a Lease,
    world: &World<'a>,
) -> impl Iterator<Item = (HostId, Health)> + 'a {
    let hosts = world.observed.hosts.iter();
    hosts
        .filter(|(_, host)| {
            let has = |r: &Reservation| {
                [Place::Held(r.id), Place::Releasing(r.id)].contains(&host.place)
                    || host.slots.contains_key(&r.id)
            };
            lease.reservations.iter().any(has) || doomed(Some(lease), host).next().is_some()
        })
        .map(|(id, host)| (*id, host.health))
}

/// Progress in clearing the hosts of a pending lease, or `None` if it hasn't changed.
fn before_start(lease: &Lease, world: &World<'_>) -> Option<BeforeStart> {
    let ahead = world.rules.clear_ahead.filter(|_| lease.is_on_hosts())?;
    let before = lease.before_start.map_or(EventStatus::Undone, |known| known.status);
    let at = world.rules.clears_at(lease.window.start());
    let status = match before {
        EventStatus::Undone if at <= world.now => EventStatus::InProgress,
        EventStatus::InProgress if cleared(lease, world) => EventStatus::Done,
        // The start was postponed. By another service's clock, clearing might already be due.
        EventStatus::InProgress | EventStatus::Done if later(world.now, FENCE_TOLERANCE) < at => {
            EventStatus::Undone
        }
        status => status,
    };
    let after = BeforeStart { ahead, status };
    (Some(after) != lease.before_start).then_some(after)
}

/// Whether the lease's hosts have no preemptible guest left that must leave, and whole hosts are closed to
/// new ones.
fn cleared(lease: &Lease, world: &World<'_>) -> bool {
    let clear = |host: &HostId| {
        world.observed.hosts.get(host).is_some_and(|seen| {
            let preemptible = |guest: &Guest| guest.owner == GuestOwner::Preemptible;
            seen.place != Place::FreePool && !seen.guests.iter().any(preemptible)
        })
    };
    lease.reservations.iter().all(|reservation| match &reservation.allocation {
        Allocation::Hosts(hosts) => hosts.iter().all(clear),
        // On shared hosts, guests that aren't preempted stay.
        Allocation::Slots(slots) => {
            let mut leaving = world.instances.iter().filter(|instance| instance.is_departing(world.now));
            !leaving.any(|instance| instance.needs_place() && slots.contains_key(&instance.host))
                && !slots.keys().any(|host| others_leave(*host, lease, world))
        }
        Allocation::FloatingIps(_) => true,
    })
}

/// Whether the host has a guest started outside the service that is preempted for this lease or for an
/// earlier one.
fn others_leave(host: HostId, lease: &Lease, world: &World<'_>) -> bool {
    if world.others_leaving.is_empty() {
        return false;
    }
    let leaves = |guest: &Guest| {
        world.others_leaving.get(&guest.id).is_some_and(|start| *start <= lease.window.start())
    };
    world.observed.hosts.get(&host).is_some_and(|seen| seen.guests.iter().any(leaves))
}

/// Next status of the before-end event of an active lease, or `None` if it doesn't change.
fn before_end(lease: &Lease, world: &World<'_>) -> Option<EventStatus> {
    let at = lease.before_end?;
    let current = lease.events.before_end;
    if !(current == EventStatus::InProgress || (current == EventStatus::Undone && at <= world.now)) {
        return None;
    }
    let snapshots = snapshots(lease, world);
    let any = |state| snapshots.iter().any(|snapshot| snapshot.state == state);
    let next = if any(SnapshotState::Wanted) {
        EventStatus::InProgress
    } else if any(SnapshotState::GivenUp) {
        EventStatus::Error
    } else {
        EventStatus::Done
    };
    (next != current).then_some(next)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SnapshotState {
    Wanted,
    Done,
    GivenUp,
}

struct Snapshot {
    action: Action,
    state: SnapshotState,
}

/// Snapshots to make before the lease's end. Failed hosts are skipped.
fn snapshots(lease: &Lease, world: &World<'_>) -> Vec<Snapshot> {
    let snapshot = |reservation: &Reservation, host| {
        let action = Action::Snapshot(host, reservation.id);
        let failures = world.history.failures.get(&action).map_or(0, |failures| failures.times);
        let done = world.history.done.get(&action);
        // A snapshot from before the event was rearmed doesn't count.
        let state = if done.is_some_and(|done| lease.before_end.is_some_and(|at| at <= *done)) {
            SnapshotState::Done
        } else if failures >= world.rules.snapshot_attempts {
            SnapshotState::GivenUp
        } else {
            SnapshotState::Wanted
        };
        Snapshot { action, state }
    };
    let mut snapshots = Vec::new();
    for reservation in &lease.reservations {
        let ReservationTerms::Hosts(terms) = &reservation.terms else { continue };
        let wanted = match terms.before_end {
            BeforeEndAction::Default => world.rules.before_end,
            chosen => chosen,
        };
        if wanted != BeforeEndAction::Snapshot {
            continue;
        }
        let works = |host: &_| world.observed.hosts.get(host).is_some_and(|h| h.health != Health::Failed);
        let hosts = reservation.allocation.hosts().into_iter().filter(works);
        snapshots.extend(hosts.map(|host| snapshot(reservation, host)));
    }
    snapshots
}

/// Whether guests on the host still have to be imaged before they are deleted at the lease's end. The planner
/// gives up after `snapshot_attempts` failures, if the last one came after the end, because other leases wait
/// for the host.
pub(super) fn wants_images(
    lease: &Lease,
    (host, holder): (HostId, ReservationId),
    world: &World<'_>,
) -> bool {
    if lease.end_action != EndAction::SnapshotGuests {
        return false;
    }
    let (action, end) = (Action::Snapshot(host, holder), lease.window.end());
    let made = world.history.done.get(&action).is_some_and(|done| end <= *done);
    let failures = world.history.failures.get(&action);
    let given_up = failures
        .is_some_and(|failures| failures.times >= world.rules.snapshot_attempts && end <= failures.last_at);
    !made && !given_up
}

pub(super) fn plan_before_end(effort: &mut Effort<'_>, lease: &Lease) {
    if lease.status != LeaseStatus::Active || lease.events.before_end != EventStatus::InProgress {
        return;
    }
    // A service with a clock ahead of ours has begun the event. A snapshot made now would predate the event
    // by our clock, so it wouldn't count as done and would be repeated forever.
    if let Some(at) = lease.before_end.filter(|at| *at > effort.world.now) {
        effort.wake(at);
        return;
    }
    for snapshot in snapshots(lease, &effort.world) {
        if snapshot.state == SnapshotState::Wanted {
            effort.step(snapshot.action, Some(lease.id));
        }
    }
}

/// Schedules a wake-up for the lease's next deadline.
pub(super) fn wake(effort: &mut Effort<'_>, lease: &Lease) {
    match lease.status {
        LeaseStatus::Pending => {
            let start = lease.window.start();
            let clears_at = effort.world.rules.clears_at(start);
            effort.wake(if effort.world.now < clears_at { clears_at } else { start });
        }
        LeaseStatus::Starting => {
            effort.wake(lease.times_out_at().unwrap_or(Timestamp::MAX).min(lease.window.end()));
        }
        LeaseStatus::Active => {
            let before_end = lease.before_end.filter(|_| lease.events.before_end == EventStatus::Undone);
            if let Some(at) = before_end {
                effort.wake(at);
            }
            // Once the end is due, the lease waits for its before-end event rather than for a point in time.
            if effort.world.now < lease.window.end() {
                effort.wake(lease.window.end());
            }
        }
        _ => {}
    }
}
