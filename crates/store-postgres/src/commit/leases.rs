//! Leases, their reservations, and releases of bookings.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use ::leases::ids::LeaseId;
use ::leases::lease::Reservation;
use sqlx::PgConnection;
use store::booking::{BookingChanges, Bookings, Subject, bookings as bookings_of, changes};
use store::encoding::booking::{Held, HeldLeases};
use store::encoding::{LeaseRow, LongText, ReservationText, TextChanges, json};
use store::{CommitError, LeaseRecord, Version, Write};
use uuid::Uuid;

use super::take::Taken;
use super::{bookings, texts};
use crate::columns::{text, uuid};
use crate::error::TxError;

/// Leases to write, and the versions that they replace.
type Rows<'a> = BTreeMap<LeaseId, (&'a LeaseRecord, Option<Version>)>;

/// Long text of each lease that is written, after the last write of the lease in the commit.
type Texts = BTreeMap<LeaseId, LongText>;

/// Leases that are about to be written.
pub(super) struct Rewriting<'a> {
    writes: &'a [Write],
    /// Final record of each lease; `None` if it is forgotten.
    last: BTreeMap<LeaseId, Option<&'a LeaseRecord>>,
    held: HeldLeases,
    /// Bookings that each lease gives up and takes.
    changes: BTreeMap<LeaseId, BookingChanges>,
}

impl<'a> Rewriting<'a> {
    /// Locks the leases and works out how their bookings change.
    pub(super) async fn begin(db: &mut PgConnection, writes: &'a [Write]) -> Result<Self, TxError> {
        let last = store::leases_after(writes);
        let ids: Vec<Uuid> = last.keys().map(|id| uuid(id.0)).collect();
        let held = if ids.is_empty() { HeldLeases::default() } else { held(db, &ids).await? };
        let forgotten: BTreeSet<LeaseId> = writes.iter().filter_map(forgotten).collect();
        let nothing = Bookings::default();
        let mut of_leases: BTreeMap<LeaseId, BookingChanges> = BTreeMap::new();
        for (id, record) in &last {
            let new = record.map(|record| bookings_of(&record.lease)).unwrap_or_default();
            let old = held.get(*id).map_or(&nothing, |held| &held.bookings);
            // A lease that is forgotten and created again takes everything again.
            let changes = if forgotten.contains(id) {
                let given_up = old.keys().copied().collect();
                BookingChanges { given_up, ..changes(&nothing, new) }
            } else {
                changes(old, new)
            };
            of_leases.insert(*id, changes);
        }
        Ok(Self { writes, last, held, changes: of_leases })
    }

    /// Hosts and addresses that these leases release or take. Lock all of them before releasing the first.
    /// Otherwise this transaction could wait for a host that another transaction has locked, while that one
    /// waits for a host that was released here but not committed.
    pub(super) fn subjects(&self) -> impl Iterator<Item = Subject> + '_ {
        self.changes.values().flat_map(|changes| {
            let others = changes.settled.iter().chain(&changes.taken).map(|(key, _)| key);
            changes.given_up.iter().chain(others).map(|key| key.subject)
        })
    }

    /// Writes the leases, and releases bookings. Returns the bookings that the leases take.
    pub(super) async fn write(mut self, db: &mut PgConnection) -> Result<Vec<Taken>, TxError> {
        let mut rows = Rows::new();
        let mut long = Texts::new();
        for write in self.writes {
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
                    self.held.take(*id);
                }
                _ => {}
            }
        }
        write_rows(db, &rows, &mut long).await?;
        let kept: Vec<&LeaseRecord> = self.last.values().copied().flatten().collect();
        let reservations = Reservations::of(&kept, &mut long);
        let mut text_changes = TextChanges::default();
        let mut taken = Vec::new();
        for (&id, record) in &self.last {
            let Some(record) = record else { continue };
            let held = self.held.take(id);
            let changes = self.changes.remove(&id).unwrap_or_default();
            bookings::give_up(db, id, &held.bookings, &changes).await?;
            remove_reservations(db, record, &held).await?;
            text_changes.enter(id, long.remove(&id).unwrap_or_default(), &held.texts);
            taken.extend(changes.taken.into_iter().map(|(key, booking)| (id, key, booking)));
        }
        if !reservations.ids.is_empty() {
            write_reservations(db, &reservations).await?;
        }
        texts::write(db, &text_changes).await?;
        Ok(taken)
    }
}

fn forgotten(write: &Write) -> Option<LeaseId> {
    match write {
        Write::ForgetLease { id, .. } => Some(*id),
        _ => None,
    }
}

/// Locks these leases in order and reads their current rows.
async fn held(db: &mut PgConnection, leases: &[Uuid]) -> Result<HeldLeases, TxError> {
    let mut held = HeldLeases::default();
    let lock = sqlx::query_scalar!("SELECT id FROM lease WHERE id = ANY($1) ORDER BY id FOR UPDATE", leases);
    let known = lock.fetch_all(&mut *db).await?;
    if known.is_empty() {
        // All leases are new. This is the case when a lease is created, which should be fast.
        return Ok(held);
    }
    let rows = sqlx::query!(
        r#"SELECT lease AS "lease!", id, NULL::bytea AS hash FROM reservation WHERE lease = ANY($1)
         UNION ALL SELECT lease, NULL, hash FROM lease_text WHERE lease = ANY($1)"#,
        &known,
    );
    for row in rows.fetch_all(&mut *db).await? {
        let lease = row.lease.as_u128();
        if let Some(id) = row.id {
            held.reservation(lease, id.as_u128());
        }
        if let Some(hash) = row.hash {
            held.text(lease, &hash)?;
        }
    }
    bookings::held(db, &known, &mut held).await?;
    Ok(held)
}

/// Writes new leases in one statement and existing ones in another, since a statement costs more than a row.
async fn write_rows(db: &mut PgConnection, rows: &Rows<'_>, long: &mut Texts) -> Result<(), TxError> {
    let all = rows.values().map(|(record, expected)| {
        let mut own = LongText::default();
        let row = LeaseRow::of(record, *expected, &mut own, text);
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
        Some(stale) => Err(CommitError::stale_lease(*stale).into()),
        None => Ok(()),
    }
}

/// Adds the [leases](LeaseRow) that don't exist yet, and returns their identifiers.
async fn insert(db: &mut PgConnection, rows: &str) -> Result<Vec<LeaseId>, TxError> {
    let insertion = sqlx::query_scalar!(
        "INSERT INTO lease (
             id, version, name, project, user_id, lease_type, deadline_us, starts_us, ends_us, before_end_us,
             end_action, status, start_event, before_end_event, end_event, reason, hunt, standing, series, extras,
             created_at_us, updated_at_us
         ) SELECT
             id, version, name, project, user_id, lease_type, deadline_us, starts_us, ends_us, before_end_us,
             end_action, status, start_event, before_end_event, end_event, reason, hunt, standing, series, extras,
             created_at_us, updated_at_us
         FROM json_populate_recordset(NULL::lease, $1::text::json)
         ON CONFLICT (id) DO NOTHING
         RETURNING id",
        rows,
    );
    Ok(ids(insertion.fetch_all(db).await?))
}

/// Updates the [leases](LeaseRow) that have the expected versions, and returns their identifiers.
async fn update(db: &mut PgConnection, rows: &str) -> Result<Vec<LeaseId>, TxError> {
    let change = sqlx::query_scalar!(
        "UPDATE lease SET
             version = new.version, name = new.name, project = new.project, user_id = new.user_id,
             lease_type = new.lease_type, deadline_us = new.deadline_us,
             starts_us = new.starts_us, ends_us = new.ends_us, before_end_us = new.before_end_us,
             end_action = new.end_action, status = new.status, start_event = new.start_event,
             before_end_event = new.before_end_event, end_event = new.end_event, reason = new.reason,
             hunt = new.hunt, standing = new.standing, series = new.series, extras = new.extras,
             created_at_us = new.created_at_us, updated_at_us = new.updated_at_us
         FROM json_to_recordset($1::text::json) AS new (
             id uuid, expected bigint, version bigint, name text, project text, user_id text,
             lease_type text, deadline_us bigint, starts_us bigint, ends_us bigint, before_end_us bigint,
             end_action text, status text, start_event text, before_end_event text, end_event text, reason text,
             hunt text, standing text, series text, extras text, created_at_us bigint, updated_at_us bigint
         )
         WHERE lease.id = new.id AND lease.version = new.expected
         RETURNING lease.id",
        rows,
    );
    Ok(ids(change.fetch_all(db).await?))
}

fn ids(rows: Vec<Uuid>) -> Vec<LeaseId> {
    rows.into_iter().map(|id| LeaseId(id.as_u128())).collect()
}

async fn forget(db: &mut PgConnection, lease: LeaseId, expected: Version) -> Result<(), TxError> {
    let expected = expected.0.cast_signed();
    let deletion = sqlx::query!("DELETE FROM lease WHERE id = $1 AND version = $2", uuid(lease.0), expected);
    match deletion.execute(db).await?.rows_affected() {
        0 => Err(CommitError::stale_lease(lease).into()),
        _ => Ok(()),
    }
}

/// Removes reservations that the lease no longer has.
async fn remove_reservations(
    db: &mut PgConnection,
    record: &LeaseRecord,
    held: &Held,
) -> Result<(), TxError> {
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
    /// Rows of all reservations of these leases.
    fn of(records: &[&LeaseRecord], long: &mut Texts) -> Self {
        let mut rows = Self::default();
        for record in records {
            let long = long.entry(record.lease.id).or_default();
            for (reservation, position) in record.lease.reservations.iter().zip(0..) {
                rows.push(record, position, reservation, long);
            }
        }
        rows
    }

    fn push(&mut self, record: &LeaseRecord, position: i64, reservation: &Reservation, long: &mut LongText) {
        let ReservationText { terms, hypervisor_properties, resource_properties } =
            long.reservation(record, reservation);
        let escaped = |column: Option<Cow<'_, str>>| column.map(|column| text(&column).into_owned());
        self.leases.push(uuid(record.lease.id.0));
        self.ids.push(uuid(reservation.id.0));
        self.positions.push(position);
        self.terms.push(terms);
        self.statuses.push(reservation.status.name().to_owned());
        self.missing.push(reservation.missing_resources);
        self.changed.push(reservation.resources_changed);
        self.hypervisor_properties.push(escaped(hypervisor_properties));
        self.resource_properties.push(escaped(resource_properties));
    }
}

/// Writes reservations in one statement, since a statement costs more than a row.
async fn write_reservations(db: &mut PgConnection, rows: &Reservations) -> Result<(), TxError> {
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
