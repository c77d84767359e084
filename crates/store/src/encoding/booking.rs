//! Bookings as rows of SQL databases. A host, an address, and slots of a host are one row each; slots have
//! one more row for each resource that they use. This module decides for all stores which rows a change
//! affects, and stores have the statements.

use std::collections::{BTreeMap, BTreeSet};

use leases::ids::{HostId, LeaseId, ReservationId};
use leases::resources::Resources;

use super::column::{number, us, used as used_column, window};
use super::{TextHash, amounts};
use crate::StoreError;
use crate::booking::{Booking, BookingChanges, BookingKey, Bookings, Share, Subject};

/// Time of a booking, and whether it keeps other leases out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Start in microseconds since the Unix epoch.
    pub starts_us: i64,
    /// End in microseconds since the Unix epoch, exclusive.
    pub ends_us: i64,
    pub kept: bool,
}

impl Span {
    fn of(booking: &Booking) -> Self {
        let Booking { window, kept, .. } = booking;
        Self { starts_us: us(window.start()), ends_us: us(window.end()), kept: *kept }
    }

    fn booking(self, share: Share) -> Result<Booking, StoreError> {
        Ok(Booking { share, window: window(self.starts_us, self.ends_us)?, kept: self.kept })
    }
}

/// A change to a row of a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowChange<'a> {
    RemoveHost(i64),
    RemoveFloatingIp(u128),
    /// Slots of the host are released, along with their resource rows.
    RemoveSlots(i64),
    /// The whole host is booked for another time.
    Host(i64, Span),
    /// The address is booked for another time.
    FloatingIp(u128, Span),
    /// The number of slots on the host changes.
    Slots {
        host: i64,
        count: u32,
    },
    /// The amount of a resource that slots on the host use changes.
    Use {
        host: i64,
        /// Resource class, as Placement names it.
        class: &'a str,
        change: UseChange,
    },
}

/// A change of a resource row of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UseChange {
    /// The slots didn't use the resource before. Contains the amount and its time.
    New(i64, Span),
    /// The amount and its time change.
    Becomes(i64, Span),
    /// The slots no longer use the resource.
    Removed,
}

/// Row changes for the bookings that a lease releases or reduces, releases first. Bookings that it takes
/// aren't included.
pub fn row_changes<'a>(
    held: &'a Bookings,
    changes: &'a BookingChanges,
) -> Vec<(ReservationId, RowChange<'a>)> {
    let mut rows = Vec::new();
    for key in &changes.given_up {
        let removed = held.get(key).map(|booking| removal(key.subject, &booking.share));
        rows.extend(removed.map(|change| (key.reservation, change)));
    }
    for (key, booking) in &changes.settled {
        let mut push = |change| rows.push((key.reservation, change));
        let span = Span::of(booking);
        match (key.subject, &booking.share) {
            (Subject::Host(host), Share::Whole) => push(RowChange::Host(column(host), span)),
            (Subject::FloatingIp(ip), _) => push(RowChange::FloatingIp(ip.0, span)),
            (Subject::Host(host), Share::Slots { count, used }) => {
                let host = column(host);
                push(RowChange::Slots { host, count: *count });
                let before = held.get(key).map(|booking| &booking.share);
                use_changes(host, span, before, used).into_iter().for_each(push);
            }
        }
    }
    rows
}

fn column(host: HostId) -> i64 {
    host.0.cast_signed()
}

fn removal(subject: Subject, share: &Share) -> RowChange<'static> {
    match (subject, share) {
        (Subject::Host(host), Share::Whole) => RowChange::RemoveHost(column(host)),
        (Subject::Host(host), Share::Slots { .. }) => RowChange::RemoveSlots(column(host)),
        (Subject::FloatingIp(ip), _) => RowChange::RemoveFloatingIp(ip.0),
    }
}

/// Changes of the resource rows of slots. Amounts only rise in bookings that keep nothing from other leases.
fn use_changes<'a>(
    host: i64,
    span: Span,
    before: Option<&'a Share>,
    now: &'a Resources,
) -> Vec<RowChange<'a>> {
    let mut gone: BTreeSet<&str> = match before {
        Some(Share::Slots { used, .. }) => uses(used).map(|(class, _)| class).collect(),
        Some(Share::Whole) | None => BTreeSet::new(),
    };
    let mut changes: Vec<RowChange<'_>> = uses(now)
        .map(|(class, amount)| {
            let known = gone.remove(class);
            let change = if known { UseChange::Becomes(amount, span) } else { UseChange::New(amount, span) };
            RowChange::Use { host, class, change }
        })
        .collect();
    changes.extend(gone.into_iter().map(|class| RowChange::Use { host, class, change: UseChange::Removed }));
    changes
}

/// Resource rows of slots. A resource that they don't use has no row.
pub fn uses(used: &Resources) -> impl Iterator<Item = (&str, i64)> {
    amounts(used).filter(|(_, amount)| *amount > 0).map(|(class, amount)| (class, used_column(amount)))
}

/// Rows of a lease in a store, before a commit changes it.
#[derive(Debug, Default)]
pub struct Held {
    pub bookings: Bookings,
    /// All reservations, including those without bookings.
    pub reservations: BTreeSet<ReservationId>,
    /// Hashes of the long text that the lease refers to.
    pub texts: BTreeSet<TextHash>,
}

/// [`Held`] of several leases, collected from rows.
#[derive(Debug, Default)]
pub struct HeldLeases(BTreeMap<LeaseId, Held>);

impl HeldLeases {
    /// Adds a row of a reservation.
    pub fn reservation(&mut self, lease: u128, reservation: u128) {
        self.0.entry(LeaseId(lease)).or_default().reservations.insert(ReservationId(reservation));
    }

    /// Adds a reference to long text. Fails if `hash` isn't 32 bytes long.
    pub fn text(&mut self, lease: u128, hash: &[u8]) -> Result<(), StoreError> {
        self.0.entry(LeaseId(lease)).or_default().texts.insert(TextHash::from_bytes(hash)?);
        Ok(())
    }

    /// Adds a row of a host or an address. Fails if the span is invalid.
    pub fn whole(
        &mut self,
        lease: u128,
        reservation: u128,
        subject: Subject,
        span: Span,
    ) -> Result<(), StoreError> {
        let key = BookingKey { subject, reservation: ReservationId(reservation) };
        let booking = span.booking(Share::Whole)?;
        self.0.entry(LeaseId(lease)).or_default().bookings.insert(key, booking);
        Ok(())
    }

    /// Adds a row of a resource that slots use, with the number of slots. Fails if the span, number or amount
    /// is invalid.
    pub fn slots(&mut self, row: SlotsRow<'_>) -> Result<(), StoreError> {
        let SlotsRow { lease, reservation, host, count, class, amount, span } = row;
        let subject = Subject::Host(HostId(host.cast_unsigned()));
        let key = BookingKey { subject, reservation: ReservationId(reservation) };
        let share = Share::Slots { count: number(count)?, used: Resources::default() };
        let new = span.booking(share)?;
        let of_lease = self.0.entry(LeaseId(lease)).or_default();
        if let Share::Slots { used, .. } = &mut of_lease.bookings.entry(key).or_insert(new).share {
            used.set(class, number(amount)?);
        }
        Ok(())
    }

    /// Removes and returns the rows that the lease had before the commit; empty for a new lease.
    pub fn take(&mut self, lease: LeaseId) -> Held {
        self.0.remove(&lease).unwrap_or_default()
    }

    /// `None` if the lease has no rows.
    pub fn get(&self, lease: LeaseId) -> Option<&Held> {
        self.0.get(&lease)
    }
}

/// A resource row of slots, joined with the number of slots.
#[derive(Clone, Copy, Debug)]
pub struct SlotsRow<'a> {
    pub lease: u128,
    pub reservation: u128,
    pub host: i64,
    /// Number of slots.
    pub count: i64,
    /// Resource class, as Placement names it.
    pub class: &'a str,
    /// Amount that all slots use together.
    pub amount: i64,
    pub span: Span,
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use leases::ids::FloatingIpId;
    use leases::window::Window;

    use super::super::resources;
    use super::*;
    use crate::booking::changes;

    const SPAN: Span = Span { starts_us: 0, ends_us: 60_000_000, kept: true };

    fn key(subject: Subject) -> BookingKey {
        BookingKey { subject, reservation: ReservationId(1) }
    }

    fn booking(share: Share, end_second: i64) -> Booking {
        let at = |second| Timestamp::from_second(second).expect("a time");
        Booking { share, window: Window::new(at(0), at(end_second)).expect("a window"), kept: true }
    }

    fn slots(count: u32, used: &[(&str, u64)]) -> Share {
        Share::Slots { count, used: resources(used.iter().copied()) }
    }

    fn changed(before: &[(Subject, Booking)], after: &[(Subject, Booking)]) -> Vec<String> {
        let all = |these: &[(Subject, Booking)]| {
            these.iter().map(|(subject, booking)| (key(*subject), booking.clone())).collect::<Bookings>()
        };
        let held = all(before);
        let changes = changes(&held, all(after));
        row_changes(&held, &changes).iter().map(|(_, change)| format!("{change:?}")).collect()
    }

    #[test]
    fn what_is_given_up_is_removed_before_anything_else_is_changed() {
        let (host, other) = (Subject::Host(HostId(1)), Subject::Host(HostId(2)));
        let ip = Subject::FloatingIp(FloatingIpId(3));
        let whole = |end| booking(Share::Whole, end);
        let before = [(host, whole(120)), (other, booking(slots(2, &[("VCPU", 2)]), 120)), (ip, whole(120))];
        let after = [(host, whole(60))];
        assert_eq!(
            changed(&before, &after),
            ["RemoveSlots(2)".to_owned(), "RemoveFloatingIp(3)".to_owned(), format!("Host(1, {SPAN:?})")]
        );
    }

    #[test]
    fn slots_that_get_fewer_change_what_they_use_and_nothing_that_they_do_not_use() {
        let host = Subject::Host(HostId(1));
        let before = [(host, booking(slots(4, &[("VCPU", 4), ("CUSTOM_GPU", 4)]), 60))];
        let after = [(host, booking(slots(2, &[("VCPU", 2)]), 60))];
        assert_eq!(
            changed(&before, &after),
            [
                "Slots { host: 1, count: 2 }".to_owned(),
                format!("Use {{ host: 1, class: \"VCPU\", change: Becomes(2, {SPAN:?}) }}"),
                "Use { host: 1, class: \"CUSTOM_GPU\", change: Removed }".to_owned(),
            ]
        );
    }

    #[test]
    fn what_a_lease_takes_is_no_change_of_rows_that_it_has() {
        let host = Subject::Host(HostId(1));
        assert!(changed(&[], &[(host, booking(Share::Whole, 60))]).is_empty());
        let longer = [(host, booking(Share::Whole, 120))];
        assert_eq!(changed(&[(host, booking(Share::Whole, 60))], &longer), ["RemoveHost(1)"]);
    }

    #[test]
    fn rows_are_read_as_the_bookings_that_they_were() {
        let mut held = HeldLeases::default();
        let share = slots(2, &[("VCPU", 2), ("CUSTOM_GPU", 1)]);
        let Share::Slots { used, .. } = &share else { unreachable!("slots") };
        for (class, amount) in uses(used) {
            let row = SlotsRow { lease: 7, reservation: 1, host: 1, count: 2, class, amount, span: SPAN };
            held.slots(row).expect("a row");
        }
        held.whole(7, 1, Subject::FloatingIp(FloatingIpId(3)), SPAN).expect("a row");
        held.reservation(7, 1);
        let of_lease = held.take(LeaseId(7));
        let expected = [
            (key(Subject::Host(HostId(1))), booking(share, 60)),
            (key(Subject::FloatingIp(FloatingIpId(3))), booking(Share::Whole, 60)),
        ];
        assert_eq!(of_lease.bookings, Bookings::from(expected));
        assert_eq!(of_lease.reservations, BTreeSet::from([ReservationId(1)]));
        assert!(held.take(LeaseId(7)).bookings.is_empty());
        let backwards = Span { starts_us: 1, ends_us: 0, kept: true };
        assert!(held.whole(7, 1, Subject::Host(HostId(1)), backwards).is_err());
    }
}
