//! Reads instances.

use ::leases::ids::GuestId;
use sqlx::SqliteConnection;
use store::encoding::instance_from_json;
use store::{InstanceRecord, StoreError, Version};

use crate::columns::{instant, maybe_instant, uuid};
use crate::error::unavailable;

pub(super) async fn read(db: &mut SqliteConnection) -> Result<Vec<InstanceRecord>, StoreError> {
    let rows =
        sqlx::query!("SELECT id, version, document, created_at_us, updated_at_us FROM instance ORDER BY id");
    let rows = rows.fetch_all(db).await.map_err(unavailable)?;
    let read = rows.into_iter().map(|row| {
        Ok(InstanceRecord {
            instance: instance_from_json(GuestId(uuid(&row.id)?), &row.document)?,
            version: Version(row.version.cast_unsigned()),
            created_at: instant(row.created_at_us)?,
            updated_at: maybe_instant(row.updated_at_us)?,
        })
    });
    read.collect()
}
