//! Statuses of leases, reservations and events, and which may follow which (API-statuses).

/// The status of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeaseStatus {
    /// Being made.
    Creating,
    /// Waits for its start.
    Pending,
    /// Its hosts are being handed over.
    Starting,
    /// Its project has all of its hosts.
    Active,
    /// Being changed.
    Updating,
    /// Its hosts are being taken back.
    Terminating,
    /// Over.
    Terminated,
    /// Being taken back before it is forgotten.
    Deleting,
    /// Failed.
    Error,
}

impl LeaseStatus {
    /// All statuses.
    pub const ALL: [Self; 9] = [
        Self::Creating,
        Self::Pending,
        Self::Starting,
        Self::Active,
        Self::Updating,
        Self::Terminating,
        Self::Terminated,
        Self::Deleting,
        Self::Error,
    ];

    /// Blazar's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Creating => "CREATING",
            Self::Pending => "PENDING",
            Self::Starting => "STARTING",
            Self::Active => "ACTIVE",
            Self::Updating => "UPDATING",
            Self::Terminating => "TERMINATING",
            Self::Terminated => "TERMINATED",
            Self::Deleting => "DELETING",
            Self::Error => "ERROR",
        }
    }

    /// The status of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    /// Whether nothing is going on: the statuses that a lease rests in.
    pub fn stable(self) -> bool {
        matches!(self, Self::Pending | Self::Active | Self::Terminated | Self::Error)
    }

    /// Whether `next` may follow.
    ///
    /// As Blazar's table, but every lease may be deleted at any time: Blazar's documentation says so, its
    /// code refuses while an event runs. A terminating lease can return to no other state, and a lease that
    /// is being deleted cannot fail at it for good, so DELETING is final here.
    pub fn may_become(self, next: Self) -> bool {
        match (self, next) {
            (Self::Deleting, _) => false,
            (_, Self::Deleting) => true,
            (Self::Creating, next) => next == Self::Pending,
            (Self::Pending, next) => matches!(next, Self::Starting | Self::Updating),
            (Self::Starting, next) => matches!(next, Self::Active | Self::Error),
            (Self::Active, next) => matches!(next, Self::Terminating | Self::Updating),
            (Self::Updating, next) => next.stable(),
            (Self::Terminating, next) => matches!(next, Self::Terminated | Self::Error),
            (Self::Terminated, next) => next == Self::Updating,
            (Self::Error, next) => matches!(next, Self::Terminating | Self::Updating),
        }
    }
}

/// The status of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReservationStatus {
    /// Waits for its start.
    Pending,
    /// Handed over.
    Active,
    /// Over.
    Deleted,
    /// Failed.
    Error,
}

impl ReservationStatus {
    /// All statuses.
    pub const ALL: [Self; 4] = [Self::Pending, Self::Active, Self::Deleted, Self::Error];

    /// Blazar's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Active => "active",
            Self::Deleted => "deleted",
            Self::Error => "error",
        }
    }

    /// The status of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    /// Whether `next` may follow.
    pub fn may_become(self, next: Self) -> bool {
        match self {
            Self::Pending => next != Self::Pending,
            Self::Active => matches!(next, Self::Deleted | Self::Error),
            Self::Error => next == Self::Deleted,
            Self::Deleted => false,
        }
    }
}

/// The status of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventStatus {
    /// Not due, or not begun.
    Undone,
    /// Begun.
    InProgress,
    /// Ended.
    Done,
    /// Failed.
    Error,
}

impl EventStatus {
    /// All statuses.
    pub const ALL: [Self; 4] = [Self::Undone, Self::InProgress, Self::Done, Self::Error];

    /// Blazar's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Undone => "UNDONE",
            Self::InProgress => "IN_PROGRESS",
            Self::Done => "DONE",
            Self::Error => "ERROR",
        }
    }

    /// The status of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    /// Whether `next` may follow. An event that is retried, or armed again, becomes UNDONE again.
    pub fn may_become(self, next: Self) -> bool {
        match self {
            Self::Undone => next == Self::InProgress,
            Self::InProgress => next != Self::InProgress,
            Self::Done | Self::Error => next == Self::Undone,
        }
    }
}

/// The status of a lease at rest whose start and end events have these statuses.
pub fn stable_status(start: EventStatus, end: EventStatus) -> LeaseStatus {
    match (start, end) {
        (EventStatus::Undone, EventStatus::Undone) => LeaseStatus::Pending,
        (EventStatus::Done, EventStatus::Undone) => LeaseStatus::Active,
        (EventStatus::Done, EventStatus::Done) => LeaseStatus::Terminated,
        _ => LeaseStatus::Error,
    }
}

/// Whether a lease's status fits its events and reservations.
///
/// As Blazar's table, with two rows widened: a lease can be deleted while an event runs; and a failed lease's
/// end can be done, after which its reservations are deleted. In Blazar a lease that never started can only
/// rest in ERROR with its end UNDONE, so nothing tells that its hosts are free again.
pub fn fits(
    status: LeaseStatus,
    reservations: impl IntoIterator<Item = ReservationStatus>,
    start: EventStatus,
    end: EventStatus,
) -> bool {
    use EventStatus as E;
    use ReservationStatus as R;
    let mut reservations = reservations.into_iter();
    let mut each = |allowed: &[R]| reservations.all(|r| allowed.contains(&r));
    match status {
        LeaseStatus::Creating | LeaseStatus::Pending => {
            each(&[R::Pending]) && (start, end) == (E::Undone, E::Undone)
        }
        LeaseStatus::Starting => {
            each(&[R::Pending, R::Active, R::Error]) && (start, end) == (E::InProgress, E::Undone)
        }
        LeaseStatus::Active => each(&[R::Active]) && (start, end) == (E::Done, E::Undone),
        LeaseStatus::Terminating => {
            each(&[R::Active, R::Deleted, R::Error])
                && matches!(start, E::Done | E::Error)
                && end == E::InProgress
        }
        LeaseStatus::Terminated => each(&[R::Deleted]) && (start, end) == (E::Done, E::Done),
        LeaseStatus::Updating => start != E::InProgress && end != E::InProgress,
        LeaseStatus::Deleting => true,
        LeaseStatus::Error => {
            let over = end == E::Done;
            let states: &[R] = if over { &[R::Deleted] } else { &[R::Error] };
            each(states) && matches!(start, E::Done | E::Error) && end != E::InProgress
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_statuses_correspond() {
        for status in LeaseStatus::ALL {
            assert_eq!(LeaseStatus::from_name(status.name()), Some(status));
        }
        for status in ReservationStatus::ALL {
            assert_eq!(ReservationStatus::from_name(status.name()), Some(status));
        }
        for status in EventStatus::ALL {
            assert_eq!(EventStatus::from_name(status.name()), Some(status));
        }
    }

    #[test]
    fn every_lease_can_be_deleted_and_then_nothing_else() {
        for status in LeaseStatus::ALL {
            assert_eq!(status.may_become(LeaseStatus::Deleting), status != LeaseStatus::Deleting);
            assert!(!LeaseStatus::Deleting.may_become(status));
        }
    }

    #[test]
    fn an_active_lease_never_becomes_pending_again() {
        // Not even through UPDATING: what UPDATING returns to follows from the events.
        assert!(!LeaseStatus::Active.may_become(LeaseStatus::Pending));
        assert_eq!(stable_status(EventStatus::Done, EventStatus::Undone), LeaseStatus::Active);
    }

    #[test]
    fn stable_statuses_fit_the_events_they_follow_from() {
        for (start, end, reservation) in [
            (EventStatus::Undone, EventStatus::Undone, ReservationStatus::Pending),
            (EventStatus::Done, EventStatus::Undone, ReservationStatus::Active),
            (EventStatus::Done, EventStatus::Done, ReservationStatus::Deleted),
            (EventStatus::Error, EventStatus::Undone, ReservationStatus::Error),
            (EventStatus::Error, EventStatus::Done, ReservationStatus::Deleted),
        ] {
            assert!(fits(stable_status(start, end), [reservation], start, end), "{start:?} {end:?}");
        }
        assert!(!fits(
            LeaseStatus::Active,
            [ReservationStatus::Pending],
            EventStatus::Done,
            EventStatus::Undone
        ));
    }
}
