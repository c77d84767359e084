//! Shorthands for unit tests of this crate: minutes for timestamps, numbers for identifiers.

use jiff::{SignedDuration, Timestamp};

use crate::host::{Host, Inventory};
use crate::ids::{HostId, LeaseId, ReservationId};
use crate::lease::{Allocation, EndAction, Lease, NewLease};
use crate::project::{Owner, ProjectId, UserId};
use crate::terms::{HostsTerms, ReservationTerms, Terms};
use crate::window::Window;

/// `minute` minutes after the Unix epoch.
pub fn at(minute: i64) -> Timestamp {
    Timestamp::from_second(minute * 60).expect("in range")
}

/// The window between two minutes.
pub fn window(start: i64, end: i64) -> Window {
    Window::new(at(start), at(end)).expect("forwards")
}

pub fn minutes(number: i64) -> SignedDuration {
    SignedDuration::from_mins(number)
}

/// A host with 16 CPUs, 64 GiB of memory and 1000 GiB of disk.
pub fn host(id: u64) -> Host {
    Host::new(HostId(id), format!("node{id}"), 16, 65_536, 1000)
}

/// Hosts 1 to `count`.
pub fn inventory(count: u64) -> Inventory {
    Inventory::new((1..=count).map(host), [])
}

pub fn owner() -> Owner {
    Owner { project: ProjectId("project".into()), user: UserId("user".into()) }
}

/// Identity of a new lease. Its reservations are numbered from ten times its own number.
pub fn new_lease(number: u128, reservations: usize) -> NewLease {
    NewLease {
        id: LeaseId(number),
        name: format!("lease {number}"),
        owner: owner(),
        end_action: EndAction::DeleteGuests,
        reservations: (0..reservations as u128).map(|r| ReservationId(number * 10 + r)).collect(),
    }
}

/// A pending lease of whole hosts.
pub fn lease(number: u128, window: Window, hosts: &[u64]) -> Lease {
    let count = (hosts.len() as u32).max(1);
    let asked = HostsTerms::new(count, count).expect("a range");
    let terms = Terms::new(window, None, vec![ReservationTerms::Hosts(asked)]).expect("terms");
    let hosts = hosts.iter().map(|id| HostId(*id)).collect();
    Lease::new(new_lease(number, 1), terms, vec![Allocation::Hosts(hosts)], None)
}
