//! Leases. Tables are read whole and joined here: with a hundred thousand leases, nothing else is quick.

use std::collections::{BTreeMap, HashMap};

use ::leases::ids::{FloatingIpId, HostId, LeaseId, ReservationId};
use ::leases::lease::{Allocation, EventStatuses, Lease, Reservation};
use ::leases::project::{Owner, ProjectId, UserId};
use ::leases::status::{EventStatus, LeaseStatus, ReservationStatus};
use ::leases::terms::ReservationTerms;
use futures::TryStreamExt;
use sqlx::SqliteConnection;
use store::encoding::{end_action_from_name, from_json, named, terms_from_json};
use store::{LeaseRecord, StoreError, Version, Wording};

use crate::columns::{instant, maybe_instant, uuid, window};
use crate::error::unavailable;

/// A reservation, by its lease and itself.
type Key = (LeaseId, ReservationId);

pub(super) async fn read(db: &mut SqliteConnection) -> Result<Vec<LeaseRecord>, StoreError> {
    let mut given = allocations(db).await?;
    let mut reservations = reservations(db, &mut given).await?;
    let mut rows = sqlx::query!(
        "SELECT id, version, name, project, user_id, starts_us, ends_us, before_end_us, end_action, status,
             start_event, before_end_event, end_event, reason, created_at_us, updated_at_us
         FROM lease ORDER BY id"
    )
    .fetch(db);
    let mut records = Vec::new();
    while let Some(row) = rows.try_next().await.map_err(unavailable)? {
        let id = LeaseId(uuid(&row.id)?);
        let event = |name: &str| named("event status", name, EventStatus::from_name);
        let OfLease { reservations, wording } = reservations.remove(&id).unwrap_or_default();
        let lease = Lease {
            id,
            name: row.name,
            owner: Owner { project: ProjectId(row.project), user: UserId(row.user_id) },
            window: window(row.starts_us, row.ends_us)?,
            before_end: maybe_instant(row.before_end_us)?,
            end_action: named("end action", &row.end_action, end_action_from_name)?,
            reservations: reservations.into_values().collect(),
            status: named("lease status", &row.status, LeaseStatus::from_name)?,
            events: EventStatuses {
                start: event(&row.start_event)?,
                before_end: event(&row.before_end_event)?,
                end: event(&row.end_event)?,
            },
            reason: row.reason,
        };
        records.push(LeaseRecord {
            lease,
            wording,
            version: Version(row.version.cast_unsigned()),
            created_at: instant(row.created_at_us)?,
            updated_at: maybe_instant(row.updated_at_us)?,
        });
    }
    Ok(records)
}

/// What belongs to a lease.
#[derive(Default)]
struct OfLease {
    /// By position.
    reservations: BTreeMap<i64, Reservation>,
    wording: BTreeMap<ReservationId, Wording>,
}

async fn reservations(
    db: &mut SqliteConnection,
    given: &mut HashMap<Key, Given>,
) -> Result<HashMap<LeaseId, OfLease>, StoreError> {
    let mut of_leases: HashMap<LeaseId, OfLease> = HashMap::new();
    let mut rows = sqlx::query!(
        r#"SELECT lease, id, position, terms, status, missing_resources AS "missing_resources: bool",
             resources_changed AS "resources_changed: bool", hypervisor_properties, resource_properties
         FROM reservation"#
    )
    .fetch(db);
    while let Some(row) = rows.try_next().await.map_err(unavailable)? {
        let key = (LeaseId(uuid(&row.lease)?), ReservationId(uuid(&row.id)?));
        let of_lease = of_leases.entry(key.0).or_default();
        let terms = terms_from_json(&row.terms)?;
        let reservation = Reservation {
            id: key.1,
            allocation: given.remove(&key).unwrap_or_default().allocation(&terms),
            terms,
            status: named("reservation status", &row.status, ReservationStatus::from_name)?,
            missing_resources: row.missing_resources,
            resources_changed: row.resources_changed,
        };
        of_lease.reservations.insert(row.position, reservation);
        let wording = Wording {
            hypervisor_properties: row.hypervisor_properties,
            resource_properties: row.resource_properties,
        };
        if wording != Wording::default() {
            of_lease.wording.insert(key.1, wording);
        }
    }
    Ok(of_leases)
}

/// What a reservation was given.
#[derive(Default)]
struct Given {
    hosts: Vec<HostId>,
    slots: Vec<(HostId, u32)>,
    floating_ips: Vec<FloatingIpId>,
}

impl Given {
    /// As the terms have it.
    fn allocation(self, terms: &ReservationTerms) -> Allocation {
        match terms {
            ReservationTerms::Hosts(_) => Allocation::Hosts(self.hosts.into_iter().collect()),
            ReservationTerms::Instances(_) | ReservationTerms::Flavor(_) => {
                Allocation::Slots(self.slots.into_iter().collect())
            }
            ReservationTerms::FloatingIps(_) => {
                Allocation::FloatingIps(self.floating_ips.into_iter().collect())
            }
        }
    }
}

/// Hosts and slots come as one list for each reservation: there are many, and a row costs more than a number.
async fn allocations(db: &mut SqliteConnection) -> Result<HashMap<Key, Given>, StoreError> {
    let key = |lease: &[u8], reservation: &[u8]| -> Result<Key, StoreError> {
        Ok((LeaseId(uuid(lease)?), ReservationId(uuid(reservation)?)))
    };
    let mut given: HashMap<Key, Given> = HashMap::new();
    let rows = sqlx::query!(
        r#"SELECT lease, reservation, json_group_array(host) AS "hosts!: String"
         FROM host_allocation GROUP BY lease, reservation"#
    );
    let mut rows = rows.fetch(&mut *db);
    while let Some(row) = rows.try_next().await.map_err(unavailable)? {
        let hosts: Vec<i64> = from_json("hosts", &row.hosts)?;
        let hosts = hosts.into_iter().map(|host| HostId(host.cast_unsigned())).collect();
        given.entry(key(&row.lease, &row.reservation)?).or_default().hosts = hosts;
    }
    drop(rows);
    let rows = sqlx::query!(
        r#"SELECT lease, reservation, json_group_array(json_array(host, slots)) AS "slots!: String"
         FROM slot_allocation GROUP BY lease, reservation"#
    );
    let mut rows = rows.fetch(&mut *db);
    while let Some(row) = rows.try_next().await.map_err(unavailable)? {
        let slots: Vec<(i64, u32)> = from_json("slots", &row.slots)?;
        let slots = slots.into_iter().map(|(host, count)| (HostId(host.cast_unsigned()), count)).collect();
        given.entry(key(&row.lease, &row.reservation)?).or_default().slots = slots;
    }
    drop(rows);
    let rows = sqlx::query!("SELECT lease, reservation, floating_ip FROM floating_ip_allocation");
    for row in rows.fetch_all(&mut *db).await.map_err(unavailable)? {
        let ip = FloatingIpId(uuid(&row.floating_ip)?);
        given.entry(key(&row.lease, &row.reservation)?).or_default().floating_ips.push(ip);
    }
    Ok(given)
}
