//! Reads hosts and floating IPs.

use std::collections::HashMap;

use ::leases::attributes::Attributes;
use ::leases::free_pool::FreePool;
use ::leases::host::{FloatingIp, Host, NetworkId};
use ::leases::ids::{FloatingIpId, FreePoolId, HostId};
use ::leases::resources::Resources;
use sqlx::SqliteConnection;
use store::encoding::{from_json, health_from_name, named, power_from_json};
use store::{FloatingIpRecord, HostRecord, StoreError, Version};

use crate::columns::{instant, maybe_instant, number, uuid};
use crate::error::unavailable;

pub(super) async fn hosts(db: &mut SqliteConnection) -> Result<Vec<HostRecord>, StoreError> {
    let mut capacities = capacities(db).await?;
    let rows = sqlx::query!(
        r#"SELECT id, version, name, service_name, traits, cpu_info, hypervisor_type, hypervisor_version,
             availability_zone, capabilities, reservable AS "reservable: bool", health, created_at_us,
             updated_at_us, free_pool, power
         FROM host ORDER BY id"#
    );
    let rows = rows.fetch_all(db).await.map_err(unavailable)?;
    let read = rows.into_iter().map(|row| {
        let capacity = capacities.remove(&row.id).unwrap_or_default();
        let (vcpus, memory_mib, disk_gib) = (
            capacity.vcpus.cast_signed(),
            capacity.memory_mib.cast_signed(),
            capacity.disk_gib.cast_signed(),
        );
        Ok(HostRecord {
            host: Host {
                id: HostId(row.id.cast_unsigned()),
                pool: row.free_pool.map_or(Ok(FreePool::DEFAULT), |id| uuid(&id).map(FreePoolId))?,
                name: row.name,
                service_name: row.service_name,
                vcpus: number(vcpus)?,
                memory_mib: number(memory_mib)?,
                disk_gib: number(disk_gib)?,
                other_resources: capacity.other,
                traits: from_json("traits", &row.traits)?,
                cpu_info: row.cpu_info,
                hypervisor_type: row.hypervisor_type,
                hypervisor_version: row.hypervisor_version.cast_unsigned(),
                availability_zone: row.availability_zone,
                capabilities: from_json("capabilities", &row.capabilities)?,
                attributes: Attributes::default(),
                reservable: row.reservable,
                health: named("health", &row.health, health_from_name)?,
                power: power_from_json(row.power.as_deref())?,
            },
            version: Version(row.version.cast_unsigned()),
            created_at: instant(row.created_at_us)?,
            updated_at: maybe_instant(row.updated_at_us)?,
        })
    });
    read.collect()
}

async fn capacities(db: &mut SqliteConnection) -> Result<HashMap<i64, Resources>, StoreError> {
    let mut capacities: HashMap<i64, Resources> = HashMap::new();
    let rows = sqlx::query!("SELECT host, class, amount FROM host_capacity");
    for row in rows.fetch_all(db).await.map_err(unavailable)? {
        capacities.entry(row.host).or_default().set(&row.class, number(row.amount)?);
    }
    Ok(capacities)
}

pub(super) async fn floating_ips(db: &mut SqliteConnection) -> Result<Vec<FloatingIpRecord>, StoreError> {
    let rows = sqlx::query!(
        r#"SELECT id, network, address, subnet, reservable AS "reservable: bool", created_at_us
         FROM floating_ip ORDER BY id"#
    );
    let rows = rows.fetch_all(db).await.map_err(unavailable)?;
    let read = rows.into_iter().map(|row| {
        Ok(FloatingIpRecord {
            floating_ip: FloatingIp {
                id: FloatingIpId(uuid(&row.id)?),
                network: NetworkId(row.network),
                address: named("address", &row.address, |address| address.parse().ok())?,
                reservable: row.reservable,
            },
            subnet: row.subnet,
            created_at: instant(row.created_at_us)?,
        })
    });
    read.collect()
}
