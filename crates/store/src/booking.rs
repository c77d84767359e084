//! What a lease has of hosts and addresses, piece by piece, and what becomes of it when the lease changes.
//!
//! Stores compare bookings rather than leases, so that they check what a change takes and nothing else.

use std::collections::BTreeMap;
use std::fmt;

use leases::ids::{FloatingIpId, HostId, ReservationId};
use leases::lease::{Allocation, Lease};
use leases::resources::Resources;
use leases::window::Window;

/// What is booked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// A host, or slots of it.
    Host(HostId),
    /// An address.
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

/// Who booked what. A reservation has one booking of a subject at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BookingKey {
    /// What.
    pub subject: Subject,
    /// Who.
    pub reservation: ReservationId,
}

/// How much of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Share {
    /// All of it.
    Whole,
    /// Slots of a host.
    Slots {
        /// How many.
        count: u32,
        /// What they use together.
        used: Resources,
    },
}

/// What a reservation has of a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Booking {
    /// How much.
    pub share: Share,
    /// When.
    pub window: Window,
    /// Whether it is kept from others; if not, it only says what the lease had.
    pub kept: bool,
}

impl Booking {
    /// Whether it takes anything from others at any instant.
    pub fn binds(&self) -> bool {
        self.kept && !self.window.is_empty()
    }

    /// Whether it takes anything from others that `old` did not.
    ///
    /// Only what is taken has to be checked: a lease that gets shorter, or has fewer slots, must not be refused
    /// because its host has shrunk meanwhile.
    fn takes_more_than(&self, old: &Self) -> bool {
        let covered = old.binds() && old.window.covers(&self.window) && self.share.is_part_of(&old.share);
        self.binds() && !covered
    }
}

impl Share {
    /// Whether both are the whole, or both are slots.
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

/// What a lease has.
pub type Bookings = BTreeMap<BookingKey, Booking>;

/// All that a lease has.
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

/// Whether the two surely have the same bookings: quick, because most changes of leases are of their status.
pub fn same_bookings(old: &Lease, new: &Lease) -> bool {
    let pairs = || old.reservations.iter().zip(&new.reservations);
    old.window == new.window
        && old.keeps_resources() == new.keeps_resources()
        && old.reservations.len() == new.reservations.len()
        && pairs().all(|(a, b)| a.id == b.id && a.allocation == b.allocation && a.terms == b.terms)
}

/// What becomes of the bookings of a lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BookingChanges {
    /// Gone, or on the way to [`Self::taken`]: to be removed before anybody takes anything.
    pub given_up: Vec<BookingKey>,
    /// Changed without taking anything from others: nothing can stand in the way.
    pub settled: Vec<(BookingKey, Booking)>,
    /// New, or more than it was: to be checked against what everybody else has, if it binds.
    pub taken: Vec<(BookingKey, Booking)>,
}

/// What turns `old` into `new`.
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
