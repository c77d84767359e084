//! Usage: spans, their sums, and events.

use jiff::Timestamp;
use leases::ids::{GuestId, HostId, LeaseId, ReservationId};
use leases::project::{Owner, ProjectId, UserId};
use leases::usage::{Entries, Event, Group, Occurrence, Query, Size, Span, SpanChange, Sum};
use leases::window::Window;
use sqlx::SqliteConnection;
use store::encoding::usage::{held, hosts_from_json, hosts_json, kind, thing};
use store::encoding::{hex, json, named};
use store::{StoreError, UsageFilter};

use crate::columns::{instant, number, us, uuid, window};
use crate::error::unavailable;

/// Writes the usage entries of a commit.
pub(crate) async fn write(db: &mut SqliteConnection, usage: &Entries) -> Result<(), StoreError> {
    change(db, &usage.changed).await.map_err(unavailable)?;
    open(db, &usage.opened).await.map_err(unavailable)?;
    tell(db, &usage.events).await.map_err(unavailable)
}

/// Uses one statement, since a statement costs more than a row.
async fn change(db: &mut SqliteConnection, changes: &[SpanChange]) -> Result<(), sqlx::Error> {
    if changes.is_empty() {
        return Ok(());
    }
    let rows = changes.iter().map(|change| (&change.key, us(change.end), change.closes));
    let rows = json(&rows.collect::<Vec<_>>());
    let update = sqlx::query!(
        "UPDATE usage_span SET
             ends_us = max(starts_us, iif(changed.value ->> 2, min(ends_us, changed.value ->> 1),
                                          changed.value ->> 1)),
             open_key = iif(changed.value ->> 2, NULL, open_key)
         FROM json_each(?) AS changed WHERE open_key = changed.value ->> 0",
        rows,
    );
    update.execute(db).await.map(drop)
}

/// A JSON array of values that are already JSON.
fn list(rows: impl Iterator<Item = String>) -> String {
    format!("[{}]", rows.collect::<Vec<_>>().join(","))
}

async fn open(db: &mut SqliteConnection, spans: &[Span]) -> Result<(), sqlx::Error> {
    if spans.is_empty() {
        return Ok(());
    }
    let row = |span: &Span| {
        let ids = (
            thing(span.held).map(hex),
            span.lease.map(|lease| hex(lease.0)),
            span.reservation.map(|reservation| hex(reservation.0)),
        );
        let Size { count, cores, memory_mib, disk_gib } = span.size;
        let size = (count, cores, memory_mib, disk_gib);
        let times = (span.begins, us(span.window.start()), us(span.window.end()));
        let Owner { project, user } = &span.owner;
        let texts = (&project.0, &user.0, &span.lease_type, &span.pool, &span.flavor);
        let key = span.open.then(|| span.key());
        let host = span.host.map(|host| host.0.cast_signed());
        json(&(key, span.held.kind().name(), host, ids, size, times, texts))
    };
    let rows = list(spans.iter().map(row));
    let insertion = sqlx::query!(
        "INSERT INTO usage_span (open_key, kind, host, thing, lease, reservation, count, cores, memory_mib,
             disk_gib, begins, starts_us, ends_us, project, user_id, lease_type, pool, flavor)
         SELECT value ->> '$[0]', value ->> '$[1]', value ->> '$[2]', unhex(value ->> '$[3][0]'),
             unhex(value ->> '$[3][1]'), unhex(value ->> '$[3][2]'), value ->> '$[4][0]',
             value ->> '$[4][1]', value ->> '$[4][2]', value ->> '$[4][3]', value ->> '$[5][0]',
             value ->> '$[5][1]', value ->> '$[5][2]', value ->> '$[6][0]', value ->> '$[6][1]',
             value ->> '$[6][2]', value ->> '$[6][3]', value ->> '$[6][4]'
         FROM json_each(?) WHERE true ORDER BY key ON CONFLICT (open_key) DO NOTHING",
        rows,
    );
    insertion.execute(db).await.map(drop)
}

async fn tell(db: &mut SqliteConnection, events: &[Event]) -> Result<(), sqlx::Error> {
    if events.is_empty() {
        return Ok(());
    }
    let row = |event: &Event| {
        let ids = (event.lease.map(|lease| hex(lease.0)), event.instance.map(|id| hex(id.0)));
        let window = event.window.map(|window| (us(window.start()), us(window.end())));
        let Owner { project, user } = &event.owner;
        let texts = (&project.0, &user.0, &event.lease_type, &event.status, &event.reason);
        json(&(us(event.at), event.what.name(), ids, window, texts, hosts_json(&event.hosts)))
    };
    let rows = list(events.iter().map(row));
    let insertion = sqlx::query!(
        "INSERT INTO usage_event (at_us, what, lease, instance, starts_us, ends_us, project, user_id,
             lease_type, status, reason, hosts)
         SELECT value ->> '$[0]', value ->> '$[1]', unhex(value ->> '$[2][0]'), unhex(value ->> '$[2][1]'),
             value ->> '$[3][0]', value ->> '$[3][1]', value ->> '$[4][0]', value ->> '$[4][1]',
             value ->> '$[4][2]', value ->> '$[4][3]', value ->> '$[4][4]', value ->> '$[5]'
         FROM json_each(?) ORDER BY key",
        rows,
    );
    insertion.execute(db).await.map(drop)
}

/// Sums of spans. A single lease or project has few spans, which an index finds.
pub(crate) async fn sums(db: &mut SqliteConnection, query: &Query) -> Result<Vec<Sum>, StoreError> {
    let Some(first) = query.periods.first() else { return Ok(Vec::new()) };
    match (query.lease, &query.project) {
        (Some(lease), _) => Ok(leases::usage::sums(&of_lease(db, lease).await?, query)),
        (None, Some(project)) => {
            Ok(leases::usage::sums(&of_project(db, project, us(first.start())).await?, query))
        }
        (None, None) => sums_of_all(db, query).await,
    }
}

/// Sums seconds and the remaining microseconds separately, so that no sum overflows.
async fn sums_of_all(db: &mut SqliteConnection, query: &Query) -> Result<Vec<Sum>, StoreError> {
    let periods: Vec<_> = query.periods.iter().map(|period| (us(period.start()), us(period.end()))).collect();
    let (periods, by) = (json(&periods), query.by);
    let user = query.user.as_ref().map(|user| user.0.as_str());
    let rows = sqlx::query!(
        r#"WITH period (place, start_us, end_us) AS MATERIALIZED (
             SELECT key + 0, value ->> 0, value ->> 1 FROM json_each(?1)
         )
         SELECT place AS "period!: i64",
             iif(?2, project, NULL) AS "project: String", iif(?3, user_id, NULL) AS "user_id: String",
             iif(?4, pool, NULL) AS "pool: String", iif(?5, lease, NULL) AS "lease: Vec<u8>",
             iif(?6, lease_type, NULL) AS "lease_type: String",
             iif(?9, flavor, NULL) AS "flavor: String", kind AS "kind!: String",
             lease IS NOT NULL AS "leased!: bool", count AS "count!: i64", cores AS "cores!: i64",
             memory_mib AS "memory_mib!: i64", disk_gib AS "disk_gib!: i64",
             sum(time_us / 1000000) AS "seconds!: i64", sum(time_us % 1000000) AS "rest_us!: i64",
             sum(begun) AS "begun!: i64"
         FROM (
             SELECT place, project, user_id, pool, flavor, lease, lease_type, kind, count, cores, memory_mib,
                 disk_gib, max(min(ends_us, end_us) - max(starts_us, start_us), 0) AS time_us,
                 begins AND starts_us >= start_us AND starts_us < end_us AS begun
             FROM period CROSS JOIN usage_span
             WHERE ends_us >= start_us AND starts_us < end_us
               AND (?7 IS NULL OR user_id = ?7) AND (?8 IS NULL OR pool = ?8)
         )
         WHERE time_us > 0 OR begun
         GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13"#,
        periods,
        by.project,
        by.user,
        by.pool,
        by.lease,
        by.lease_type,
        user,
        query.pool,
        by.flavor,
    );
    let rows = rows.fetch_all(db).await.map_err(unavailable)?;
    let read = rows.into_iter().map(|row| {
        let group = Group {
            period: number(row.period)?,
            project: row.project.map(ProjectId),
            user: row.user_id.map(UserId),
            pool: row.pool,
            flavor: row.flavor,
            lease: row.lease.map(|lease| uuid(&lease).map(LeaseId)).transpose()?,
            lease_type: row.lease_type,
        };
        let size = Size {
            count: number(row.count)?,
            cores: number(row.cores)?,
            memory_mib: number(row.memory_mib)?,
            disk_gib: number(row.disk_gib)?,
        };
        let (seconds, rest_us): (u64, u64) = (number(row.seconds)?, number(row.rest_us)?);
        Ok(Sum {
            group,
            kind: kind(&row.kind)?,
            leased: row.leased,
            size,
            time_us: u128::from(seconds) * 1_000_000 + u128::from(rest_us),
            begun: number(row.begun)?,
        })
    });
    let mut read = read.collect::<Result<Vec<Sum>, StoreError>>()?;
    read.sort_unstable();
    Ok(read)
}

/// Events after number `after` that match the filter.
pub(crate) async fn events(
    db: &mut SqliteConnection,
    filter: &UsageFilter,
    after: u64,
    limit: u32,
) -> Result<Vec<(u64, Event)>, StoreError> {
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let from_us = filter.period.map(|period| us(period.start()));
    let to_us = filter.period.map(|period| us(period.end()));
    let project = filter.project.as_ref().map(|project| project.0.as_str());
    let lease = filter.lease.map(|lease| lease.0.to_be_bytes().to_vec());
    let what = filter.what.map(Occurrence::name);
    let rows = sqlx::query!(
        r#"WITH own AS (
             SELECT * FROM usage_event WHERE ?4 IS NULL AND number > ?1
             UNION ALL SELECT * FROM usage_event WHERE project = ?4 AND number > ?1
         )
         SELECT number AS "number!", at_us AS "at_us!", what AS "what!", lease, instance, project AS "project!",
             user_id AS "user_id!", lease_type, status AS "status!", starts_us, ends_us, hosts AS "hosts!", reason
         FROM own
         WHERE (?2 IS NULL OR at_us >= ?2) AND (?3 IS NULL OR at_us < ?3)
           AND (?5 IS NULL OR lease = ?5) AND (?6 IS NULL OR what = ?6)
         ORDER BY number LIMIT ?7"#,
        after,
        from_us,
        to_us,
        project,
        lease,
        what,
        limit,
    );
    let rows = rows.fetch_all(db).await.map_err(unavailable)?;
    let read = rows.into_iter().map(|row| {
        let event = Event {
            at: instant(row.at_us)?,
            what: named("occurrence", &row.what, Occurrence::from_name)?,
            lease: row.lease.map(|id| uuid(&id).map(LeaseId)).transpose()?,
            instance: row.instance.map(|id| uuid(&id).map(GuestId)).transpose()?,
            owner: Owner { project: ProjectId(row.project), user: UserId(row.user_id) },
            lease_type: row.lease_type,
            status: row.status,
            window: row.starts_us.zip(row.ends_us).map(|(start, end)| window(start, end)).transpose()?,
            hosts: hosts_from_json(&row.hosts)?,
            reason: row.reason,
        };
        Ok((row.number.cast_unsigned(), event))
    });
    read.collect()
}

/// A row of the table of spans.
struct Row {
    open_key: Option<String>,
    kind: String,
    thing: Option<Vec<u8>>,
    host: Option<i64>,
    pool: Option<String>,
    flavor: Option<String>,
    count: i64,
    cores: i64,
    memory_mib: i64,
    disk_gib: i64,
    lease: Option<Vec<u8>>,
    reservation: Option<Vec<u8>>,
    project: String,
    user_id: String,
    lease_type: Option<String>,
    begins: i64,
    starts_us: i64,
    ends_us: i64,
}

impl Row {
    fn span(self) -> Result<Span, StoreError> {
        Ok(Span {
            held: held(&self.kind, self.thing.map(|id| uuid(&id)).transpose()?)?,
            host: self.host.map(|host| HostId(host.cast_unsigned())),
            pool: self.pool,
            flavor: self.flavor,
            size: Size {
                count: number(self.count)?,
                cores: number(self.cores)?,
                memory_mib: number(self.memory_mib)?,
                disk_gib: number(self.disk_gib)?,
            },
            lease: self.lease.map(|id| uuid(&id).map(LeaseId)).transpose()?,
            reservation: self.reservation.map(|id| uuid(&id).map(ReservationId)).transpose()?,
            owner: Owner { project: ProjectId(self.project), user: UserId(self.user_id) },
            lease_type: self.lease_type,
            begins: self.begins != 0,
            window: window(self.starts_us, self.ends_us)?,
            open: self.open_key.is_some(),
        })
    }
}

/// All spans, in the order in which they were added.
pub(crate) async fn spans(db: &mut SqliteConnection) -> Result<Vec<Span>, StoreError> {
    let rows = sqlx::query_as!(
        Row,
        "SELECT open_key, kind, thing, host, pool, flavor, count, cores, memory_mib, disk_gib, lease, reservation,
             project, user_id, lease_type, begins, starts_us, ends_us
         FROM usage_span ORDER BY number"
    );
    rows.fetch_all(db).await.map_err(unavailable)?.into_iter().map(Row::span).collect()
}

/// Open spans, ordered by key.
pub(crate) async fn open_spans(db: &mut SqliteConnection) -> Result<Vec<Span>, StoreError> {
    let rows = sqlx::query_as!(
        Row,
        "SELECT open_key, kind, thing, host, pool, flavor, count, cores, memory_mib, disk_gib, lease, reservation,
             project, user_id, lease_type, begins, starts_us, ends_us
         FROM usage_span WHERE open_key IS NOT NULL ORDER BY open_key"
    );
    rows.fetch_all(db).await.map_err(unavailable)?.into_iter().map(Row::span).collect()
}

async fn of_lease(db: &mut SqliteConnection, lease: LeaseId) -> Result<Vec<Span>, StoreError> {
    let lease = lease.0.to_be_bytes();
    let lease = lease.as_slice();
    let rows = sqlx::query_as!(
        Row,
        "SELECT open_key, kind, thing, host, pool, flavor, count, cores, memory_mib, disk_gib, lease, reservation,
             project, user_id, lease_type, begins, starts_us, ends_us
         FROM usage_span WHERE lease = ?",
        lease,
    );
    rows.fetch_all(db).await.map_err(unavailable)?.into_iter().map(Row::span).collect()
}

/// Spans of a project that end at `since_us` or later.
async fn of_project(
    db: &mut SqliteConnection,
    project: &ProjectId,
    since_us: i64,
) -> Result<Vec<Span>, StoreError> {
    let rows = sqlx::query_as!(
        Row,
        "SELECT open_key, kind, thing, host, pool, flavor, count, cores, memory_mib, disk_gib, lease, reservation,
             project, user_id, lease_type, begins, starts_us, ends_us
         FROM usage_span WHERE project = ? AND ends_us >= ?",
        project.0,
        since_us,
    );
    rows.fetch_all(db).await.map_err(unavailable)?.into_iter().map(Row::span).collect()
}

/// Windows in which something was held on hosts, if they overlap `period`.
pub(crate) async fn held_hosts(
    db: &mut SqliteConnection,
    period: &Window,
) -> Result<Vec<(HostId, Window)>, StoreError> {
    let (from_us, to_us) = (us(period.start()), us(period.end()));
    let rows = sqlx::query!(
        r#"SELECT DISTINCT host AS "host!", starts_us, ends_us FROM usage_span
         WHERE host IS NOT NULL AND ends_us > ? AND starts_us < ?"#,
        from_us,
        to_us,
    );
    let rows = rows.fetch_all(db).await.map_err(unavailable)?.into_iter();
    let read = rows.map(|row| Ok((HostId(row.host.cast_unsigned()), window(row.starts_us, row.ends_us)?)));
    let mut held = read.collect::<Result<Vec<_>, StoreError>>()?;
    held.sort_unstable_by_key(|(host, window)| (*host, window.start(), window.end()));
    Ok(held)
}

/// Deletes closed spans that ended before `before`, and events from before it, at most `limit` of each.
/// Returns whether a limit was reached. Events are numbered in the order of their times, so only the first
/// `limit` are examined.
pub(crate) async fn prune(
    db: &mut SqliteConnection,
    before: Timestamp,
    limit: u32,
) -> Result<bool, StoreError> {
    let before_us = us(before);
    let spans = sqlx::query!(
        "DELETE FROM usage_span WHERE number IN
         (SELECT number FROM usage_span WHERE ends_us < ?1 AND open_key IS NULL LIMIT ?2)",
        before_us,
        limit,
    );
    let spans = spans.execute(&mut *db).await.map_err(unavailable)?.rows_affected();
    let events = sqlx::query!(
        "DELETE FROM usage_event
         WHERE at_us < ?1 AND number IN (SELECT number FROM usage_event ORDER BY number LIMIT ?2)",
        before_us,
        limit,
    );
    let events = events.execute(db).await.map_err(unavailable)?.rows_affected();
    Ok(spans.max(events) >= u64::from(limit))
}
