//! Leases and their reservations, and what they give up.

use std::collections::{BTreeMap, BTreeSet};

use ::leases::ids::{LeaseId, ReservationId};
use ::leases::lease::Reservation;
use serde::Serialize;
use sqlx::SqliteConnection;
use store::booking::{Bookings, bookings as bookings_of, changes};
use store::encoding::{end_action_name, json, terms_json};
use store::{CommitError, LeaseRecord, StoreError, Version, Write};

use super::bookings;
use super::take::Taken;
use crate::columns::{hex, us, uuid};
use crate::error::{failed, unavailable};

/// What the store holds of a lease before it is written.
#[derive(Debug, Default)]
pub(super) struct Held {
    pub(super) bookings: Bookings,
    reservations: BTreeSet<ReservationId>,
}

/// Writes leases, and lets them give up what they do not have any more. Returns what they take anew.
pub(super) async fn write(db: &mut SqliteConnection, writes: &[Write]) -> Result<Vec<Taken>, CommitError> {
    let last = store::leases_after(writes);
    if last.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<String> = last.keys().map(|id| hex(id.0)).collect();
    let mut held = held(db, &json(&ids)).await?;
    for write in writes {
        match write {
            Write::Lease { record, expected: None } => insert(db, record).await?,
            Write::Lease { record, expected: Some(expected) } => update(db, record, *expected).await?,
            Write::ForgetLease { id, expected } => {
                forget(db, *id, *expected).await?;
                held.remove(id);
            }
            _ => {}
        }
    }
    let mut taken = Vec::new();
    for (&id, record) in &last {
        let Some(record) = record else { continue };
        let held = held.remove(&id).unwrap_or_default();
        let changes = changes(&held.bookings, bookings_of(&record.lease));
        bookings::give_up(db, id, &held.bookings, &changes).await?;
        remove_reservations(db, record, &held).await?;
        taken.extend(changes.taken.into_iter().map(|(key, booking)| (id, key, booking)));
    }
    let kept: Vec<&LeaseRecord> = last.into_values().flatten().collect();
    write_reservations(db, &reservation_rows(&kept)).await?;
    Ok(taken)
}

/// What there is of these leases.
async fn held(db: &mut SqliteConnection, leases: &str) -> Result<BTreeMap<LeaseId, Held>, StoreError> {
    let mut held: BTreeMap<LeaseId, Held> = BTreeMap::new();
    let rows = sqlx::query!(
        "SELECT lease, id FROM reservation WHERE lease IN (SELECT unhex(value) FROM json_each(?))",
        leases,
    );
    for row in rows.fetch_all(&mut *db).await.map_err(unavailable)? {
        let of_lease = held.entry(LeaseId(uuid(&row.lease)?)).or_default();
        of_lease.reservations.insert(ReservationId(uuid(&row.id)?));
    }
    bookings::held(db, leases, &mut held).await?;
    Ok(held)
}

async fn insert(db: &mut SqliteConnection, record: &LeaseRecord) -> Result<(), CommitError> {
    let row = Row::of(record);
    let (lease, events) = (&record.lease, record.lease.events);
    let (end_action, status) = (end_action_name(lease.end_action), lease.status.name());
    let (start, before_end, end) = (events.start.name(), events.before_end.name(), events.end.name());
    let id = row.id.as_slice();
    let insertion = sqlx::query!(
        "INSERT INTO lease (
             id, version, name, project, user_id, starts_us, ends_us, before_end_us, end_action, status,
             start_event, before_end_event, end_event, reason, created_at_us, updated_at_us
         ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT (id) DO NOTHING",
        id,
        row.version,
        lease.name,
        lease.owner.project.0,
        lease.owner.user.0,
        row.starts_us,
        row.ends_us,
        row.before_end_us,
        end_action,
        status,
        start,
        before_end,
        end,
        lease.reason,
        row.created_at_us,
        row.updated_at_us,
    );
    one(insertion.execute(db).await, record.lease.id)
}

async fn update(
    db: &mut SqliteConnection,
    record: &LeaseRecord,
    expected: Version,
) -> Result<(), CommitError> {
    let row = Row::of(record);
    let (lease, events) = (&record.lease, record.lease.events);
    let (end_action, status) = (end_action_name(lease.end_action), lease.status.name());
    let (start, before_end, end) = (events.start.name(), events.before_end.name(), events.end.name());
    let (id, expected) = (row.id.as_slice(), expected.0.cast_signed());
    let change = sqlx::query!(
        "UPDATE lease SET
             version = ?, name = ?, project = ?, user_id = ?, starts_us = ?, ends_us = ?, before_end_us = ?,
             end_action = ?, status = ?, start_event = ?, before_end_event = ?, end_event = ?, reason = ?,
             created_at_us = ?, updated_at_us = ?
         WHERE id = ? AND version = ?",
        row.version,
        lease.name,
        lease.owner.project.0,
        lease.owner.user.0,
        row.starts_us,
        row.ends_us,
        row.before_end_us,
        end_action,
        status,
        start,
        before_end,
        end,
        lease.reason,
        row.created_at_us,
        row.updated_at_us,
        id,
        expected,
    );
    one(change.execute(db).await, record.lease.id)
}

async fn forget(db: &mut SqliteConnection, lease: LeaseId, expected: Version) -> Result<(), CommitError> {
    let (id, expected) = (lease.0.to_be_bytes(), expected.0.cast_signed());
    let id = id.as_slice();
    let deletion = sqlx::query!("DELETE FROM lease WHERE id = ? AND version = ?", id, expected);
    one(deletion.execute(db).await, lease)
}

/// A write that changed no row was based on another version.
fn one(
    result: Result<sqlx::sqlite::SqliteQueryResult, sqlx::Error>,
    lease: LeaseId,
) -> Result<(), CommitError> {
    match result.map_err(failed)?.rows_affected() {
        0 => Err(CommitError::stale_lease(lease)),
        _ => Ok(()),
    }
}

/// Columns of a lease that hold values in another form.
struct Row {
    id: [u8; 16],
    version: i64,
    starts_us: i64,
    ends_us: i64,
    before_end_us: Option<i64>,
    created_at_us: i64,
    updated_at_us: Option<i64>,
}

impl Row {
    fn of(record: &LeaseRecord) -> Self {
        Self {
            id: record.lease.id.0.to_be_bytes(),
            version: record.version.0.cast_signed(),
            starts_us: us(record.lease.window.start()),
            ends_us: us(record.lease.window.end()),
            before_end_us: record.lease.before_end.map(us),
            created_at_us: us(record.created_at),
            updated_at_us: record.updated_at.map(us),
        }
    }
}

/// Removes the reservations that the lease does not have any more.
async fn remove_reservations(
    db: &mut SqliteConnection,
    record: &LeaseRecord,
    held: &Held,
) -> Result<(), CommitError> {
    let lease = record.lease.id.0.to_be_bytes();
    let lease = lease.as_slice();
    for gone in held.reservations.iter().filter(|id| record.lease.reservation(**id).is_none()) {
        let id = gone.0.to_be_bytes();
        let id = id.as_slice();
        let deletion = sqlx::query!("DELETE FROM reservation WHERE lease = ? AND id = ?", lease, id);
        deletion.execute(&mut *db).await.map_err(failed)?;
    }
    Ok(())
}

/// All reservations of these leases as rows for [`write_reservations`].
fn reservation_rows(records: &[&LeaseRecord]) -> String {
    let mut rows = Vec::new();
    for record in records {
        for (position, reservation) in record.lease.reservations.iter().enumerate() {
            rows.push(reservation_row(record, position, reservation));
        }
    }
    json(&rows)
}

/// Writes reservations in one statement, since a statement costs more than a row.
async fn write_reservations(db: &mut SqliteConnection, rows: &str) -> Result<(), CommitError> {
    let write = sqlx::query!(
        "INSERT INTO reservation (
             lease, id, position, terms, status, missing_resources, resources_changed, hypervisor_properties,
             resource_properties
         ) SELECT
             unhex(value ->> 0), unhex(value ->> 1), value ->> 2, value ->> 3, value ->> 4, value ->> 5,
             value ->> 6, value ->> 7, value ->> 8
         FROM json_each(?) WHERE true
         ON CONFLICT (lease, id) DO UPDATE SET
             position = excluded.position, terms = excluded.terms, status = excluded.status,
             missing_resources = excluded.missing_resources, resources_changed = excluded.resources_changed,
             hypervisor_properties = excluded.hypervisor_properties,
             resource_properties = excluded.resource_properties",
        rows,
    );
    write.execute(db).await.map_err(failed)?;
    Ok(())
}

fn reservation_row<'a>(
    record: &'a LeaseRecord,
    position: usize,
    reservation: &'a Reservation,
) -> impl Serialize + use<'a> {
    let words = record.wording.get(&reservation.id);
    (
        hex(record.lease.id.0),
        hex(reservation.id.0),
        position,
        terms_json(&reservation.terms),
        reservation.status.name(),
        reservation.missing_resources,
        reservation.resources_changed,
        words.and_then(|words| words.hypervisor_properties.as_deref()),
        words.and_then(|words| words.resource_properties.as_deref()),
    )
}
