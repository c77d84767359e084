//! Bookings: the hosts and addresses of a lease, one by one, and the difference between two versions of a
//! lease.
//!
//! Stores compare bookings rather than leases, so they check only what a change takes.

use std::collections::BTreeMap;
use std::fmt;

use leases::ids::{FloatingIpId, HostId, ReservationId};
use leases::lease::{Allocation, Lease};
use leases::resources::Resources;
use leases::window::Window;

/// A host, whole or in slots, or an address that can be booked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    Host(HostId),
    FloatingIp(FloatingIpId),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(id) => write!(f, "host {id}"),
            Self::FloatingIp(id) => write!(f, "floating IP {id}"),
        }
    }
}

/// A reservation has at most one booking of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BookingKey {
    pub subject: Subject,
    pub reservation: ReservationId,
}

/// The booked part of a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Share {
    Whole,
    Slots {
        count: u32,
        /// Resources used by all `count` slots together.
        used: Resources,
    },
}

/// A reservation's booking of a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Booking {
    pub share: Share,
    pub window: Window,
    /// Whether other leases are kept out. If not, the booking is only a record of the past.
    pub kept: bool,
}

impl Booking {
    /// Whether the booking excludes other leases at any instant.
    pub fn binds(&self) -> bool {
        self.kept && !self.window.is_empty()
    }

    /// Whether the booking takes anything that `old` didn't.
    ///
    /// Only this part needs a check: a lease that gets shorter or loses slots must not be rejected because
    /// its host has shrunk.
    fn takes_more_than(&self, old: &Self) -> bool {
        let covered = old.binds() && old.window.covers(&self.window) && self.share.is_part_of(&old.share);
        self.binds() && !covered
    }
}

impl Share {
    /// Whether both are whole hosts, or both are slots.
    fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }

    fn is_part_of(&self, other: &Self) -> bool {
        match (self, other) {
            (_, Self::Whole) => true,
            (Self::Whole, Self::Slots { .. }) => false,
            (Self::Slots { used, .. }, Self::Slots { used: had, .. }) => used.fits_into(had),
        }
    }
}

/// All bookings of a lease.
pub type Bookings = BTreeMap<BookingKey, Booking>;

pub fn bookings(lease: &Lease) -> Bookings {
    let mut bookings = Bookings::new();
    let (window, kept) = (lease.window, lease.keeps_resources());
    for reservation in &lease.reservations {
        let mut book = |subject, share| {
            let key = BookingKey { subject, reservation: reservation.id };
            bookings.insert(key, Booking { share, window, kept });
        };
        match &reservation.allocation {
            Allocation::Hosts(hosts) => {
                for host in hosts {
                    book(Subject::Host(*host), Share::Whole);
                }
            }
            Allocation::Slots(slots) => {
                let size = reservation.terms.slots().map(|terms| terms.size).unwrap_or_default();
                for (&host, &count) in slots {
                    let mut used = Resources::default();
                    used.add(count, &size);
                    book(Subject::Host(host), Share::Slots { count, used });
                }
            }
            Allocation::FloatingIps(ips) => {
                for ip in ips {
                    book(Subject::FloatingIp(*ip), Share::Whole);
                }
            }
        }
    }
    bookings
}

/// Whether both leases are known to have the same bookings. This is a fast path, since most changes of leases
/// are of their status; it can return false for equal bookings.
pub fn same_bookings(old: &Lease, new: &Lease) -> bool {
    let pairs = || old.reservations.iter().zip(&new.reservations);
    old.window == new.window
        && old.keeps_resources() == new.keeps_resources()
        && old.reservations.len() == new.reservations.len()
        && pairs().all(|(a, b)| a.id == b.id && a.allocation == b.allocation && a.terms == b.terms)
}

/// Difference between the bookings of two versions of a lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BookingChanges {
    /// Bookings that end or are replaced by one in [`Self::taken`]. Remove them before any lease takes
    /// anything.
    pub given_up: Vec<BookingKey>,
    /// Bookings that changed without taking anything more. They can't conflict.
    pub settled: Vec<(BookingKey, Booking)>,
    /// New or larger bookings. If they [bind](Booking::binds), they must be checked against the bookings of
    /// all leases.
    pub taken: Vec<(BookingKey, Booking)>,
}

/// The changes that turn `old` into `new`.
pub fn changes(old: &Bookings, new: Bookings) -> BookingChanges {
    let gone = old.keys().filter(|key| !new.contains_key(key)).copied();
    let mut changes = BookingChanges { given_up: gone.collect(), ..BookingChanges::default() };
    for (key, booking) in new {
        match old.get(&key) {
            Some(before) if *before == booking => {}
            Some(before) if booking.share.is_like(&before.share) && !booking.takes_more_than(before) => {
                changes.settled.push((key, booking));
            }
            before => {
                changes.given_up.extend(before.map(|_| key));
                changes.taken.push((key, booking));
            }
        }
    }
    changes
}
