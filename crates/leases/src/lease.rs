//! Leases as they are kept: what was asked, what was given, and how far things are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

pub use crate::end_action::EndAction;
use crate::hints::Hints;
use crate::housekeeping::marks::Marks;
use crate::hunt::record::Hunt;
use crate::ids::{FloatingIpId, HostId, LeaseId, ReservationId, SeriesId};
use crate::lease_type::{LeaseState, LeaseType};
use crate::project::Owner;
use crate::standing::Standing;
use crate::status::{self, EventStatus, LeaseStatus, ReservationStatus};
use crate::terms::{ReservationTerms, Terms};
use crate::window::{Window, earlier, later};

/// What a reservation was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// Whole hosts.
    Hosts(BTreeSet<HostId>),
    /// So many slots on each host; never 0.
    Slots(BTreeMap<HostId, u32>),
    /// Addresses.
    FloatingIps(BTreeSet<FloatingIpId>),
}

impl Allocation {
    /// The hosts that are in it, whole or in part.
    pub fn hosts(&self) -> BTreeSet<HostId> {
        match self {
            Self::Hosts(hosts) => hosts.clone(),
            Self::Slots(slots) => slots.keys().copied().collect(),
            Self::FloatingIps(_) => BTreeSet::new(),
        }
    }

    /// Whether both are of whole hosts, of slots, or of addresses.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }

    /// How many hosts, slots or addresses it has.
    pub fn amount(&self) -> u64 {
        match self {
            Self::Hosts(hosts) => hosts.len() as u64,
            Self::Slots(slots) => slots.values().map(|n| u64::from(*n)).sum(),
            Self::FloatingIps(ips) => ips.len() as u64,
        }
    }
}

/// A reservation of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Its identifier.
    pub id: ReservationId,
    /// What was asked for.
    pub terms: ReservationTerms,
    /// What was given.
    pub allocation: Allocation,
    /// How far it is.
    pub status: ReservationStatus,
    /// Something failed and there was no replacement. Cleared when it is whole again.
    pub missing_resources: bool,
    /// Something was exchanged while the lease was active. Cleared by the owner's next change of the lease.
    pub resources_changed: bool,
}

/// The kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventKind {
    /// The lease starts.
    StartLease,
    /// The lease ends soon.
    BeforeEndLease,
    /// The lease ends.
    EndLease,
    /// It is too late to start. Not in Blazar.
    Timeout,
    /// Preemptible guests leave the hosts of the lease, which starts soon (PRE-08). Not in Blazar.
    BeforeStartLease,
}

impl EventKind {
    /// Blazar's name, where it has one.
    pub fn name(self) -> &'static str {
        match self {
            Self::StartLease => "start_lease",
            Self::BeforeEndLease => "before_end_lease",
            Self::EndLease => "end_lease",
            Self::Timeout => "timeout",
            Self::BeforeStartLease => "before_start_lease",
        }
    }
}

/// An event of a lease, as the API shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// What happens.
    pub kind: EventKind,
    /// When it is due.
    pub at: Timestamp,
    /// How far it is.
    pub status: EventStatus,
}

/// How far a lease's events are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventStatuses {
    /// The start.
    pub start: EventStatus,
    /// The action before the end.
    pub before_end: EventStatus,
    /// The end.
    pub end: EventStatus,
}

impl EventStatuses {
    /// Nothing has begun.
    pub const UNDONE: Self =
        Self { start: EventStatus::Undone, before_end: EventStatus::Undone, end: EventStatus::Undone };
}

/// What is done before a lease starts, so that it does so at once: preemptible guests leave its hosts (PRE-08).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BeforeStart {
    /// How long before the start it begins.
    pub ahead: SignedDuration,
    /// How far it is: done once no preemptible guest is left on any host of the lease, and none can come.
    pub status: EventStatus,
}

/// A lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Its identifier.
    pub id: LeaseId,
    /// Its name; not unique.
    pub name: String,
    /// Whose it is.
    pub owner: Owner,
    /// How firm it is.
    pub standing: Standing,
    /// The leases that it recurs with, if it does.
    pub series: Option<SeriesId>,
    /// When it is to start, and until when it must have.
    pub lease_type: LeaseType,
    /// From when to when. Of one that is to start as soon as it can, as far as is known; of one that hunts, from the
    /// hunt's beginning on.
    pub window: Window,
    /// What is done before the start, if anything is.
    pub before_start: Option<BeforeStart>,
    /// When the action before the end is due; none if absent.
    pub before_end: Option<Timestamp>,
    /// What becomes of guests at the end.
    pub end_action: EndAction,
    /// Whether preemptible instances may run on whole hosts of it as long as it does not use them (PRE-11).
    pub backfill: bool,
    /// What is reserved.
    pub reservations: Vec<Reservation>,
    /// Where its hosts are to be, and how its instances are spread. Nothing changes them.
    pub hints: Arc<Hints>,
    /// What housekeeping has done about it.
    pub marks: Marks,
    /// Whose guests are moved out of its way, if any are; once it is over, where its own go that are not to stay.
    pub hunt: Option<Hunt>,
    /// How far it is.
    pub status: LeaseStatus,
    /// How far its events are.
    pub events: EventStatuses,
    /// Why it does not get on, if it does not: one text for its owner and one for administrators ([`crate::reason`]).
    pub reason: Option<String>,
}

/// What a new lease is called and whose it is.
#[derive(Clone, Debug)]
pub struct NewLease {
    /// Its identifier.
    pub id: LeaseId,
    /// Its name.
    pub name: String,
    /// Whose it is.
    pub owner: Owner,
    /// What becomes of guests at the end.
    pub end_action: EndAction,
    /// Identifiers for its reservations, one each.
    pub reservations: Vec<ReservationId>,
}

impl Lease {
    /// The moment that images of its guests are made for: the time of the action before its end while that is under way,
    /// else its end. What was made for an earlier one does not count, as guests have gone on since.
    pub fn images_for(&self) -> Timestamp {
        let ahead = self.status == LeaseStatus::Active && self.events.before_end == EventStatus::InProgress;
        self.before_end.filter(|_| ahead).unwrap_or_else(|| self.window.end())
    }

    /// The same with all that an owner may change at any time and that decides nothing of what the lease is given or when,
    /// as that one has it.
    #[must_use]
    pub(crate) fn with_preferences_of(self, other: &Self) -> Self {
        Self { name: other.name.clone(), end_action: other.end_action, backfill: other.backfill, ..self }
    }

    /// What it asks for, as long as it waits.
    pub fn asked_terms(&self) -> Option<Terms> {
        let reservations = self.reservations.iter().map(|reservation| reservation.terms.clone()).collect();
        // One that is due at the start was not asked for: it results from the operator's distance from the end.
        let before_end = self.before_end.filter(|at| *at > self.window.start());
        let checked = Terms::new(self.window, before_end, reservations).ok()?;
        let terms = Terms {
            window: checked.window,
            before_end: checked.before_end,
            lease_type: self.lease_type,
            within: None,
            reservations: checked.reservations,
            hints: self.hints.clone(),
            backfill: self.backfill,
        };
        match self.standing {
            Standing::Waiting { within: Some(within), .. } => terms.anywhere_in(within).ok(),
            _ => Some(terms),
        }
    }

    /// A lease of these terms that was given `allocations`, one per reservation.
    ///
    /// `before_end_lead` is how long before the end the before-end action is due unless the terms say when;
    /// none means never.
    pub fn new(
        new: NewLease,
        terms: Terms,
        allocations: Vec<Allocation>,
        before_end_lead: Option<SignedDuration>,
    ) -> Self {
        let window = terms.window();
        let before_end =
            terms.before_end().or_else(|| before_end_lead.map(|lead| before_end_at(&window, lead)));
        let reservations = terms
            .reservations
            .into_iter()
            .zip(allocations)
            .zip(new.reservations)
            .map(|((terms, allocation), id)| Reservation {
                id,
                terms,
                allocation,
                status: ReservationStatus::Pending,
                missing_resources: false,
                resources_changed: false,
            })
            .collect();
        Self {
            id: new.id,
            name: new.name,
            owner: new.owner,
            standing: Standing::Firm,
            series: None,
            lease_type: terms.lease_type,
            window,
            before_start: None,
            before_end,
            end_action: new.end_action,
            backfill: terms.backfill,
            reservations,
            hints: terms.hints,
            marks: Marks::default(),
            hunt: None,
            status: LeaseStatus::Pending,
            events: EventStatuses::UNDONE,
            reason: None,
        }
    }

    /// The lease as firm as that.
    #[must_use]
    pub fn standing(self, standing: Standing) -> Self {
        Self { standing, ..self }
    }

    /// Whether it has hosts, or room on any.
    pub fn is_on_hosts(&self) -> bool {
        let on_hosts =
            |reservation: &Reservation| !matches!(reservation.allocation, Allocation::FloatingIps(_));
        self.reservations.iter().any(on_hosts)
    }

    /// The lease with its hosts being cleared so long before it starts, if it has any, or room on any.
    #[must_use]
    pub fn cleared_ahead(self, ahead: Option<SignedDuration>) -> Self {
        let ahead = ahead.filter(|_| self.is_on_hosts());
        let before_start = ahead.map(|ahead| BeforeStart { ahead, status: EventStatus::Undone });
        Self { before_start, ..self }
    }

    /// The lease with what it is given by such a hunt.
    #[must_use]
    pub fn hunting(self, hunt: Option<Hunt>) -> Self {
        Self { hunt, ..self }
    }

    /// The lease from another start on, as long, with other hosts, slots and addresses.
    #[must_use]
    pub(crate) fn moved_to(&self, start: Timestamp, allocations: Vec<Allocation>) -> Self {
        let shift = start.duration_since(self.window.start());
        let mut moved = self.clone();
        moved.window = Window::starting(start, self.window.length());
        moved.before_end = self.before_end.map(|at| later(at, shift));
        for (reservation, allocation) in moved.reservations.iter_mut().zip(allocations) {
            reservation.allocation = allocation;
            reservation.missing_resources = false;
        }
        moved
    }

    /// Whether it has less than it was promised.
    pub fn degraded(&self) -> bool {
        self.reservations.iter().any(|r| r.missing_resources)
    }

    /// Whether a reservation of whole hosts has fewer than it was promised.
    pub fn lacks_hosts(&self) -> bool {
        let of_hosts = |r: &&Reservation| matches!(r.allocation, Allocation::Hosts(_));
        self.reservations.iter().filter(of_hosts).any(|r| r.missing_resources)
    }

    /// Whether each of its reservations has as much as in `other`, which has the same reservations.
    pub fn has_as_much_as(&self, other: &Self) -> bool {
        let mut both = self.reservations.iter().zip(&other.reservations);
        both.all(|(own, other)| {
            own.allocation.amount() == other.allocation.amount()
                && own.missing_resources == other.missing_resources
        })
    }

    /// Whether each of its reservations has at least as much as in `other`, which has the same reservations.
    pub fn has_at_least(&self, other: &Self) -> bool {
        let mut both = self.reservations.iter().zip(&other.reservations);
        both.all(|(own, other)| own.allocation.amount() >= other.allocation.amount())
    }

    /// Its events in the order of their times.
    pub fn events(&self) -> Vec<Event> {
        let event = |kind, at, status| Event { kind, at, status };
        let start = event(EventKind::StartLease, self.window.start(), self.events.start);
        let before_start = self.before_start.map(|BeforeStart { ahead, status }| {
            event(EventKind::BeforeStartLease, earlier(self.window.start(), ahead), status)
        });
        let before_end =
            self.before_end.map(|at| event(EventKind::BeforeEndLease, at, self.events.before_end));
        let end = event(EventKind::EndLease, self.window.end(), self.events.end);
        let timed_out = if self.timed_out() { EventStatus::Done } else { EventStatus::Undone };
        let timeout = self.lease_type.deadline().map(|at| event(EventKind::Timeout, at, timed_out));
        let mut events: Vec<Event> =
            before_start.into_iter().chain([start]).chain(before_end).chain([end]).chain(timeout).collect();
        events.sort_by_key(|event| event.at);
        events
    }

    /// When it is too late to start, if ever: at the deadline, or at the end if that is earlier.
    pub fn times_out_at(&self) -> Option<Timestamp> {
        let end = if self.window.is_empty() { Timestamp::MAX } else { self.window.end() };
        self.lease_type.deadline().map(|deadline| deadline.min(end))
    }

    /// Whether it was too late to start.
    fn timed_out(&self) -> bool {
        self.lease_type.deadline().is_some() && self.events.start == EventStatus::Error
    }

    /// How far it is, in the seed's words.
    pub fn state(&self) -> LeaseState {
        LeaseState::of(self.lease_type, self.status, self.events.start == EventStatus::Error)
    }

    /// Whether what it was given is kept from others. What is only offered is not, and a lease that is over, failed or
    /// being deleted keeps nothing, although its hosts may still have to be emptied: the planner sees to that order,
    /// and the calendar to the time for cleaning. One that could not start keeps nothing at its end either: by then
    /// others may have had its hosts, or these may be gone.
    pub fn keeps_resources(&self) -> bool {
        self.standing.keeps_resources()
            && self.events.start != EventStatus::Error
            && !matches!(self.status, LeaseStatus::Terminated | LeaseStatus::Deleting | LeaseStatus::Error)
    }

    /// Whether nothing will ever happen to it by itself.
    pub fn over(&self) -> bool {
        self.status.stable() && self.events.end == EventStatus::Done
    }

    /// Whether it says for good why it did not get on: it could not start, or was ended because nobody used it. What any
    /// other says lasts no longer than what it speaks of.
    pub fn keeps_reason(&self) -> bool {
        self.events.start == EventStatus::Error || self.marks.reclaimed_at.is_some()
    }

    /// Whether its hosts are being taken back.
    pub fn ending(&self) -> bool {
        matches!(self.status, LeaseStatus::Terminating | LeaseStatus::Deleting)
    }

    /// Whether its guests are being moved away, since it is over.
    pub fn departing(&self) -> bool {
        self.end_action == EndAction::MoveGuests && self.ending()
    }

    /// The lease with another status, in which its hosts are taken back. Where it had others moved, if it did, does not
    /// matter any more.
    pub(crate) fn ended(self, status: LeaseStatus) -> Self {
        let hunt = self.hunt.filter(|_| self.end_action != EndAction::MoveGuests);
        Self { hunt, status, ..self }
    }

    /// The reservation of that identifier.
    pub fn reservation(&self, id: ReservationId) -> Option<&Reservation> {
        self.reservations.iter().find(|r| r.id == id)
    }

    /// Whether its status, its events and its reservations fit together.
    pub fn consistent(&self) -> bool {
        let reservations = self.reservations.iter().map(|r| r.status);
        status::fits(self.status, reservations, self.events.start, self.events.end)
    }

    /// The lease as it is from the moment its deletion was accepted: its time ends then, its hosts are taken
    /// back, and after that it is forgotten.
    #[must_use]
    pub fn deleted(&self, now: Timestamp) -> Self {
        let length = now.duration_since(self.window.start()).min(self.window.length());
        let window = Window::starting(self.window.start(), length);
        Self { window, reason: None, ..self.clone() }.ended(LeaseStatus::Deleting)
    }
}

/// When the before-end action is due: so long before the end, but not before the start (API-events).
pub(crate) fn before_end_at(window: &Window, lead: SignedDuration) -> Timestamp {
    earlier(window.end(), lead).max(window.start())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at, lease, window};

    #[test]
    fn the_action_before_the_end_is_never_due_before_the_start() {
        let hour = SignedDuration::from_hours(1);
        assert_eq!(before_end_at(&window(0, 30), hour), at(0));
        assert_eq!(before_end_at(&window(0, 90), hour), at(30));
    }

    #[test]
    fn events_come_in_the_order_of_time() {
        let lease = Lease { before_end: Some(at(50)), ..lease(1, window(0, 60), &[]) };
        let events: Vec<_> = lease.events().iter().map(|e| (e.kind.name(), e.at)).collect();
        assert_eq!(events, [("start_lease", at(0)), ("before_end_lease", at(50)), ("end_lease", at(60))]);
    }

    #[test]
    fn a_lease_is_degraded_as_long_as_something_is_missing() {
        let mut lease = lease(1, window(0, 60), &[1]);
        assert!(!lease.degraded() && lease.consistent());
        lease.reservations[0].missing_resources = true;
        assert!(lease.degraded());
    }

    #[test]
    fn a_lease_that_could_not_start_keeps_nothing_and_does_not_have_it_again_at_its_end() {
        let mut lease = lease(1, window(0, 60), &[1]);
        (lease.status, lease.events.start) = (LeaseStatus::Error, EventStatus::Error);
        assert!(!lease.keeps_resources());
        (lease.status, lease.events.end) = (LeaseStatus::Terminating, EventStatus::InProgress);
        assert!(!lease.keeps_resources());
    }

    #[test]
    fn a_deleted_lease_keeps_nothing() {
        let lease = lease(1, window(0, 60), &[1]);
        assert!(lease.keeps_resources());
        let deleted = lease.deleted(at(20));
        assert!(!deleted.keeps_resources());
        assert_eq!(deleted.window, window(0, 20));
        assert_eq!(lease.deleted(at(90)).window, window(0, 60));
    }
}
