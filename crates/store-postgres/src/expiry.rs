//! Expiry of journals, by age and by size.

use jiff::Timestamp;
use leases::project::ProjectId;
use sqlx::PgConnection;
use store::{Journal, JournalSize, StoreError, Trimmed, WriteSize, to_remove};

use crate::columns::{plain, text, us};
use crate::error::TxError;

/// Deletes old notifications, audit records and request keys, at most `limit` of each. Returns whether a
/// limit was reached. Notifications and audit records are numbered nearly in the order of their times, so
/// only the first `limit` are examined.
pub(crate) async fn prune(
    db: &mut PgConnection,
    before: Timestamp,
    undelivered: Timestamp,
    limit: u32,
) -> Result<bool, TxError> {
    let (before_us, rows) = (us(before), i64::from(limit));
    let notifications = sqlx::query!(
        "DELETE FROM notification WHERE at_us < $1
         AND number IN (SELECT number FROM notification ORDER BY number LIMIT $3)
         AND (number <= coalesce((SELECT min(delivered) FROM listener), 9223372036854775807) OR at_us < $2)",
        before_us,
        us(undelivered),
        rows,
    );
    let notifications = notifications.execute(&mut *db).await?.rows_affected();
    let audit = sqlx::query!(
        "DELETE FROM audit WHERE at_us < $1 AND number IN (SELECT number FROM audit ORDER BY number LIMIT $2)",
        before_us,
        rows,
    );
    let audit = audit.execute(&mut *db).await?.rows_affected();
    let requests = sqlx::query!(
        "DELETE FROM request_key WHERE (project, key) IN
         (SELECT project, key FROM request_key WHERE at_us < $1 LIMIT $2)",
        before_us,
        rows,
    );
    let requests = requests.execute(db).await?.rows_affected();
    Ok([notifications, audit, requests].into_iter().any(|count| count >= u64::from(limit)))
}

/// Adds new records to the project sizes, at most `limit` notifications and `limit` audit records. Returns
/// whether a limit was reached. Record numbers become visible in ascending order, so every record is counted.
pub(crate) async fn count(db: &mut PgConnection, limit: u32) -> Result<bool, TxError> {
    let counted = sqlx::query!("SELECT audit, notification FROM journal_counted FOR UPDATE");
    let counted = counted.fetch_one(&mut *db).await?;
    let told = sqlx::query!(
        r#"SELECT coalesce(max(number), 0) AS "last!", count(*) AS "count!"
         FROM (SELECT number FROM notification WHERE number > $1 ORDER BY number LIMIT $2) AS new"#,
        counted.notification,
        i64::from(limit),
    );
    let told = told.fetch_one(&mut *db).await?;
    if told.count > 0 {
        let sums = sqlx::query!(
            "INSERT INTO journal_size AS size (journal, project, records, bytes)
             SELECT 'notifications', project, count(*), sum(notification_bytes(project, event_type, payload))
             FROM notification WHERE number > $1 AND number <= $2 GROUP BY project ORDER BY project
             ON CONFLICT (journal, project) DO UPDATE SET
                 records = size.records + excluded.records, bytes = size.bytes + excluded.bytes",
            counted.notification,
            told.last,
        );
        sums.execute(&mut *db).await?;
        sqlx::query!("UPDATE journal_counted SET notification = $1", told.last).execute(&mut *db).await?;
    }
    let audited = sqlx::query!(
        r#"SELECT coalesce(max(number), 0) AS "last!", count(*) AS "count!"
         FROM (SELECT number FROM audit WHERE number > $1 ORDER BY number LIMIT $2) AS new"#,
        counted.audit,
        i64::from(limit),
    );
    let audited = audited.fetch_one(&mut *db).await?;
    if audited.count > 0 {
        let sums = sqlx::query!(
            "INSERT INTO journal_size AS size (journal, project, records, bytes)
             SELECT CASE WHEN protected THEN 'protected_audit' ELSE 'audit' END, project, count(*),
                 sum(audit_bytes(user_id, project, request_id, action, object))
             FROM audit WHERE number > $1 AND number <= $2 GROUP BY protected, project ORDER BY protected, project
             ON CONFLICT (journal, project) DO UPDATE SET
                 records = size.records + excluded.records, bytes = size.bytes + excluded.bytes",
            counted.audit,
            audited.last,
        );
        sums.execute(&mut *db).await?;
        sqlx::query!("UPDATE journal_counted SET audit = $1", audited.last).execute(db).await?;
    }
    Ok([told.count, audited.count].into_iter().any(|count| count >= i64::from(limit)))
}

/// Project sizes in journals that are larger than `bytes`, sorted.
pub(crate) async fn journals_over(db: &mut PgConnection, bytes: u64) -> Result<Vec<JournalSize>, TxError> {
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
    let rows =
        sqlx::query!("SELECT journal, project, records, bytes FROM journal_size WHERE bytes > $1", bytes);
    let sizes = rows.fetch_all(db).await?.into_iter().map(|row| {
        JournalSize::from_row(&row.journal, ProjectId(plain(row.project)), row.records, row.bytes)
    });
    let mut sizes = sizes.collect::<Result<Vec<_>, StoreError>>()?;
    sizes.sort();
    Ok(sizes)
}

/// Deletes a batch of a project's oldest records in a journal while they have more than `most` bytes.
pub(crate) async fn trim(
    db: &mut PgConnection,
    journal: Journal,
    project: &ProjectId,
    most: u64,
    part: WriteSize,
) -> Result<Trimmed, TxError> {
    if !journal.expires_by_size() {
        return Ok(Trimmed::default());
    }
    let (name, rows) = (text(&project.0), i64::try_from(part.rows).unwrap_or(i64::MAX));
    let bytes = sqlx::query_scalar!(
        "SELECT bytes FROM journal_size WHERE project = $1 AND journal = $2",
        &name,
        journal.name(),
    );
    let bytes = bytes.fetch_optional(&mut *db).await?.unwrap_or(0);
    let excess = bytes.cast_unsigned().saturating_sub(most);
    let records: Vec<(i64, i64)> = if journal == Journal::Audit {
        let records = sqlx::query!(
            r#"SELECT number, audit_bytes(user_id, project, request_id, action, object) AS "bytes!" FROM audit
             WHERE project = $1 AND NOT protected AND number <= (SELECT audit FROM journal_counted)
             ORDER BY number LIMIT $2"#,
            &name,
            rows,
        );
        records.fetch_all(&mut *db).await?.into_iter().map(|row| (row.number, row.bytes)).collect()
    } else {
        let records = sqlx::query!(
            r#"SELECT number, notification_bytes(project, event_type, payload) AS "bytes!" FROM notification
             WHERE project = $1 AND number <= (SELECT notification FROM journal_counted)
             ORDER BY number LIMIT $2"#,
            &name,
            rows,
        );
        records.fetch_all(&mut *db).await?.into_iter().map(|row| (row.number, row.bytes)).collect()
    };
    let unsigned = |(number, bytes): (i64, i64)| (number.cast_unsigned(), bytes.cast_unsigned());
    let records: Vec<(u64, u64)> = records.into_iter().map(unsigned).collect();
    let removed = to_remove(&records, excess, part);
    let Some((last, _)) = removed.last() else { return Ok(Trimmed::default()) };
    let (last, mut told) = (last.cast_signed(), u64::MAX);
    if journal == Journal::Audit {
        let deletion = sqlx::query!(
            "DELETE FROM audit WHERE project = $1 AND NOT protected AND number <= $2",
            &name,
            last
        );
        deletion.execute(db).await?;
    } else {
        let first = sqlx::query_scalar!("SELECT min(delivered) FROM listener").fetch_one(&mut *db).await?;
        told = first.map_or(u64::MAX, i64::cast_unsigned);
        let deletion =
            sqlx::query!("DELETE FROM notification WHERE project = $1 AND number <= $2", &name, last);
        deletion.execute(db).await?;
    }
    Ok(Trimmed::of(removed, excess, told))
}
