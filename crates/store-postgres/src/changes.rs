//! Changes since a revision.

use sqlx::PgConnection;
use store::encoding::record_keys;
use store::{Changes, Delta, Revision};

use crate::columns::plain;
use crate::error::TxError;
use crate::load::{self, Wanted};

/// Changes since `revision`. The caller's transaction must read from a single snapshot.
pub(crate) async fn since(db: &mut PgConnection, revision: Revision) -> Result<Changes, TxError> {
    let Ok(number) = i64::try_from(revision.number) else { return Ok(Changes::Reload) };
    let rows = sqlx::query!("SELECT mark, keys FROM change WHERE number >= $1 ORDER BY number", number);
    let mut rows = rows.fetch_all(&mut *db).await?.into_iter();
    if rows.next().map(|row| row.mark.as_u128()) != Some(revision.mark) {
        return Ok(Changes::Reload);
    }
    let changed = record_keys(rows.flat_map(|row| row.keys).map(plain))?;
    let snapshot = load::snapshot(db, Wanted::only(&changed)).await?;
    Ok(Changes::Delta(Box::new(Delta::of(changed, snapshot))))
}
