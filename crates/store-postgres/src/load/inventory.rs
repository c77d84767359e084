//! Reads hosts and floating IPs.

use std::collections::HashMap;

use ::leases::attributes::Attributes;
use ::leases::free_pool::FreePool;
use ::leases::host::{FloatingIp, Host, NetworkId};
use ::leases::ids::{FloatingIpId, FreePoolId, HostId};
use ::leases::resources::Resources;
use sqlx::PgConnection;
use store::encoding::{from_json, health_from_name, named, power_from_json};
use store::{FloatingIpRecord, HostRecord, Version};

use super::Wanted;
use crate::columns::{instant, maybe_instant, number, plain};
use crate::error::TxError;

pub(super) async fn hosts(db: &mut PgConnection, wanted: &Wanted) -> Result<Vec<HostRecord>, TxError> {
    let mut capacities = capacities(db, wanted).await?;
    let rows = sqlx::query!(
        "SELECT id, version, name, service_name, traits, cpu_info, hypervisor_type, hypervisor_version,
             availability_zone, capabilities, reservable, health, created_at_us,
             updated_at_us, free_pool, power
         FROM host WHERE $1::bigint[] IS NULL OR id = ANY($1) ORDER BY id",
        wanted.hosts.as_deref(),
    );
    let rows = rows.fetch_all(db).await?;
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
                pool: row.free_pool.map_or(FreePool::DEFAULT, |id| FreePoolId(id.as_u128())),
                name: plain(row.name),
                service_name: plain(row.service_name),
                vcpus: number(vcpus)?,
                memory_mib: number(memory_mib)?,
                disk_gib: number(disk_gib)?,
                other_resources: capacity.other,
                traits: from_json("traits", &row.traits)?,
                cpu_info: plain(row.cpu_info),
                hypervisor_type: plain(row.hypervisor_type),
                hypervisor_version: row.hypervisor_version.cast_unsigned(),
                availability_zone: plain(row.availability_zone),
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

async fn capacities(db: &mut PgConnection, wanted: &Wanted) -> Result<HashMap<i64, Resources>, TxError> {
    let mut capacities: HashMap<i64, Resources> = HashMap::new();
    let rows = sqlx::query!(
        "SELECT host, class, amount FROM host_capacity WHERE $1::bigint[] IS NULL OR host = ANY($1)",
        wanted.hosts.as_deref(),
    );
    for row in rows.fetch_all(db).await? {
        capacities.entry(row.host).or_default().set(&plain(row.class), number(row.amount)?);
    }
    Ok(capacities)
}

pub(super) async fn floating_ips(
    db: &mut PgConnection,
    wanted: &Wanted,
) -> Result<Vec<FloatingIpRecord>, TxError> {
    let rows = sqlx::query!(
        "SELECT id, network, address, subnet, reservable, created_at_us
         FROM floating_ip WHERE $1::uuid[] IS NULL OR id = ANY($1) ORDER BY id",
        wanted.floating_ips.as_deref(),
    );
    let rows = rows.fetch_all(db).await?;
    let read = rows.into_iter().map(|row| {
        Ok(FloatingIpRecord {
            floating_ip: FloatingIp {
                id: FloatingIpId(row.id.as_u128()),
                network: NetworkId(plain(row.network)),
                address: named("address", &row.address, |address| address.parse().ok())?,
                reservable: row.reservable,
            },
            subnet: plain(row.subnet),
            created_at: instant(row.created_at_us)?,
        })
    });
    read.collect()
}
