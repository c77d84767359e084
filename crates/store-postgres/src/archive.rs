//! Export of the whole database, and import into an empty one.

use leases::ids::LeaseId;
use leases::project::ProjectId;
use leases::window::Window;
use sqlx::PgConnection;
use store::archive::Archive;
use store::encoding::{action_key, subject_number};
use store::{IdempotencyRecord, Notification, Origin, Snapshot, UsageFilter};
use uuid::Uuid;

use crate::columns::{instant, plain, text, us, uuid};
use crate::commit::{self, Pace};
use crate::error::TxError;
use crate::load::{self, Wanted};
use crate::{feed, journal, occupancy, power, refusals, tokens, usage};

/// Records per statement.
const TOGETHER: usize = 1000;

/// Reads all records. The caller's transaction must read from a single snapshot.
pub(crate) async fn export(db: &mut PgConnection) -> Result<Archive, TxError> {
    let snapshot = load::snapshot(db, Wanted::ALL).await?;
    let mut archive = Archive { snapshot, ..Archive::default() };
    archive.notifications = journal::notifications(db, None, 0, u32::MAX).await?;
    archive.last_notification = journal::last_notification(db).await?;
    for row in sqlx::query!("SELECT name, delivered FROM listener").fetch_all(&mut *db).await? {
        archive.delivered.insert(plain(row.name), row.delivered.cast_unsigned());
    }
    archive.audit = journal::audit(db, u32::MAX).await?;
    archive.audit.reverse();
    archive.requests = requests(db).await?;
    archive.usage.opened = usage::spans(db).await?;
    let events = usage::events(db, &UsageFilter::default(), 0, u32::MAX).await?;
    archive.usage.events = events.into_iter().map(|(_, event)| event).collect();
    archive.slept = power::read(db, &Window::ALWAYS).await?;
    archive.refusals = refusals::all(db).await?;
    archive.occupancy.opened = occupancy::all(db).await?;
    archive.occupancy.seen_until = occupancy::seen_until(db).await?;
    archive.tokens = tokens::read(db).await?;
    let last = sqlx::query_scalar!("SELECT last FROM fence").fetch_one(&mut *db).await?;
    archive.last_fence = last.cast_unsigned();
    archive.id = origin(db).await?.id;
    Ok(archive)
}

/// Identity of the store.
pub(crate) async fn origin(db: &mut PgConnection) -> Result<Origin, TxError> {
    let (id, last): (String, i64) =
        sqlx::query_as("SELECT origin.id, fence.last FROM origin, fence").fetch_one(db).await?;
    Ok(Origin { id: Some(id), last_fence: last.cast_unsigned() })
}

async fn requests(db: &mut PgConnection) -> Result<Vec<IdempotencyRecord>, TxError> {
    let rows = sqlx::query!("SELECT project, key, fingerprint, lease, at_us FROM request_key");
    let read = rows.fetch_all(db).await?.into_iter().map(|row| {
        Ok(IdempotencyRecord {
            project: ProjectId(plain(row.project)),
            key: plain(row.key),
            fingerprint: plain(row.fingerprint),
            lease: LeaseId(row.lease.as_u128()),
            at: instant(row.at_us)?,
        })
    });
    let mut read: Vec<IdempotencyRecord> = read.collect::<Result<_, TxError>>()?;
    read.sort_by(|a, b| (&a.project, &a.key).cmp(&(&b.project, &b.key)));
    Ok(read)
}

/// Writes all records. The caller ends the transaction. Returns `false` if the store isn't empty.
///
/// Other writers wait for the row of the revision, and then see the imported records.
pub(crate) async fn import(db: &mut PgConnection, archive: &Archive) -> Result<bool, TxError> {
    sqlx::query!("SELECT FROM revision FOR UPDATE").execute(&mut *db).await?;
    if feed::last(db).await?.number > 0 || !export(db).await?.is_empty() {
        return Ok(false);
    }
    commit::write(db, &archive.commit(), Pace::OneByOne).await?;
    import_history(db, &archive.snapshot).await?;
    for notifications in archive.notifications.chunks(TOGETHER) {
        import_notifications(db, notifications).await?;
    }
    for (name, delivered) in &archive.delivered {
        journal::set_delivered(db, name, *delivered).await?;
    }
    for request in &archive.requests {
        journal::write_request(db, request, i64::MAX).await?;
    }
    for part in archive.refusals.chunks(TOGETHER) {
        refusals::add(db, part).await?;
    }
    occupancy::record(db, &archive.occupancy).await?;
    tokens::replace(db, &archive.tokens).await?;
    let (notifications, fence) = (archive.last_notification.cast_signed(), archive.last_fence.cast_signed());
    sqlx::query!("UPDATE revision SET notifications = $1", notifications).execute(&mut *db).await?;
    sqlx::query!("UPDATE fence SET last = $1", fence).execute(&mut *db).await?;
    if let Some(id) = &archive.id {
        sqlx::query("UPDATE origin SET id = $1").bind(id).execute(db).await?;
    }
    Ok(true)
}

async fn import_history(db: &mut PgConnection, snapshot: &Snapshot) -> Result<(), sqlx::Error> {
    for (action, failures) in &snapshot.history.failures {
        let insertion = sqlx::query!(
            "INSERT INTO step_failure (step, times, last_at_us, message) VALUES ($1, $2, $3, $4)",
            action_key(*action),
            i64::from(failures.times),
            us(failures.last_at),
            &text(&failures.message),
        );
        insertion.execute(&mut *db).await?;
    }
    for (action, at) in &snapshot.history.done {
        let step = action_key(*action);
        let insertion = sqlx::query!("INSERT INTO step_success (step, at_us) VALUES ($1, $2)", step, us(*at));
        insertion.execute(&mut *db).await?;
    }
    Ok(())
}

async fn import_notifications(
    db: &mut PgConnection,
    notifications: &[Notification],
) -> Result<(), sqlx::Error> {
    let numbers: Vec<i64> = notifications.iter().map(|n| n.number.cast_signed()).collect();
    let at_us: Vec<i64> = notifications.iter().map(|n| us(n.at)).collect();
    let leases: Vec<Uuid> = notifications.iter().map(|n| uuid(subject_number(n.content.lease))).collect();
    let insertion = sqlx::query!(
        "INSERT INTO notification (number, at_us, lease, project, event_type, payload)
         SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::uuid[], $4::text[], $5::text[], $6::text[])",
        &numbers,
        &at_us,
        &leases,
        &feed::column(notifications, |n| &n.content.project.0),
        &feed::column(notifications, |n| &n.content.event_type),
        &feed::column(notifications, |n| &n.content.payload),
    );
    insertion.execute(db).await?;
    Ok(())
}
