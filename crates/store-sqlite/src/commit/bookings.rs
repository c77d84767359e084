//! Bookings: reads, releases and reductions.

use ::leases::ids::{FloatingIpId, HostId, LeaseId, ReservationId};
use sqlx::SqliteConnection;
use store::booking::{BookingChanges, Bookings, Subject};
use store::encoding::booking::{HeldLeases, RowChange, SlotsRow, Span, UseChange, row_changes};
use store::{CommitError, StoreError};

use crate::columns::uuid;
use crate::error::{failed, unavailable};

/// Reads the bookings of these leases. `leases` is a JSON array of identifiers in hex.
pub(super) async fn held(
    db: &mut SqliteConnection,
    leases: &str,
    held: &mut HeldLeases,
) -> Result<(), StoreError> {
    let rows = sqlx::query!(
        r#"SELECT lease, reservation, host, starts_us, ends_us, kept AS "kept: bool" FROM host_allocation
         WHERE lease IN (SELECT unhex(value) FROM json_each(?))"#,
        leases,
    );
    for row in rows.fetch_all(&mut *db).await.map_err(unavailable)? {
        let subject = Subject::Host(HostId(row.host.cast_unsigned()));
        let span = Span { starts_us: row.starts_us, ends_us: row.ends_us, kept: row.kept };
        held.whole(uuid(&row.lease)?, uuid(&row.reservation)?, subject, span)?;
    }
    let rows = sqlx::query!(
        r#"SELECT lease, reservation, floating_ip, starts_us, ends_us, kept AS "kept: bool"
         FROM floating_ip_allocation WHERE lease IN (SELECT unhex(value) FROM json_each(?))"#,
        leases,
    );
    for row in rows.fetch_all(&mut *db).await.map_err(unavailable)? {
        let subject = Subject::FloatingIp(FloatingIpId(uuid(&row.floating_ip)?));
        let span = Span { starts_us: row.starts_us, ends_us: row.ends_us, kept: row.kept };
        held.whole(uuid(&row.lease)?, uuid(&row.reservation)?, subject, span)?;
    }
    let rows = sqlx::query!(
        r#"SELECT a.lease, a.reservation, a.host, slots, class, amount, starts_us, ends_us, kept AS "kept: bool"
         FROM slot_allocation AS a JOIN slot_use AS u
             ON u.lease = a.lease AND u.reservation = a.reservation AND u.host = a.host
         WHERE a.lease IN (SELECT unhex(value) FROM json_each(?))"#,
        leases,
    );
    for row in rows.fetch_all(&mut *db).await.map_err(unavailable)? {
        held.slots(SlotsRow {
            lease: uuid(&row.lease)?,
            reservation: uuid(&row.reservation)?,
            host: row.host,
            count: row.slots,
            class: &row.class,
            amount: row.amount,
            span: Span { starts_us: row.starts_us, ends_us: row.ends_us, kept: row.kept },
        })?;
    }
    Ok(())
}

/// Removes the bookings that a lease releases, and reduces smaller ones.
pub(super) async fn give_up(
    db: &mut SqliteConnection,
    lease: LeaseId,
    held: &Bookings,
    changes: &BookingChanges,
) -> Result<(), CommitError> {
    for (reservation, change) in row_changes(held, changes) {
        write(db, lease, reservation, change).await.map_err(failed)?;
    }
    Ok(())
}

async fn write(
    db: &mut SqliteConnection,
    lease: LeaseId,
    reservation: ReservationId,
    change: RowChange<'_>,
) -> Result<(), sqlx::Error> {
    let (lease, reservation) = (lease.0.to_be_bytes(), reservation.0.to_be_bytes());
    let (lease, reservation) = (lease.as_slice(), reservation.as_slice());
    let written = match change {
        RowChange::RemoveHost(host) => {
            let statement = sqlx::query!(
                "DELETE FROM host_allocation WHERE lease = ? AND reservation = ? AND host = ?",
                lease,
                reservation,
                host,
            );
            statement.execute(db).await
        }
        RowChange::RemoveFloatingIp(ip) => {
            let ip = ip.to_be_bytes();
            let ip = ip.as_slice();
            let statement = sqlx::query!(
                "DELETE FROM floating_ip_allocation WHERE lease = ? AND reservation = ? AND floating_ip = ?",
                lease,
                reservation,
                ip,
            );
            statement.execute(db).await
        }
        RowChange::RemoveSlots(host) => {
            let statement = sqlx::query!(
                "DELETE FROM slot_allocation WHERE lease = ? AND reservation = ? AND host = ?",
                lease,
                reservation,
                host,
            );
            statement.execute(db).await
        }
        RowChange::Host(host, Span { starts_us, ends_us, kept }) => {
            let statement = sqlx::query!(
                "UPDATE host_allocation SET starts_us = ?, ends_us = ?, kept = ?
                 WHERE lease = ? AND reservation = ? AND host = ?",
                starts_us,
                ends_us,
                kept,
                lease,
                reservation,
                host,
            );
            statement.execute(db).await
        }
        RowChange::FloatingIp(ip, Span { starts_us, ends_us, kept }) => {
            let ip = ip.to_be_bytes();
            let ip = ip.as_slice();
            let statement = sqlx::query!(
                "UPDATE floating_ip_allocation SET starts_us = ?, ends_us = ?, kept = ?
                 WHERE lease = ? AND reservation = ? AND floating_ip = ?",
                starts_us,
                ends_us,
                kept,
                lease,
                reservation,
                ip,
            );
            statement.execute(db).await
        }
        RowChange::Slots { host, count } => {
            let statement = sqlx::query!(
                "UPDATE slot_allocation SET slots = ? WHERE lease = ? AND reservation = ? AND host = ?",
                count,
                lease,
                reservation,
                host,
            );
            statement.execute(db).await
        }
        RowChange::Use { host, class, change } => {
            return write_use(db, (lease, reservation, host), class, change).await;
        }
    };
    written.map(drop)
}

async fn write_use(
    db: &mut SqliteConnection,
    (lease, reservation, host): (&[u8], &[u8], i64),
    class: &str,
    change: UseChange,
) -> Result<(), sqlx::Error> {
    let written = match change {
        UseChange::New(amount, Span { starts_us, ends_us, kept }) => {
            let statement = sqlx::query!(
                "INSERT INTO slot_use (lease, reservation, host, class, amount, starts_us, ends_us, kept)
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                lease,
                reservation,
                host,
                class,
                amount,
                starts_us,
                ends_us,
                kept,
            );
            statement.execute(db).await
        }
        UseChange::Becomes(amount, Span { starts_us, ends_us, kept }) => {
            let statement = sqlx::query!(
                "UPDATE slot_use SET amount = ?, starts_us = ?, ends_us = ?, kept = ?
                 WHERE lease = ? AND reservation = ? AND host = ? AND class = ?",
                amount,
                starts_us,
                ends_us,
                kept,
                lease,
                reservation,
                host,
                class,
            );
            statement.execute(db).await
        }
        UseChange::Removed => {
            let statement = sqlx::query!(
                "DELETE FROM slot_use WHERE lease = ? AND reservation = ? AND host = ? AND class = ?",
                lease,
                reservation,
                host,
                class,
            );
            statement.execute(db).await
        }
    };
    written.map(drop)
}
