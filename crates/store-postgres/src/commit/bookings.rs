//! Bookings: what is held, given up, and made smaller.

use std::collections::BTreeMap;

use ::leases::ids::{FloatingIpId, HostId, LeaseId, ReservationId};
use sqlx::PgConnection;
use store::booking::{Booking, BookingChanges, BookingKey, Bookings, Share, Subject};
use uuid::Uuid;

use super::held::Held;
use super::slots::{self, SlotsPlace};
use crate::columns::{us, uuid, window};
use crate::error::Trouble;

/// Reads the bookings of these leases.
pub(super) async fn held(
    db: &mut PgConnection,
    leases: &[Uuid],
    held: &mut BTreeMap<LeaseId, Held>,
) -> Result<(), Trouble> {
    let rows = sqlx::query!(
        "SELECT lease, reservation, host, starts_us, ends_us, kept FROM host_allocation
         WHERE lease = ANY($1)",
        leases,
    );
    for row in rows.fetch_all(&mut *db).await? {
        let subject = Subject::Host(HostId(row.host.cast_unsigned()));
        let key = BookingKey { subject, reservation: ReservationId(row.reservation.as_u128()) };
        let window = window(row.starts_us, row.ends_us)?;
        let booking = Booking { share: Share::Whole, window, kept: row.kept };
        held.entry(LeaseId(row.lease.as_u128())).or_default().bookings.insert(key, booking);
    }
    let rows = sqlx::query!(
        "SELECT lease, reservation, floating_ip, starts_us, ends_us, kept
         FROM floating_ip_allocation WHERE lease = ANY($1)",
        leases,
    );
    for row in rows.fetch_all(&mut *db).await? {
        let subject = Subject::FloatingIp(FloatingIpId(row.floating_ip.as_u128()));
        let key = BookingKey { subject, reservation: ReservationId(row.reservation.as_u128()) };
        let window = window(row.starts_us, row.ends_us)?;
        let booking = Booking { share: Share::Whole, window, kept: row.kept };
        held.entry(LeaseId(row.lease.as_u128())).or_default().bookings.insert(key, booking);
    }
    slots::held(db, leases, held).await
}

/// Removes what a lease gives up, and makes smaller what it has less of.
pub(super) async fn give_up(
    db: &mut PgConnection,
    lease: LeaseId,
    held: &Bookings,
    changes: &BookingChanges,
) -> Result<(), Trouble> {
    let lease = uuid(lease.0);
    for key in &changes.given_up {
        if let Some(booking) = held.get(key) {
            remove(db, lease, key, &booking.share).await?;
        }
    }
    for (key, booking) in &changes.settled {
        shrink(db, lease, key, booking).await?;
    }
    Ok(())
}

async fn remove(
    db: &mut PgConnection,
    lease: Uuid,
    key: &BookingKey,
    share: &Share,
) -> Result<(), sqlx::Error> {
    let reservation = uuid(key.reservation.0);
    match (key.subject, share) {
        (Subject::Host(host), Share::Whole) => {
            let host = host.0.cast_signed();
            let deletion = sqlx::query!(
                "DELETE FROM host_allocation WHERE lease = $1 AND reservation = $2 AND host = $3",
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
            let ip = uuid(ip.0);
            let deletion = sqlx::query!(
                "DELETE FROM floating_ip_allocation WHERE lease = $1 AND reservation = $2 AND floating_ip = $3",
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
    db: &mut PgConnection,
    lease: Uuid,
    key: &BookingKey,
    booking: &Booking,
) -> Result<(), sqlx::Error> {
    let reservation = uuid(key.reservation.0);
    let (starts_us, ends_us) = (us(booking.window.start()), us(booking.window.end()));
    match (key.subject, &booking.share) {
        (Subject::Host(host), Share::Whole) => {
            let host = host.0.cast_signed();
            let change = sqlx::query!(
                "UPDATE host_allocation SET starts_us = $1, ends_us = $2, kept = $3
                 WHERE lease = $4 AND reservation = $5 AND host = $6",
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
            let ip = uuid(ip.0);
            let change = sqlx::query!(
                "UPDATE floating_ip_allocation SET starts_us = $1, ends_us = $2, kept = $3
                 WHERE lease = $4 AND reservation = $5 AND floating_ip = $6",
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
