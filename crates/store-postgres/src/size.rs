//! Size of the database.

use sqlx::PgConnection;
use store::Sizes;

use crate::error::TxError;

/// Sizes from PostgreSQL's statistics, which lag behind a little.
pub(crate) async fn sizes(db: &mut PgConnection) -> Result<Sizes, TxError> {
    let bytes = sqlx::query_scalar!(r#"SELECT pg_database_size(current_database()) AS "bytes!""#);
    let bytes = bytes.fetch_one(&mut *db).await?;
    let rows = sqlx::query!(
        r#"SELECT relname::text AS "name!", n_live_tup AS "count!" FROM pg_stat_user_tables
         WHERE relname IN ('notification', 'audit', 'usage_event', 'usage_span') AND schemaname = current_schema()"#
    );
    let mut sizes = Sizes { bytes: bytes.max(0).cast_unsigned(), ..Sizes::default() };
    for row in rows.fetch_all(db).await? {
        let kind = match row.name.as_str() {
            "notification" => "notifications",
            "audit" => "audit",
            "usage_event" => "usage_events",
            _ => "usage_spans",
        };
        sizes.records.insert(kind, row.count.max(0).cast_unsigned());
    }
    Ok(sizes)
}
