//! Expiry of journals, by age and by size.

use jiff::Timestamp;
use leases::project::ProjectId;
use sqlx::SqliteConnection;
use store::{Journal, JournalSize, StoreError, Trimmed, WriteSize, to_remove};

use crate::columns::us;
use crate::error::unavailable;

/// Number of audit records that one call searches for a project's own. There is no index by project, because
/// every commit would have to write a page of the index.
const SEARCHED_AT_ONCE: i64 = 20_000;

/// Deletes old notifications, audit records and request keys, at most `limit` of each. Returns whether a
/// limit was reached. Notifications and audit records are numbered in the order of their times, so only the
/// first `limit` are examined.
pub(crate) async fn prune(
    db: &mut SqliteConnection,
    before: Timestamp,
    undelivered: Timestamp,
    limit: u32,
) -> Result<bool, StoreError> {
    let (before_us, undelivered_us) = (us(before), us(undelivered));
    let notifications = sqlx::query!(
        "DELETE FROM notification WHERE at_us < ?1 AND number IN (SELECT number FROM notification ORDER BY number LIMIT ?3)
         AND (number <= coalesce((SELECT min(delivered) FROM listener), 9223372036854775807) OR at_us < ?2)",
        before_us,
        undelivered_us,
        limit,
    );
    let notifications = notifications.execute(&mut *db).await.map_err(unavailable)?.rows_affected();
    let audit = sqlx::query!(
        "DELETE FROM audit WHERE at_us < ?1 AND number IN (SELECT number FROM audit ORDER BY number LIMIT ?2)",
        before_us,
        limit,
    );
    let audit = audit.execute(&mut *db).await.map_err(unavailable)?.rows_affected();
    let requests = sqlx::query!(
        "DELETE FROM request_key WHERE (project, key) IN
         (SELECT project, key FROM request_key WHERE at_us < ?1 LIMIT ?2)",
        before_us,
        limit,
    );
    let requests = requests.execute(&mut *db).await.map_err(unavailable)?.rows_affected();
    Ok([notifications, audit, requests].into_iter().any(|count| count >= u64::from(limit)))
}

/// Adds new records to the project sizes, at most `limit` notifications and `limit` audit records. Returns
/// whether a limit was reached.
pub(crate) async fn count(db: &mut SqliteConnection, limit: u32) -> Result<bool, StoreError> {
    let told = sqlx::query!(
        r#"SELECT coalesce(max(number), 0) AS "last!: i64", count(*) AS "count!: i64" FROM (
             SELECT number FROM notification WHERE number > (SELECT notification FROM journal_counted)
             ORDER BY number LIMIT ?
         )"#,
        limit,
    );
    let told = told.fetch_one(&mut *db).await.map_err(unavailable)?;
    if told.count > 0 {
        let sums = sqlx::query!(
            "INSERT INTO journal_size (journal, project, records, bytes)
             SELECT 'notifications', project, count(*),
                 sum(128 + octet_length(project) + octet_length(event_type) + octet_length(payload))
             FROM notification WHERE number > (SELECT notification FROM journal_counted) AND number <= ?1
             GROUP BY project
             ON CONFLICT (journal, project) DO UPDATE SET
                 records = records + excluded.records, bytes = bytes + excluded.bytes",
            told.last,
        );
        sums.execute(&mut *db).await.map_err(unavailable)?;
        let counted = sqlx::query!("UPDATE journal_counted SET notification = ?", told.last);
        counted.execute(&mut *db).await.map_err(unavailable)?;
    }
    let audited = sqlx::query!(
        r#"SELECT coalesce(max(number), 0) AS "last!: i64", count(*) AS "count!: i64" FROM (
             SELECT number FROM audit WHERE number > (SELECT audit FROM journal_counted) ORDER BY number LIMIT ?
         )"#,
        limit,
    );
    let audited = audited.fetch_one(&mut *db).await.map_err(unavailable)?;
    if audited.count > 0 {
        let sums = sqlx::query!(
            "INSERT INTO journal_size (journal, project, records, bytes)
             SELECT iif(protected, 'protected_audit', 'audit'), project, count(*),
                 sum(128 + octet_length(user_id) + octet_length(project) + octet_length(request_id)
                     + octet_length(action) + octet_length(object))
             FROM audit WHERE number > (SELECT audit FROM journal_counted) AND number <= ?1
             GROUP BY protected, project
             ON CONFLICT (journal, project) DO UPDATE SET
                 records = records + excluded.records, bytes = bytes + excluded.bytes",
            audited.last,
        );
        sums.execute(&mut *db).await.map_err(unavailable)?;
        let counted = sqlx::query!("UPDATE journal_counted SET audit = ?", audited.last);
        counted.execute(&mut *db).await.map_err(unavailable)?;
    }
    Ok([told.count, audited.count].into_iter().any(|count| count >= i64::from(limit)))
}

/// Project sizes in journals that are larger than `bytes`, sorted.
pub(crate) async fn journals_over(
    db: &mut SqliteConnection,
    bytes: u64,
) -> Result<Vec<JournalSize>, StoreError> {
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
    let rows =
        sqlx::query!("SELECT journal, project, records, bytes FROM journal_size WHERE bytes > ?", bytes);
    let sizes = rows
        .fetch_all(db)
        .await
        .map_err(unavailable)?
        .into_iter()
        .map(|row| JournalSize::from_row(&row.journal, ProjectId(row.project), row.records, row.bytes));
    let mut sizes = sizes.collect::<Result<Vec<_>, StoreError>>()?;
    sizes.sort();
    Ok(sizes)
}

/// Deletes a batch of a project's oldest records in a journal while they have more than `most` bytes.
pub(crate) async fn trim(
    db: &mut SqliteConnection,
    journal: Journal,
    project: &ProjectId,
    most: u64,
    part: WriteSize,
) -> Result<Trimmed, StoreError> {
    match journal {
        Journal::Audit => trim_audit(db, project, most, part).await,
        Journal::Notifications => trim_notifications(db, project, most, part).await,
        Journal::ProtectedAudit => Ok(Trimmed::default()),
    }
}

async fn trim_notifications(
    db: &mut SqliteConnection,
    project: &ProjectId,
    most: u64,
    part: WriteSize,
) -> Result<Trimmed, StoreError> {
    let bytes = sqlx::query_scalar!(
        "SELECT bytes FROM journal_size WHERE journal = 'notifications' AND project = ?",
        project.0,
    );
    let bytes = bytes.fetch_optional(&mut *db).await.map_err(unavailable)?.unwrap_or(0);
    let excess = bytes.cast_unsigned().saturating_sub(most);
    let rows = i64::try_from(part.rows).unwrap_or(i64::MAX);
    let records = sqlx::query!(
        r#"SELECT number, 128 + octet_length(project) + octet_length(event_type) + octet_length(payload) AS "bytes!: i64"
         FROM notification WHERE project = ?1 AND number <= (SELECT notification FROM journal_counted)
         ORDER BY number LIMIT ?2"#,
        project.0,
        rows,
    );
    let records = records.fetch_all(&mut *db).await.map_err(unavailable)?.into_iter();
    let records: Vec<_> =
        records.map(|row| (row.number.cast_unsigned(), row.bytes.cast_unsigned())).collect();
    let removed = to_remove(&records, excess, part);
    let Some((last, _)) = removed.last() else { return Ok(Trimmed::default()) };
    let last = last.cast_signed();
    let told = sqlx::query_scalar!(r#"SELECT min(delivered) AS "told: i64" FROM listener"#);
    let told = told.fetch_one(&mut *db).await.map_err(unavailable)?.map_or(u64::MAX, i64::cast_unsigned);
    let deletion =
        sqlx::query!("DELETE FROM notification WHERE project = ? AND number <= ?", project.0, last);
    deletion.execute(db).await.map_err(unavailable)?;
    Ok(Trimmed::of(removed, excess, told))
}

async fn trim_audit(
    db: &mut SqliteConnection,
    project: &ProjectId,
    most: u64,
    part: WriteSize,
) -> Result<Trimmed, StoreError> {
    let share = sqlx::query!(
        r#"SELECT bytes, max(searched, coalesce((SELECT min(number) - 1 FROM audit), 0)) AS "searched!: i64",
             (SELECT audit FROM journal_counted) AS "counted!: i64"
         FROM journal_size WHERE journal = 'audit' AND project = ?"#,
        project.0,
    );
    let Some(share) = share.fetch_optional(&mut *db).await.map_err(unavailable)? else {
        return Ok(Trimmed::default());
    };
    let excess = share.bytes.cast_unsigned().saturating_sub(most);
    if excess == 0 || share.searched >= share.counted {
        return Ok(Trimmed::default());
    }
    let (rows, first) = (i64::try_from(part.rows).unwrap_or(i64::MAX), share.searched);
    let end = first.saturating_add(SEARCHED_AT_ONCE).min(share.counted);
    let records = sqlx::query!(
        r#"SELECT number, 128 + octet_length(user_id) + octet_length(project) + octet_length(request_id)
             + octet_length(action) + octet_length(object) AS "bytes!: i64"
         FROM audit WHERE number > ?1 AND number <= ?2 AND project = ?3 AND protected = 0
         ORDER BY number LIMIT ?4"#,
        first,
        end,
        project.0,
        rows,
    );
    let records = records.fetch_all(&mut *db).await.map_err(unavailable)?.into_iter();
    let records: Vec<_> =
        records.map(|row| (row.number.cast_unsigned(), row.bytes.cast_unsigned())).collect();
    let removed = to_remove(&records, excess, part);
    // If all of the project's records up to `end` are removed, the next search starts after `end`.
    let all = removed.len() == records.len() && (records.len() as u64) < part.rows;
    let searched = removed.last().filter(|_| !all).map_or(end, |(last, _)| last.cast_signed());
    let deletion = sqlx::query!(
        "DELETE FROM audit WHERE number > ?1 AND number <= ?2 AND project = ?3 AND protected = 0",
        first,
        searched,
        project.0,
    );
    deletion.execute(&mut *db).await.map_err(unavailable)?;
    let progress = sqlx::query!(
        "UPDATE journal_size SET searched = ? WHERE journal = 'audit' AND project = ?",
        searched,
        project.0,
    );
    progress.execute(db).await.map_err(unavailable)?;
    let trimmed = Trimmed::of(removed, excess, u64::MAX);
    Ok(Trimmed { more: trimmed.more && searched < share.counted, ..trimmed })
}
