//! Statuses of leases, reservations and events, and their transitions (API-statuses).

/// Status of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeaseStatus {
    Creating,
    /// Waiting for its start.
    Pending,
    /// Its hosts are being handed over.
    Starting,
    /// Its project holds all of its hosts.
    Active,
    Updating,
    /// Its hosts are being taken back.
    Terminating,
    Terminated,
    /// Deleted; its hosts are being taken back before it is forgotten.
    Deleting,
    Error,
}

impl LeaseStatus {
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

    /// Name in Blazar's API.
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

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    /// Whether a lease can rest in this status, with no operation in progress.
    pub fn stable(self) -> bool {
        matches!(self, Self::Pending | Self::Active | Self::Terminated | Self::Error)
    }

    /// Whether the transition to `next` is allowed.
    ///
    /// Follows Blazar's table, except that any lease can be deleted at any time: Blazar's documentation says
    /// so, but its code refuses while an event is running. A terminating lease can't return to an earlier
    /// status. Deletion can't fail permanently, so DELETING is final here.
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

/// Status of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReservationStatus {
    /// Waiting for its start.
    Pending,
    /// Handed over.
    Active,
    Deleted,
    Error,
}

impl ReservationStatus {
    pub const ALL: [Self; 4] = [Self::Pending, Self::Active, Self::Deleted, Self::Error];

    /// Name in Blazar's API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Active => "active",
            Self::Deleted => "deleted",
            Self::Error => "error",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    /// Whether the transition to `next` is allowed.
    pub fn may_become(self, next: Self) -> bool {
        match self {
            Self::Pending => next != Self::Pending,
            Self::Active => matches!(next, Self::Deleted | Self::Error),
            Self::Error => next == Self::Deleted,
            Self::Deleted => false,
        }
    }
}

/// Status of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventStatus {
    /// Not due, or due and not begun.
    Undone,
    InProgress,
    Done,
    Error,
}

impl EventStatus {
    pub const ALL: [Self; 4] = [Self::Undone, Self::InProgress, Self::Done, Self::Error];

    /// Name in Blazar's API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Undone => "UNDONE",
            Self::InProgress => "IN_PROGRESS",
            Self::Done => "DONE",
            Self::Error => "ERROR",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    /// Whether the transition to `next` is allowed. An event that is retried or rearmed becomes UNDONE again.
    pub fn may_become(self, next: Self) -> bool {
        match self {
            Self::Undone => next == Self::InProgress,
            Self::InProgress => next != Self::InProgress,
            Self::Done | Self::Error => next == Self::Undone,
        }
    }
}

/// Status of a lease at rest, derived from its start and end events.
pub fn stable_status(start: EventStatus, end: EventStatus) -> LeaseStatus {
    match (start, end) {
        (EventStatus::Undone, EventStatus::Undone) => LeaseStatus::Pending,
        (EventStatus::Done, EventStatus::Undone) => LeaseStatus::Active,
        (EventStatus::Done, EventStatus::Done) => LeaseStatus::Terminated,
        _ => LeaseStatus::Error,
    }
}

/// Whether a lease's status is consistent with its events and reservations.
///
/// Follows Blazar's table, with two rows widened: a lease can be deleted while an event is running, and the
/// end of a failed lease can be done, after which its reservations are deleted. In Blazar, a lease that never
/// started can only rest in ERROR with its end UNDONE, so nothing shows that its hosts are free again.
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
        // Not even through UPDATING, which returns to the status derived from events.
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
