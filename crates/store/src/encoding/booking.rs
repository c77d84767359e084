//! Bookings as rows of SQL databases: one for a host, an address, or slots of a host; slots have one more for each resource
//! that they use. What a change does to rows is decided here for all stores, which have the statements.

use std::collections::{BTreeMap, BTreeSet};

use leases::ids::{HostId, LeaseId, ReservationId};
use leases::resources::Resources;

use super::column::{number, us, used as used_column, window};
use super::{TextHash, amounts};
use crate::StoreError;
use crate::booking::{Booking, BookingChanges, BookingKey, Bookings, Share, Subject};

/// When a booking is, and whether it is kept from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first microsecond.
    pub starts_us: i64,
    /// The first microsecond after it.
    pub ends_us: i64,
    /// Whether it is kept from others.
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

/// What becomes of a row that a reservation has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowChange<'a> {
    /// The whole host is given up.
    RemoveHost(i64),
    /// The address is given up.
    RemoveFloatingIp(u128),
    /// Slots of the host are given up, with all that they use.
    RemoveSlots(i64),
    /// The whole host is booked for another time.
    Host(i64, Span),
    /// The address is booked for another time.
    FloatingIp(u128, Span),
    /// Of the host there are so many slots now.
    Slots {
        /// The host.
        host: i64,
        /// How many.
        count: u32,
    },
    /// Slots of a host use another amount of a resource, which Placement calls that.
    Use {
        /// The host.
        host: i64,
        /// The resource.
        class: &'a str,
        /// What is different.
        change: UseChange,
    },
}

/// What becomes of the row of a resource that slots use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UseChange {
    /// They did not use it before.
    New(i64, Span),
    /// They use that amount now, at that time.
    Becomes(i64, Span),
    /// They use nothing of it any more.
    Removed,
}

/// What a lease gives up and what it has less of, row by row: all that is given up comes first. What it takes is not in it.
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

/// What becomes of that which slots use. Only what is kept from nobody may use more than before.
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

/// The rows of what slots use. What they use nothing of has none.
pub fn uses(used: &Resources) -> impl Iterator<Item = (&str, i64)> {
    amounts(used).filter(|(_, amount)| *amount > 0).map(|(class, amount)| (class, used_column(amount)))
}

/// What a store holds of a lease before a commit changes it.
#[derive(Debug, Default)]
pub struct Held {
    /// What it has of hosts and addresses.
    pub bookings: Bookings,
    /// Its reservations, also those that have nothing.
    pub reservations: BTreeSet<ReservationId>,
    /// Hashes of the long text that it refers to.
    pub texts: BTreeSet<TextHash>,
}

/// The same of several leases, from their rows.
#[derive(Debug, Default)]
pub struct HeldLeases(BTreeMap<LeaseId, Held>);

impl HeldLeases {
    /// A row of a reservation.
    pub fn reservation(&mut self, lease: u128, reservation: u128) {
        self.0.entry(LeaseId(lease)).or_default().reservations.insert(ReservationId(reservation));
    }

    /// Adds a reference to long text. Fails if `hash` isn't 32 bytes long.
    pub fn text(&mut self, lease: u128, hash: &[u8]) -> Result<(), StoreError> {
        self.0.entry(LeaseId(lease)).or_default().texts.insert(TextHash::from_bytes(hash)?);
        Ok(())
    }

    /// A row of a host or an address. A time that cannot be is an error.
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

    /// A row of what slots use, with the number of slots. A time, number or amount that cannot be is an error.
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

    /// What the lease had, which is not known any more afterwards. A lease that is new had nothing.
    pub fn take(&mut self, lease: LeaseId) -> Held {
        self.0.remove(&lease).unwrap_or_default()
    }

    /// What the lease has, if there are rows of it.
    pub fn get(&self, lease: LeaseId) -> Option<&Held> {
        self.0.get(&lease)
    }
}

/// What slots use of one resource, and how many slots they are.
#[derive(Clone, Copy, Debug)]
pub struct SlotsRow<'a> {
    /// Whose.
    pub lease: u128,
    /// Whose of that.
    pub reservation: u128,
    /// Of which host.
    pub host: i64,
    /// How many slots.
    pub count: i64,
    /// Placement's name of the resource.
    pub class: &'a str,
    /// How much of it.
    pub amount: i64,
    /// When.
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
