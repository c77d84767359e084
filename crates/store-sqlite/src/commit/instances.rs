//! Reads instances.

use ::leases::ids::GuestId;
use sqlx::SqliteConnection;
use store::encoding::instance_json;
use store::{CommitError, InstanceRecord, Version};

use crate::columns::us;
use crate::error::{exists, failed};

/// Adds an instance, or updates it if it has the expected version.
pub(super) async fn write(
    db: &mut SqliteConnection,
    record: &InstanceRecord,
    expected: Option<Version>,
) -> Result<(), CommitError> {
    let id = record.instance.id;
    let row = id.0.to_be_bytes();
    let (row, document) = (row.as_slice(), instance_json(&record.instance));
    let (version, created_at_us) = (record.version.0.cast_signed(), us(record.created_at));
    let updated_at_us = record.updated_at.map(us);
    let written = match expected.map(|version| version.0.cast_signed()) {
        None => {
            let insertion = sqlx::query!(
                "INSERT INTO instance (id, version, document, created_at_us, updated_at_us)
                 VALUES (?, ?, ?, ?, ?)",
                row,
                version,
                document,
                created_at_us,
                updated_at_us,
            );
            insertion.execute(db).await
        }
        Some(expected) => {
            let update = sqlx::query!(
                "UPDATE instance SET version = ?, document = ?, updated_at_us = ? WHERE id = ? AND version = ?",
                version,
                document,
                updated_at_us,
                row,
                expected,
            );
            update.execute(db).await
        }
    };
    match written {
        Ok(result) if result.rows_affected() == 1 => Ok(()),
        Ok(_) => Err(CommitError::stale_instance(id)),
        Err(error) if exists(&error) => Err(CommitError::stale_instance(id)),
        Err(error) => Err(failed(error)),
    }
}

/// Deletes an instance that has the expected version.
pub(super) async fn forget(
    db: &mut SqliteConnection,
    id: GuestId,
    expected: Version,
) -> Result<(), CommitError> {
    let row = id.0.to_be_bytes();
    let (row, expected) = (row.as_slice(), expected.0.cast_signed());
    let deletion = sqlx::query!("DELETE FROM instance WHERE id = ? AND version = ?", row, expected);
    match deletion.execute(db).await.map_err(failed)?.rows_affected() {
        0 => Err(CommitError::stale_instance(id)),
        _ => Ok(()),
    }
}
