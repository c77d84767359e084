//! Reads leases. Tables are read whole and joined in memory; with a hundred thousand leases, nothing else is
//! fast. A row is read as one JSON value, because each column has a cost.

use std::collections::{BTreeMap, HashMap};

use ::leases::ids::{FloatingIpId, HostId, LeaseId, ReservationId};
use ::leases::lease::{Allocation, Reservation};
use ::leases::status::ReservationStatus;
use ::leases::terms::ReservationTerms;
use futures::TryStreamExt;
use sqlx::SqliteConnection;
use store::encoding::{LeaseRow, StoredText, from_hex, from_json, named};
use store::{LeaseRecord, StoreError, Wording};

use crate::columns::uuid;
use crate::error::unavailable;

/// A reservation of a lease.
type Key = (LeaseId, ReservationId);

pub(super) async fn read(db: &mut SqliteConnection) -> Result<Vec<LeaseRecord>, StoreError> {
    let mut given = allocations(db).await?;
    let mut stored = stored_text(db).await?;
    let mut reservations = reservations(db, &mut given, &mut stored).await?;
    let mut rows = sqlx::query_scalar!(
        r#"SELECT json_object(
             'id', hex(id), 'version', version, 'name', name, 'project', project, 'user_id', user_id,
             'lease_type', lease_type, 'deadline_us', deadline_us, 'starts_us', starts_us,
             'ends_us', ends_us, 'before_end_us', before_end_us,
             'end_action', end_action, 'status', status, 'start_event', start_event,
             'before_end_event', before_end_event, 'end_event', end_event, 'reason', reason, 'hunt', hunt,
             'standing', standing, 'series', series, 'extras', extras,
             'created_at_us', created_at_us, 'updated_at_us', updated_at_us
         ) AS "row!: String" FROM lease ORDER BY id"#
    )
    .fetch(db);
    let mut records = Vec::new();
    while let Some(row) = rows.try_next().await.map_err(unavailable)? {
        let row: LeaseRow = from_json("lease", &row)?;
        let OfLease { reservations, wording } = reservations.remove(&row.id()?).unwrap_or_default();
        records.push(row.record(reservations.into_values().collect(), wording, &mut stored)?);
    }
    Ok(records)
}

async fn stored_text(db: &mut SqliteConnection) -> Result<StoredText, StoreError> {
    let mut stored = StoredText::default();
    let mut rows = sqlx::query!("SELECT hash, body FROM long_text").fetch(db);
    while let Some(row) = rows.try_next().await.map_err(unavailable)? {
        stored.insert(&row.hash, row.body)?;
    }
    Ok(stored)
}

/// Parts of a lease that are rows of other tables.
#[derive(Default)]
struct OfLease {
    /// By position.
    reservations: BTreeMap<i64, Reservation>,
    wording: BTreeMap<ReservationId, Wording>,
}

/// Columns of a reservation.
type ReservationRow = (String, String, i64, String, String, u8, u8, Option<String>, Option<String>);

async fn reservations(
    db: &mut SqliteConnection,
    given: &mut HashMap<Key, Given>,
    stored: &mut StoredText,
) -> Result<HashMap<LeaseId, OfLease>, StoreError> {
    let mut of_leases: HashMap<LeaseId, OfLease> = HashMap::new();
    let mut rows = sqlx::query_scalar!(
        r#"SELECT json_array(
             hex(lease), hex(id), position, terms, status, missing_resources, resources_changed,
             hypervisor_properties, resource_properties
         ) AS "row!: String" FROM reservation"#
    )
    .fetch(db);
    while let Some(row) = rows.try_next().await.map_err(unavailable)? {
        let (lease, id, position, terms, status, missing, changed, hypervisor, resource) =
            from_json::<ReservationRow>("reservation", &row)?;
        let key = (LeaseId(from_hex(&lease)?), ReservationId(from_hex(&id)?));
        let of_lease = of_leases.entry(key.0).or_default();
        let terms = stored.terms(&terms)?;
        let reservation = Reservation {
            id: key.1,
            allocation: given.remove(&key).unwrap_or_default().allocation(&terms),
            terms,
            status: named("reservation status", &status, ReservationStatus::from_name)?,
            missing_resources: missing != 0,
            resources_changed: changed != 0,
        };
        of_lease.reservations.insert(position, reservation);
        let text = |column: Option<String>| column.map(|column| stored.shared_text(&column)).transpose();
        let wording =
            Wording { hypervisor_properties: text(hypervisor)?, resource_properties: text(resource)? };
        if wording != Wording::default() {
            of_lease.wording.insert(key.1, wording);
        }
    }
    Ok(of_leases)
}

/// Hosts, slots and addresses of a reservation.
#[derive(Default)]
struct Given {
    hosts: Vec<HostId>,
    slots: Vec<(HostId, u32)>,
    floating_ips: Vec<FloatingIpId>,
}

impl Given {
    /// The kind of allocation that the terms ask for.
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

/// Reads hosts and slots as one list per reservation: there are many, and a row costs more than a number.
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
