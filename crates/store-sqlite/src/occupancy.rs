//! Occupancy of leased hosts.

use jiff::Timestamp;
use leases::ids::{HostId, LeaseId};
use leases::occupants::{Changes, Interval};
use leases::project::ProjectId;
use sqlx::SqliteConnection;
use store::encoding::occupancy::{fact, instance, instance_project};
use store::encoding::{hex, json};
use store::{StoreError, WriteSize, to_remove};

use crate::columns::{instant, maybe_instant, us, uuid};
use crate::error::unavailable;

/// Intervals per statement.
const TOGETHER: usize = 1000;

pub(crate) async fn record(db: &mut SqliteConnection, changes: &Changes) -> Result<(), StoreError> {
    close(db, &changes.closed).await.map_err(unavailable)?;
    for opened in changes.opened.chunks(TOGETHER) {
        open(db, opened).await.map_err(unavailable)?;
    }
    let Some(seen_until) = changes.seen_until else { return Ok(()) };
    let until_us = us(seen_until);
    let seen = sqlx::query!("INSERT OR REPLACE INTO occupancy_seen (one, until_us) VALUES (1, ?)", until_us);
    seen.execute(db).await.map_err(unavailable)?;
    Ok(())
}

/// Uses one statement, since a statement costs more than a row.
async fn close(db: &mut SqliteConnection, closed: &[Interval]) -> Result<(), sqlx::Error> {
    if closed.is_empty() {
        return Ok(());
    }
    let rows = closed.iter().map(|interval| {
        let Interval { lease, host, fact, start, end, .. } = interval;
        let end_us = us(end.unwrap_or(*start));
        (host.0.cast_signed(), hex(lease.0), fact.name(), hex(instance(fact)), end_us)
    });
    let rows = json(&rows.collect::<Vec<_>>());
    let update = sqlx::query!(
        "UPDATE occupancy SET ends_us = max(starts_us, closed.value ->> 4)
         FROM json_each(?) AS closed
         WHERE ends_us IS NULL AND host = closed.value ->> 0 AND lease = unhex(closed.value ->> 1)
           AND fact = closed.value ->> 2 AND instance = unhex(closed.value ->> 3)",
        rows,
    );
    update.execute(db).await.map(drop)
}

async fn open(db: &mut SqliteConnection, opened: &[Interval]) -> Result<(), sqlx::Error> {
    let rows = opened.iter().map(|interval| {
        let Interval { lease, project, host, fact, begins, start, end } = interval;
        let ids = (hex(lease.0), hex(instance(fact)));
        let texts = (&project.0, fact.name(), instance_project(fact));
        (ids, texts, host.0.cast_signed(), begins, us(*start), end.map(us))
    });
    let rows = json(&rows.collect::<Vec<_>>());
    let insertion = sqlx::query!(
        "INSERT INTO occupancy (lease, instance, project, fact, instance_project, host, begins, starts_us, ends_us)
         SELECT unhex(value ->> '$[0][0]'), unhex(value ->> '$[0][1]'), value ->> '$[1][0]',
             value ->> '$[1][1]', value ->> '$[1][2]', value ->> '$[2]', value ->> '$[3]', value ->> '$[4]',
             value ->> '$[5]'
         FROM json_each(?) WHERE true ORDER BY key
         ON CONFLICT (host, lease, fact, instance) WHERE ends_us IS NULL DO NOTHING",
        rows,
    );
    insertion.execute(db).await.map(drop)
}

/// A row of the table of intervals.
struct Row {
    number: i64,
    lease: Vec<u8>,
    project: String,
    host: i64,
    fact: String,
    instance: Vec<u8>,
    instance_project: Option<String>,
    begins: i64,
    starts_us: i64,
    ends_us: Option<i64>,
}

impl Row {
    fn interval(self) -> Result<(u64, Interval), StoreError> {
        let interval = Interval {
            lease: LeaseId(uuid(&self.lease)?),
            project: ProjectId(self.project),
            host: HostId(self.host.cast_unsigned()),
            fact: fact(&self.fact, uuid(&self.instance)?, self.instance_project)?,
            begins: self.begins != 0,
            start: instant(self.starts_us)?,
            end: maybe_instant(self.ends_us)?,
        };
        Ok((self.number.cast_unsigned(), interval))
    }
}

/// All intervals, oldest first.
pub(crate) async fn all(db: &mut SqliteConnection) -> Result<Vec<Interval>, StoreError> {
    let rows = sqlx::query_as!(
        Row,
        "SELECT number, lease, project, host, fact, instance, instance_project, begins, starts_us, ends_us
         FROM occupancy ORDER BY number"
    );
    let rows = rows.fetch_all(db).await.map_err(unavailable)?;
    rows.into_iter().map(|row| row.interval().map(|(_, interval)| interval)).collect()
}

/// Open intervals, oldest first.
pub(crate) async fn open_intervals(db: &mut SqliteConnection) -> Result<Vec<Interval>, StoreError> {
    let rows = sqlx::query_as!(
        Row,
        "SELECT number, lease, project, host, fact, instance, instance_project, begins, starts_us, ends_us
         FROM occupancy WHERE ends_us IS NULL"
    );
    let mut rows = rows.fetch_all(db).await.map_err(unavailable)?;
    // The index of open intervals isn't in that order.
    rows.sort_unstable_by_key(|row| row.number);
    rows.into_iter().map(|row| row.interval().map(|(_, interval)| interval)).collect()
}

/// Intervals of a lease after that number.
pub(crate) async fn of_lease(
    db: &mut SqliteConnection,
    lease: LeaseId,
    after: u64,
    limit: u32,
) -> Result<Vec<(u64, Interval)>, StoreError> {
    let lease = lease.0.to_be_bytes();
    let lease = lease.as_slice();
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let rows = sqlx::query_as!(
        Row,
        "SELECT number, lease, project, host, fact, instance, instance_project, begins, starts_us, ends_us
         FROM occupancy WHERE lease = ? AND number > ? ORDER BY number LIMIT ?",
        lease,
        after,
        limit,
    );
    rows.fetch_all(db).await.map_err(unavailable)?.into_iter().map(Row::interval).collect()
}

/// Time until which all observations are recorded.
pub(crate) async fn seen_until(db: &mut SqliteConnection) -> Result<Option<Timestamp>, StoreError> {
    let until_us = sqlx::query_scalar!("SELECT until_us FROM occupancy_seen");
    maybe_instant(until_us.fetch_optional(db).await.map_err(unavailable)?)
}

/// Deletes intervals that ended before that time, and the oldest closed intervals of projects with more than `most` bytes.
pub(crate) async fn prune(
    db: &mut SqliteConnection,
    before: Option<Timestamp>,
    most: u64,
    limit: u32,
) -> Result<bool, StoreError> {
    let mut old = 0;
    if let Some(before) = before {
        let before_us = us(before);
        let deletion = sqlx::query!(
            "DELETE FROM occupancy WHERE number IN (SELECT number FROM occupancy WHERE ends_us < ? LIMIT ?)",
            before_us,
            limit,
        );
        old = deletion.execute(&mut *db).await.map_err(unavailable)?.rows_affected();
    }
    let limit = u64::from(limit);
    let (mut left, most_bytes) = (limit, i64::try_from(most).unwrap_or(i64::MAX));
    let large = sqlx::query!(
        "SELECT project, bytes FROM occupancy_size WHERE bytes > ? ORDER BY project",
        most_bytes,
    );
    for share in large.fetch_all(&mut *db).await.map_err(unavailable)? {
        let rows = left.cast_signed();
        let records = sqlx::query!(
            r#"SELECT number AS "number!", 128 + octet_length(project) + coalesce(octet_length(instance_project), 0) AS "bytes!: i64"
             FROM occupancy WHERE project = ? AND ends_us IS NOT NULL ORDER BY number LIMIT ?"#,
            share.project,
            rows,
        );
        let records = records.fetch_all(&mut *db).await.map_err(unavailable)?.into_iter();
        let records: Vec<_> =
            records.map(|row| (row.number.cast_unsigned(), row.bytes.cast_unsigned())).collect();
        let excess = share.bytes.cast_unsigned().saturating_sub(most);
        let removed = to_remove(&records, excess, WriteSize { rows: left, bytes: u64::MAX });
        let Some((last, _)) = removed.last() else { continue };
        let last = last.cast_signed();
        let deletion = sqlx::query!(
            "DELETE FROM occupancy WHERE project = ? AND number <= ? AND ends_us IS NOT NULL",
            share.project,
            last,
        );
        deletion.execute(&mut *db).await.map_err(unavailable)?;
        left -= removed.len() as u64;
    }
    Ok(old >= limit || left == 0)
}
