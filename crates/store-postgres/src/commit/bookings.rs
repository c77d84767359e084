//! Bookings: reads, releases and reductions.

use ::leases::ids::{FloatingIpId, HostId, LeaseId, ReservationId};
use sqlx::PgConnection;
use store::booking::{BookingChanges, Bookings, Subject};
use store::encoding::booking::{HeldLeases, RowChange, SlotsRow, Span, UseChange, row_changes};
use uuid::Uuid;

use crate::columns::{plain, text, uuid};
use crate::error::TxError;

/// Reads the bookings of these leases. `leases` is a JSON array of identifiers in hex.
pub(super) async fn held(
    db: &mut PgConnection,
    leases: &[Uuid],
    held: &mut HeldLeases,
) -> Result<(), TxError> {
    let rows = sqlx::query!(
        "SELECT lease, reservation, host, starts_us, ends_us, kept FROM host_allocation
         WHERE lease = ANY($1)",
        leases,
    );
    for row in rows.fetch_all(&mut *db).await? {
        let subject = Subject::Host(HostId(row.host.cast_unsigned()));
        let span = Span { starts_us: row.starts_us, ends_us: row.ends_us, kept: row.kept };
        held.whole(row.lease.as_u128(), row.reservation.as_u128(), subject, span)?;
    }
    let rows = sqlx::query!(
        "SELECT lease, reservation, floating_ip, starts_us, ends_us, kept
         FROM floating_ip_allocation WHERE lease = ANY($1)",
        leases,
    );
    for row in rows.fetch_all(&mut *db).await? {
        let subject = Subject::FloatingIp(FloatingIpId(row.floating_ip.as_u128()));
        let span = Span { starts_us: row.starts_us, ends_us: row.ends_us, kept: row.kept };
        held.whole(row.lease.as_u128(), row.reservation.as_u128(), subject, span)?;
    }
    let rows = sqlx::query!(
        "SELECT a.lease, a.reservation, a.host, slots, class, amount, starts_us, ends_us, kept
         FROM slot_allocation AS a JOIN slot_use AS u
             ON u.lease = a.lease AND u.reservation = a.reservation AND u.host = a.host
         WHERE a.lease = ANY($1)",
        leases,
    );
    for row in rows.fetch_all(&mut *db).await? {
        held.slots(SlotsRow {
            lease: row.lease.as_u128(),
            reservation: row.reservation.as_u128(),
            host: row.host,
            count: row.slots,
            class: &plain(row.class),
            amount: row.amount,
            span: Span { starts_us: row.starts_us, ends_us: row.ends_us, kept: row.kept },
        })?;
    }
    Ok(())
}

/// Removes the bookings that a lease releases, and reduces smaller ones.
pub(super) async fn give_up(
    db: &mut PgConnection,
    lease: LeaseId,
    held: &Bookings,
    changes: &BookingChanges,
) -> Result<(), TxError> {
    for (reservation, change) in row_changes(held, changes) {
        write(db, lease, reservation, change).await?;
    }
    Ok(())
}

async fn write(
    db: &mut PgConnection,
    lease: LeaseId,
    reservation: ReservationId,
    change: RowChange<'_>,
) -> Result<(), sqlx::Error> {
    let (lease, reservation) = (uuid(lease.0), uuid(reservation.0));
    let written = match change {
        RowChange::RemoveHost(host) => {
            let statement = sqlx::query!(
                "DELETE FROM host_allocation WHERE lease = $1 AND reservation = $2 AND host = $3",
                lease,
                reservation,
                host,
            );
            statement.execute(db).await
        }
        RowChange::RemoveFloatingIp(ip) => {
            let ip = uuid(ip);
            let statement = sqlx::query!(
                "DELETE FROM floating_ip_allocation WHERE lease = $1 AND reservation = $2 AND floating_ip = $3",
                lease,
                reservation,
                ip,
            );
            statement.execute(db).await
        }
        RowChange::RemoveSlots(host) => {
            let statement = sqlx::query!(
                "DELETE FROM slot_allocation WHERE lease = $1 AND reservation = $2 AND host = $3",
                lease,
                reservation,
                host,
            );
            statement.execute(db).await
        }
        RowChange::Host(host, Span { starts_us, ends_us, kept }) => {
            let statement = sqlx::query!(
                "UPDATE host_allocation SET starts_us = $1, ends_us = $2, kept = $3
                 WHERE lease = $4 AND reservation = $5 AND host = $6",
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
            let ip = uuid(ip);
            let statement = sqlx::query!(
                "UPDATE floating_ip_allocation SET starts_us = $1, ends_us = $2, kept = $3
                 WHERE lease = $4 AND reservation = $5 AND floating_ip = $6",
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
                "UPDATE slot_allocation SET slots = $1 WHERE lease = $2 AND reservation = $3 AND host = $4",
                i64::from(count),
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
    db: &mut PgConnection,
    (lease, reservation, host): (Uuid, Uuid, i64),
    class: &str,
    change: UseChange,
) -> Result<(), sqlx::Error> {
    let written = match change {
        UseChange::New(amount, Span { starts_us, ends_us, kept }) => {
            let statement = sqlx::query!(
                "INSERT INTO slot_use (lease, reservation, host, class, amount, starts_us, ends_us, kept)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
                lease,
                reservation,
                host,
                &text(class),
                amount,
                starts_us,
                ends_us,
                kept,
            );
            statement.execute(db).await
        }
        UseChange::Becomes(amount, Span { starts_us, ends_us, kept }) => {
            let statement = sqlx::query!(
                "UPDATE slot_use SET amount = $1, starts_us = $2, ends_us = $3, kept = $4
                 WHERE lease = $5 AND reservation = $6 AND host = $7 AND class = $8",
                amount,
                starts_us,
                ends_us,
                kept,
                lease,
                reservation,
                host,
                &text(class),
            );
            statement.execute(db).await
        }
        UseChange::Removed => {
            let statement = sqlx::query!(
                "DELETE FROM slot_use WHERE lease = $1 AND reservation = $2 AND host = $3 AND class = $4",
                lease,
                reservation,
                host,
                &text(class),
            );
            statement.execute(db).await
        }
    };
    written.map(drop)
}
