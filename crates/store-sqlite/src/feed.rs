//! Revisions: what was changed when. Every commit enters what it changes within its own transaction.

use std::collections::BTreeSet;

use sqlx::SqliteConnection;
use store::encoding::{from_json, json, record_key_from_text, record_key_text};
use store::{Advance, Changes, Delta, KEPT_REVISIONS, RecordKey, Revision, StoreError};

use crate::columns::uuid;
use crate::error::unavailable;
use crate::load;

/// So many are forgotten together.
const FORGOTTEN_TOGETHER: u64 = 1000;

/// The last revision.
pub(crate) async fn last(db: &mut SqliteConnection) -> Result<Revision, StoreError> {
    let row = sqlx::query!("SELECT number, mark FROM change ORDER BY number DESC LIMIT 1");
    let row = row.fetch_one(db).await.map_err(unavailable)?;
    Ok(Revision { number: row.number.cast_unsigned(), mark: uuid(&row.mark)? })
}

/// Makes a revision in which these records are changed.
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

/// The same, if there are any.
pub(crate) async fn enter_some(
    db: &mut SqliteConnection,
    keys: &BTreeSet<RecordKey>,
) -> Result<Option<Advance>, StoreError> {
    if keys.is_empty() { Ok(None) } else { enter(db, keys).await.map(Some) }
}

/// What has changed since then, in one reading transaction.
///
/// Everything is loaded for it. Whoever has the file is the only one to write to it, and so knows what was
/// changed; this is for those who lost sight of it.
pub(crate) async fn since(db: &mut SqliteConnection, revision: Revision) -> Result<Changes, StoreError> {
    let Ok(number) = i64::try_from(revision.number) else { return Ok(Changes::Reload) };
    let rows = sqlx::query!("SELECT mark, keys FROM change WHERE number >= ? ORDER BY number", number);
    let mut rows = rows.fetch_all(&mut *db).await.map_err(unavailable)?.into_iter();
    let known = rows.next().map(|row| uuid(&row.mark)).transpose()?;
    if known != Some(revision.mark) {
        return Ok(Changes::Reload);
    }
    let mut changed = BTreeSet::new();
    for row in rows {
        for key in from_json::<Vec<String>>("keys of records", &row.keys)? {
            changed.insert(record_key_from_text(&key)?);
        }
    }
    if changed.is_empty() {
        let revision = last(db).await?;
        return Ok(Changes::Delta(Box::new(Delta { revision, ..Delta::default() })));
    }
    Ok(Changes::Delta(Box::new(Delta::of(changed, load::snapshot(db).await?))))
}
