//! What leases have before a commit changes it.

use std::collections::BTreeSet;

use ::leases::ids::ReservationId;
use store::booking::Bookings;

/// What the store holds of a lease before it is written.
#[derive(Debug, Default)]
pub(super) struct Held {
    pub(super) bookings: Bookings,
    pub(super) reservations: BTreeSet<ReservationId>,
}
