//! The bookings of one host, or of one address, that are kept from others.

use jiff::Timestamp;
use leases::ids::ReservationId;
use leases::resources::Resources;

use crate::booking::{Booking, Share};

/// Why a booking cannot be entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Obstacle {
    /// Somebody has all of it, or a part where all of it is wanted.
    Taken,
    /// The slots do not fit.
    NoRoom,
}

/// Bookings, by reservation; few enough to go through all of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Page(Vec<(ReservationId, Booking)>);

impl Page {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn remove(&mut self, reservation: ReservationId) {
        self.0.retain(|(other, _)| *other != reservation);
    }

    /// Enters a booking in place of what the reservation had, unchecked.
    pub(super) fn put(&mut self, reservation: ReservationId, booking: Booking) {
        self.remove(reservation);
        if booking.kept {
            self.0.push((reservation, booking));
        }
    }

    /// What stands in the way of a booking of a reservation that has none here.
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
                    // Whatever else there may be too much of, this booking takes nothing of it.
                    sum.keep_only(used);
                    sum.fits_into(capacity)
                };
                // The sum rises only where something starts.
                let starts = shares.iter().map(|(other, _)| other.window.start());
                let mut inside = starts.filter(|start| booking.window.contains(*start));
                let all_fit = fits(booking.window.start()) && inside.all(fits);
                (!all_fit).then_some(Obstacle::NoRoom)
            }
        }
    }
}
