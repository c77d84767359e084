//! Reads free pools.

use ::leases::ids::FreePoolId;
use sqlx::SqliteConnection;
use store::encoding::free_pool_from_json;
use store::{FreePoolRecord, StoreError, Version};

use crate::columns::{instant, maybe_instant, uuid};
use crate::error::unavailable;

pub(super) async fn read(db: &mut SqliteConnection) -> Result<Vec<FreePoolRecord>, StoreError> {
    let rows = sqlx::query!(
        "SELECT id, version, document, created_at_us, updated_at_us FROM free_pool ORDER BY id",
    );
    let rows = rows.fetch_all(db).await.map_err(unavailable)?;
    let read = rows.into_iter().map(|row| {
        Ok(FreePoolRecord {
            pool: free_pool_from_json(FreePoolId(uuid(&row.id)?), &row.document)?,
            version: Version(row.version.cast_unsigned()),
            created_at: instant(row.created_at_us)?,
            updated_at: maybe_instant(row.updated_at_us)?,
        })
    });
    read.collect()
}
