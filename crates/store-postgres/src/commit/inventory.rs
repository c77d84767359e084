//! Hosts and floating IPs, and dispatch of all other records.

use ::leases::free_pool::FreePool;
use ::leases::host::Host;
use ::leases::ids::{FloatingIpId, HostId};
use sqlx::PgConnection;
use store::booking::Subject;
use store::encoding::{amounts, health_name, json, power_json};
use store::{CommitError, FloatingIpRecord, HostRecord, StoreError, Version, Write};

use super::{free_pools, instances};
use crate::columns::{capacity, text, us, uuid};
use crate::documents;
use crate::error::{Refusal, TxError, exists, refers, refusal};

/// Writes a record that isn't a lease.
pub(super) async fn write(db: &mut PgConnection, write: &Write) -> Result<(), TxError> {
    if let Some(change) = write.document() {
        return documents::write(db, &change).await;
    }
    match write {
        Write::FreePool { record, expected } => free_pools::write(db, record, *expected).await,
        Write::RemoveFreePool { id, expected } => free_pools::remove(db, *id, *expected).await,
        Write::Host { record, expected } => write_host(db, record, *expected).await,
        Write::RemoveHost { id, expected } => remove_host(db, *id, *expected).await,
        Write::AddFloatingIp(record) => add_floating_ip(db, record).await,
        Write::RemoveFloatingIp(id) => remove_floating_ip(db, *id).await,
        Write::Instance { record, expected } => instances::write(db, record, *expected).await,
        Write::ForgetInstance { id, expected } => instances::forget(db, *id, *expected).await,
        // Leases were written before.
        Write::Lease { .. } | Write::ForgetLease { .. } => Ok(()),
        other => Err(StoreError::no_place_for(other).into()),
    }
}

async fn write_host(
    db: &mut PgConnection,
    record: &HostRecord,
    expected: Option<Version>,
) -> Result<(), TxError> {
    // Other writers of this host wait for its lock, which is already held if the host exists.
    let id = record.host.id.0.cast_signed();
    let found = sqlx::query_scalar!("SELECT version FROM host WHERE id = $1", id);
    let found = found.fetch_optional(&mut *db).await?;
    if found != expected.map(|version| version.0.cast_signed()) {
        return Err(CommitError::stale_host(record.host.id).into());
    }
    match write_host_row(db, record, expected).await {
        Ok(0) => return Err(CommitError::stale_host(record.host.id).into()),
        Ok(_) => {}
        Err(error) if exists(&error) => return Err(CommitError::host_exists(&record.host.name).into()),
        Err(error) if refers(&error) => return Err(CommitError::stale_free_pool(record.host.pool).into()),
        Err(error) => return Err(error.into()),
    }
    Ok(write_capacity(db, &record.host).await?)
}

/// Returns the number of rows written; 0 if another transaction created the host at the same time.
async fn write_host_row(
    db: &mut PgConnection,
    record: &HostRecord,
    expected: Option<Version>,
) -> Result<u64, sqlx::Error> {
    let host = &record.host;
    let (id, version) = (host.id.0.cast_signed(), record.version.0.cast_signed());
    let (traits, capabilities) = (json(&host.traits), json(&host.capabilities));
    let (hypervisor_version, health) = (host.hypervisor_version.cast_signed(), health_name(host.health));
    let (created_at_us, updated_at_us) = (us(record.created_at), record.updated_at.map(us));
    let write = sqlx::query!(
        "INSERT INTO host (
             id, version, name, service_name, traits, cpu_info, hypervisor_type, hypervisor_version,
             availability_zone, capabilities, reservable, health, created_at_us, updated_at_us, free_pool,
             power
         ) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $16, $17)
         ON CONFLICT (id) DO UPDATE SET
             version = $2, name = $3, service_name = $4, traits = $5, cpu_info = $6, hypervisor_type = $7,
             hypervisor_version = $8, availability_zone = $9, capabilities = $10, reservable = $11,
             health = $12, created_at_us = $13, updated_at_us = $14, free_pool = $16, power = $17
         WHERE host.version = $15",
        id,
        version,
        &text(&host.name),
        &text(&host.service_name),
        traits,
        &text(&host.cpu_info),
        &text(&host.hypervisor_type),
        hypervisor_version,
        &text(&host.availability_zone),
        capabilities,
        host.reservable,
        health,
        created_at_us,
        updated_at_us,
        expected.map(|version| version.0.cast_signed()),
        (host.pool != FreePool::DEFAULT).then(|| uuid(host.pool.0)),
        power_json(&host.power),
    );
    Ok(write.execute(db).await?.rows_affected())
}

async fn write_capacity(db: &mut PgConnection, host: &Host) -> Result<(), sqlx::Error> {
    let id = host.id.0.cast_signed();
    sqlx::query!("DELETE FROM host_capacity WHERE host = $1", id).execute(&mut *db).await?;
    let resources = host.capacity();
    let (classes, amounts): (Vec<String>, Vec<i64>) =
        amounts(&resources).map(|(class, amount)| (text(class).into_owned(), capacity(amount))).unzip();
    let insertion = sqlx::query!(
        "INSERT INTO host_capacity (host, class, amount)
         SELECT $1, class, amount FROM unnest($2::text[], $3::bigint[]) AS of_host (class, amount)",
        id,
        &classes,
        &amounts,
    );
    insertion.execute(db).await?;
    Ok(())
}

async fn remove_host(db: &mut PgConnection, id: HostId, expected: Version) -> Result<(), TxError> {
    let (row, expected) = (id.0.cast_signed(), expected.0.cast_signed());
    let deletion = sqlx::query!("DELETE FROM host WHERE id = $1 AND version = $2", row, expected);
    removed(deletion.execute(db).await, Subject::Host(id))
}

/// No deleted row means that another transaction has already removed the host or address.
fn removed(
    result: Result<sqlx::postgres::PgQueryResult, sqlx::Error>,
    subject: Subject,
) -> Result<(), TxError> {
    match result {
        Ok(result) if result.rows_affected() == 0 => Err(CommitError::stale_subject(subject).into()),
        Ok(_) => Ok(()),
        Err(error) if refusal(&error) == Some(Refusal::InUse) => Err(CommitError::in_use(subject).into()),
        Err(error) => Err(error.into()),
    }
}

async fn add_floating_ip(db: &mut PgConnection, record: &FloatingIpRecord) -> Result<(), TxError> {
    let ip = &record.floating_ip;
    let (id, address, created_at_us) = (uuid(ip.id.0), ip.address.to_string(), us(record.created_at));
    let insertion = sqlx::query!(
        "INSERT INTO floating_ip (id, network, address, subnet, reservable, created_at_us)
         VALUES ($1, $2, $3, $4, $5, $6)",
        id,
        &text(&ip.network.0),
        address,
        &text(&record.subnet),
        ip.reservable,
        created_at_us,
    );
    match insertion.execute(db).await {
        Ok(_) => Ok(()),
        Err(error) if exists(&error) => Err(CommitError::floating_ip_exists(ip).into()),
        Err(error) => Err(error.into()),
    }
}

async fn remove_floating_ip(db: &mut PgConnection, id: FloatingIpId) -> Result<(), TxError> {
    let deletion = sqlx::query!("DELETE FROM floating_ip WHERE id = $1", uuid(id.0));
    removed(deletion.execute(db).await, Subject::FloatingIp(id))
}
