//! Bookings of slots: how many, and what they use of each resource of the host.

use std::collections::BTreeMap;

use ::leases::ids::{HostId, LeaseId, ReservationId};
use ::leases::resources::Resources;
use sqlx::PgConnection;
use store::booking::{Booking, BookingKey, Share, Subject};
use store::encoding::amounts;
use uuid::Uuid;

use super::held::Held;
use crate::columns::{number, plain, text, us, used as used_column, window};
use crate::error::Trouble;

/// Reads the slots of these leases.
pub(super) async fn held(
    db: &mut PgConnection,
    leases: &[Uuid],
    held: &mut BTreeMap<LeaseId, Held>,
) -> Result<(), Trouble> {
    let rows = sqlx::query!(
        "SELECT a.lease, a.reservation, a.host, slots, class, amount, starts_us, ends_us, kept
         FROM slot_allocation AS a JOIN slot_use AS u
             ON u.lease = a.lease AND u.reservation = a.reservation AND u.host = a.host
         WHERE a.lease = ANY($1)",
        leases,
    );
    for row in rows.fetch_all(&mut *db).await? {
        let subject = Subject::Host(HostId(row.host.cast_unsigned()));
        let key = BookingKey { subject, reservation: ReservationId(row.reservation.as_u128()) };
        let (count, window) = (number(row.slots)?, window(row.starts_us, row.ends_us)?);
        let share = Share::Slots { count, used: Resources::default() };
        let of_lease = held.entry(LeaseId(row.lease.as_u128())).or_default();
        let new = Booking { share, window, kept: row.kept };
        if let Share::Slots { used, .. } = &mut of_lease.bookings.entry(key).or_insert(new).share {
            used.set(&plain(row.class), number(row.amount)?);
        }
    }
    Ok(())
}

/// The slots of a reservation on a host.
#[derive(Clone, Copy)]
pub(super) struct SlotsPlace {
    pub(super) lease: Uuid,
    pub(super) reservation: Uuid,
    pub(super) host: i64,
}

impl SlotsPlace {
    pub(super) async fn remove(self, db: &mut PgConnection) -> Result<(), sqlx::Error> {
        let deletion = sqlx::query!(
            "DELETE FROM slot_allocation WHERE lease = $1 AND reservation = $2 AND host = $3",
            self.lease,
            self.reservation,
            self.host,
        );
        deletion.execute(db).await?;
        Ok(())
    }

    /// Makes it what it is now. Only what is kept from nobody may use more than before.
    pub(super) async fn shrink(
        self,
        db: &mut PgConnection,
        count: u32,
        used: &Resources,
        booking: &Booking,
    ) -> Result<(), sqlx::Error> {
        let change = sqlx::query!(
            "UPDATE slot_allocation SET slots = $1 WHERE lease = $2 AND reservation = $3 AND host = $4",
            i64::from(count),
            self.lease,
            self.reservation,
            self.host,
        );
        change.execute(&mut *db).await?;
        let rows = sqlx::query_scalar!(
            "SELECT class FROM slot_use WHERE lease = $1 AND reservation = $2 AND host = $3",
            self.lease,
            self.reservation,
            self.host,
        );
        let mut present = rows.fetch_all(&mut *db).await?;
        for (class, amount) in amounts(used).filter(|(_, amount)| *amount > 0) {
            if let Some(position) = present.iter().position(|other| *other == text(class)) {
                present.swap_remove(position);
                self.update_use(db, class, used_column(amount), booking).await?;
            } else {
                self.insert_use(db, class, used_column(amount), booking).await?;
            }
        }
        for class in present {
            self.remove_use(db, &plain(class)).await?;
        }
        Ok(())
    }

    async fn insert_use(
        self,
        db: &mut PgConnection,
        class: &str,
        amount: i64,
        booking: &Booking,
    ) -> Result<(), sqlx::Error> {
        let (starts_us, ends_us) = (us(booking.window.start()), us(booking.window.end()));
        let insertion = sqlx::query!(
            "INSERT INTO slot_use (lease, reservation, host, class, amount, starts_us, ends_us, kept)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
            self.lease,
            self.reservation,
            self.host,
            &text(class),
            amount,
            starts_us,
            ends_us,
            booking.kept,
        );
        insertion.execute(db).await?;
        Ok(())
    }

    async fn update_use(
        self,
        db: &mut PgConnection,
        class: &str,
        amount: i64,
        booking: &Booking,
    ) -> Result<(), sqlx::Error> {
        let (starts_us, ends_us) = (us(booking.window.start()), us(booking.window.end()));
        let change = sqlx::query!(
            "UPDATE slot_use SET amount = $1, starts_us = $2, ends_us = $3, kept = $4
             WHERE lease = $5 AND reservation = $6 AND host = $7 AND class = $8",
            amount,
            starts_us,
            ends_us,
            booking.kept,
            self.lease,
            self.reservation,
            self.host,
            &text(class),
        );
        change.execute(db).await?;
        Ok(())
    }

    async fn remove_use(self, db: &mut PgConnection, class: &str) -> Result<(), sqlx::Error> {
        let deletion = sqlx::query!(
            "DELETE FROM slot_use WHERE lease = $1 AND reservation = $2 AND host = $3 AND class = $4",
            self.lease,
            self.reservation,
            self.host,
            &text(class),
        );
        deletion.execute(db).await?;
        Ok(())
    }
}
