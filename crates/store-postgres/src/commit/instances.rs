//! Reads instances.

use ::leases::ids::GuestId;
use sqlx::PgConnection;
use store::encoding::instance_json;
use store::{CommitError, InstanceRecord, Version};

use crate::columns::{us, uuid};
use crate::error::TxError;

/// Adds an instance, or updates it if it has the expected version.
pub(super) async fn write(
    db: &mut PgConnection,
    record: &InstanceRecord,
    expected: Option<Version>,
) -> Result<(), TxError> {
    let id = record.instance.id;
    let (version, document) = (record.version.0.cast_signed(), instance_json(&record.instance));
    let (created_at_us, updated_at_us) = (us(record.created_at), record.updated_at.map(us));
    let written = match expected.map(|version| version.0.cast_signed()) {
        None => {
            let insertion = sqlx::query!(
                "INSERT INTO instance (id, version, document, created_at_us, updated_at_us)
                 VALUES ($1, $2, $3, $4, $5) ON CONFLICT (id) DO NOTHING",
                uuid(id.0),
                version,
                document,
                created_at_us,
                updated_at_us,
            );
            insertion.execute(db).await?
        }
        Some(expected) => {
            let update = sqlx::query!(
                "UPDATE instance SET version = $2, document = $3, updated_at_us = $4
                 WHERE id = $1 AND version = $5",
                uuid(id.0),
                version,
                document,
                updated_at_us,
                expected,
            );
            update.execute(db).await?
        }
    };
    if written.rows_affected() == 0 { Err(CommitError::stale_instance(id).into()) } else { Ok(()) }
}

/// Deletes an instance that has the expected version.
pub(super) async fn forget(db: &mut PgConnection, id: GuestId, expected: Version) -> Result<(), TxError> {
    let expected = expected.0.cast_signed();
    let deletion = sqlx::query!("DELETE FROM instance WHERE id = $1 AND version = $2", uuid(id.0), expected);
    match deletion.execute(db).await?.rows_affected() {
        0 => Err(CommitError::stale_instance(id).into()),
        _ => Ok(()),
    }
}
