//! Size of the file, and return of unused pages.
//!
//! A file that was created with `auto_vacuum = INCREMENTAL` returns unused pages to the system. An older file
//! keeps them for later use, until it is copied to a new one (`allot database copy`).

use sqlx::SqliteConnection;
use store::{Sizes, StoreError};

use crate::error::unavailable;

/// Maximum number of pages returned at once, 1 MiB in a new file.
const PAGES_AT_ONCE: i64 = 1024;

/// Value of `PRAGMA auto_vacuum` for `INCREMENTAL`.
const INCREMENTAL: i64 = 2;

async fn pragma(db: &mut SqliteConnection, question: &'static str) -> Result<i64, StoreError> {
    // The compiler cannot check pragmas.
    sqlx::query_scalar(question).fetch_one(db).await.map_err(unavailable)
}

/// Returns some unused pages to the system. Returns whether there are more.
pub(crate) async fn reclaim(db: &mut SqliteConnection) -> Result<bool, StoreError> {
    let free = pragma(db, "PRAGMA freelist_count").await?;
    if free == 0 || pragma(db, "PRAGMA auto_vacuum").await? != INCREMENTAL {
        return Ok(false);
    }
    // Each row that is fetched returns one page, so all rows must be fetched.
    let vacuum = format!("PRAGMA incremental_vacuum({PAGES_AT_ONCE})");
    sqlx::query(sqlx::AssertSqlSafe(vacuum)).fetch_all(&mut *db).await.map_err(unavailable)?;
    let left = pragma(db, "PRAGMA freelist_count").await?;
    Ok(left > 0 && left < free)
}

/// Sizes, without reading whole tables. Journals have counters, to which records that aren't counted yet are added.
/// Records of usage are numbered consecutively and the oldest are removed first, so the range of numbers is their
/// count.
pub(crate) async fn sizes(db: &mut SqliteConnection) -> Result<Sizes, StoreError> {
    let page_bytes = pragma(db, "PRAGMA page_size").await?;
    let bytes = |pages: i64| pages.saturating_mul(page_bytes).max(0).cast_unsigned();
    let pages = pragma(db, "PRAGMA page_count").await?;
    let free = pragma(db, "PRAGMA freelist_count").await?;
    let counted = sqlx::query!(
        r#"SELECT
            (SELECT coalesce(sum(records), 0) FROM journal_size WHERE journal = 'notifications')
                + (SELECT max(coalesce(max(number), 0) - (SELECT notification FROM journal_counted), 0) FROM notification)
                AS "notifications!: i64",
            (SELECT coalesce(sum(records), 0) FROM journal_size WHERE journal IN ('audit', 'protected_audit'))
                + (SELECT max(coalesce(max(number), 0) - (SELECT audit FROM journal_counted), 0) FROM audit)
                AS "audit!: i64",
            (SELECT coalesce(max(number) - min(number) + 1, 0) FROM usage_event) AS "usage_events!: i64",
            (SELECT coalesce(max(number) - min(number) + 1, 0) FROM usage_span) AS "usage_spans!: i64""#
    );
    let counted = counted.fetch_one(db).await.map_err(unavailable)?;
    let records = [
        ("notifications", counted.notifications),
        ("audit", counted.audit),
        ("usage_events", counted.usage_events),
        ("usage_spans", counted.usage_spans),
    ];
    let records = records.into_iter().map(|(kind, count)| (kind, count.max(0).cast_unsigned())).collect();
    Ok(Sizes { bytes: bytes(pages), free_bytes: bytes(free), records })
}
