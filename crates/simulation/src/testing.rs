//! Leases for tests of the checkers.

use jiff::{SignedDuration, Timestamp};
use leases::ids::{HostId, LeaseId, ReservationId};
use leases::lease::{Allocation, EndAction, Lease, NewLease};
use leases::project::{Owner, ProjectId, UserId};
use leases::terms::{ReservationTerms, Terms};
use leases::window::Window;

/// An instant, in minutes after the beginning.
pub(crate) fn at(minutes: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_mins(minutes)
}

/// A lease with one reservation of that host, between these minutes.
pub(crate) fn lease(number: u128, asked: ReservationTerms, host: u64, (start, end): (i64, i64)) -> Lease {
    let window = Window::new(at(start), at(end)).expect("forwards");
    let terms = Terms::new(window, None, vec![asked]).expect("terms");
    let owner = Owner { project: ProjectId("red".to_owned()), user: UserId("me".to_owned()) };
    let identity = NewLease {
        id: LeaseId(number),
        name: String::new(),
        owner,
        end_action: EndAction::DeleteGuests,
        reservations: vec![ReservationId(number)],
    };
    Lease::new(identity, terms, vec![Allocation::Hosts([HostId(host)].into())], None)
}
