//! Stored leases: terms, allocations and progress.

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

/// Resources allocated to a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allocation {
    Hosts(BTreeSet<HostId>),
    /// Number of slots on each host, never 0.
    Slots(BTreeMap<HostId, u32>),
    FloatingIps(BTreeSet<FloatingIpId>),
}

impl Allocation {
    /// Hosts that are allocated, whole or in part.
    pub fn hosts(&self) -> BTreeSet<HostId> {
        match self {
            Self::Hosts(hosts) => hosts.clone(),
            Self::Slots(slots) => slots.keys().copied().collect(),
            Self::FloatingIps(_) => BTreeSet::new(),
        }
    }

    /// Whether both are of the same type: hosts, slots or addresses.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }

    /// Number of hosts, slots or addresses.
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
    pub id: ReservationId,
    pub terms: ReservationTerms,
    pub allocation: Allocation,
    pub status: ReservationStatus,
    /// A resource failed and there was no replacement. Cleared once the reservation is complete again.
    pub missing_resources: bool,
    /// A resource was replaced while the lease was active. Cleared by the owner's next change of the lease.
    pub resources_changed: bool,
}

/// Kind of a lease event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventKind {
    StartLease,
    /// The action before the end is due.
    BeforeEndLease,
    EndLease,
    /// It is too late to start. Not in Blazar.
    Timeout,
    /// Preemptible guests leave the hosts of a lease that starts soon (PRE-08). Not in Blazar.
    BeforeStartLease,
}

impl EventKind {
    /// Name in the API: Blazar's, if Blazar has the event.
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
    pub kind: EventKind,
    /// Due time.
    pub at: Timestamp,
    pub status: EventStatus,
}

/// Statuses of a lease's events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventStatuses {
    pub start: EventStatus,
    pub before_end: EventStatus,
    pub end: EventStatus,
}

impl EventStatuses {
    /// No event has begun.
    pub const UNDONE: Self =
        Self { start: EventStatus::Undone, before_end: EventStatus::Undone, end: EventStatus::Undone };
}

/// Preparation for a start without delay: preemptible guests leave the lease's hosts (PRE-08).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BeforeStart {
    /// Time before the start at which it begins.
    pub ahead: SignedDuration,
    /// Done once no preemptible guest is left on any host of the lease, and no new one can arrive.
    pub status: EventStatus,
}

/// A lease. Offers and waiting requests are stored as leases too; see [`Standing`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub id: LeaseId,
    /// Not unique.
    pub name: String,
    pub owner: Owner,
    /// Whether the lease is confirmed, offered or waiting.
    pub standing: Standing,
    /// Series of recurring leases that it belongs to.
    pub series: Option<SeriesId>,
    /// Rule for its start, with the deadline.
    pub lease_type: LeaseType,
    /// Time window. For a best-effort lease that waits, it is the currently planned one; for a lease that
    /// hunts, it includes the hunt.
    pub window: Window,
    /// Preparation before the start, if any.
    pub before_start: Option<BeforeStart>,
    /// Due time of the action before the end; `None` disables it.
    pub before_end: Option<Timestamp>,
    /// Fate of the lease's guests at its end.
    pub end_action: EndAction,
    /// Whether preemptible instances can run on its whole hosts while it doesn't use them (PRE-11).
    pub backfill: bool,
    pub reservations: Vec<Reservation>,
    /// Location of its hosts and distribution of its instances. Never changes.
    pub hints: Arc<Hints>,
    /// Housekeeping actions so far.
    pub marks: Marks,
    /// Migration plan for guests of other tenants that are in its way. After the lease's end, the plan for
    /// its own guests that must move away.
    pub hunt: Option<Hunt>,
    pub status: LeaseStatus,
    pub events: EventStatuses,
    /// Reason the lease is blocked, if it is: a text for its owner and one for administrators
    /// ([`crate::reason`]).
    pub reason: Option<String>,
}

/// Identity and settings of a new lease.
#[derive(Clone, Debug)]
pub struct NewLease {
    pub id: LeaseId,
    pub name: String,
    pub owner: Owner,
    /// Fate of the lease's guests at its end.
    pub end_action: EndAction,
    /// Identifiers for the reservations, one each.
    pub reservations: Vec<ReservationId>,
}

impl Lease {
    /// Reference time of images of its guests: the due time of the action before the end while that is in
    /// progress, else the lease's end. Images from an earlier time don't count, because the guests have
    /// changed since.
    pub fn images_for(&self) -> Timestamp {
        let ahead = self.status == LeaseStatus::Active && self.events.before_end == EventStatus::InProgress;
        self.before_end.filter(|_| ahead).unwrap_or_else(|| self.window.end())
    }

    /// Copy with those attributes of `other` that an owner can change at any time and that affect neither
    /// allocation nor times.
    #[must_use]
    pub(crate) fn with_preferences_of(self, other: &Self) -> Self {
        Self { name: other.name.clone(), end_action: other.end_action, backfill: other.backfill, ..self }
    }

    /// Requested terms of a lease that is waiting; `None` if they are no longer valid.
    pub fn asked_terms(&self) -> Option<Terms> {
        let reservations = self.reservations.iter().map(|reservation| reservation.terms.clone()).collect();
        // A `before_end` at the start wasn't requested. It results from the operator's default lead.
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

    /// A lease with these terms and `allocations`, one per reservation.
    ///
    /// `before_end_lead` is the time before the end at which the before-end action is due, unless the terms
    /// specify it. `None` means never.
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

    #[must_use]
    pub fn standing(self, standing: Standing) -> Self {
        Self { standing, ..self }
    }

    /// Whether it has whole hosts or slots on hosts.
    pub fn is_on_hosts(&self) -> bool {
        let on_hosts =
            |reservation: &Reservation| !matches!(reservation.allocation, Allocation::FloatingIps(_));
        self.reservations.iter().any(on_hosts)
    }

    /// The lease with its hosts cleared of preemptible guests `ahead` of its start. No effect on leases
    /// without hosts or slots.
    #[must_use]
    pub fn cleared_ahead(self, ahead: Option<SignedDuration>) -> Self {
        let ahead = ahead.filter(|_| self.is_on_hosts());
        let before_start = ahead.map(|ahead| BeforeStart { ahead, status: EventStatus::Undone });
        Self { before_start, ..self }
    }

    /// The lease with a migration plan.
    #[must_use]
    pub fn hunting(self, hunt: Option<Hunt>) -> Self {
        Self { hunt, ..self }
    }

    /// The lease with another start and other allocations. Its length stays the same.
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

    /// Whether any reservation has less than it was promised.
    pub fn degraded(&self) -> bool {
        self.reservations.iter().any(|r| r.missing_resources)
    }

    /// Whether a reservation of whole hosts has fewer than it was promised.
    pub fn lacks_hosts(&self) -> bool {
        let of_hosts = |r: &&Reservation| matches!(r.allocation, Allocation::Hosts(_));
        self.reservations.iter().filter(of_hosts).any(|r| r.missing_resources)
    }

    /// Whether each reservation has as much as in `other`, which must have the same reservations.
    pub fn has_as_much_as(&self, other: &Self) -> bool {
        let mut both = self.reservations.iter().zip(&other.reservations);
        both.all(|(own, other)| {
            own.allocation.amount() == other.allocation.amount()
                && own.missing_resources == other.missing_resources
        })
    }

    /// Whether each reservation has at least as much as in `other`, which must have the same reservations.
    pub fn has_at_least(&self, other: &Self) -> bool {
        let mut both = self.reservations.iter().zip(&other.reservations);
        both.all(|(own, other)| own.allocation.amount() >= other.allocation.amount())
    }

    /// Events in chronological order.
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

    /// Time from which it is too late to start: the deadline, or the end if that is earlier. `None` for
    /// leases without deadline.
    pub fn times_out_at(&self) -> Option<Timestamp> {
        let end = if self.window.is_empty() { Timestamp::MAX } else { self.window.end() };
        self.lease_type.deadline().map(|deadline| deadline.min(end))
    }

    fn timed_out(&self) -> bool {
        self.lease_type.deadline().is_some() && self.events.start == EventStatus::Error
    }

    /// State as shown in `lease_state`.
    pub fn state(&self) -> LeaseState {
        LeaseState::of(self.lease_type, self.status, self.events.start == EventStatus::Error)
    }

    /// Whether its allocation is kept from other leases. Offers and waiting requests keep nothing. Neither
    /// does a lease that is over, failed or being deleted, although its hosts may still have to be emptied:
    /// the planner takes care of that order, and the calendar of the cleaning time. A lease that could not
    /// start keeps nothing at its end either, because other leases may have had its hosts by then, or the
    /// hosts may be gone.
    pub fn keeps_resources(&self) -> bool {
        self.standing.keeps_resources()
            && self.events.start != EventStatus::Error
            && !matches!(self.status, LeaseStatus::Terminated | LeaseStatus::Deleting | LeaseStatus::Error)
    }

    /// Whether no further automatic change will happen to it.
    pub fn over(&self) -> bool {
        self.status.stable() && self.events.end == EventStatus::Done
    }

    /// Whether its reason is permanent: it could not start, or it was ended because it was unused. Other
    /// reasons last only as long as their cause.
    pub fn keeps_reason(&self) -> bool {
        self.events.start == EventStatus::Error || self.marks.reclaimed_at.is_some()
    }

    /// Whether its hosts are being taken back.
    pub fn ending(&self) -> bool {
        matches!(self.status, LeaseStatus::Terminating | LeaseStatus::Deleting)
    }

    /// Whether its guests are being moved away at its end.
    pub fn departing(&self) -> bool {
        self.end_action == EndAction::MoveGuests && self.ending()
    }

    /// The lease with a status in which its hosts are taken back. If its guests will be moved away, drops the
    /// plan of an earlier hunt.
    pub(crate) fn ended(self, status: LeaseStatus) -> Self {
        let hunt = self.hunt.filter(|_| self.end_action != EndAction::MoveGuests);
        Self { hunt, status, ..self }
    }

    /// Whether the lease can give the host back by asking for one host fewer if guests block its start there. The hosts of a
    /// hunt are planned together.
    pub(crate) fn can_give_back(&self, host: HostId) -> bool {
        let spares = |reservation: &Reservation| match (&reservation.terms, &reservation.allocation) {
            (ReservationTerms::Hosts(terms), Allocation::Hosts(hosts)) => {
                terms.properties.survives.is_none() && hosts.len() > 1 && hosts.contains(&host)
            }
            _ => false,
        };
        self.status == LeaseStatus::Starting && self.hunt.is_none() && self.reservations.iter().any(spares)
    }

    pub fn reservation(&self, id: ReservationId) -> Option<&Reservation> {
        self.reservations.iter().find(|r| r.id == id)
    }

    /// Whether its status is consistent with its events and reservations.
    pub fn consistent(&self) -> bool {
        let reservations = self.reservations.iter().map(|r| r.status);
        status::fits(self.status, reservations, self.events.start, self.events.end)
    }

    /// The lease once its deletion was accepted: its window ends now, its hosts are taken back, and then it
    /// is forgotten.
    #[must_use]
    pub fn deleted(&self, now: Timestamp) -> Self {
        let length = now.duration_since(self.window.start()).min(self.window.length());
        let window = Window::starting(self.window.start(), length);
        Self { window, reason: None, ..self.clone() }.ended(LeaseStatus::Deleting)
    }
}

/// Due time of the before-end action: `lead` before the end, but not before the start (API-events).
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
