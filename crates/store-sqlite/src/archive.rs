//! Export of the whole file, and import into an empty one.

use ::leases::ids::LeaseId;
use ::leases::project::ProjectId;
use ::leases::window::Window;
use sqlx::SqliteConnection;
use store::archive::{Archive, ImportError};
use store::encoding::{action_key, subject_number};
use store::{IdempotencyRecord, Snapshot, StoreError, UsageFilter};

use crate::columns::{instant, us, uuid};
use crate::error::unavailable;
use crate::{commit, journal, load, occupancy, origin, power, refusals, tokens, usage};

/// Refusal records per statement.
const TOGETHER: usize = 1000;

/// Reads all records in one transaction, so that they are consistent.
pub(crate) async fn export(db: &mut SqliteConnection) -> Result<Archive, StoreError> {
    let snapshot = load::snapshot(db).await?;
    let mut archive = Archive { snapshot, ..Archive::default() };
    archive.notifications = journal::notifications(db, None, 0, u32::MAX).await?;
    archive.last_notification = journal::last_notification(db).await?;
    let rows = sqlx::query!("SELECT name, delivered FROM listener");
    for row in rows.fetch_all(&mut *db).await.map_err(unavailable)? {
        archive.delivered.insert(row.name, row.delivered.cast_unsigned());
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
    archive.tokens = tokens::read(&mut *db).await?;
    let last =
        sqlx::query_scalar!("SELECT last FROM fence").fetch_one(&mut *db).await.map_err(unavailable)?;
    archive.last_fence = last.cast_unsigned();
    archive.id = origin::read(db).await?.id;
    Ok(archive)
}

async fn requests(db: &mut SqliteConnection) -> Result<Vec<IdempotencyRecord>, StoreError> {
    let rows =
        sqlx::query!("SELECT project, key, fingerprint, lease, at_us FROM request_key ORDER BY project, key");
    let read = rows.fetch_all(db).await.map_err(unavailable)?.into_iter().map(|row| {
        Ok(IdempotencyRecord {
            project: ProjectId(row.project),
            key: row.key,
            fingerprint: row.fingerprint,
            lease: LeaseId(uuid(&row.lease)?),
            at: instant(row.at_us)?,
        })
    });
    read.collect()
}

/// Writes everything. The caller ends the transaction.
pub(crate) async fn import(db: &mut SqliteConnection, archive: &Archive) -> Result<(), ImportError> {
    if !export(db).await?.is_empty() {
        return Err(ImportError::NotEmpty);
    }
    commit::write(db, &archive.commit()).await?;
    import_history(db, &archive.snapshot).await.map_err(unavailable)?;
    import_journal(db, archive).await.map_err(unavailable)?;
    for part in archive.refusals.chunks(TOGETHER) {
        refusals::add(db, part).await?;
    }
    occupancy::record(db, &archive.occupancy).await?;
    tokens::replace(db, &archive.tokens).await?;
    Ok(())
}

async fn import_history(db: &mut SqliteConnection, snapshot: &Snapshot) -> Result<(), sqlx::Error> {
    for (action, failures) in &snapshot.history.failures {
        let (step, last_at_us) = (action_key(*action), us(failures.last_at));
        let insertion = sqlx::query!(
            "INSERT INTO step_failure (step, times, last_at_us, message) VALUES (?, ?, ?, ?)",
            step,
            failures.times,
            last_at_us,
            failures.message,
        );
        insertion.execute(&mut *db).await?;
    }
    for (action, at) in &snapshot.history.done {
        let (step, at_us) = (action_key(*action), us(*at));
        let insertion = sqlx::query!("INSERT INTO step_success (step, at_us) VALUES (?, ?)", step, at_us);
        insertion.execute(&mut *db).await?;
    }
    Ok(())
}

async fn import_journal(db: &mut SqliteConnection, archive: &Archive) -> Result<(), sqlx::Error> {
    for notification in &archive.notifications {
        import_notification(db, notification).await?;
    }
    count_on_from(db, archive.last_notification.cast_signed()).await?;
    for (name, delivered) in &archive.delivered {
        let delivered = delivered.cast_signed();
        let insertion = sqlx::query!("INSERT INTO listener (name, delivered) VALUES (?, ?)", name, delivered);
        insertion.execute(&mut *db).await?;
    }
    for request in &archive.requests {
        journal::write_request(db, request).await?;
    }
    let last = archive.last_fence.cast_signed();
    sqlx::query!("UPDATE fence SET last = ?", last).execute(&mut *db).await?;
    if let Some(id) = &archive.id {
        origin::set(db, id).await?;
    }
    Ok(())
}

/// Makes SQLite continue numbers after this one. It counts from the highest row that ever existed.
async fn count_on_from(db: &mut SqliteConnection, number: i64) -> Result<(), sqlx::Error> {
    let insertion = sqlx::query!(
        "INSERT INTO notification (number, at_us, lease, project, event_type, payload)
         VALUES (?, 0, zeroblob(16), '', '', '') ON CONFLICT (number) DO NOTHING",
        number,
    );
    if insertion.execute(&mut *db).await?.rows_affected() > 0 {
        sqlx::query!("DELETE FROM notification WHERE number = ?", number).execute(db).await?;
    }
    Ok(())
}

async fn import_notification(
    db: &mut SqliteConnection,
    notification: &store::Notification,
) -> Result<(), sqlx::Error> {
    let (number, at_us) = (notification.number.cast_signed(), us(notification.at));
    let lease = subject_number(notification.content.lease).to_be_bytes();
    let lease = lease.as_slice();
    let insertion = sqlx::query!(
        "INSERT INTO notification (number, at_us, lease, project, event_type, payload)
         VALUES (?, ?, ?, ?, ?, ?)",
        number,
        at_us,
        lease,
        notification.content.project.0,
        notification.content.event_type,
        notification.content.payload,
    );
    insertion.execute(db).await?;
    Ok(())
}
