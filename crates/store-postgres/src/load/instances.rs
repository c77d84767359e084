//! Reads instances.

use ::leases::ids::GuestId;
use sqlx::PgConnection;
use store::encoding::instance_from_json;
use store::{InstanceRecord, Version};

use super::Wanted;
use crate::columns::{instant, maybe_instant};
use crate::error::TxError;

pub(super) async fn read(db: &mut PgConnection, wanted: &Wanted) -> Result<Vec<InstanceRecord>, TxError> {
    let rows = sqlx::query!(
        "SELECT id, version, document, created_at_us, updated_at_us
         FROM instance WHERE $1::uuid[] IS NULL OR id = ANY($1) ORDER BY id",
        wanted.instances.as_deref(),
    );
    let rows = rows.fetch_all(db).await?;
    let read = rows.into_iter().map(|row| {
        Ok(InstanceRecord {
            instance: instance_from_json(GuestId(row.id.as_u128()), &row.document)?,
            version: Version(row.version.cast_unsigned()),
            created_at: instant(row.created_at_us)?,
            updated_at: maybe_instant(row.updated_at_us)?,
        })
    });
    read.collect()
}
