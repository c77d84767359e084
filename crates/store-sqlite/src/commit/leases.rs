//! Leases, their reservations, and releases of bookings.

use std::collections::{BTreeMap, BTreeSet};

use ::leases::ids::LeaseId;
use ::leases::lease::Reservation;
use serde::Serialize;
use sqlx::SqliteConnection;
use store::booking::{bookings as bookings_of, changes};
use store::encoding::booking::{Held, HeldLeases};
use store::encoding::{LeaseRow, LongText, TextChanges, hex, json};
use store::{CommitError, LeaseRecord, StoreError, Version, Write};

use super::take::Taken;
use super::{bookings, texts};
use crate::columns::uuid;
use crate::error::{failed, unavailable};

/// Leases to write, and the versions that they replace.
type Rows<'a> = BTreeMap<LeaseId, (&'a LeaseRecord, Option<Version>)>;

/// Long text of each lease that is written, after the last write of the lease in the commit.
type Texts = BTreeMap<LeaseId, LongText>;

/// Writes leases, and releases bookings. Returns the bookings that the leases take.
pub(super) async fn write(db: &mut SqliteConnection, writes: &[Write]) -> Result<Vec<Taken>, CommitError> {
    let last = store::leases_after(writes);
    if last.is_empty() {
        return Ok(Vec::new());
    }
    let mut held = held(db, writes).await?;
    let mut rows = Rows::new();
    let mut long = Texts::new();
    for write in writes {
        // Versions are compared in the order of writes.
        if write.lease().is_some_and(|(id, _)| rows.contains_key(&id)) {
            write_rows(db, &std::mem::take(&mut rows), &mut long).await?;
        }
        match write {
            Write::Lease { record, expected } => {
                rows.insert(record.lease.id, (record, *expected));
            }
            Write::ForgetLease { id, expected } => {
                forget(db, *id, *expected).await?;
                held.take(*id);
            }
            _ => {}
        }
    }
    write_rows(db, &rows, &mut long).await?;
    let kept: Vec<&LeaseRecord> = last.values().copied().flatten().collect();
    let reservations = reservation_rows(&kept, &mut long);
    let mut text_changes = TextChanges::default();
    let mut taken = Vec::new();
    for (&id, record) in &last {
        let Some(record) = record else { continue };
        let held = held.take(id);
        let changes = changes(&held.bookings, bookings_of(&record.lease));
        bookings::give_up(db, id, &held.bookings, &changes).await?;
        remove_reservations(db, record, &held).await?;
        text_changes.enter(id, long.remove(&id).unwrap_or_default(), &held.texts);
        taken.extend(changes.taken.into_iter().map(|(key, booking)| (id, key, booking)));
    }
    write_reservations(db, &reservations).await?;
    texts::write(db, &text_changes).await?;
    Ok(taken)
}

/// Current rows of the leases that change.
async fn held(db: &mut SqliteConnection, writes: &[Write]) -> Result<HeldLeases, StoreError> {
    let mut held = HeldLeases::default();
    let known = writes.iter().filter_map(|write| match write {
        Write::Lease { record, expected: Some(_) } => Some(hex(record.lease.id.0)),
        Write::ForgetLease { id, .. } => Some(hex(id.0)),
        _ => None,
    });
    let known: Vec<String> = known.collect();
    if known.is_empty() {
        return Ok(held);
    }
    let leases = json(&known);
    let rows = sqlx::query!(
        r#"SELECT lease AS "lease!: Vec<u8>", id AS "id: Vec<u8>", NULL AS "hash: Vec<u8>" FROM reservation
         WHERE lease IN (SELECT unhex(value) FROM json_each(?1))
         UNION ALL SELECT lease, NULL, hash FROM lease_text
         WHERE lease IN (SELECT unhex(value) FROM json_each(?1))"#,
        leases,
    );
    for row in rows.fetch_all(&mut *db).await.map_err(unavailable)? {
        let lease = uuid(&row.lease)?;
        if let Some(id) = row.id {
            held.reservation(lease, uuid(&id)?);
        }
        if let Some(hash) = row.hash {
            held.text(lease, &hash)?;
        }
    }
    bookings::held(db, &leases, &mut held).await?;
    Ok(held)
}

/// Writes new leases in one statement and existing ones in another, since a statement costs more than a row.
async fn write_rows(db: &mut SqliteConnection, rows: &Rows<'_>, long: &mut Texts) -> Result<(), CommitError> {
    let all = rows.values().map(|(record, expected)| {
        let mut own = LongText::default();
        let row = LeaseRow::of(record, *expected, &mut own, |text| text.into());
        long.insert(record.lease.id, own);
        row
    });
    let (new, known): (Vec<_>, Vec<_>) = all.partition(LeaseRow::is_new);
    let mut written = BTreeSet::new();
    if !new.is_empty() {
        written.extend(insert(db, &json(&new)).await?);
    }
    if !known.is_empty() {
        written.extend(update(db, &json(&known)).await?);
    }
    match rows.keys().find(|id| !written.contains(id)) {
        Some(stale) => Err(CommitError::stale_lease(*stale)),
        None => Ok(()),
    }
}

/// Adds the [leases](LeaseRow) that don't exist yet, and returns their identifiers.
async fn insert(db: &mut SqliteConnection, rows: &str) -> Result<Vec<LeaseId>, CommitError> {
    let insertion = sqlx::query_scalar!(
        "INSERT INTO lease (
             id, version, name, project, user_id, lease_type, deadline_us, starts_us, ends_us, before_end_us,
             end_action, status, start_event, before_end_event, end_event, reason, hunt, standing, series, extras,
             created_at_us,
             updated_at_us
         ) SELECT
             unhex(value ->> 'id'), value ->> 'version', value ->> 'name', value ->> 'project',
             value ->> 'user_id', value ->> 'lease_type', value ->> 'deadline_us', value ->> 'starts_us',
             value ->> 'ends_us', value ->> 'before_end_us',
             value ->> 'end_action', value ->> 'status', value ->> 'start_event',
             value ->> 'before_end_event', value ->> 'end_event', value ->> 'reason', value ->> 'hunt',
             value ->> 'standing', value ->> 'series', value ->> 'extras',
             value ->> 'created_at_us', value ->> 'updated_at_us'
         FROM json_each(?) WHERE true
         ON CONFLICT (id) DO NOTHING
         RETURNING id",
        rows,
    );
    ids(insertion.fetch_all(db).await)
}

/// Updates the [leases](LeaseRow) that have the expected versions, and returns their identifiers.
async fn update(db: &mut SqliteConnection, rows: &str) -> Result<Vec<LeaseId>, CommitError> {
    let change = sqlx::query_scalar!(
        "UPDATE lease SET
             version = value ->> 'version', name = value ->> 'name', project = value ->> 'project',
             user_id = value ->> 'user_id', lease_type = value ->> 'lease_type',
             deadline_us = value ->> 'deadline_us', starts_us = value ->> 'starts_us', ends_us = value ->> 'ends_us',
             before_end_us = value ->> 'before_end_us', end_action = value ->> 'end_action',
             status = value ->> 'status', start_event = value ->> 'start_event',
             before_end_event = value ->> 'before_end_event', end_event = value ->> 'end_event',
             reason = value ->> 'reason', hunt = value ->> 'hunt', standing = value ->> 'standing',
             series = value ->> 'series', extras = value ->> 'extras',
             created_at_us = value ->> 'created_at_us', updated_at_us = value ->> 'updated_at_us'
         FROM json_each(?) WHERE lease.id = unhex(value ->> 'id') AND lease.version = value ->> 'expected'
         RETURNING lease.id",
        rows,
    );
    ids(change.fetch_all(db).await)
}

fn ids(rows: Result<Vec<Vec<u8>>, sqlx::Error>) -> Result<Vec<LeaseId>, CommitError> {
    let ids = rows.map_err(failed)?.into_iter().map(|id| uuid(&id).map(LeaseId)).collect::<Result<_, _>>();
    Ok(ids?)
}

async fn forget(db: &mut SqliteConnection, lease: LeaseId, expected: Version) -> Result<(), CommitError> {
    let (id, expected) = (lease.0.to_be_bytes(), expected.0.cast_signed());
    let id = id.as_slice();
    let deletion = sqlx::query!("DELETE FROM lease WHERE id = ? AND version = ?", id, expected);
    match deletion.execute(db).await.map_err(failed)?.rows_affected() {
        0 => Err(CommitError::stale_lease(lease)),
        _ => Ok(()),
    }
}

/// Removes reservations that the lease no longer has.
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
fn reservation_rows(records: &[&LeaseRecord], long: &mut Texts) -> String {
    let mut rows = Vec::new();
    for record in records {
        let long = long.entry(record.lease.id).or_default();
        for (position, reservation) in record.lease.reservations.iter().enumerate() {
            rows.push(reservation_row(record, position, reservation, long));
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
    long: &mut LongText,
) -> impl Serialize + use<'a> {
    let text = long.reservation(record, reservation);
    (
        hex(record.lease.id.0),
        hex(reservation.id.0),
        position,
        text.terms,
        reservation.status.name(),
        reservation.missing_resources,
        reservation.resources_changed,
        text.hypervisor_properties,
        text.resource_properties,
    )
}
