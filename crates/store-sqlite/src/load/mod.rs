//! Loads all records: a few queries over whole tables, joined in memory.

mod free_pools;
mod instances;
mod inventory;
mod leases;

use ::leases::plan::{Failures, History};
use sqlx::SqliteConnection;
use store::encoding::action_from_key;
use store::{Snapshot, StoreError};

use crate::columns::{instant, number};
use crate::error::unavailable;
use crate::{documents, feed};

/// Reads all records in one transaction, so that they are consistent.
pub(crate) async fn snapshot(db: &mut SqliteConnection) -> Result<Snapshot, StoreError> {
    let mut snapshot = Snapshot {
        revision: feed::last(db).await?,
        free_pools: free_pools::read(db).await?,
        hosts: inventory::hosts(db).await?,
        floating_ips: inventory::floating_ips(db).await?,
        leases: leases::read(db).await?,
        instances: instances::read(db).await?,
        history: history(db).await?,
        ..Snapshot::default()
    };
    documents::read(db, &mut snapshot).await?;
    Ok(snapshot)
}

async fn history(db: &mut SqliteConnection) -> Result<History, StoreError> {
    let mut history = History::default();
    let rows = sqlx::query!("SELECT step, times, last_at_us, message FROM step_failure");
    for row in rows.fetch_all(&mut *db).await.map_err(unavailable)? {
        let failures =
            Failures { times: number(row.times)?, last_at: instant(row.last_at_us)?, message: row.message };
        history.failures.insert(action_from_key(&row.step)?, failures);
    }
    let rows = sqlx::query!("SELECT step, at_us FROM step_success");
    for row in rows.fetch_all(&mut *db).await.map_err(unavailable)? {
        history.done.insert(action_from_key(&row.step)?, instant(row.at_us)?);
    }
    Ok(history)
}
