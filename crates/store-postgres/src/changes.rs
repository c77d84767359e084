//! What has changed since a revision.

use std::collections::BTreeSet;

use sqlx::PgConnection;
use store::encoding::record_key_from_text;
use store::{Changes, Delta, Revision, StoreError};

use crate::columns::plain;
use crate::error::Trouble;
use crate::load::{self, Wanted};

/// What has changed since then, in a transaction that sees one instant.
pub(crate) async fn since(db: &mut PgConnection, revision: Revision) -> Result<Changes, Trouble> {
    let Ok(number) = i64::try_from(revision.number) else { return Ok(Changes::Reload) };
    let rows = sqlx::query!("SELECT mark, keys FROM change WHERE number >= $1 ORDER BY number", number);
    let mut rows = rows.fetch_all(&mut *db).await?.into_iter();
    if rows.next().map(|row| row.mark.as_u128()) != Some(revision.mark) {
        return Ok(Changes::Reload);
    }
    let mut changed = BTreeSet::new();
    for key in rows.flat_map(|row| row.keys) {
        changed.insert(record_key_from_text(&plain(key)).map_err(StoreError::from)?);
    }
    let snapshot = load::snapshot(db, Wanted::only(&changed)).await?;
    Ok(Changes::Delta(Box::new(Delta::of(changed, snapshot))))
}
