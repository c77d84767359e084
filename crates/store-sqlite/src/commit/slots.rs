//! Bookings of slots: how many, and what they use of each resource of the host.

use std::collections::BTreeMap;

use ::leases::ids::{HostId, LeaseId, ReservationId};
use ::leases::resources::Resources;
use sqlx::SqliteConnection;
use store::StoreError;
use store::booking::{Booking, BookingKey, Share, Subject};
use store::encoding::amounts;

use super::held::Held;
use crate::columns::{number, us, used as used_column, uuid, window};
use crate::error::unavailable;

/// Reads the slots of these leases.
pub(super) async fn held(
    db: &mut SqliteConnection,
    leases: &str,
    held: &mut BTreeMap<LeaseId, Held>,
) -> Result<(), StoreError> {
    let rows = sqlx::query!(
        r#"SELECT a.lease, a.reservation, a.host, slots, class, amount, starts_us, ends_us, kept AS "kept: bool"
         FROM slot_allocation AS a JOIN slot_use AS u
             ON u.lease = a.lease AND u.reservation = a.reservation AND u.host = a.host
         WHERE a.lease IN (SELECT unhex(value) FROM json_each(?))"#,
        leases,
    );
    for row in rows.fetch_all(&mut *db).await.map_err(unavailable)? {
        let subject = Subject::Host(HostId(row.host.cast_unsigned()));
        let key = BookingKey { subject, reservation: ReservationId(uuid(&row.reservation)?) };
        let (count, window) = (number(row.slots)?, window(row.starts_us, row.ends_us)?);
        let share = Share::Slots { count, used: Resources::default() };
        let of_lease = held.entry(LeaseId(uuid(&row.lease)?)).or_default();
        let new = Booking { share, window, kept: row.kept };
        if let Share::Slots { used, .. } = &mut of_lease.bookings.entry(key).or_insert(new).share {
            used.set(&row.class, number(row.amount)?);
        }
    }
    Ok(())
}

/// The slots of a reservation on a host.
#[derive(Clone, Copy)]
pub(super) struct SlotsPlace<'a> {
    pub(super) lease: &'a [u8],
    pub(super) reservation: &'a [u8],
    pub(super) host: i64,
}

impl SlotsPlace<'_> {
    pub(super) async fn remove(self, db: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        let deletion = sqlx::query!(
            "DELETE FROM slot_allocation WHERE lease = ? AND reservation = ? AND host = ?",
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
        db: &mut SqliteConnection,
        count: u32,
        used: &Resources,
        booking: &Booking,
    ) -> Result<(), sqlx::Error> {
        let change = sqlx::query!(
            "UPDATE slot_allocation SET slots = ? WHERE lease = ? AND reservation = ? AND host = ?",
            count,
            self.lease,
            self.reservation,
            self.host,
        );
        change.execute(&mut *db).await?;
        let rows = sqlx::query_scalar!(
            "SELECT class FROM slot_use WHERE lease = ? AND reservation = ? AND host = ?",
            self.lease,
            self.reservation,
            self.host,
        );
        let mut present = rows.fetch_all(&mut *db).await?;
        for (class, amount) in amounts(used).filter(|(_, amount)| *amount > 0) {
            if let Some(position) = present.iter().position(|other| other == class) {
                present.swap_remove(position);
                self.update_use(db, class, used_column(amount), booking).await?;
            } else {
                self.insert_use(db, class, used_column(amount), booking).await?;
            }
        }
        for class in present {
            self.remove_use(db, &class).await?;
        }
        Ok(())
    }

    async fn insert_use(
        self,
        db: &mut SqliteConnection,
        class: &str,
        amount: i64,
        booking: &Booking,
    ) -> Result<(), sqlx::Error> {
        let (starts_us, ends_us) = (us(booking.window.start()), us(booking.window.end()));
        let insertion = sqlx::query!(
            "INSERT INTO slot_use (lease, reservation, host, class, amount, starts_us, ends_us, kept)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            self.lease,
            self.reservation,
            self.host,
            class,
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
        db: &mut SqliteConnection,
        class: &str,
        amount: i64,
        booking: &Booking,
    ) -> Result<(), sqlx::Error> {
        let (starts_us, ends_us) = (us(booking.window.start()), us(booking.window.end()));
        let change = sqlx::query!(
            "UPDATE slot_use SET amount = ?, starts_us = ?, ends_us = ?, kept = ?
             WHERE lease = ? AND reservation = ? AND host = ? AND class = ?",
            amount,
            starts_us,
            ends_us,
            booking.kept,
            self.lease,
            self.reservation,
            self.host,
            class,
        );
        change.execute(db).await?;
        Ok(())
    }

    async fn remove_use(self, db: &mut SqliteConnection, class: &str) -> Result<(), sqlx::Error> {
        let deletion = sqlx::query!(
            "DELETE FROM slot_use WHERE lease = ? AND reservation = ? AND host = ? AND class = ?",
            self.lease,
            self.reservation,
            self.host,
            class,
        );
        deletion.execute(db).await?;
        Ok(())
    }
}
