//! Bookings: what is held, given up, and made smaller.

use std::collections::BTreeMap;

use ::leases::ids::{FloatingIpId, HostId, LeaseId, ReservationId};
use sqlx::SqliteConnection;
use store::booking::{Booking, BookingChanges, BookingKey, Bookings, Share, Subject};
use store::{CommitError, StoreError};

use super::held::Held;
use super::slots::{self, SlotsPlace};
use crate::columns::{us, uuid, window};
use crate::error::{failed, unavailable};

/// Reads the bookings of these leases.
pub(super) async fn held(
    db: &mut SqliteConnection,
    leases: &str,
    held: &mut BTreeMap<LeaseId, Held>,
) -> Result<(), StoreError> {
    let rows = sqlx::query!(
        r#"SELECT lease, reservation, host, starts_us, ends_us, kept AS "kept: bool" FROM host_allocation
         WHERE lease IN (SELECT unhex(value) FROM json_each(?))"#,
        leases,
    );
    for row in rows.fetch_all(&mut *db).await.map_err(unavailable)? {
        let subject = Subject::Host(HostId(row.host.cast_unsigned()));
        let key = BookingKey { subject, reservation: ReservationId(uuid(&row.reservation)?) };
        let window = window(row.starts_us, row.ends_us)?;
        let booking = Booking { share: Share::Whole, window, kept: row.kept };
        held.entry(LeaseId(uuid(&row.lease)?)).or_default().bookings.insert(key, booking);
    }
    let rows = sqlx::query!(
        r#"SELECT lease, reservation, floating_ip, starts_us, ends_us, kept AS "kept: bool"
         FROM floating_ip_allocation WHERE lease IN (SELECT unhex(value) FROM json_each(?))"#,
        leases,
    );
    for row in rows.fetch_all(&mut *db).await.map_err(unavailable)? {
        let subject = Subject::FloatingIp(FloatingIpId(uuid(&row.floating_ip)?));
        let key = BookingKey { subject, reservation: ReservationId(uuid(&row.reservation)?) };
        let window = window(row.starts_us, row.ends_us)?;
        let booking = Booking { share: Share::Whole, window, kept: row.kept };
        held.entry(LeaseId(uuid(&row.lease)?)).or_default().bookings.insert(key, booking);
    }
    slots::held(db, leases, held).await
}

/// Removes what a lease gives up, and makes smaller what it has less of.
pub(super) async fn give_up(
    db: &mut SqliteConnection,
    lease: LeaseId,
    held: &Bookings,
    changes: &BookingChanges,
) -> Result<(), CommitError> {
    let lease = lease.0.to_be_bytes();
    for key in &changes.given_up {
        if let Some(booking) = held.get(key) {
            remove(db, &lease, key, &booking.share).await.map_err(failed)?;
        }
    }
    for (key, booking) in &changes.settled {
        shrink(db, &lease, key, booking).await.map_err(failed)?;
    }
    Ok(())
}

async fn remove(
    db: &mut SqliteConnection,
    lease: &[u8],
    key: &BookingKey,
    share: &Share,
) -> Result<(), sqlx::Error> {
    let reservation = key.reservation.0.to_be_bytes();
    let reservation = reservation.as_slice();
    match (key.subject, share) {
        (Subject::Host(host), Share::Whole) => {
            let host = host.0.cast_signed();
            let deletion = sqlx::query!(
                "DELETE FROM host_allocation WHERE lease = ? AND reservation = ? AND host = ?",
                lease,
                reservation,
                host,
            );
            deletion.execute(db).await?;
        }
        (Subject::Host(host), Share::Slots { .. }) => {
            SlotsPlace { lease, reservation, host: host.0.cast_signed() }.remove(db).await?;
        }
        (Subject::FloatingIp(ip), _) => {
            let ip = ip.0.to_be_bytes();
            let ip = ip.as_slice();
            let deletion = sqlx::query!(
                "DELETE FROM floating_ip_allocation WHERE lease = ? AND reservation = ? AND floating_ip = ?",
                lease,
                reservation,
                ip,
            );
            deletion.execute(db).await?;
        }
    }
    Ok(())
}

async fn shrink(
    db: &mut SqliteConnection,
    lease: &[u8],
    key: &BookingKey,
    booking: &Booking,
) -> Result<(), sqlx::Error> {
    let reservation = key.reservation.0.to_be_bytes();
    let reservation = reservation.as_slice();
    let (starts_us, ends_us) = (us(booking.window.start()), us(booking.window.end()));
    match (key.subject, &booking.share) {
        (Subject::Host(host), Share::Whole) => {
            let host = host.0.cast_signed();
            let change = sqlx::query!(
                "UPDATE host_allocation SET starts_us = ?, ends_us = ?, kept = ?
                 WHERE lease = ? AND reservation = ? AND host = ?",
                starts_us,
                ends_us,
                booking.kept,
                lease,
                reservation,
                host,
            );
            change.execute(db).await?;
        }
        (Subject::Host(host), Share::Slots { count, used }) => {
            let place = SlotsPlace { lease, reservation, host: host.0.cast_signed() };
            place.shrink(db, *count, used, booking).await?;
        }
        (Subject::FloatingIp(ip), _) => {
            let ip = ip.0.to_be_bytes();
            let ip = ip.as_slice();
            let change = sqlx::query!(
                "UPDATE floating_ip_allocation SET starts_us = ?, ends_us = ?, kept = ?
                 WHERE lease = ? AND reservation = ? AND floating_ip = ?",
                starts_us,
                ends_us,
                booking.kept,
                lease,
                reservation,
                ip,
            );
            change.execute(db).await?;
        }
    }
    Ok(())
}
