//! Usage by guests of leases that were started directly in a cloud and not through the service, derived from
//! observations of all hosts.
//!
//! Counted guests are known by their open [spans](Span), which are kept in the store. So nothing is counted
//! twice or lost, however a service ends. Such a guest counts from the first observation in its lease until
//! it disappears from observations, and not beyond the end of the lease.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::account::{holds, window_until};
use super::{Entries, Event, Held, Occurrence, Size, Span, SpanChange};
use crate::free_pool::pool_of;
use crate::host::Host;
use crate::ids::{GuestId, HostId, ReservationId};
use crate::instance::InstanceStatus;
use crate::lease::Lease;
use crate::plan::GuestSize;
use crate::status::EventStatus;
use crate::terms::ReservationTerms;

/// Observation of a guest.
#[derive(Clone, Copy, Debug)]
pub enum Sighting<'a> {
    /// In its lease.
    InLease(SeenGuest<'a>),
    /// In no lease, or left behind by a lease that is over.
    Outside,
    /// In a lease that is ending or hasn't started. Usage doesn't change.
    AsBefore,
}

/// A guest of a lease.
#[derive(Clone, Copy, Debug)]
pub struct SeenGuest<'a> {
    /// Resources it uses on its host.
    pub size: GuestSize,
    pub host: &'a Host,
    /// Its lease, which holds its allocation.
    lease: &'a Lease,
    /// The reservation whose capacity it uses, if known.
    pub reservation: Option<ReservationId>,
}

impl<'a> Sighting<'a> {
    /// Classifies a guest of the lease.
    pub fn of(lease: &'a Lease, reservation: Option<ReservationId>, host: &'a Host, size: GuestSize) -> Self {
        if holds(lease) {
            Self::InLease(SeenGuest { size, host, lease, reservation })
        } else if lease.events.end == EventStatus::Done {
            Self::Outside
        } else {
            Self::AsBefore
        }
    }
}

impl SeenGuest<'_> {
    /// Whether the known span matches in everything except its window.
    fn is(&self, known: &Span) -> bool {
        (known.host, known.lease, known.reservation, known.size)
            == (Some(self.host.id), Some(self.lease.id), self.reservation, self.uses())
    }

    fn uses(&self) -> Size {
        Size::of(1, &self.size.resources())
    }

    /// Usage from `now` until the end of the lease.
    fn span(&self, id: GuestId, begins: bool, now: Timestamp) -> Span {
        let terms = self.reservation.and_then(|id| Some(&self.lease.reservation(id)?.terms));
        Span {
            held: Held::Instance(id),
            host: Some(self.host.id),
            pool: Some(pool_of(self.host).to_owned()),
            flavor: terms.and_then(ReservationTerms::flavor).map(str::to_owned),
            size: self.uses(),
            lease: Some(self.lease.id),
            reservation: self.reservation,
            owner: self.lease.owner.clone(),
            lease_type: Some(self.lease.lease_type.name().to_owned()),
            begins,
            window: window_until(now, self.lease.window.end()),
            open: true,
        }
    }
}

/// Guests counted so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownGuests {
    /// Their open spans.
    open: BTreeMap<GuestId, Span>,
    /// Guests missing from the last observation, with the time at which that was noticed. A moving guest can
    /// be missed on both its hosts, so a guest is gone only if the next observation misses it too.
    missing: BTreeMap<GuestId, Timestamp>,
}

/// Result of counting an observation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Entries to record.
    pub entries: Entries,
    /// Guests that entered a lease.
    pub began: Vec<Span>,
    /// Guests that left their lease or are gone, with closed windows.
    pub ended: Vec<Span>,
    /// Changes to `KnownGuests::open`; `None` removes a guest.
    known: BTreeMap<GuestId, Option<Span>>,
    missing: BTreeMap<GuestId, Timestamp>,
}

impl KnownGuests {
    /// Restores the state from open spans.
    pub fn new(open: impl IntoIterator<Item = Span>) -> Self {
        let of_guest = |span: Span| match span.held {
            Held::Instance(id) => Some((id, span)),
            _ => None,
        };
        Self { open: open.into_iter().filter_map(of_guest).collect(), missing: BTreeMap::new() }
    }

    /// Host on which the guest was last counted.
    pub fn host_of(&self, id: GuestId) -> Option<HostId> {
        self.open.get(&id).and_then(|span| span.host)
    }

    /// Counts an observation of all hosts that was completed at `looked_at`. Makes at most `most` changes;
    /// the next call makes more.
    pub fn count(
        &self,
        (seen, looked_at): (&BTreeMap<GuestId, Sighting<'_>>, Timestamp),
        most: usize,
        now: Timestamp,
    ) -> Counted {
        let mut counted = Counted::default();
        for (id, was) in &self.open {
            let is_full = counted.is_full(most);
            let until = match (seen.get(id), self.missing.get(id)) {
                (None, Some(since)) if *since < looked_at && !is_full => *since,
                (None, since) => {
                    counted.missing.insert(*id, since.copied().unwrap_or(now));
                    continue;
                }
                (Some(Sighting::Outside), _) if !is_full => now,
                _ => continue,
            };
            counted.close(was, until);
            counted.known.insert(*id, None);
            if !seen.contains_key(id) {
                counted.tell(Occurrence::InstanceDeleted, InstanceStatus::Deleting, was, now);
            }
            let end = until.min(was.window.end());
            counted.ended.push(Span { window: window_until(was.window.start(), end), ..was.clone() });
        }
        for (id, sighting) in seen {
            if counted.is_full(most) {
                break;
            }
            if let Sighting::InLease(guest) = sighting {
                counted.see(*id, self.open.get(id), guest, now);
            }
        }
        counted
    }

    /// Applies the result once it is recorded.
    pub fn take_over(&mut self, counted: Counted) {
        for (id, span) in counted.known {
            match span {
                Some(span) => self.open.insert(id, span),
                None => self.open.remove(&id),
            };
        }
        self.missing = counted.missing;
    }
}

impl Counted {
    /// Whether the maximum number of changes is reached.
    pub fn is_full(&self, most: usize) -> bool {
        self.known.len() >= most
    }

    fn see(&mut self, id: GuestId, was: Option<&Span>, guest: &SeenGuest<'_>, now: Timestamp) {
        let Some(was) = was else {
            let span = guest.span(id, true, now);
            self.tell(Occurrence::InstanceStarted, InstanceStatus::Active, &span, now);
            self.began.push(span.clone());
            self.open(id, span);
            return;
        };
        let (end, old_end) = (guest.lease.window.end(), was.window.end());
        let window = window_until(was.window.start(), end);
        if !guest.is(was) || (window != was.window && old_end <= now) {
            // A span that is already over isn't reopened: the time in between belongs to no owner.
            self.close(was, now);
            let span = guest.span(id, false, now);
            if was.host != span.host {
                self.tell(Occurrence::InstanceMoved, InstanceStatus::Active, &span, now);
            }
            self.open(id, span);
        } else if window != was.window {
            self.entries.changed.push(SpanChange { key: was.key(), end, closes: false });
            self.known.insert(id, Some(Span { window, ..was.clone() }));
        }
    }

    fn close(&mut self, span: &Span, now: Timestamp) {
        self.entries.changed.push(SpanChange { key: span.key(), end: now, closes: true });
    }

    fn open(&mut self, id: GuestId, span: Span) {
        self.entries.opened.push(span.clone());
        self.known.insert(id, Some(span));
    }

    fn tell(&mut self, what: Occurrence, status: InstanceStatus, span: &Span, now: Timestamp) {
        let Held::Instance(id) = span.held else { return };
        self.entries.events.push(Event {
            at: now,
            what,
            lease: span.lease,
            instance: Some(id),
            owner: span.owner.clone(),
            lease_type: None,
            status: status.name().to_owned(),
            window: None,
            hosts: span.host.into_iter().collect(),
            reason: None,
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ids::LeaseId;
    use crate::status::LeaseStatus;
    use crate::testing::{at, host, lease, window};
    use crate::usage::Ledger;

    const SIZE: GuestSize = GuestSize { vcpus: 2, memory_mib: 100, disk_gib: 3 };

    fn lease_until(end: i64) -> Lease {
        let mut lease = lease(1, window(0, end), &[1, 2]);
        lease.status = LeaseStatus::Active;
        lease.events.start = EventStatus::Done;
        lease
    }

    fn on<'a>(lease: &'a Lease, host: &'a Host) -> Sighting<'a> {
        Sighting::of(lease, Some(lease.reservations[0].id), host, SIZE)
    }

    /// Counts observations of guest 7 at the given minutes, one after another.
    fn looks(found: &[(i64, Option<Sighting<'_>>)]) -> (Ledger, Vec<(i64, &'static str)>, usize) {
        let (mut known, mut ledger) = (KnownGuests::default(), Ledger::default());
        let (mut events, mut told) = (Vec::new(), 0);
        for (minute, sighting) in found {
            let seen = sighting.map(|sighting| (GuestId(7), sighting)).into_iter().collect();
            let counted = known.count((&seen, at(*minute)), 10, at(*minute));
            events.extend(counted.entries.events.iter().map(|event| (*minute, event.what.name())));
            told += counted.began.len() + counted.ended.len();
            ledger.enter(&counted.entries);
            known.take_over(counted);
            // A restarted service restores the same state from the store.
            let open = ledger.spans().iter().filter(|span| span.open).cloned();
            assert_eq!(KnownGuests::new(open).open, known.open);
        }
        (ledger, events, told)
    }

    fn windows(ledger: &Ledger) -> Vec<(i64, i64, bool)> {
        let minute = |at: Timestamp| at.duration_since(super::tests::at(0)).as_mins();
        let of = |span: &Span| (minute(span.window.start()), minute(span.window.end()), span.begins);
        ledger.spans().iter().map(of).collect()
    }

    #[test]
    fn usage_b_a_guest_that_is_missed_by_one_look_goes_on() {
        let (lease, host) = (lease_until(60), host(1));
        let here = Some(on(&lease, &host));
        let (ledger, events, told) = looks(&[(1, here), (2, None), (3, here), (4, None), (5, None)]);
        // The guest's span ends when the guest was first missed, not when its absence was certain.
        assert_eq!(windows(&ledger), [(1, 4, true)]);
        assert_eq!(events, [(1, "instance.started"), (5, "instance.deleted")]);
        assert_eq!(told, 2);
    }

    #[test]
    fn usage_b_a_guest_counts_no_longer_than_its_lease() {
        let (lease, host) = (lease_until(10), host(1));
        let mut over = lease.clone();
        over.status = LeaseStatus::Terminating;
        let (active, over) = (Some(on(&lease, &host)), Some(on(&over, &host)));
        let (ledger, events, _) = looks(&[(1, active), (12, over), (13, None), (14, None)]);
        assert_eq!(windows(&ledger), [(1, 10, true)]);
        assert_eq!(events, [(1, "instance.started"), (14, "instance.deleted")]);
    }

    #[test]
    fn usage_b_a_guest_that_its_lease_leaves_behind_is_not_gone() {
        let (lease, host) = (lease_until(10), host(1));
        let (ledger, events, told) = looks(&[(1, Some(on(&lease, &host))), (11, Some(Sighting::Outside))]);
        assert_eq!(windows(&ledger), [(1, 10, true)]);
        assert_eq!((events, told), (vec![(1, "instance.started")], 2));
        // The host can still be observed in the lease while the guest is there.
        let mut ended = lease.clone();
        ended.status = LeaseStatus::Terminated;
        ended.events.end = EventStatus::Done;
        let (ledger, events, told) = looks(&[(1, Some(on(&lease, &host))), (11, Some(on(&ended, &host)))]);
        assert_eq!(windows(&ledger), [(1, 10, true)]);
        assert_eq!((events, told), (vec![(1, "instance.started")], 2));
        // A guest first observed after its lease was over doesn't count.
        let (ledger, events, told) = looks(&[(1, Some(on(&ended, &host))), (2, Some(Sighting::Outside))]);
        assert!(windows(&ledger).is_empty() && events.is_empty() && told == 0);
    }

    #[test]
    fn usage_b_a_guest_that_moves_or_whose_lease_has_another_end_was_started_once() {
        let (short, long, one, other) = (lease_until(30), lease_until(60), host(1), host(2));
        let found = [
            (1, Some(on(&short, &one))),
            (5, Some(on(&short, &other))),
            (9, Some(on(&long, &other))),
            (70, None),
        ];
        let (ledger, events, told) = looks(&found);
        assert_eq!(windows(&ledger), [(1, 5, true), (5, 60, false)]);
        assert_eq!(events, [(1, "instance.started"), (5, "instance.moved")]);
        assert_eq!(told, 1);
        // The lease was over before it was extended. The time in between belongs to no owner.
        let (ledger, ..) = looks(&[(1, Some(on(&short, &one))), (40, Some(on(&long, &one)))]);
        assert_eq!(windows(&ledger), [(1, 30, true), (40, 60, false)]);
    }

    #[test]
    fn usage_b_only_so_many_changes_are_made_at_once() {
        let (lease, host) = (lease_until(60), host(1));
        let seen: BTreeMap<_, _> = (0..5).map(|id| (GuestId(id), on(&lease, &host))).collect();
        let mut known = KnownGuests::default();
        let mut rounds = Vec::new();
        for _ in 0..4 {
            let counted = known.count((&seen, at(1)), 2, at(1));
            rounds.push((counted.began.len(), counted.is_full(2)));
            known.take_over(counted);
        }
        assert_eq!(rounds, [(2, true), (2, true), (1, false), (0, false)]);
        // Counting an observation repeatedly doesn't remove guests that only this observation missed.
        let (none, mut rounds) = (BTreeMap::new(), Vec::new());
        for (looked_at, now) in [(2, 2), (2, 3), (4, 4), (4, 5), (4, 6), (4, 7)] {
            let counted = known.count((&none, at(looked_at)), 2, at(now));
            assert!(counted.ended.iter().all(|span| span.window.end() == at(2)), "{counted:?}");
            rounds.push(counted.ended.len());
            known.take_over(counted);
        }
        assert_eq!(rounds, [0, 0, 2, 2, 1, 0]);
    }

    proptest! {
        /// For any sequence of observations, each guest starts and ends alternately, its spans don't overlap,
        /// and none of them exceeds its lease.
        #[test]
        fn usage_d_spans_of_a_guest_follow_one_another(
            found in proptest::collection::vec((1..20_i64, 0..6_u8), 1..12),
        ) {
            let (short, long, one, other) = (lease_until(60), lease_until(90), host(1), host(2));
            let mut minute = 0;
            let sighted: Vec<_> = found
                .into_iter()
                .map(|(wait, what)| {
                    minute += wait;
                    let sighting = match what {
                        0 => None,
                        1 => Some(Sighting::Outside),
                        2 => Some(Sighting::AsBefore),
                        3 => Some(on(&short, &one)),
                        4 => Some(on(&long, &one)),
                        _ => Some(on(&long, &other)),
                    };
                    (minute, sighting)
                })
                .collect();
            let (ledger, ..) = looks(&sighted);
            for span in ledger.spans() {
                prop_assert!(span.lease == Some(LeaseId(1)) && span.window.end() <= at(90).max(span.window.start()));
            }
            for pair in ledger.spans().windows(2) {
                prop_assert!(pair[0].window.end() <= pair[1].window.start(), "{:?}", windows(&ledger));
            }
        }
    }
}
