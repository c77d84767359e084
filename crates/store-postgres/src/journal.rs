//! Records that are written with commits and never change: notifications, the audit log, and idempotency
//! keys.

use leases::ids::LeaseId;
use leases::project::{ProjectId, UserId};
use sqlx::PgConnection;
use store::encoding::subject_lease;
use store::{
    AuditFilter, AuditRecord, Commit, CommitError, IdempotencyRecord, NewNotification, Notification,
};

use crate::columns::{instant, maybe_text, plain, text, us, uuid};
use crate::error::TxError;

/// Stores the request's key, or rejects a request that was already served. Of two requests with one key at
/// the same time, the second waits here for the end of the first.
pub(crate) async fn enter_request(db: &mut PgConnection, commit: &Commit) -> Result<(), TxError> {
    let Some(new) = &commit.idempotency else { return Ok(()) };
    let valid_us = i64::try_from(IdempotencyRecord::VALID_FOR.as_micros()).unwrap_or(i64::MAX);
    let free_until_us = us(commit.at).saturating_sub(valid_us);
    if write_request(db, new, free_until_us).await? {
        Ok(())
    } else {
        Err(CommitError::Repeated(new.key.clone()).into())
    }
}

/// Stores a key, unless there is one from after `free_until_us`. Returns whether it was stored.
pub(crate) async fn write_request(
    db: &mut PgConnection,
    new: &IdempotencyRecord,
    free_until_us: i64,
) -> Result<bool, sqlx::Error> {
    let entered = sqlx::query!(
        "INSERT INTO request_key (project, key, fingerprint, lease, at_us) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (project, key) DO UPDATE SET fingerprint = $3, lease = $4, at_us = $5
             WHERE request_key.at_us <= $6",
        &text(&new.project.0),
        &text(&new.key),
        &text(&new.fingerprint),
        uuid(new.lease.0),
        us(new.at),
        free_until_us,
    );
    Ok(entered.execute(db).await?.rows_affected() == 1)
}

/// The request with this key, however old.
pub(crate) async fn request(
    db: &mut PgConnection,
    project: &ProjectId,
    key: &str,
) -> Result<Option<IdempotencyRecord>, TxError> {
    let row = sqlx::query!(
        "SELECT fingerprint, lease, at_us FROM request_key WHERE project = $1 AND key = $2",
        &text(&project.0),
        &text(key),
    );
    let Some(row) = row.fetch_optional(db).await? else { return Ok(None) };
    Ok(Some(IdempotencyRecord {
        project: project.clone(),
        key: key.to_owned(),
        fingerprint: plain(row.fingerprint),
        lease: LeaseId(row.lease.as_u128()),
        at: instant(row.at_us)?,
    }))
}

/// A row of a notification.
struct NotificationRow {
    number: i64,
    at_us: i64,
    lease: uuid::Uuid,
    project: String,
    event_type: String,
    payload: String,
}

/// Notifications with numbers above `after`. `project` limits them to a single project.
pub(crate) async fn notifications(
    db: &mut PgConnection,
    project: Option<&ProjectId>,
    after: u64,
    limit: u32,
) -> Result<Vec<Notification>, TxError> {
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    // Two statements, so that each uses its index.
    let rows = match project {
        None => {
            let rows = sqlx::query_as!(
                NotificationRow,
                "SELECT number, at_us, lease, project, event_type, payload FROM notification
                 WHERE number > $1 ORDER BY number LIMIT $2",
                after,
                i64::from(limit),
            );
            rows.fetch_all(db).await?
        }
        Some(project) => {
            let rows = sqlx::query_as!(
                NotificationRow,
                "SELECT number, at_us, lease, project, event_type, payload FROM notification
                 WHERE project = $1 AND number > $2 ORDER BY number LIMIT $3",
                &text(&project.0),
                after,
                i64::from(limit),
            );
            rows.fetch_all(db).await?
        }
    };
    let read = rows.into_iter().map(|row| {
        Ok(Notification {
            number: row.number.cast_unsigned(),
            at: instant(row.at_us)?,
            content: NewNotification {
                lease: subject_lease(row.lease.as_u128()),
                project: ProjectId(plain(row.project)),
                event_type: plain(row.event_type),
                payload: plain(row.payload),
            },
        })
    });
    read.collect()
}

/// The highest number ever given to a notification.
pub(crate) async fn last_notification(db: &mut PgConnection) -> Result<u64, TxError> {
    let last = sqlx::query_scalar!("SELECT notifications FROM revision").fetch_one(db).await?;
    Ok(last.cast_unsigned())
}

/// Number of the last notification that a listener was told; 0 at first.
pub(crate) async fn delivered(db: &mut PgConnection, listener: &str) -> Result<u64, TxError> {
    let told = sqlx::query_scalar!("SELECT delivered FROM listener WHERE name = $1", &text(listener));
    Ok(told.fetch_optional(db).await?.unwrap_or(0).cast_unsigned())
}

/// Records how far a listener was told. Never moves back.
pub(crate) async fn set_delivered(db: &mut PgConnection, listener: &str, number: u64) -> Result<(), TxError> {
    let number = i64::try_from(number).unwrap_or(i64::MAX);
    let noted = sqlx::query!(
        "INSERT INTO listener (name, delivered) VALUES ($1, $2)
         ON CONFLICT (name) DO UPDATE SET delivered = greatest(listener.delivered, $2)",
        &text(listener),
        number,
    );
    noted.execute(db).await?;
    Ok(())
}

pub(crate) async fn audit(db: &mut PgConnection, limit: u32) -> Result<Vec<AuditRecord>, TxError> {
    let rows = sqlx::query!(
        "SELECT at_us, user_id, project, request_id, action, object, protected FROM audit ORDER BY number DESC LIMIT $1",
        i64::from(limit),
    );
    let rows = rows.fetch_all(db).await?;
    let read = rows.into_iter().map(|row| {
        Ok(AuditRecord {
            at: instant(row.at_us)?,
            user: UserId(plain(row.user_id)),
            project: ProjectId(plain(row.project)),
            request_id: plain(row.request_id),
            action: plain(row.action),
            object: plain(row.object),
            protected: row.protected,
        })
    });
    read.collect()
}

/// Audit records that match the filter, with their numbers, newest first.
pub(crate) async fn audit_page(
    db: &mut PgConnection,
    filter: &AuditFilter,
    before: Option<u64>,
    limit: u32,
) -> Result<Vec<(u64, AuditRecord)>, TxError> {
    let before = before.and_then(|before| i64::try_from(before).ok()).unwrap_or(i64::MAX);
    let user = maybe_text(filter.user.as_ref().map(|user| user.0.as_str()));
    let project = maybe_text(filter.project.as_ref().map(|project| project.0.as_str()));
    let [request_id, action, object] =
        [&filter.request_id, &filter.action, &filter.object].map(|wanted| maybe_text(wanted.as_deref()));
    let rows = sqlx::query!(
        "SELECT number, at_us, user_id, project, request_id, action, object, protected FROM audit
         WHERE number < $1 AND ($2::text IS NULL OR user_id = $2) AND ($3::text IS NULL OR project = $3)
         AND ($4::text IS NULL OR request_id = $4) AND ($5::text IS NULL OR action = $5)
         AND ($6::text IS NULL OR object = $6)
         ORDER BY number DESC LIMIT $7",
        before,
        user.as_deref(),
        project.as_deref(),
        request_id.as_deref(),
        action.as_deref(),
        object.as_deref(),
        i64::from(limit),
    );
    let rows = rows.fetch_all(db).await?;
    let read = rows.into_iter().map(|row| {
        let record = AuditRecord {
            at: instant(row.at_us)?,
            user: UserId(plain(row.user_id)),
            project: ProjectId(plain(row.project)),
            request_id: plain(row.request_id),
            action: plain(row.action),
            object: plain(row.object),
            protected: row.protected,
        };
        Ok((row.number.cast_unsigned(), record))
    });
    read.collect()
}
