//! Leases and their reservations, and what they give up.

use std::collections::{BTreeMap, BTreeSet};

use ::leases::ids::{LeaseId, ReservationId};
use ::leases::lease::Reservation;
use sqlx::PgConnection;
use store::booking::{Bookings, bookings as bookings_of, changes};
use store::encoding::{end_action_name, terms_json};
use store::{CommitError, LeaseRecord, Version, Wording, Write};
use uuid::Uuid;

use super::bookings;
use super::take::Taken;
use crate::columns::{maybe_text, text, us, uuid};
use crate::error::Trouble;

/// What the store holds of a lease before it is written.
#[derive(Debug, Default)]
pub(super) struct Held {
    pub(super) bookings: Bookings,
    reservations: BTreeSet<ReservationId>,
}

/// Writes leases, and lets them give up what they do not have any more. Returns what they take anew.
pub(super) async fn write(db: &mut PgConnection, writes: &[Write]) -> Result<Vec<Taken>, Trouble> {
    let last = store::leases_after(writes);
    if last.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<Uuid> = last.keys().map(|id| uuid(id.0)).collect();
    let mut held = held(db, &ids).await?;
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
    write_reservations(db, &kept).await?;
    Ok(taken)
}

/// Locks these leases in order and reads what there is of them.
async fn held(db: &mut PgConnection, leases: &[Uuid]) -> Result<BTreeMap<LeaseId, Held>, Trouble> {
    let mut held: BTreeMap<LeaseId, Held> = BTreeMap::new();
    let lock = sqlx::query_scalar!("SELECT id FROM lease WHERE id = ANY($1) ORDER BY id FOR UPDATE", leases);
    let known = lock.fetch_all(&mut *db).await?;
    if known.is_empty() {
        // All are new, as when one is made, which is when it matters how long it takes.
        return Ok(held);
    }
    let rows = sqlx::query!("SELECT lease, id FROM reservation WHERE lease = ANY($1)", &known);
    for row in rows.fetch_all(&mut *db).await? {
        let of_lease = held.entry(LeaseId(row.lease.as_u128())).or_default();
        of_lease.reservations.insert(ReservationId(row.id.as_u128()));
    }
    bookings::held(db, &known, &mut held).await?;
    Ok(held)
}

async fn insert(db: &mut PgConnection, record: &LeaseRecord) -> Result<(), Trouble> {
    let (row, reason) = (Row::of(record), maybe_text(record.lease.reason.as_deref()));
    let (lease, events) = (&record.lease, record.lease.events);
    let (end_action, status) = (end_action_name(lease.end_action), lease.status.name());
    let (start, before_end, end) = (events.start.name(), events.before_end.name(), events.end.name());
    let insertion = sqlx::query!(
        "INSERT INTO lease (
             id, version, name, project, user_id, starts_us, ends_us, before_end_us, end_action, status,
             start_event, before_end_event, end_event, reason, created_at_us, updated_at_us
         ) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
         ON CONFLICT (id) DO NOTHING",
        row.id,
        row.version,
        &text(&lease.name),
        &text(&lease.owner.project.0),
        &text(&lease.owner.user.0),
        row.starts_us,
        row.ends_us,
        row.before_end_us,
        end_action,
        status,
        start,
        before_end,
        end,
        reason.as_deref(),
        row.created_at_us,
        row.updated_at_us,
    );
    one(insertion.execute(db).await, record.lease.id)
}

async fn update(db: &mut PgConnection, record: &LeaseRecord, expected: Version) -> Result<(), Trouble> {
    let (row, reason) = (Row::of(record), maybe_text(record.lease.reason.as_deref()));
    let (lease, events) = (&record.lease, record.lease.events);
    let (end_action, status) = (end_action_name(lease.end_action), lease.status.name());
    let (start, before_end, end) = (events.start.name(), events.before_end.name(), events.end.name());
    let expected = expected.0.cast_signed();
    let change = sqlx::query!(
        "UPDATE lease SET
             version = $1, name = $2, project = $3, user_id = $4, starts_us = $5, ends_us = $6, before_end_us = $7,
             end_action = $8, status = $9, start_event = $10, before_end_event = $11, end_event = $12, reason = $13,
             created_at_us = $14, updated_at_us = $15
         WHERE id = $16 AND version = $17",
        row.version,
        &text(&lease.name),
        &text(&lease.owner.project.0),
        &text(&lease.owner.user.0),
        row.starts_us,
        row.ends_us,
        row.before_end_us,
        end_action,
        status,
        start,
        before_end,
        end,
        reason.as_deref(),
        row.created_at_us,
        row.updated_at_us,
        row.id,
        expected,
    );
    one(change.execute(db).await, record.lease.id)
}

async fn forget(db: &mut PgConnection, lease: LeaseId, expected: Version) -> Result<(), Trouble> {
    let expected = expected.0.cast_signed();
    let deletion = sqlx::query!("DELETE FROM lease WHERE id = $1 AND version = $2", uuid(lease.0), expected);
    one(deletion.execute(db).await, lease)
}

/// A write that changed no row was based on another version.
fn one(result: Result<sqlx::postgres::PgQueryResult, sqlx::Error>, lease: LeaseId) -> Result<(), Trouble> {
    match result?.rows_affected() {
        0 => Err(CommitError::stale_lease(lease).into()),
        _ => Ok(()),
    }
}

/// Columns of a lease that hold values in another form.
struct Row {
    id: Uuid,
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
            id: uuid(record.lease.id.0),
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
    db: &mut PgConnection,
    record: &LeaseRecord,
    held: &Held,
) -> Result<(), Trouble> {
    let gone = held.reservations.iter().filter(|id| record.lease.reservation(**id).is_none());
    let gone: Vec<Uuid> = gone.map(|id| uuid(id.0)).collect();
    if gone.is_empty() {
        return Ok(());
    }
    let lease = uuid(record.lease.id.0);
    let deletion = sqlx::query!("DELETE FROM reservation WHERE lease = $1 AND id = ANY($2)", lease, &gone);
    deletion.execute(db).await?;
    Ok(())
}

/// Columns of reservations.
#[derive(Default)]
struct Reservations {
    leases: Vec<Uuid>,
    ids: Vec<Uuid>,
    positions: Vec<i64>,
    terms: Vec<String>,
    statuses: Vec<String>,
    missing: Vec<bool>,
    changed: Vec<bool>,
    hypervisor_properties: Vec<Option<String>>,
    resource_properties: Vec<Option<String>>,
}

impl Reservations {
    fn push(&mut self, record: &LeaseRecord, position: i64, reservation: &Reservation) {
        let words = record.wording.get(&reservation.id);
        let word = |of: fn(&Wording) -> Option<&str>| {
            maybe_text(words.and_then(of)).map(std::borrow::Cow::into_owned)
        };
        self.leases.push(uuid(record.lease.id.0));
        self.ids.push(uuid(reservation.id.0));
        self.positions.push(position);
        self.terms.push(terms_json(&reservation.terms));
        self.statuses.push(reservation.status.name().to_owned());
        self.missing.push(reservation.missing_resources);
        self.changed.push(reservation.resources_changed);
        self.hypervisor_properties.push(word(|words| words.hypervisor_properties.as_deref()));
        self.resource_properties.push(word(|words| words.resource_properties.as_deref()));
    }
}

/// Writes all reservations of these leases in one statement, since a statement costs more than a row.
async fn write_reservations(db: &mut PgConnection, records: &[&LeaseRecord]) -> Result<(), Trouble> {
    let mut rows = Reservations::default();
    for record in records {
        for (reservation, position) in record.lease.reservations.iter().zip(0..) {
            rows.push(record, position, reservation);
        }
    }
    let write = sqlx::query!(
        "INSERT INTO reservation (
             lease, id, position, terms, status, missing_resources, resources_changed, hypervisor_properties,
             resource_properties
         ) SELECT * FROM unnest(
             $1::uuid[], $2::uuid[], $3::bigint[], $4::text[], $5::text[], $6::boolean[], $7::boolean[],
             $8::text[], $9::text[]
         )
         ON CONFLICT (lease, id) DO UPDATE SET
             position = excluded.position, terms = excluded.terms, status = excluded.status,
             missing_resources = excluded.missing_resources, resources_changed = excluded.resources_changed,
             hypervisor_properties = excluded.hypervisor_properties,
             resource_properties = excluded.resource_properties",
        &rows.leases,
        &rows.ids,
        &rows.positions,
        &rows.terms,
        &rows.statuses,
        &rows.missing,
        &rows.changed,
        &rows.hypervisor_properties as &[Option<String>],
        &rows.resource_properties as &[Option<String>],
    );
    write.execute(db).await?;
    Ok(())
}
