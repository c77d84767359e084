//! Reads free pools.

use ::leases::ids::FreePoolId;
use sqlx::PgConnection;
use store::encoding::free_pool_json;
use store::{CommitError, FreePoolRecord, Version};

use crate::columns::{text, us, uuid};
use crate::error::{TxError, exists, refers};

/// Adds a free pool, or updates it if it has the expected version.
pub(super) async fn write(
    db: &mut PgConnection,
    record: &FreePoolRecord,
    expected: Option<Version>,
) -> Result<(), TxError> {
    let id = record.pool.id;
    let row = uuid(id.0);
    let taken = sqlx::query_scalar!("SELECT version FROM free_pool WHERE id = $1", row);
    if taken.fetch_optional(&mut *db).await? != expected.map(|version| version.0.cast_signed()) {
        return Err(CommitError::stale_free_pool(id).into());
    }
    let (version, document) = (record.version.0.cast_signed(), free_pool_json(&record.pool));
    let (created_at_us, updated_at_us) = (us(record.created_at), record.updated_at.map(us));
    let written = match expected.map(|version| version.0.cast_signed()) {
        None => {
            let insertion = sqlx::query!(
                "INSERT INTO free_pool (id, version, name, document, created_at_us, updated_at_us)
                 VALUES ($1, $2, $3, $4, $5, $6)",
                row,
                version,
                &text(&record.pool.name),
                document,
                created_at_us,
                updated_at_us,
            );
            insertion.execute(db).await
        }
        Some(expected) => {
            let update = sqlx::query!(
                "UPDATE free_pool SET version = $1, name = $2, document = $3, updated_at_us = $4
                 WHERE id = $5 AND version = $6",
                version,
                &text(&record.pool.name),
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
        Ok(_) => Err(CommitError::stale_free_pool(id).into()),
        Err(error) if exists(&error) => Err(CommitError::free_pool_exists(&record.pool.name).into()),
        Err(error) => Err(error.into()),
    }
}

/// Removes a free pool that has the expected version and no hosts.
pub(super) async fn remove(db: &mut PgConnection, id: FreePoolId, expected: Version) -> Result<(), TxError> {
    let expected = expected.0.cast_signed();
    let row = uuid(id.0);
    let deletion = sqlx::query!("DELETE FROM free_pool WHERE id = $1 AND version = $2", row, expected);
    match deletion.execute(db).await {
        Ok(result) if result.rows_affected() == 1 => Ok(()),
        Ok(_) => Err(CommitError::stale_free_pool(id).into()),
        Err(error) if refers(&error) => Err(CommitError::free_pool_in_use(id).into()),
        Err(error) => Err(error.into()),
    }
}
