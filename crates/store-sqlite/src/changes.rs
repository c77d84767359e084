//! Changes since a revision.

use std::collections::BTreeSet;

use sqlx::SqliteConnection;
use store::encoding::{from_json, record_keys};
use store::{Changes, Delta, Revision, StoreError};

use crate::columns::uuid;
use crate::error::unavailable;
use crate::feed::last;
use crate::load;

/// Changes since `revision`, read in one transaction.
///
/// This loads all records. The service that has opened the file is its only writer and knows its own changes,
/// so it calls this only if the outcome of a commit was unknown.
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
        changed.extend(record_keys(from_json::<Vec<String>>("keys of records", &row.keys)?)?);
    }
    if changed.is_empty() {
        let revision = last(db).await?;
        return Ok(Changes::Delta(Box::new(Delta { revision, ..Delta::default() })));
    }
    Ok(Changes::Delta(Box::new(Delta::of(changed, load::snapshot(db).await?))))
}
