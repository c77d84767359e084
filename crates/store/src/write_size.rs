//! How much a commit writes, and how much a request may have a commit write.
//!
//! Sizes are what a store keeps, before its own pages, indexes and log. They are counted here and nowhere else.

use std::collections::BTreeMap;

use leases::hints::Hints;
use leases::ids::LeaseId;
use leases::lease::{Allocation, Lease, Reservation};
use leases::terms::ReservationTerms;
use thiserror::Error;

use crate::booking::same_bookings;
use crate::encoding::{extras_json, hints_json, hunt_json, terms_json};
use crate::{Commit, LeaseRecord, Wording, Write};

/// Bytes of a row beside texts: identifiers, instants, numbers, names of statuses.
pub(crate) const ROW: u64 = 128;

/// Rows, and bytes of data in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteSize {
    /// Records, and each host, instance or address that a lease is given or gives back.
    pub rows: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Bounds of what a request may write. Work of the service itself goes on in parts of this size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteLimits {
    /// Most rows of a transaction.
    pub rows: u64,
    /// Most bytes of a transaction.
    pub bytes: u64,
    /// Most bytes of text that a lease has: expressions, extra specs, properties and hints together.
    pub lease_text: u64,
}

impl Default for WriteLimits {
    fn default() -> Self {
        Self { rows: 20_000, bytes: 8 << 20, lease_text: 64 << 10 }
    }
}

/// A request that would write too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TooLarge {
    /// Too many rows.
    #[error("the request writes {size} rows in one transaction, at most {limit} are allowed")]
    Rows {
        /// What it writes.
        size: u64,
        /// What it may.
        limit: u64,
    },
    /// Too many bytes.
    #[error("the request writes {size} bytes in one transaction, at most {limit} are allowed")]
    Bytes {
        /// What it writes.
        size: u64,
        /// What it may.
        limit: u64,
    },
    /// Too much text of one lease.
    #[error(
        "the expressions, extra specs, properties and hints of the lease have {size} bytes together, at most {limit} \
         are allowed"
    )]
    LeaseText {
        /// What it has.
        size: u64,
        /// What it may have.
        limit: u64,
    },
}

impl TooLarge {
    /// How many of `count` changes, which are too large together, to try next: fewer, and one at least.
    pub fn part_of(&self, count: usize) -> usize {
        let (Self::Rows { size, limit } | Self::Bytes { size, limit } | Self::LeaseText { size, limit }) =
            *self;
        let part = (count as u128 * u128::from(limit) / u128::from(size.max(1))) as usize;
        part.clamp(1, count.saturating_sub(1).max(1))
    }

    /// How to get on.
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
    /// Whether a transaction of that size is allowed.
    pub fn check(&self, size: WriteSize) -> Result<(), TooLarge> {
        if size.rows > self.rows {
            return Err(TooLarge::Rows { size: size.rows, limit: self.rows });
        }
        if size.bytes > self.bytes {
            return Err(TooLarge::Bytes { size: size.bytes, limit: self.bytes });
        }
        Ok(())
    }

    /// Whether a lease may have that much text. One that has more already may not have more still.
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

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { rows: self.rows.saturating_add(other.rows), bytes: self.bytes.saturating_add(other.bytes) }
    }

    /// The same `times` times.
    #[must_use]
    pub fn times(self, times: u64) -> Self {
        Self { rows: self.rows.saturating_mul(times), bytes: self.bytes.saturating_mul(times) }
    }

    /// The least that a new lease writes: as few hosts as it takes, its audit record and its notification included.
    pub fn of_new_lease<'a>(
        reservations: impl IntoIterator<Item = (&'a ReservationTerms, Option<&'a Wording>)>,
        hints: &Hints,
    ) -> Self {
        let rows = Self::rows(3).and(Self { rows: 0, bytes: hints_json(hints).len() as u64 });
        reservations.into_iter().fold(rows, |sum, (terms, words)| {
            let text = terms_json(terms).len() + words.map_or(0, wording_length);
            sum.and(Self::row(text)).and(Self::rows(u64::from(least(terms))))
        })
    }

    /// A lease that is written, in place of the one before it.
    fn of_lease(record: &LeaseRecord, before: Option<&Lease>) -> Self {
        let lease = &record.lease;
        let texts =
            [Some(&lease.name), lease.reason.as_ref()].into_iter().flatten().map(String::len).sum::<usize>();
        let extras = extras_json(lease).map_or(0, |json| json.len());
        let hunt = lease.hunt.as_ref().map_or(0, |hunt| hunt_json(hunt).len());
        let own = Self::row(texts + extras + hunt).and(Self::rows(changed_bookings(lease, before)));
        lease.reservations.iter().fold(own, |sum, reservation| {
            let words = record.wording.get(&reservation.id).map_or(0, wording_length);
            sum.and(Self::row(terms_json(&reservation.terms).len() + words))
        })
    }

    fn of_write<'k>(write: &Write, known: &impl Fn(LeaseId) -> Option<&'k Lease>) -> Self {
        match write {
            Write::Lease { record, .. } => Self::of_lease(record, known(record.lease.id)),
            Write::ForgetLease { id, .. } => {
                let lease = known(*id);
                let held = lease.map_or(0, |lease| lease.reservations.iter().map(|one| 1 + held(one)).sum());
                Self::rows(1 + held)
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
    /// How much it writes. `known` are the leases as they are: what a lease has already is not written again.
    pub fn size<'k>(&self, known: impl Fn(LeaseId) -> Option<&'k Lease>) -> WriteSize {
        let writes = self.writes.iter().map(|write| WriteSize::of_write(write, &known));
        let told = self.notifications.iter().map(|told| WriteSize::row(told.payload.len()));
        let audit = self.audit.iter().map(|record| WriteSize::row(record.object.len()));
        let usage = self.usage.opened.len() + self.usage.changed.len();
        let events = self.usage.events.iter().map(|event| WriteSize::row(8 * event.hosts.len()));
        let others = usage + self.slept.len() + usize::from(self.idempotency.is_some());
        let rows = WriteSize::rows(others as u64);
        writes.chain(told).chain(audit).chain(events).fold(rows, WriteSize::and)
    }
}

impl LeaseRecord {
    /// Bytes of its text: expressions, extra specs, properties and hints.
    pub fn text(&self) -> u64 {
        let own = self.lease.reservations.iter();
        lease_text(own.map(|one| (&one.terms, self.wording.get(&one.id))), &self.lease.hints)
    }
}

/// Bytes of the text of a lease with those reservations and hints. What was asked for is kept as it was worded and as it
/// is understood, which counts once.
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
    texts.into_iter().flatten().map(String::len).sum()
}

fn length(texts: &BTreeMap<String, String>) -> usize {
    texts.iter().map(|(name, value)| name.len() + value.len()).sum()
}

/// The fewest hosts, instances or addresses that will do.
fn least(terms: &ReservationTerms) -> u32 {
    match terms {
        ReservationTerms::Hosts(terms) => terms.min(),
        // Instances may be on few hosts, and each host is a row.
        ReservationTerms::Instances(_) | ReservationTerms::Flavor(_) => 1,
        ReservationTerms::FloatingIps(terms) => terms.amount(),
    }
}

/// Rows of the hosts and addresses that a reservation has.
fn held(reservation: &Reservation) -> u64 {
    match &reservation.allocation {
        Allocation::Hosts(hosts) => hosts.len() as u64,
        // One for the slots, and one for each of CPUs, memory and disk.
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
