//! Occupancy of leased hosts.

use jiff::Timestamp;
use leases::ids::{HostId, LeaseId};
use leases::occupants::{Changes, Interval};
use leases::project::ProjectId;
use sqlx::PgConnection;
use store::encoding::occupancy::{fact, instance, instance_project};
use store::{WriteSize, to_remove};
use uuid::Uuid;

use crate::columns::{instant, maybe_instant, plain, text, us, uuid};
use crate::error::TxError;
use crate::usage::{column, maybe};

/// Intervals per statement.
const TOGETHER: usize = 1000;

pub(crate) async fn record(db: &mut PgConnection, changes: &Changes) -> Result<(), TxError> {
    close(db, &changes.closed).await?;
    for opened in changes.opened.chunks(TOGETHER) {
        open(db, opened).await?;
    }
    if let Some(seen_until) = changes.seen_until {
        let seen = sqlx::query!(
            "INSERT INTO occupancy_seen (one, until_us) VALUES (true, $1)
             ON CONFLICT (one) DO UPDATE SET until_us = excluded.until_us",
            us(seen_until),
        );
        seen.execute(db).await?;
    }
    Ok(())
}

/// Locks rows in the order of their numbers, so that transactions can't deadlock.
async fn close(db: &mut PgConnection, closed: &[Interval]) -> Result<(), sqlx::Error> {
    if closed.is_empty() {
        return Ok(());
    }
    let hosts: Vec<i64> = column(closed, |one| one.host.0.cast_signed());
    let leases: Vec<Uuid> = column(closed, |one| uuid(one.lease.0));
    let facts: Vec<String> = column(closed, |one| one.fact.name().to_owned());
    let instances: Vec<Uuid> = column(closed, |one| uuid(instance(&one.fact)));
    let ends_us: Vec<i64> = column(closed, |one| us(one.end.unwrap_or(one.start)));
    let update = sqlx::query!(
        "WITH locked AS (
             SELECT number, closed.end_us
             FROM unnest($1::bigint[], $2::uuid[], $3::text[], $4::uuid[], $5::bigint[])
                 AS closed (host, lease, fact, instance, end_us)
             JOIN occupancy ON occupancy.host = closed.host AND occupancy.lease = closed.lease
                 AND occupancy.fact = closed.fact AND occupancy.instance = closed.instance
             WHERE ends_us IS NULL ORDER BY number FOR UPDATE OF occupancy
         )
         UPDATE occupancy SET ends_us = greatest(starts_us, locked.end_us)
         FROM locked WHERE occupancy.number = locked.number",
        &hosts,
        &leases,
        &facts,
        &instances,
        &ends_us,
    );
    update.execute(db).await.map(drop)
}

async fn open(db: &mut PgConnection, opened: &[Interval]) -> Result<(), sqlx::Error> {
    let leases: Vec<Uuid> = column(opened, |one| uuid(one.lease.0));
    let projects: Vec<String> = column(opened, |one| text(&one.project.0).into_owned());
    let hosts: Vec<i64> = column(opened, |one| one.host.0.cast_signed());
    let facts: Vec<String> = column(opened, |one| one.fact.name().to_owned());
    let instances: Vec<Uuid> = column(opened, |one| uuid(instance(&one.fact)));
    let instance_projects: Vec<Option<String>> = column(opened, |one| maybe(instance_project(&one.fact)));
    let begins: Vec<bool> = column(opened, |one| one.begins);
    let starts_us: Vec<i64> = column(opened, |one| us(one.start));
    let ends_us: Vec<Option<i64>> = column(opened, |one| one.end.map(us));
    let insertion = sqlx::query!(
        "INSERT INTO occupancy (lease, project, host, fact, instance, instance_project, begins, starts_us, ends_us)
         SELECT lease, project, host, fact, instance, instance_project, begins, starts_us, ends_us
         FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::text[], $5::uuid[], $6::text[], $7::boolean[],
             $8::bigint[], $9::bigint[])
             WITH ORDINALITY AS new (lease, project, host, fact, instance, instance_project, begins, starts_us,
                 ends_us, position)
         ORDER BY position
         ON CONFLICT (host, lease, fact, instance) WHERE ends_us IS NULL DO NOTHING",
        &leases,
        &projects,
        &hosts,
        &facts,
        &instances,
        &instance_projects as &[Option<String>],
        &begins,
        &starts_us,
        &ends_us as &[Option<i64>],
    );
    insertion.execute(db).await.map(drop)
}

/// A row of the table of intervals.
struct Row {
    number: i64,
    lease: Uuid,
    project: String,
    host: i64,
    fact: String,
    instance: Uuid,
    instance_project: Option<String>,
    begins: bool,
    starts_us: i64,
    ends_us: Option<i64>,
}

impl Row {
    fn interval(self) -> Result<(u64, Interval), TxError> {
        let interval = Interval {
            lease: LeaseId(self.lease.as_u128()),
            project: ProjectId(plain(self.project)),
            host: HostId(self.host.cast_unsigned()),
            fact: fact(&self.fact, self.instance.as_u128(), self.instance_project.map(plain))?,
            begins: self.begins,
            start: instant(self.starts_us)?,
            end: maybe_instant(self.ends_us)?,
        };
        Ok((self.number.cast_unsigned(), interval))
    }
}

/// All intervals, oldest first.
pub(crate) async fn all(db: &mut PgConnection) -> Result<Vec<Interval>, TxError> {
    let rows = sqlx::query_as!(
        Row,
        "SELECT number, lease, project, host, fact, instance, instance_project, begins, starts_us, ends_us
         FROM occupancy ORDER BY number"
    );
    rows.fetch_all(db).await?.into_iter().map(|row| row.interval().map(|(_, interval)| interval)).collect()
}

/// Open intervals, oldest first.
pub(crate) async fn open_intervals(db: &mut PgConnection) -> Result<Vec<Interval>, TxError> {
    let rows = sqlx::query_as!(
        Row,
        "SELECT number, lease, project, host, fact, instance, instance_project, begins, starts_us, ends_us
         FROM occupancy WHERE ends_us IS NULL ORDER BY number"
    );
    rows.fetch_all(db).await?.into_iter().map(|row| row.interval().map(|(_, interval)| interval)).collect()
}

/// Intervals of a lease after that number.
pub(crate) async fn of_lease(
    db: &mut PgConnection,
    lease: LeaseId,
    after: u64,
    limit: u32,
) -> Result<Vec<(u64, Interval)>, TxError> {
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let rows = sqlx::query_as!(
        Row,
        "SELECT number, lease, project, host, fact, instance, instance_project, begins, starts_us, ends_us
         FROM occupancy WHERE lease = $1 AND number > $2 ORDER BY number LIMIT $3",
        uuid(lease.0),
        after,
        i64::from(limit),
    );
    rows.fetch_all(db).await?.into_iter().map(Row::interval).collect()
}

/// Time until which all observations are recorded.
pub(crate) async fn seen_until(db: &mut PgConnection) -> Result<Option<Timestamp>, TxError> {
    let until_us = sqlx::query_scalar!("SELECT until_us FROM occupancy_seen").fetch_optional(db).await?;
    Ok(maybe_instant(until_us)?)
}

/// Deletes intervals that ended before that time, and the oldest closed intervals of projects with more than `most` bytes.
pub(crate) async fn prune(
    db: &mut PgConnection,
    before: Option<Timestamp>,
    most: u64,
    limit: u32,
) -> Result<bool, TxError> {
    let mut old = 0;
    if let Some(before) = before {
        let deletion = sqlx::query!(
            "DELETE FROM occupancy WHERE number IN (SELECT number FROM occupancy WHERE ends_us < $1 LIMIT $2)",
            us(before),
            i64::from(limit),
        );
        old = deletion.execute(&mut *db).await?.rows_affected();
    }
    let limit = u64::from(limit);
    let mut left = limit;
    let large = sqlx::query!(
        "SELECT project, bytes FROM occupancy_size WHERE bytes > $1 ORDER BY project",
        i64::try_from(most).unwrap_or(i64::MAX),
    );
    for share in large.fetch_all(&mut *db).await? {
        let records = sqlx::query!(
            r#"SELECT number, occupancy_bytes(project, instance_project) AS "bytes!" FROM occupancy
             WHERE project = $1 AND ends_us IS NOT NULL ORDER BY number LIMIT $2"#,
            share.project.as_str(),
            left.cast_signed(),
        );
        let records = records.fetch_all(&mut *db).await?.into_iter();
        let records: Vec<(u64, u64)> =
            records.map(|row| (row.number.cast_unsigned(), row.bytes.cast_unsigned())).collect();
        let excess = share.bytes.cast_unsigned().saturating_sub(most);
        let removed = to_remove(&records, excess, WriteSize { rows: left, bytes: u64::MAX });
        let Some((last, _)) = removed.last() else { continue };
        let deletion = sqlx::query!(
            "DELETE FROM occupancy WHERE project = $1 AND number <= $2 AND ends_us IS NOT NULL",
            share.project.as_str(),
            last.cast_signed(),
        );
        deletion.execute(&mut *db).await?;
        left -= removed.len() as u64;
    }
    Ok(old >= limit || left == 0)
}
