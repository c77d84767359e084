//! Reads leases. Tables are read whole and joined in memory; with a hundred thousand leases, nothing else is
//! fast.

use std::collections::{BTreeMap, HashMap};

use ::leases::ids::{FloatingIpId, HostId, LeaseId, ReservationId, SeriesId};
use ::leases::lease::{Allocation, EventStatuses, Lease, Reservation};
use ::leases::lease_type::LeaseType;
use ::leases::project::{Owner, ProjectId, UserId};
use ::leases::status::{EventStatus, LeaseStatus, ReservationStatus};
use ::leases::terms::ReservationTerms;
use futures::TryStreamExt;
use sqlx::PgConnection;
use store::encoding::{
    Extras, StoredText, end_action_from_name, extras_from_json, from_hex, hunt_from_json, named,
    standing_from_json,
};
use store::{LeaseRecord, StoreError, Version, Wording};
use uuid::Uuid;

use super::Wanted;
use crate::columns::{instant, maybe_instant, number, plain, window};
use crate::error::TxError;

/// A reservation of a lease.
type Key = (LeaseId, ReservationId);

pub(super) async fn read(db: &mut PgConnection, wanted: &Wanted) -> Result<Vec<LeaseRecord>, TxError> {
    let mut given = allocations(db, wanted).await?;
    let mut stored = stored_text(db, wanted).await?;
    let mut reservations = reservations(db, wanted, &mut given, &mut stored).await?;
    let mut rows = sqlx::query!(
        "SELECT id, version, name, project, user_id, lease_type, deadline_us, starts_us, ends_us,
             before_end_us, end_action, status, start_event, before_end_event, end_event, reason, hunt,
             standing, series, extras, created_at_us, updated_at_us
         FROM lease WHERE $1::uuid[] IS NULL OR id = ANY($1) ORDER BY id",
        wanted.leases.as_deref(),
    )
    .fetch(db);
    let mut records = Vec::new();
    while let Some(row) = rows.try_next().await? {
        let id = LeaseId(row.id.as_u128());
        let event = |name: &str| named("event status", name, EventStatus::from_name);
        let deadline = maybe_instant(row.deadline_us)?;
        let OfLease { reservations, wording } = reservations.remove(&id).unwrap_or_default();
        let Extras { hints, before_start, marks, backfill } =
            extras_from_json(row.extras.as_deref(), &mut stored)?;
        let lease = Lease {
            id,
            name: stored.text(&plain(row.name))?.to_owned(),
            owner: Owner { project: ProjectId(plain(row.project)), user: UserId(plain(row.user_id)) },
            lease_type: named("lease type", &row.lease_type, |name| LeaseType::from_parts(name, deadline))?,
            window: window(row.starts_us, row.ends_us)?,
            before_start,
            before_end: maybe_instant(row.before_end_us)?,
            end_action: named("end action", &row.end_action, end_action_from_name)?,
            reservations: reservations.into_values().collect(),
            status: named("lease status", &row.status, LeaseStatus::from_name)?,
            events: EventStatuses {
                start: event(&row.start_event)?,
                before_end: event(&row.before_end_event)?,
                end: event(&row.end_event)?,
            },
            reason: row.reason.map(|reason| stored.text(&plain(reason)).map(str::to_owned)).transpose()?,
            hints,
            marks,
            backfill,
            hunt: row.hunt.map(|hunt| hunt_from_json(stored.document(&hunt)?)).transpose()?,
            standing: standing_from_json(row.standing.as_deref())?,
            series: row.series.as_deref().map(from_hex).transpose()?.map(SeriesId),
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

async fn stored_text(db: &mut PgConnection, wanted: &Wanted) -> Result<StoredText, TxError> {
    let mut stored = StoredText::default();
    let mut rows = sqlx::query!(
        "SELECT hash, body FROM long_text
         WHERE $1::uuid[] IS NULL OR hash IN (SELECT hash FROM lease_text WHERE lease = ANY($1))",
        wanted.leases.as_deref(),
    )
    .fetch(db);
    while let Some(row) = rows.try_next().await? {
        stored.insert(&row.hash, plain(row.body))?;
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

async fn reservations(
    db: &mut PgConnection,
    wanted: &Wanted,
    given: &mut HashMap<Key, Given>,
    stored: &mut StoredText,
) -> Result<HashMap<LeaseId, OfLease>, TxError> {
    let mut of_leases: HashMap<LeaseId, OfLease> = HashMap::new();
    let mut rows = sqlx::query!(
        "SELECT lease, id, position, terms, status, missing_resources,
             resources_changed, hypervisor_properties, resource_properties
         FROM reservation WHERE $1::uuid[] IS NULL OR lease = ANY($1)",
        wanted.leases.as_deref(),
    )
    .fetch(db);
    while let Some(row) = rows.try_next().await? {
        let key = (LeaseId(row.lease.as_u128()), ReservationId(row.id.as_u128()));
        let of_lease = of_leases.entry(key.0).or_default();
        let terms = stored.terms(&row.terms)?;
        let reservation = Reservation {
            id: key.1,
            allocation: given.remove(&key).unwrap_or_default().allocation(&terms),
            terms,
            status: named("reservation status", &row.status, ReservationStatus::from_name)?,
            missing_resources: row.missing_resources,
            resources_changed: row.resources_changed,
        };
        of_lease.reservations.insert(row.position, reservation);
        let text =
            |column: Option<String>| column.map(|column| stored.shared_text(&plain(column))).transpose();
        let wording = Wording {
            hypervisor_properties: text(row.hypervisor_properties)?,
            resource_properties: text(row.resource_properties)?,
        };
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
async fn allocations(db: &mut PgConnection, wanted: &Wanted) -> Result<HashMap<Key, Given>, TxError> {
    let key =
        |lease: Uuid, reservation: Uuid| (LeaseId(lease.as_u128()), ReservationId(reservation.as_u128()));
    let mut given: HashMap<Key, Given> = HashMap::new();
    let rows = sqlx::query!(
        r#"SELECT lease, reservation, array_agg(host) AS "hosts!" FROM host_allocation
         WHERE $1::uuid[] IS NULL OR lease = ANY($1) GROUP BY lease, reservation"#,
        wanted.leases.as_deref(),
    );
    let mut rows = rows.fetch(&mut *db);
    while let Some(row) = rows.try_next().await? {
        let hosts = row.hosts.into_iter().map(|host| HostId(host.cast_unsigned())).collect();
        given.entry(key(row.lease, row.reservation)).or_default().hosts = hosts;
    }
    drop(rows);
    let rows = sqlx::query!(
        r#"SELECT lease, reservation, array_agg(host ORDER BY host) AS "hosts!",
             array_agg(slots ORDER BY host) AS "slots!"
         FROM slot_allocation WHERE $1::uuid[] IS NULL OR lease = ANY($1) GROUP BY lease, reservation"#,
        wanted.leases.as_deref(),
    );
    let mut rows = rows.fetch(&mut *db);
    while let Some(row) = rows.try_next().await? {
        let pairs = row.hosts.into_iter().zip(row.slots);
        let slots: Result<Vec<(HostId, u32)>, StoreError> =
            pairs.map(|(host, slots)| Ok((HostId(host.cast_unsigned()), number(slots)?))).collect();
        given.entry(key(row.lease, row.reservation)).or_default().slots = slots?;
    }
    drop(rows);
    let rows = sqlx::query!(
        "SELECT lease, reservation, floating_ip FROM floating_ip_allocation
         WHERE $1::uuid[] IS NULL OR lease = ANY($1)",
        wanted.leases.as_deref(),
    );
    for row in rows.fetch_all(&mut *db).await? {
        let ip = FloatingIpId(row.floating_ip.as_u128());
        given.entry(key(row.lease, row.reservation)).or_default().floating_ips.push(ip);
    }
    Ok(given)
}
