//! Bookings of hosts, shares of hosts and addresses over time.
//!
//! The calendar is built from leases and updated lease by lease. It only looks forward: bookings are cut off
//! at the instant when they are entered, because the past can't be allocated. After a lease is over, only the
//! time for cleaning remains. The calendar makes searches fast but doesn't have the last word: the store
//! checks again when it commits a lease.
//!
//! Overlapping bookings of a whole host are rejected ([`Conflict`]), and so is a booking of a whole host that
//! overlaps shares of it. Whether shares fit into a host depends on its capacity, which [`crate::admission`]
//! checks with [`Calendar::peak_use`].

mod bookings;
mod page;
mod slot;

pub use self::bookings::{Calendar, Conflict};
pub use self::page::Booking;
pub use self::slot::{Fit, Slot};
