//! Loads records: a few queries over whole tables, or over the wanted records, joined in memory.

mod free_pools;
mod instances;
mod inventory;
mod leases;

use std::collections::BTreeSet;

use ::leases::plan::{Failures, History};
use sqlx::PgConnection;
use store::encoding::{action_from_key, action_key};
use store::{RecordKey, Snapshot};
use uuid::Uuid;

use crate::columns::{instant, number, plain, uuid};
use crate::error::TxError;
use crate::{documents, feed};

/// Records to read, by kind. `None` reads all records of the kind, an empty list reads no records.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    leases: Option<Vec<Uuid>>,
    free_pools: Option<Vec<Uuid>>,
    hosts: Option<Vec<i64>>,
    floating_ips: Option<Vec<Uuid>>,
    documents: Option<documents::Keys>,
    instances: Option<Vec<Uuid>>,
    steps: Option<Vec<String>>,
}

impl Wanted {
    pub(crate) const ALL: Self = Self {
        leases: None,
        free_pools: None,
        hosts: None,
        floating_ips: None,
        documents: None,
        instances: None,
        steps: None,
    };

    pub(crate) fn only(keys: &BTreeSet<RecordKey>) -> Self {
        let mut leases = Vec::new();
        let mut free_pools = Vec::new();
        let mut hosts = Vec::new();
        let mut floating_ips = Vec::new();
        let mut documents = Vec::new();
        let mut instances = Vec::new();
        let mut steps = Vec::new();
        for key in keys {
            match key {
                RecordKey::Lease(id) => leases.push(uuid(id.0)),
                RecordKey::FreePool(id) => free_pools.push(uuid(id.0)),
                RecordKey::Host(id) => hosts.push(id.0.cast_signed()),
                RecordKey::FloatingIp(id) => floating_ips.push(uuid(id.0)),
                RecordKey::Document(key) => documents.push(key),
                RecordKey::Instance(id) => instances.push(uuid(id.0)),
                RecordKey::Step(action) => steps.push(action_key(*action)),
            }
        }
        Self {
            leases: Some(leases),
            free_pools: Some(free_pools),
            hosts: Some(hosts),
            floating_ips: Some(floating_ips),
            documents: Some(documents::columns(&documents)),
            instances: Some(instances),
            steps: Some(steps),
        }
    }
}

/// Reads records. The caller's transaction must read from a single snapshot.
pub(crate) async fn snapshot(db: &mut PgConnection, wanted: Wanted) -> Result<Snapshot, TxError> {
    let mut snapshot = Snapshot { revision: feed::last(db).await?, ..Snapshot::default() };
    if is_any(wanted.free_pools.as_ref()) {
        snapshot.free_pools = free_pools::read(db, &wanted).await?;
    }
    if is_any(wanted.hosts.as_ref()) {
        snapshot.hosts = inventory::hosts(db, &wanted).await?;
    }
    if is_any(wanted.floating_ips.as_ref()) {
        snapshot.floating_ips = inventory::floating_ips(db, &wanted).await?;
    }
    if is_any(wanted.documents.as_ref().map(|(kinds, _)| kinds)) {
        documents::read(db, wanted.documents.as_ref(), &mut snapshot).await?;
    }
    if is_any(wanted.leases.as_ref()) {
        snapshot.leases = leases::read(db, &wanted).await?;
    }
    if is_any(wanted.instances.as_ref()) {
        snapshot.instances = instances::read(db, &wanted).await?;
    }
    if is_any(wanted.steps.as_ref()) {
        snapshot.history = history(db, &wanted).await?;
    }
    Ok(snapshot)
}

/// Whether records of a kind are wanted. Most changes affect a single kind, and even an empty query has a
/// cost.
fn is_any<T>(list: Option<&Vec<T>>) -> bool {
    list.is_none_or(|list| !list.is_empty())
}

async fn history(db: &mut PgConnection, wanted: &Wanted) -> Result<History, TxError> {
    let mut history = History::default();
    let rows = sqlx::query!(
        "SELECT step, times, last_at_us, message FROM step_failure WHERE $1::text[] IS NULL OR step = ANY($1)",
        wanted.steps.as_deref(),
    );
    for row in rows.fetch_all(&mut *db).await? {
        let (times, last_at) = (number(row.times)?, instant(row.last_at_us)?);
        let failures = Failures { times, last_at, message: plain(row.message) };
        history.failures.insert(action_from_key(&row.step)?, failures);
    }
    let rows = sqlx::query!(
        "SELECT step, at_us FROM step_success WHERE $1::text[] IS NULL OR step = ANY($1)",
        wanted.steps.as_deref(),
    );
    for row in rows.fetch_all(db).await? {
        history.done.insert(action_from_key(&row.step)?, instant(row.at_us)?);
    }
    Ok(history)
}
