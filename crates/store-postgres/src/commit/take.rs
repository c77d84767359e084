//! Bookings that leases take. The schema has the last word on each row.

use ::leases::ids::LeaseId;
use sqlx::PgConnection;
use store::CommitError;
use store::booking::{Booking, BookingKey, Share, Subject};
use store::encoding::booking::uses;
use uuid::Uuid;

use crate::columns::{text, us, uuid};
use crate::error::{Refusal, TxError, refusal};

/// A booking that is new to a lease.
pub(super) type Taken = (LeaseId, BookingKey, Booking);

/// Whether bookings are inserted together or in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// All rows of a table in one statement, since a statement costs more than a row.
    Together,
    /// One by one in the order of leases, so that the rejected booking and the reason are the same as in all
    /// stores.
    OneByOne,
}

/// Adds all bookings, or reports that one isn't possible. Only [`Pace::OneByOne`] tells which.
pub(super) async fn all(db: &mut PgConnection, taken: &mut [Taken], pace: Pace) -> Result<(), TxError> {
    match pace {
        Pace::Together => {
            taken.sort_by_key(|(_, key, _)| *key);
            match insert(db, taken).await {
                Ok(true) => Ok(()),
                Ok(false) => Err(TxError::Obstructed),
                Err(error) if refusal(&error).is_some() => Err(TxError::Obstructed),
                Err(error) => Err(error.into()),
            }
        }
        Pace::OneByOne => {
            for piece in &*taken {
                match insert(db, std::slice::from_ref(piece)).await {
                    Ok(true) => {}
                    Ok(false) => return Err(CommitError::taken(piece.1.subject).into()),
                    Err(error) => return Err(in_words(piece.1.subject, error)),
                }
            }
            Ok(())
        }
    }
}

fn in_words(subject: Subject, error: sqlx::Error) -> TxError {
    match refusal(&error) {
        Some(Refusal::Gone) => CommitError::stale_subject(subject).into(),
        Some(Refusal::Taken) => CommitError::taken(subject).into(),
        Some(Refusal::NoRoom) => CommitError::no_room(subject).into(),
        Some(Refusal::InUse) | None => error.into(),
    }
}

/// Columns of the rows of a table.
#[derive(Default)]
struct Columns<S> {
    leases: Vec<Uuid>,
    reservations: Vec<Uuid>,
    subjects: Vec<S>,
    starts_us: Vec<i64>,
    ends_us: Vec<i64>,
    kept: Vec<bool>,
}

impl<S> Columns<S> {
    fn push(&mut self, lease: LeaseId, key: &BookingKey, subject: S, booking: &Booking) {
        self.leases.push(uuid(lease.0));
        self.reservations.push(uuid(key.reservation.0));
        self.subjects.push(subject);
        self.starts_us.push(us(booking.window.start()));
        self.ends_us.push(us(booking.window.end()));
        self.kept.push(booking.kept);
    }

    fn len(&self) -> u64 {
        self.leases.len() as u64
    }
}

/// Rows of the four tables.
#[derive(Default)]
struct Rows {
    hosts: Columns<i64>,
    slots: Columns<i64>,
    counts: Vec<i64>,
    uses: Columns<i64>,
    classes: Vec<String>,
    amounts: Vec<i64>,
    floating_ips: Columns<Uuid>,
}

impl Rows {
    fn push(&mut self, (lease, key, booking): &Taken) {
        match (key.subject, &booking.share) {
            (Subject::Host(host), Share::Whole) => {
                self.hosts.push(*lease, key, host.0.cast_signed(), booking);
            }
            (Subject::Host(host), Share::Slots { count, used }) => {
                let host = host.0.cast_signed();
                self.slots.push(*lease, key, host, booking);
                self.counts.push(i64::from(*count));
                for (class, amount) in uses(used) {
                    self.uses.push(*lease, key, host, booking);
                    self.classes.push(text(class).into_owned());
                    self.amounts.push(amount);
                }
            }
            (Subject::FloatingIp(ip), _) => self.floating_ips.push(*lease, key, uuid(ip.0), booking),
        }
    }
}

/// Inserts bookings. Returns whether all were inserted. A row that an exclusion constraint rejects is
/// skipped, because ending the statement with an error wouldn't be an answer yet.
async fn insert(db: &mut PgConnection, taken: &[Taken]) -> Result<bool, sqlx::Error> {
    let mut rows = Rows::default();
    for piece in taken {
        rows.push(piece);
    }
    Ok(insert_hosts(db, &rows.hosts).await?
        && insert_slots(db, &rows).await?
        && insert_floating_ips(db, &rows.floating_ips).await?)
}

async fn insert_hosts(db: &mut PgConnection, rows: &Columns<i64>) -> Result<bool, sqlx::Error> {
    if rows.len() == 0 {
        return Ok(true);
    }
    let insertion = sqlx::query!(
        "INSERT INTO host_allocation (lease, reservation, host, starts_us, ends_us, kept)
         SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::bigint[], $5::bigint[], $6::boolean[])
         ON CONFLICT DO NOTHING",
        &rows.leases,
        &rows.reservations,
        &rows.subjects,
        &rows.starts_us,
        &rows.ends_us,
        &rows.kept,
    );
    Ok(insertion.execute(db).await?.rows_affected() == rows.len())
}

async fn insert_floating_ips(db: &mut PgConnection, rows: &Columns<Uuid>) -> Result<bool, sqlx::Error> {
    if rows.len() == 0 {
        return Ok(true);
    }
    let insertion = sqlx::query!(
        "INSERT INTO floating_ip_allocation (lease, reservation, floating_ip, starts_us, ends_us, kept)
         SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::bigint[], $5::bigint[], $6::boolean[])
         ON CONFLICT DO NOTHING",
        &rows.leases,
        &rows.reservations,
        &rows.subjects,
        &rows.starts_us,
        &rows.ends_us,
        &rows.kept,
    );
    Ok(insertion.execute(db).await?.rows_affected() == rows.len())
}

/// Slots are only rejected by triggers, which add them up.
async fn insert_slots(db: &mut PgConnection, rows: &Rows) -> Result<bool, sqlx::Error> {
    if rows.slots.len() == 0 {
        return Ok(true);
    }
    let insertion = sqlx::query!(
        "INSERT INTO slot_allocation (lease, reservation, host, slots)
         SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::bigint[])",
        &rows.slots.leases,
        &rows.slots.reservations,
        &rows.slots.subjects,
        &rows.counts,
    );
    insertion.execute(&mut *db).await?;
    let insertion = sqlx::query!(
        "INSERT INTO slot_use (lease, reservation, host, class, amount, starts_us, ends_us, kept)
         SELECT * FROM unnest(
             $1::uuid[], $2::uuid[], $3::bigint[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[],
             $8::boolean[]
         )",
        &rows.uses.leases,
        &rows.uses.reservations,
        &rows.uses.subjects,
        &rows.classes,
        &rows.amounts,
        &rows.uses.starts_us,
        &rows.uses.ends_us,
        &rows.uses.kept,
    );
    insertion.execute(db).await?;
    Ok(true)
}
