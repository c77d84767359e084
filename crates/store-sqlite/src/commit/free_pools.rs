//! Free pools.

use ::leases::free_pool::FreePool;
use ::leases::ids::FreePoolId;
use sqlx::SqliteConnection;
use store::encoding::free_pool_json;
use store::{CommitError, FreePoolRecord, Version};

use crate::columns::us;
use crate::error::{exists, failed, refers};

/// Adds a free pool, or updates it if it has the expected version.
pub(super) async fn write(
    db: &mut SqliteConnection,
    record: &FreePoolRecord,
    expected: Option<Version>,
) -> Result<(), CommitError> {
    let id = record.pool.id;
    let row = id.0.to_be_bytes();
    let row = row.as_slice();
    let taken = sqlx::query_scalar!("SELECT version FROM free_pool WHERE id = ?", row);
    if taken.fetch_optional(&mut *db).await.map_err(failed)?
        != expected.map(|version| version.0.cast_signed())
    {
        return Err(CommitError::stale_free_pool(id));
    }
    let (version, document) = (record.version.0.cast_signed(), free_pool_json(&record.pool));
    let (created_at_us, updated_at_us) = (us(record.created_at), record.updated_at.map(us));
    let written = match expected.map(|version| version.0.cast_signed()) {
        None => {
            let insertion = sqlx::query!(
                "INSERT INTO free_pool (id, version, name, document, created_at_us, updated_at_us)
                 VALUES (?, ?, ?, ?, ?, ?)",
                row,
                version,
                record.pool.name,
                document,
                created_at_us,
                updated_at_us,
            );
            insertion.execute(db).await
        }
        Some(expected) => {
            let update = sqlx::query!(
                "UPDATE free_pool SET version = ?, name = ?, document = ?, updated_at_us = ?
                 WHERE id = ? AND version = ?",
                version,
                record.pool.name,
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
        Ok(_) => Err(CommitError::stale_free_pool(id)),
        Err(error) if exists(&error) => Err(CommitError::free_pool_exists(&record.pool.name)),
        Err(error) => Err(failed(error)),
    }
}

/// Removes a free pool that has the expected version and no hosts.
pub(super) async fn remove(
    db: &mut SqliteConnection,
    id: FreePoolId,
    expected: Version,
) -> Result<(), CommitError> {
    let expected = expected.0.cast_signed();
    let row = id.0.to_be_bytes();
    let row = row.as_slice();
    let deletion = sqlx::query!("DELETE FROM free_pool WHERE id = ? AND version = ?", row, expected);
    match deletion.execute(db).await {
        Ok(result) if result.rows_affected() == 1 => Ok(()),
        Ok(_) => Err(CommitError::stale_free_pool(id)),
        Err(error) if refers(&error) => Err(CommitError::free_pool_in_use(id)),
        Err(error) => Err(failed(error)),
    }
}

/// The column of a host's free pool; `None` for the default pool, which always exists.
pub(super) fn column(pool: FreePoolId) -> Option<Vec<u8>> {
    (pool != FreePool::DEFAULT).then(|| pool.0.to_be_bytes().to_vec())
}
