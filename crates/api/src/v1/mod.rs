//! Version 1: Blazar's (spec §1).

mod date;
mod lease;

pub use date::{created_at, date};
pub use lease::{Event, Lease, Reservation};
