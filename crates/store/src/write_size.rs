//! Size of a commit, and limits for requests.
//!
//! Sizes count the data in a store, without its pages, indexes and log. Only this module counts them.

use std::collections::{BTreeMap, BTreeSet};

use leases::hints::Hints;
use leases::ids::LeaseId;
use leases::lease::{Allocation, Lease, Reservation};
use leases::terms::ReservationTerms;
use thiserror::Error;

use crate::booking::same_bookings;
use crate::encoding::{LongText, MOST_INLINE, extras_json, hints_json, hunt_json, terms_json};
use crate::{Commit, LeaseRecord, Wording, Write};

/// Bytes of a row in addition to its text: identifiers, instants, numbers, names of statuses.
pub(crate) const ROW: u64 = 128;

/// Bytes that a reference to long text counts, including its row in the table of references.
const REFERENCE: u64 = 192;

/// Number of rows, and bytes of data in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteSize {
    /// Records, and each host, instance or address that a lease takes or gives up.
    pub rows: u64,
    /// Bytes of data in the rows.
    pub bytes: u64,
}

/// Limits on the writes of a request. The service's own work is split into parts of this size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteLimits {
    /// Maximum rows of a transaction.
    pub rows: u64,
    /// Maximum bytes of a transaction.
    pub bytes: u64,
    /// Maximum bytes of a lease's text: expressions, extra specs, properties and hints together.
    pub lease_text: u64,
}

impl Default for WriteLimits {
    fn default() -> Self {
        Self { rows: 20_000, bytes: 8 << 20, lease_text: 64 << 10 }
    }
}

/// A request that would exceed a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TooLarge {
    #[error("the request writes {size} rows in one transaction, at most {limit} are allowed")]
    Rows { size: u64, limit: u64 },
    #[error("the request writes {size} bytes in one transaction, at most {limit} are allowed")]
    Bytes { size: u64, limit: u64 },
    #[error(
        "the expressions, extra specs, properties and hints of the lease have {size} bytes together, at most {limit} \
         are allowed"
    )]
    LeaseText { size: u64, limit: u64 },
}

impl TooLarge {
    /// Number of changes to try next if `count` are too large together: fewer than `count`, and at least one.
    pub fn part_of(&self, count: usize) -> usize {
        let (Self::Rows { size, limit } | Self::Bytes { size, limit } | Self::LeaseText { size, limit }) =
            *self;
        let part = (count as u128 * u128::from(limit) / u128::from(size.max(1))) as usize;
        part.clamp(1, count.saturating_sub(1).max(1))
    }

    /// Advice for the client.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Rows { .. } => {
                "ask for fewer hosts, instances or addresses, or for fewer leases at once; the operator's setting is \
                 limits.transaction_rows"
            }
            Self::Bytes { .. } => {
                "make expressions shorter, or ask for fewer leases at once; the operator's setting is \
                 limits.transaction_bytes"
            }
            Self::LeaseText { .. } => {
                "the limit is four times the operator's setting limits.expression_length"
            }
        }
    }
}

impl WriteLimits {
    /// Checks that a transaction of this size is allowed.
    pub fn check(&self, size: WriteSize) -> Result<(), TooLarge> {
        if size.rows > self.rows {
            return Err(TooLarge::Rows { size: size.rows, limit: self.rows });
        }
        if size.bytes > self.bytes {
            return Err(TooLarge::Bytes { size: size.bytes, limit: self.bytes });
        }
        Ok(())
    }

    /// Checks that a lease can grow from `before` to `after` bytes of text. If it already exceeds the limit,
    /// it must not grow further.
    pub fn check_text(&self, before: u64, after: u64) -> Result<(), TooLarge> {
        let limit = self.lease_text.max(before);
        if after > limit { Err(TooLarge::LeaseText { size: after, limit: self.lease_text }) } else { Ok(()) }
    }
}

impl WriteSize {
    /// Rows without text.
    fn rows(rows: u64) -> Self {
        Self { rows, bytes: ROW.saturating_mul(rows) }
    }

    /// A row with that much text.
    fn row(text: usize) -> Self {
        Self { rows: 1, bytes: ROW + text as u64 }
    }

    /// The sum of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { rows: self.rows.saturating_add(other.rows), bytes: self.bytes.saturating_add(other.bytes) }
    }

    #[must_use]
    pub fn times(self, times: u64) -> Self {
        Self { rows: self.rows.saturating_mul(times), bytes: self.bytes.saturating_mul(times) }
    }

    /// The minimum that `times` equal new leases write: the fewest hosts that each accepts, and an audit record and a
    /// notification for each. Long text counts once for all leases.
    pub fn of_new_leases<'a>(
        reservations: impl IntoIterator<Item = (&'a ReservationTerms, Option<&'a Wording>)>,
        hints: &Hints,
        times: u64,
    ) -> Self {
        let mut texts = Texts::default();
        let rows = Self::rows(3).and(texts.column(&hints_json(hints), true));
        let each = reservations.into_iter().fold(rows, |sum, (terms, words)| {
            sum.and(Self::rows(1 + u64::from(least(terms))))
                .and(texts.column(&terms_json(terms), true))
                .and(texts.wording(words, true))
        });
        each.times(times).and(texts.size())
    }

    /// The size of writing a lease, which is new or replaces `before`. Unchanged references to long text count, but the
    /// text itself doesn't.
    fn of_lease(record: &LeaseRecord, before: Option<&LeaseRecord>, texts: &mut Texts) -> Self {
        let lease = &record.lease;
        let was = before.map(|before| &before.lease);
        let mut hints = LongText::default();
        let extras = extras_json(lease, &mut hints).map_or(0, |json| json.len());
        if was.is_none_or(|was| was.hints != lease.hints) {
            hints.texts().for_each(|text| _ = texts.column(text, true));
        }
        let mut size = Self::row(extras)
            .and(Self::rows(changed_bookings(lease, was)))
            .and(texts.column(&lease.name, was.is_none_or(|was| was.name != lease.name)));
        if let Some(reason) = &lease.reason {
            size = size.and(texts.column(reason, was.is_none_or(|was| was.reason != lease.reason)));
        }
        if let Some(hunt) = &lease.hunt {
            size = size.and(texts.column(&hunt_json(hunt), was.is_none_or(|was| was.hunt != lease.hunt)));
        }
        for reservation in &lease.reservations {
            let one_was = was.and_then(|was| was.reservation(reservation.id));
            let is_new = one_was.is_none_or(|one_was| one_was.terms != reservation.terms);
            let terms = texts.column(&terms_json(&reservation.terms), is_new);
            let words = record.wording.get(&reservation.id);
            let is_new = before.is_none_or(|before| before.wording.get(&reservation.id) != words);
            size = size.and(Self::rows(1)).and(terms).and(texts.wording(words, is_new));
        }
        size
    }

    fn of_write<'k>(
        write: &Write,
        known: &impl Fn(LeaseId) -> Option<&'k LeaseRecord>,
        texts: &mut Texts,
    ) -> Self {
        match write {
            Write::Lease { record, .. } => Self::of_lease(record, known(record.lease.id), texts),
            Write::ForgetLease { id, .. } => {
                let reservations = known(*id).map_or(&[][..], |record| &record.lease.reservations);
                Self::rows(1 + reservations.iter().map(|one| 1 + held(one)).sum::<u64>())
            }
            Write::FreePool { record, .. } => Self::row(length(&record.pool.extra_specs)),
            Write::Host { record, .. } => Self::row(length(&record.host.capabilities)),
            Write::Flavor(record) => Self::row(length(&record.extra_specs)),
            Write::Instance { record, .. } => Self::row(record.instance.name.len()),
            Write::RemoveFreePool { .. }
            | Write::RemoveHost { .. }
            | Write::AddFloatingIp(_)
            | Write::RemoveFloatingIp(_)
            | Write::RemoveFlavor(_)
            | Write::Property(_)
            | Write::PreemptibleProject(_)
            | Write::RemovePreemptibleProject(_)
            | Write::ForgetInstance { .. } => Self::rows(1),
        }
    }
}

impl Commit {
    /// Size of the commit. `known` returns the current version of a lease: text that a lease already refers to isn't
    /// written again.
    pub fn size<'k>(&self, known: impl Fn(LeaseId) -> Option<&'k LeaseRecord>) -> WriteSize {
        let mut texts = Texts::default();
        let writes = self.writes.iter().map(|write| WriteSize::of_write(write, &known, &mut texts));
        let writes = writes.fold(WriteSize::default(), WriteSize::and).and(texts.size());
        let told = self.notifications.iter().map(|told| WriteSize::row(told.payload.len()));
        let audit = self.audit.iter().map(|record| WriteSize::row(record.object.len()));
        let usage = self.usage.opened.len() + self.usage.changed.len();
        let events = self.usage.events.iter().map(|event| WriteSize::row(8 * event.hosts.len()));
        let others = usage + self.slept.len() + usize::from(self.idempotency.is_some());
        let rows = WriteSize::rows(others as u64);
        told.chain(audit).chain(events).fold(rows.and(writes), WriteSize::and)
    }
}

/// Long text of a transaction. Each text counts once.
#[derive(Default)]
struct Texts(BTreeSet<String>);

impl Texts {
    /// Bytes that a column counts: its text, or a reference to long text, which is collected if it is new to the lease.
    fn column(&mut self, text: &str, is_new: bool) -> WriteSize {
        if text.len() <= MOST_INLINE {
            return WriteSize { rows: 0, bytes: text.len() as u64 };
        }
        if is_new && !self.0.contains(text) {
            self.0.insert(text.to_owned());
        }
        WriteSize { rows: 0, bytes: REFERENCE }
    }

    fn wording(&mut self, words: Option<&Wording>, is_new: bool) -> WriteSize {
        let texts =
            words.into_iter().flat_map(|words| [&words.hypervisor_properties, &words.resource_properties]);
        texts.flatten().map(|text| self.column(text, is_new)).fold(WriteSize::default(), WriteSize::and)
    }

    /// Size of the collected texts.
    fn size(&self) -> WriteSize {
        self.0.iter().map(|text| WriteSize::row(text.len())).fold(WriteSize::default(), WriteSize::and)
    }
}

impl LeaseRecord {
    /// Bytes of its text: expressions, extra specs, properties and hints.
    pub fn text(&self) -> u64 {
        let own = self.lease.reservations.iter();
        lease_text(own.map(|one| (&one.terms, self.wording.get(&one.id))), &self.lease.hints)
    }
}

/// Bytes of the text of a lease with these reservations and hints. Terms are kept in the client's wording and
/// in parsed form, and the longer text counts.
pub fn lease_text<'a>(
    reservations: impl IntoIterator<Item = (&'a ReservationTerms, Option<&'a Wording>)>,
    hints: &Hints,
) -> u64 {
    let texts = reservations.into_iter().map(|(terms, words)| {
        let words = words.map_or(0, wording_length);
        terms_json(terms).len().max(words)
    });
    (texts.sum::<usize>() + hints_json(hints).len()) as u64
}

fn wording_length(words: &Wording) -> usize {
    let texts = [&words.hypervisor_properties, &words.resource_properties];
    texts.into_iter().flatten().map(|text| text.len()).sum()
}

fn length(texts: &BTreeMap<String, String>) -> usize {
    texts.iter().map(|(name, value)| name.len() + value.len()).sum()
}

/// Fewest hosts or addresses that satisfy the terms.
fn least(terms: &ReservationTerms) -> u32 {
    match terms {
        ReservationTerms::Hosts(terms) => terms.min(),
        // All instances can be on one host, and each host is a row.
        ReservationTerms::Instances(_) | ReservationTerms::Flavor(_) => 1,
        ReservationTerms::FloatingIps(terms) => terms.amount(),
    }
}

/// Rows of a reservation's hosts and addresses.
fn held(reservation: &Reservation) -> u64 {
    match &reservation.allocation {
        Allocation::Hosts(hosts) => hosts.len() as u64,
        // One row for the slots, and one each for CPUs, memory and disk.
        Allocation::Slots(slots) => 4 * slots.len() as u64,
        Allocation::FloatingIps(ips) => ips.len() as u64,
    }
}

/// Rows of hosts and addresses that change.
fn changed_bookings(lease: &Lease, before: Option<&Lease>) -> u64 {
    let all = |lease: &Lease| lease.reservations.iter().map(held).sum::<u64>();
    let Some(before) = before else { return all(lease) };
    if same_bookings(before, lease) {
        return 0;
    }
    if before.window != lease.window || before.keeps_resources() != lease.keeps_resources() {
        return all(lease).max(all(before));
    }
    let changed = |now: &Reservation| match before.reservation(now.id).map(|was| &was.allocation) {
        Some(was) if *was == now.allocation => 0,
        Some(was) => match (was, &now.allocation) {
            (Allocation::Hosts(was), Allocation::Hosts(now)) => was.symmetric_difference(now).count() as u64,
            _ => held(now),
        },
        None => held(now),
    };
    lease.reservations.iter().map(changed).sum()
}

#[cfg(test)]
mod tests {
    use leases::status::LeaseStatus;

    use super::*;
    use crate::conformance::sample::{add, commit, hosts, lease, replace, window};

    fn worded(number: u128, length: usize) -> LeaseRecord {
        let mut record = lease(number, window(0, 60), vec![hosts(&[1]), hosts(&[2])]);
        let words = Wording { resource_properties: Some("x".repeat(length).into()), ..Wording::default() };
        record.wording = record.lease.reservations.iter().map(|one| (one.id, words.clone())).collect();
        record
    }

    #[test]
    fn text_that_is_stored_once_counts_once() {
        let bytes = |leases: u128, length: usize| {
            commit((0..leases).map(|number| add(&worded(number, length)))).size(|_| None).bytes
        };
        let plain = bytes(1, 0);
        assert_eq!(bytes(1, MOST_INLINE) - plain, 2 * 256);
        assert_eq!(bytes(1, 60_000) - plain, 2 * REFERENCE + ROW + 60_000);
        assert_eq!(bytes(200, 60_000) - bytes(200, 0), 400 * REFERENCE + ROW + 60_000);
    }

    #[test]
    fn the_least_that_a_series_writes_has_its_text_once() {
        let least = |length: usize, times: u64| {
            let record = worded(1, length);
            let asked = record.lease.reservations.iter();
            let asked = asked.map(|one| (&one.terms, record.wording.get(&one.id)));
            WriteSize::of_new_leases(asked, &Hints::default(), times)
        };
        let (short, long) = (least(0, 200), least(60_000, 200));
        assert_eq!((short.rows, long.rows), (200 * 7, 200 * 7 + 1));
        assert_eq!(long.bytes - short.bytes, 400 * REFERENCE + ROW + 60_000);
    }

    #[test]
    fn a_status_change_writes_no_text() {
        let old = worded(1, 60_000);
        let mut lease = old.lease.clone();
        lease.status = LeaseStatus::Active;
        let size = commit([replace(&old, lease)]).size(|_| Some(&old));
        assert!(size.bytes < 2048 + 2 * 1024, "{size:?}");
    }
}
