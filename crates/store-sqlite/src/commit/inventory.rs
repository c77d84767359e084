//! Hosts and floating IPs, and dispatch of all other records.

use ::leases::host::Host;
use ::leases::ids::{FloatingIpId, HostId};
use sqlx::SqliteConnection;
use store::booking::Subject;
use store::encoding::{amounts, health_name, json, power_json};
use store::{CommitError, FloatingIpRecord, HostRecord, StoreError, Version, Write};

use super::{free_pools, instances};
use crate::columns::{capacity, us};
use crate::documents;
use crate::error::{Refusal, exists, failed, refers, refusal};

/// Writes a record that isn't a lease.
pub(super) async fn write(db: &mut SqliteConnection, write: &Write) -> Result<(), CommitError> {
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
    db: &mut SqliteConnection,
    record: &HostRecord,
    expected: Option<Version>,
) -> Result<(), CommitError> {
    let id = record.host.id.0.cast_signed();
    let found = sqlx::query_scalar!("SELECT version FROM host WHERE id = ?", id);
    let found = found.fetch_optional(&mut *db).await.map_err(failed)?;
    if found != expected.map(|version| version.0.cast_signed()) {
        return Err(CommitError::stale_host(record.host.id));
    }
    let written = write_host_row(db, record).await;
    written.map_err(|error| {
        if exists(&error) {
            CommitError::host_exists(&record.host.name)
        } else if refers(&error) {
            CommitError::stale_free_pool(record.host.pool)
        } else {
            failed(error)
        }
    })?;
    write_capacity(db, &record.host).await.map_err(failed)
}

async fn write_host_row(db: &mut SqliteConnection, record: &HostRecord) -> Result<(), sqlx::Error> {
    let host = &record.host;
    let (id, version) = (host.id.0.cast_signed(), record.version.0.cast_signed());
    let (traits, capabilities) = (json(&host.traits), json(&host.capabilities));
    let (hypervisor_version, health) = (host.hypervisor_version.cast_signed(), health_name(host.health));
    let (created_at_us, updated_at_us) = (us(record.created_at), record.updated_at.map(us));
    let (pool, power) = (free_pools::column(host.pool), power_json(&host.power));
    let write = sqlx::query!(
        "INSERT INTO host (
             id, version, name, service_name, traits, cpu_info, hypervisor_type, hypervisor_version,
             availability_zone, capabilities, reservable, health, created_at_us, updated_at_us, free_pool,
             power
         ) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
         ON CONFLICT (id) DO UPDATE SET
             version = ?2, name = ?3, service_name = ?4, traits = ?5, cpu_info = ?6, hypervisor_type = ?7,
             hypervisor_version = ?8, availability_zone = ?9, capabilities = ?10, reservable = ?11,
             health = ?12, created_at_us = ?13, updated_at_us = ?14, free_pool = ?15, power = ?16",
        id,
        version,
        host.name,
        host.service_name,
        traits,
        host.cpu_info,
        host.hypervisor_type,
        hypervisor_version,
        host.availability_zone,
        capabilities,
        host.reservable,
        health,
        created_at_us,
        updated_at_us,
        pool,
        power,
    );
    write.execute(db).await?;
    Ok(())
}

async fn write_capacity(db: &mut SqliteConnection, host: &Host) -> Result<(), sqlx::Error> {
    let id = host.id.0.cast_signed();
    sqlx::query!("DELETE FROM host_capacity WHERE host = ?", id).execute(&mut *db).await?;
    for (class, amount) in amounts(&host.capacity()) {
        let amount = capacity(amount);
        let insertion = sqlx::query!(
            "INSERT INTO host_capacity (host, class, amount) VALUES (?, ?, ?)",
            id,
            class,
            amount,
        );
        insertion.execute(&mut *db).await?;
    }
    Ok(())
}

async fn remove_host(db: &mut SqliteConnection, id: HostId, expected: Version) -> Result<(), CommitError> {
    let (row, expected) = (id.0.cast_signed(), expected.0.cast_signed());
    let deletion = sqlx::query!("DELETE FROM host WHERE id = ? AND version = ?", row, expected);
    removed(deletion.execute(db).await, Subject::Host(id))
}

/// No deleted row means that the host or address had already been removed.
fn removed(
    result: Result<sqlx::sqlite::SqliteQueryResult, sqlx::Error>,
    subject: Subject,
) -> Result<(), CommitError> {
    match result {
        Ok(result) if result.rows_affected() == 0 => Err(CommitError::stale_subject(subject)),
        Ok(_) => Ok(()),
        Err(error) if refusal(&error) == Some(Refusal::InUse) => Err(CommitError::in_use(subject)),
        Err(error) => Err(failed(error)),
    }
}

async fn add_floating_ip(db: &mut SqliteConnection, record: &FloatingIpRecord) -> Result<(), CommitError> {
    let ip = &record.floating_ip;
    let (id, address, created_at_us) = (ip.id.0.to_be_bytes(), ip.address.to_string(), us(record.created_at));
    let id = id.as_slice();
    let insertion = sqlx::query!(
        "INSERT INTO floating_ip (id, network, address, subnet, reservable, created_at_us)
         VALUES (?, ?, ?, ?, ?, ?)",
        id,
        ip.network.0,
        address,
        record.subnet,
        ip.reservable,
        created_at_us,
    );
    match insertion.execute(db).await {
        Ok(_) => Ok(()),
        Err(error) if exists(&error) => Err(CommitError::floating_ip_exists(ip)),
        Err(error) => Err(failed(error)),
    }
}

async fn remove_floating_ip(db: &mut SqliteConnection, id: FloatingIpId) -> Result<(), CommitError> {
    let row = id.0.to_be_bytes();
    let row = row.as_slice();
    let deletion = sqlx::query!("DELETE FROM floating_ip WHERE id = ?", row);
    removed(deletion.execute(db).await, Subject::FloatingIp(id))
}
