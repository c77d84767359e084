//! Reads free pools.

use ::leases::ids::FreePoolId;
use sqlx::PgConnection;
use store::encoding::free_pool_from_json;
use store::{FreePoolRecord, Version};

use super::Wanted;
use crate::columns::{instant, maybe_instant};
use crate::error::TxError;

pub(super) async fn read(db: &mut PgConnection, wanted: &Wanted) -> Result<Vec<FreePoolRecord>, TxError> {
    let rows = sqlx::query!(
        "SELECT id, version, document, created_at_us, updated_at_us FROM free_pool WHERE $1::uuid[] IS NULL OR id = ANY($1) ORDER BY id",
        wanted.free_pools.as_deref(),
    );
    let rows = rows.fetch_all(db).await?;
    let read = rows.into_iter().map(|row| {
        Ok(FreePoolRecord {
            pool: free_pool_from_json(FreePoolId(row.id.as_u128()), &row.document)?,
            version: Version(row.version.cast_unsigned()),
            created_at: instant(row.created_at_us)?,
            updated_at: maybe_instant(row.updated_at_us)?,
        })
    });
    read.collect()
}
