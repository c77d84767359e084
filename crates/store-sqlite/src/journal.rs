//! Records that are written with commits and never change: notifications, the audit log, and idempotency
//! keys.

use leases::ids::LeaseId;
use leases::project::{ProjectId, UserId};
use sqlx::SqliteConnection;
use store::encoding::{hex, json, subject_lease, subject_number};
use store::{
    AuditFilter, AuditRecord, Commit, CommitError, IdempotencyRecord, NewNotification, Notification,
    StoreError,
};

use crate::columns::{instant, us, uuid};
use crate::error::{failed, unavailable};

/// Rejects a request that was already served.
pub(crate) async fn check_repetition(db: &mut SqliteConnection, commit: &Commit) -> Result<(), CommitError> {
    let Some(new) = &commit.idempotency else { return Ok(()) };
    match request(db, &new.project, &new.key).await? {
        Some(served) if served.counts_at(commit.at) => Err(CommitError::Repeated(new.key.clone())),
        _ => Ok(()),
    }
}

/// The request with this key, however old.
pub(crate) async fn request(
    db: &mut SqliteConnection,
    project: &ProjectId,
    key: &str,
) -> Result<Option<IdempotencyRecord>, StoreError> {
    let row = sqlx::query!(
        "SELECT fingerprint, lease, at_us FROM request_key WHERE project = ? AND key = ?",
        project.0,
        key,
    );
    let Some(row) = row.fetch_optional(db).await.map_err(unavailable)? else { return Ok(None) };
    Ok(Some(IdempotencyRecord {
        project: project.clone(),
        key: key.to_owned(),
        fingerprint: row.fingerprint,
        lease: LeaseId(uuid(&row.lease)?),
        at: instant(row.at_us)?,
    }))
}

/// Writes a commit's audit records, notifications and idempotency key.
pub(crate) async fn write(db: &mut SqliteConnection, commit: &Commit) -> Result<(), CommitError> {
    audit_all(db, &commit.audit).await.map_err(failed)?;
    notify_all(db, commit).await.map_err(failed)?;
    if let Some(new) = &commit.idempotency {
        write_request(db, new).await.map_err(failed)?;
    }
    Ok(())
}

/// Uses one statement, since a statement costs more than a row.
async fn audit_all(db: &mut SqliteConnection, records: &[AuditRecord]) -> Result<(), sqlx::Error> {
    if records.is_empty() {
        return Ok(());
    }
    let rows = records.iter().map(|new| {
        (us(new.at), &new.user.0, &new.project.0, &new.request_id, &new.action, &new.object, new.protected)
    });
    let rows = json(&rows.collect::<Vec<_>>());
    let insertion = sqlx::query!(
        "INSERT INTO audit (at_us, user_id, project, request_id, action, object, protected)
         SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6
         FROM json_each(?) ORDER BY key",
        rows,
    );
    insertion.execute(db).await.map(drop)
}

/// Uses one statement too.
async fn notify_all(db: &mut SqliteConnection, commit: &Commit) -> Result<(), sqlx::Error> {
    if commit.notifications.is_empty() {
        return Ok(());
    }
    let at_us = us(commit.at);
    let rows = commit.notifications.iter();
    let rows =
        rows.map(|new| (hex(subject_number(new.lease)), &new.project.0, &new.event_type, &new.payload));
    let rows = json(&rows.collect::<Vec<_>>());
    let insertion = sqlx::query!(
        "INSERT INTO notification (at_us, lease, project, event_type, payload)
         SELECT ?, unhex(value ->> 0), value ->> 1, value ->> 2, value ->> 3 FROM json_each(?) ORDER BY key",
        at_us,
        rows,
    );
    insertion.execute(db).await.map(drop)
}

/// Stores a key, replacing an expired one.
pub(crate) async fn write_request(
    db: &mut SqliteConnection,
    new: &IdempotencyRecord,
) -> Result<(), sqlx::Error> {
    let (at_us, lease) = (us(new.at), new.lease.0.to_be_bytes());
    let lease = lease.as_slice();
    let insertion = sqlx::query!(
        "INSERT INTO request_key (project, key, fingerprint, lease, at_us) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (project, key) DO UPDATE SET fingerprint = ?3, lease = ?4, at_us = ?5",
        new.project.0,
        new.key,
        new.fingerprint,
        lease,
        at_us,
    );
    insertion.execute(db).await?;
    Ok(())
}

struct NotificationRow {
    number: i64,
    at_us: i64,
    lease: Vec<u8>,
    project: String,
    event_type: String,
    payload: String,
}

/// Notifications with numbers above `after`. `project` limits them to a single project.
pub(crate) async fn notifications(
    db: &mut SqliteConnection,
    project: Option<&ProjectId>,
    after: u64,
    limit: u32,
) -> Result<Vec<Notification>, StoreError> {
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    // Two statements, so that each uses its index.
    let rows = match project {
        None => {
            let rows = sqlx::query_as!(
                NotificationRow,
                "SELECT number, at_us, lease, project, event_type, payload FROM notification
                 WHERE number > ? ORDER BY number LIMIT ?",
                after,
                limit,
            );
            rows.fetch_all(db).await
        }
        Some(project) => {
            let rows = sqlx::query_as!(
                NotificationRow,
                "SELECT number, at_us, lease, project, event_type, payload FROM notification
                 WHERE project = ? AND number > ? ORDER BY number LIMIT ?",
                project.0,
                after,
                limit,
            );
            rows.fetch_all(db).await
        }
    };
    let read = rows.map_err(unavailable)?.into_iter().map(|row| {
        Ok(Notification {
            number: row.number.cast_unsigned(),
            at: instant(row.at_us)?,
            content: NewNotification {
                lease: subject_lease(uuid(&row.lease)?),
                project: ProjectId(row.project),
                event_type: row.event_type,
                payload: row.payload,
            },
        })
    });
    read.collect()
}

/// The highest number ever given to a notification. SQLite keeps the counter when rows are deleted.
pub(crate) async fn last_notification(db: &mut SqliteConnection) -> Result<u64, StoreError> {
    // The compiler can't check SQLite's internal tables.
    let last: Result<i64, _> =
        sqlx::query_scalar("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'notification'")
            .fetch_one(db)
            .await;
    Ok(last.map_err(unavailable)?.cast_unsigned())
}

/// Number of the last notification that a listener was told; 0 at first.
pub(crate) async fn delivered(db: &mut SqliteConnection, listener: &str) -> Result<u64, StoreError> {
    let told = sqlx::query_scalar!("SELECT delivered FROM listener WHERE name = ?", listener);
    let told = told.fetch_optional(db).await.map_err(unavailable)?;
    Ok(told.unwrap_or(0).cast_unsigned())
}

/// Records how far a listener was told. Never moves back.
pub(crate) async fn set_delivered(
    db: &mut SqliteConnection,
    listener: &str,
    number: u64,
) -> Result<(), StoreError> {
    let number = i64::try_from(number).unwrap_or(i64::MAX);
    let noted = sqlx::query!(
        "INSERT INTO listener (name, delivered) VALUES (?1, ?2)
         ON CONFLICT (name) DO UPDATE SET delivered = max(delivered, ?2)",
        listener,
        number,
    );
    noted.execute(db).await.map_err(unavailable)?;
    Ok(())
}

pub(crate) async fn audit(db: &mut SqliteConnection, limit: u32) -> Result<Vec<AuditRecord>, StoreError> {
    let rows = sqlx::query!(
        "SELECT at_us, user_id, project, request_id, action, object, protected FROM audit ORDER BY number DESC LIMIT ?",
        limit,
    );
    let rows = rows.fetch_all(db).await.map_err(unavailable)?;
    let read = rows.into_iter().map(|row| {
        Ok(AuditRecord {
            at: instant(row.at_us)?,
            user: UserId(row.user_id),
            project: ProjectId(row.project),
            request_id: row.request_id,
            action: row.action,
            object: row.object,
            protected: row.protected != 0,
        })
    });
    read.collect()
}

/// Audit records below number `before` that match the filter, newest first.
pub(crate) async fn audit_page(
    db: &mut SqliteConnection,
    filter: &AuditFilter,
    before: Option<u64>,
    limit: u32,
) -> Result<Vec<(u64, AuditRecord)>, StoreError> {
    let before = before.and_then(|before| i64::try_from(before).ok()).unwrap_or(i64::MAX);
    let user = filter.user.as_ref().map(|user| user.0.as_str());
    let project = filter.project.as_ref().map(|project| project.0.as_str());
    let rows = sqlx::query!(
        "SELECT number, at_us, user_id, project, request_id, action, object, protected FROM audit
         WHERE number < ?1 AND (?2 IS NULL OR user_id = ?2) AND (?3 IS NULL OR project = ?3)
         AND (?4 IS NULL OR request_id = ?4) AND (?5 IS NULL OR action = ?5) AND (?6 IS NULL OR object = ?6)
         ORDER BY number DESC LIMIT ?7",
        before,
        user,
        project,
        filter.request_id,
        filter.action,
        filter.object,
        limit,
    );
    let rows = rows.fetch_all(db).await.map_err(unavailable)?;
    let read = rows.into_iter().map(|row| {
        let record = AuditRecord {
            at: instant(row.at_us)?,
            user: UserId(row.user_id),
            project: ProjectId(row.project),
            request_id: row.request_id,
            action: row.action,
            object: row.object,
            protected: row.protected != 0,
        };
        Ok((row.number.cast_unsigned(), record))
    });
    read.collect()
}
