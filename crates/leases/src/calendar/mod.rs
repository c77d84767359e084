//! Who has which host, or how much of it, and which address, when.
//!
//! The calendar is built from leases and kept up to date lease by lease. It looks forward only: bookings are cut
//! off at the instant they are entered, because nobody can be given the past. Of a lease that is over, what is
//! left is the time for cleaning up after it. The calendar is fast to search, not the last word: the store that
//! commits a lease checks again.
//!
//! Two bookings of a whole host that overlap cannot be entered ([`Conflict`]), nor a whole-host booking over
//! shares of the host. Whether shares fit a host's capacity depends on the host and is
//! [`crate::admission`]'s to check, with [`Calendar::peak_use`].

mod bookings;
mod page;
mod slot;

pub use self::bookings::{Calendar, Conflict};
pub use self::page::Booking;
pub use self::slot::{Fit, Slot};
