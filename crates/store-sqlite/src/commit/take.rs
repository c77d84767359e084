//! Bookings that leases take. The schema has the last word on each row.

use ::leases::ids::LeaseId;
use sqlx::{Connection, SqliteConnection};
use store::CommitError;
use store::booking::{Booking, BookingKey, Share, Subject};
use store::encoding::booking::uses;
use store::encoding::{hex, json};

use crate::columns::us;
use crate::error::{Refusal, failed, refusal};

/// A booking that is new to a lease.
pub(super) type Taken = (LeaseId, BookingKey, Booking);

/// Adds all bookings, or reports the first rejected booking.
///
/// All rows of a table go into one statement, since a statement costs more than a row. Its error doesn't name
/// the rejected row, so after a rejection the bookings are inserted one by one.
pub(super) async fn all(db: &mut SqliteConnection, taken: &[Taken]) -> Result<(), CommitError> {
    if taken.is_empty() {
        return Ok(());
    }
    let mut attempt = db.begin().await.map_err(failed)?;
    match insert(&mut attempt, taken).await {
        Ok(()) => return attempt.commit().await.map_err(failed),
        Err(error) if refusal(&error).is_none() => return Err(failed(error)),
        Err(_) => attempt.rollback().await.map_err(failed)?,
    }
    for piece in taken {
        insert(db, std::slice::from_ref(piece)).await.map_err(|error| in_words(piece.1.subject, error))?;
    }
    Ok(())
}

fn in_words(subject: Subject, error: sqlx::Error) -> CommitError {
    match refusal(&error) {
        Some(Refusal::Gone) => CommitError::stale_subject(subject),
        Some(Refusal::Taken) => CommitError::taken(subject),
        Some(Refusal::NoRoom) => CommitError::no_room(subject),
        Some(Refusal::InUse) | None => failed(error),
    }
}

type HostRow = (String, String, i64, i64, i64, bool);
type SlotsRow = (String, String, i64, u32);
type UseRow = (String, String, i64, String, i64, i64, i64, bool);
type FloatingIpRow = (String, String, String, i64, i64, bool);

/// Rows of the four tables, with columns in the order of the statements below.
#[derive(Default)]
struct Rows {
    hosts: Vec<HostRow>,
    slots: Vec<SlotsRow>,
    uses: Vec<UseRow>,
    floating_ips: Vec<FloatingIpRow>,
}

impl Rows {
    fn push(&mut self, (lease, key, booking): &Taken) {
        let (lease, reservation, kept) = (hex(lease.0), hex(key.reservation.0), booking.kept);
        let (starts_us, ends_us) = (us(booking.window.start()), us(booking.window.end()));
        match (key.subject, &booking.share) {
            (Subject::Host(host), Share::Whole) => {
                self.hosts.push((lease, reservation, host.0.cast_signed(), starts_us, ends_us, kept));
            }
            (Subject::Host(host), Share::Slots { count, used }) => {
                let host = host.0.cast_signed();
                self.slots.push((lease.clone(), reservation.clone(), host, *count));
                for (class, amount) in uses(used) {
                    let (lease, reservation, class) = (lease.clone(), reservation.clone(), class.to_owned());
                    self.uses.push((lease, reservation, host, class, amount, starts_us, ends_us, kept));
                }
            }
            (Subject::FloatingIp(ip), _) => {
                self.floating_ips.push((lease, reservation, hex(ip.0), starts_us, ends_us, kept));
            }
        }
    }
}

async fn insert(db: &mut SqliteConnection, taken: &[Taken]) -> Result<(), sqlx::Error> {
    let mut rows = Rows::default();
    for piece in taken {
        rows.push(piece);
    }
    if !rows.hosts.is_empty() {
        let hosts = json(&rows.hosts);
        let insertion = sqlx::query!(
            "INSERT INTO host_allocation (lease, reservation, host, starts_us, ends_us, kept)
             SELECT unhex(value ->> 0), unhex(value ->> 1), value ->> 2, value ->> 3, value ->> 4, value ->> 5
             FROM json_each(?)",
            hosts,
        );
        insertion.execute(&mut *db).await?;
    }
    if !rows.slots.is_empty() {
        insert_slots(db, &rows).await?;
    }
    if !rows.floating_ips.is_empty() {
        let floating_ips = json(&rows.floating_ips);
        let insertion = sqlx::query!(
            "INSERT INTO floating_ip_allocation (lease, reservation, floating_ip, starts_us, ends_us, kept)
             SELECT
                 unhex(value ->> 0), unhex(value ->> 1), unhex(value ->> 2), value ->> 3, value ->> 4,
                 value ->> 5
             FROM json_each(?)",
            floating_ips,
        );
        insertion.execute(&mut *db).await?;
    }
    Ok(())
}

async fn insert_slots(db: &mut SqliteConnection, rows: &Rows) -> Result<(), sqlx::Error> {
    let (slots, uses) = (json(&rows.slots), json(&rows.uses));
    let insertion = sqlx::query!(
        "INSERT INTO slot_allocation (lease, reservation, host, slots)
         SELECT unhex(value ->> 0), unhex(value ->> 1), value ->> 2, value ->> 3 FROM json_each(?)",
        slots,
    );
    insertion.execute(&mut *db).await?;
    let insertion = sqlx::query!(
        "INSERT INTO slot_use (lease, reservation, host, class, amount, starts_us, ends_us, kept)
         SELECT
             unhex(value ->> 0), unhex(value ->> 1), value ->> 2, value ->> 3, value ->> 4, value ->> 5,
             value ->> 6, value ->> 7
         FROM json_each(?)",
        uses,
    );
    insertion.execute(db).await?;
    Ok(())
}
