//! Bookings of one host or address that exclude other leases.

use jiff::Timestamp;
use leases::ids::ReservationId;
use leases::resources::Resources;

use crate::booking::{Booking, Share};

/// Reason why a booking isn't possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Obstacle {
    /// The subject is taken as a whole, or a part is taken where the whole is wanted.
    Taken,
    /// The slots don't fit.
    NoRoom,
}

/// Bookings by reservation. There are few, so every operation goes through the whole list.
#[derive(Clone, Debug, Default)]
pub(super) struct Page(Vec<(ReservationId, Booking)>);

impl Page {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn remove(&mut self, reservation: ReservationId) {
        self.0.retain(|(other, _)| *other != reservation);
    }

    /// Replaces the reservation's booking without a check.
    pub(super) fn put(&mut self, reservation: ReservationId, booking: Booking) {
        self.remove(reservation);
        if booking.kept {
            self.0.push((reservation, booking));
        }
    }

    /// Reason why a booking isn't possible. The reservation must not have one here yet.
    pub(super) fn obstacle(&self, booking: &Booking, capacity: &Resources) -> Option<Obstacle> {
        if !booking.binds() {
            return None;
        }
        let mut others = self.0.iter().map(|(_, other)| other).filter(|o| o.window.overlaps(&booking.window));
        match &booking.share {
            Share::Whole => others.next().map(|_| Obstacle::Taken),
            Share::Slots { used, .. } => {
                let shares: Option<Vec<(&Booking, &Resources)>> = others
                    .map(|other| match &other.share {
                        Share::Whole => None,
                        Share::Slots { used, .. } => Some((other, used)),
                    })
                    .collect();
                let Some(shares) = shares else { return Some(Obstacle::Taken) };
                let fits = |instant: Timestamp| {
                    let mut sum = used.clone();
                    for (_, used) in shares.iter().filter(|(other, _)| other.window.contains(instant)) {
                        sum.add(1, used);
                    }
                    // Resources that this booking doesn't use can be exceeded.
                    sum.keep_only(used);
                    sum.fits_into(capacity)
                };
                // The sum only rises where a booking starts.
                let starts = shares.iter().map(|(other, _)| other.window.start());
                let mut inside = starts.filter(|start| booking.window.contains(*start));
                let all_fit = fits(booking.window.start()) && inside.all(fits);
                (!all_fit).then_some(Obstacle::NoRoom)
            }
        }
    }
}
