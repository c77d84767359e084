//! Revisions and the records that changed in each. Every commit adds its revision within its own transaction.

use std::collections::BTreeSet;

use sqlx::SqliteConnection;
use store::encoding::{json, record_key_text};
use store::{Advance, KEPT_REVISIONS, RecordKey, Revision, StoreError};

use crate::columns::uuid;
use crate::error::unavailable;

/// Number of old revisions that are deleted together.
const FORGOTTEN_TOGETHER: u64 = 1000;

pub(crate) async fn last(db: &mut SqliteConnection) -> Result<Revision, StoreError> {
    let row = sqlx::query!("SELECT number, mark FROM change ORDER BY number DESC LIMIT 1");
    let row = row.fetch_one(db).await.map_err(unavailable)?;
    Ok(Revision { number: row.number.cast_unsigned(), mark: uuid(&row.mark)? })
}

/// Makes a revision in which these records changed.
pub(crate) async fn enter(
    db: &mut SqliteConnection,
    keys: &BTreeSet<RecordKey>,
) -> Result<Advance, StoreError> {
    let from = last(db).await?;
    let number = from.number + 1;
    let (row, keys) = (number.cast_signed(), json(&keys.iter().map(record_key_text).collect::<Vec<_>>()));
    let insertion = sqlx::query_scalar!(
        "INSERT INTO change (number, mark, keys) VALUES (?, randomblob(16), ?) RETURNING mark",
        row,
        keys,
    );
    let mark = uuid(&insertion.fetch_one(&mut *db).await.map_err(unavailable)?)?;
    if number % FORGOTTEN_TOGETHER == 0 {
        let oldest = number.saturating_sub(KEPT_REVISIONS).cast_signed();
        let deletion = sqlx::query!("DELETE FROM change WHERE number < ?", oldest);
        deletion.execute(db).await.map_err(unavailable)?;
    }
    Ok(Advance { from, to: Revision { number, mark } })
}

/// Like [`enter`], but makes no revision if no record changed.
pub(crate) async fn enter_some(
    db: &mut SqliteConnection,
    keys: &BTreeSet<RecordKey>,
) -> Result<Option<Advance>, StoreError> {
    if keys.is_empty() { Ok(None) } else { enter(db, keys).await.map(Some) }
}
