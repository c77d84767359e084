//! Usage: spans, their sums, and events.

use std::borrow::Cow;

use jiff::Timestamp;
use leases::ids::{GuestId, HostId, LeaseId, ReservationId};
use leases::project::{Owner, ProjectId, UserId};
use leases::usage::{Entries, Event, Group, Occurrence, Query, Size, Span, SpanChange, Sum};
use leases::window::Window;
use sqlx::PgConnection;
use store::UsageFilter;
use store::encoding::named;
use store::encoding::usage::{held, hosts_from_json, kind, thing};
use uuid::Uuid;

use crate::columns::{instant, maybe_text, number, plain, text, us, uuid, window};
use crate::error::TxError;

/// Writes a commit's changes of spans. Events are numbered with the revision ([`crate::feed`]).
pub(crate) async fn write(db: &mut PgConnection, usage: &Entries) -> Result<(), TxError> {
    change(db, &usage.changed).await?;
    open(db, &usage.opened).await?;
    Ok(())
}

/// Locks rows in the order of their keys, so that transactions can't deadlock.
async fn change(db: &mut PgConnection, changes: &[SpanChange]) -> Result<(), sqlx::Error> {
    if changes.is_empty() {
        return Ok(());
    }
    let keys: Vec<String> = changes.iter().map(|change| change.key.clone()).collect();
    let ends_us: Vec<i64> = changes.iter().map(|change| us(change.end)).collect();
    let closes: Vec<bool> = changes.iter().map(|change| change.closes).collect();
    let update = sqlx::query!(
        "WITH locked AS (
             SELECT number FROM usage_span WHERE open_key = ANY($1) ORDER BY open_key FOR UPDATE
         )
         UPDATE usage_span SET
             ends_us = greatest(starts_us,
                 CASE WHEN changed.closes THEN least(ends_us, changed.end_us) ELSE changed.end_us END),
             open_key = CASE WHEN changed.closes THEN NULL ELSE open_key END
         FROM locked, unnest($1::text[], $2::bigint[], $3::boolean[]) AS changed (key, end_us, closes)
         WHERE usage_span.number = locked.number AND open_key = changed.key",
        &keys,
        &ends_us,
        &closes,
    );
    update.execute(db).await.map(drop)
}

/// A column of rows.
pub(crate) fn column<'a, R, T>(rows: &'a [R], of: impl FnMut(&'a R) -> T) -> Vec<T> {
    rows.iter().map(of).collect()
}

fn amount(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

async fn open(db: &mut PgConnection, spans: &[Span]) -> Result<(), sqlx::Error> {
    if spans.is_empty() {
        return Ok(());
    }
    let keys: Vec<Option<String>> = column(spans, |span| span.open.then(|| span.key()));
    let kinds: Vec<String> = column(spans, |span| span.held.kind().name().to_owned());
    let things: Vec<Option<Uuid>> = column(spans, |span| thing(span.held).map(uuid));
    let hosts: Vec<Option<i64>> = column(spans, |span| span.host.map(|host| host.0.cast_signed()));
    let pools: Vec<Option<String>> = column(spans, |span| maybe(span.pool.as_deref()));
    let flavors: Vec<Option<String>> = column(spans, |span| maybe(span.flavor.as_deref()));
    let leases: Vec<Option<Uuid>> = column(spans, |span| span.lease.map(|id| uuid(id.0)));
    let reservations: Vec<Option<Uuid>> = column(spans, |span| span.reservation.map(|id| uuid(id.0)));
    let projects: Vec<String> = column(spans, |span| text(&span.owner.project.0).into_owned());
    let users: Vec<String> = column(spans, |span| text(&span.owner.user.0).into_owned());
    let types: Vec<Option<String>> = column(spans, |span| maybe(span.lease_type.as_deref()));
    let insertion = sqlx::query!(
        "INSERT INTO usage_span (open_key, kind, thing, host, pool, count, cores, memory_mib, disk_gib, lease,
             reservation, project, user_id, lease_type, begins, starts_us, ends_us, flavor)
         SELECT open_key, kind, thing, host, pool, count, cores, memory_mib, disk_gib, lease, reservation,
             project, user_id, lease_type, begins, starts_us, ends_us, flavor
         FROM unnest($1::text[], $2::text[], $3::uuid[], $4::bigint[], $5::text[], $6::bigint[], $7::bigint[],
             $8::bigint[], $9::bigint[], $10::uuid[], $11::uuid[], $12::text[], $13::text[], $14::text[],
             $15::boolean[], $16::bigint[], $17::bigint[], $18::text[])
             WITH ORDINALITY AS new (open_key, kind, thing, host, pool, count, cores, memory_mib, disk_gib,
                 lease, reservation, project, user_id, lease_type, begins, starts_us, ends_us, flavor, position)
         ORDER BY position
         ON CONFLICT (open_key) DO NOTHING",
        &keys as &[Option<String>],
        &kinds,
        &things as &[Option<Uuid>],
        &hosts as &[Option<i64>],
        &pools as &[Option<String>],
        &column(spans, |span| amount(span.size.count)),
        &column(spans, |span| amount(span.size.cores)),
        &column(spans, |span| amount(span.size.memory_mib)),
        &column(spans, |span| amount(span.size.disk_gib)),
        &leases as &[Option<Uuid>],
        &reservations as &[Option<Uuid>],
        &projects,
        &users,
        &types as &[Option<String>],
        &column(spans, |span| span.begins),
        &column(spans, |span| us(span.window.start())),
        &column(spans, |span| us(span.window.end())),
        &flavors as &[Option<String>],
    );
    insertion.execute(db).await.map(drop)
}

/// Text for a nullable column.
pub(crate) fn maybe(some: Option<&str>) -> Option<String> {
    maybe_text(some).map(Cow::into_owned)
}

/// Sums of spans. A single lease or project has few spans, which an index finds.
pub(crate) async fn sums(db: &mut PgConnection, query: &Query) -> Result<Vec<Sum>, TxError> {
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
async fn sums_of_all(db: &mut PgConnection, query: &Query) -> Result<Vec<Sum>, TxError> {
    let starts: Vec<i64> = column(&query.periods, |period| us(period.start()));
    let ends: Vec<i64> = column(&query.periods, |period| us(period.end()));
    let by = query.by;
    let user = maybe(query.user.as_ref().map(|user| user.0.as_str()));
    let pool = maybe(query.pool.as_deref());
    let rows = sqlx::query!(
        r#"SELECT position AS "period!",
             CASE WHEN $3 THEN project END AS project, CASE WHEN $4 THEN user_id END AS user_id,
             CASE WHEN $5 THEN pool END AS pool, CASE WHEN $6 THEN lease END AS lease,
             CASE WHEN $7 THEN lease_type END AS lease_type, CASE WHEN $10 THEN flavor END AS flavor,
             kind AS "kind!",
             lease IS NOT NULL AS "leased!", count AS "count!", cores AS "cores!",
             memory_mib AS "memory_mib!", disk_gib AS "disk_gib!",
             sum(time_us / 1000000)::bigint AS "seconds!", sum(time_us % 1000000)::bigint AS "rest_us!",
             count(*) FILTER (WHERE begun) AS "begun!"
         FROM (
             SELECT position, project, user_id, pool, flavor, lease, lease_type, kind, count, cores,
                 memory_mib, disk_gib,
                 greatest(least(ends_us, period.end_us) - greatest(starts_us, period.start_us), 0) AS time_us,
                 begins AND starts_us >= period.start_us AND starts_us < period.end_us AS begun
             FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY
                 AS period (start_us, end_us, position)
             JOIN usage_span ON ends_us >= period.start_us AND starts_us < period.end_us
             WHERE ($8::text IS NULL OR user_id = $8) AND ($9::text IS NULL OR pool = $9)
         ) AS part
         WHERE time_us > 0 OR begun
         GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13"#,
        &starts,
        &ends,
        by.project,
        by.user,
        by.pool,
        by.lease,
        by.lease_type,
        user,
        pool,
        by.flavor,
    );
    let rows = rows.fetch_all(db).await?;
    let read = rows.into_iter().map(|row| {
        let group = Group {
            period: number::<usize>(row.period - 1)?,
            project: row.project.map(|name| ProjectId(plain(name))),
            user: row.user_id.map(|name| UserId(plain(name))),
            pool: row.pool.map(plain),
            flavor: row.flavor.map(plain),
            lease: row.lease.map(|id| LeaseId(id.as_u128())),
            lease_type: row.lease_type.map(plain),
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
    let mut read = read.collect::<Result<Vec<Sum>, TxError>>()?;
    read.sort_unstable();
    Ok(read)
}

/// Events after number `after` that match the filter.
pub(crate) async fn events(
    db: &mut PgConnection,
    filter: &UsageFilter,
    after: u64,
    limit: u32,
) -> Result<Vec<(u64, Event)>, TxError> {
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let from_us = filter.period.map(|period| us(period.start()));
    let to_us = filter.period.map(|period| us(period.end()));
    let project = maybe(filter.project.as_ref().map(|project| project.0.as_str()));
    let lease = filter.lease.map(|lease| uuid(lease.0));
    let what = filter.what.map(Occurrence::name);
    let rows = sqlx::query!(
        "SELECT number, at_us, what, lease, instance, project, user_id, lease_type, status, starts_us,
             ends_us, hosts, reason
         FROM usage_event
         WHERE number > $1 AND ($2::bigint IS NULL OR at_us >= $2) AND ($3::bigint IS NULL OR at_us < $3)
           AND ($4::text IS NULL OR project = $4) AND ($5::uuid IS NULL OR lease = $5)
           AND ($6::text IS NULL OR what = $6)
         ORDER BY number LIMIT $7",
        after,
        from_us,
        to_us,
        project,
        lease,
        what,
        i64::from(limit),
    );
    let rows = rows.fetch_all(db).await?;
    let read = rows.into_iter().map(|row| {
        let event = Event {
            at: instant(row.at_us)?,
            what: named("occurrence", &row.what, Occurrence::from_name)?,
            lease: row.lease.map(|id| LeaseId(id.as_u128())),
            instance: row.instance.map(|id| GuestId(id.as_u128())),
            owner: Owner { project: ProjectId(plain(row.project)), user: UserId(plain(row.user_id)) },
            lease_type: row.lease_type.map(plain),
            status: plain(row.status),
            window: row.starts_us.zip(row.ends_us).map(|(start, end)| window(start, end)).transpose()?,
            hosts: hosts_from_json(&row.hosts)?,
            reason: row.reason.map(plain),
        };
        Ok((row.number.cast_unsigned(), event))
    });
    read.collect()
}

/// A row of the table of spans.
struct Row {
    open_key: Option<String>,
    kind: String,
    thing: Option<Uuid>,
    host: Option<i64>,
    pool: Option<String>,
    flavor: Option<String>,
    count: i64,
    cores: i64,
    memory_mib: i64,
    disk_gib: i64,
    lease: Option<Uuid>,
    reservation: Option<Uuid>,
    project: String,
    user_id: String,
    lease_type: Option<String>,
    begins: bool,
    starts_us: i64,
    ends_us: i64,
}

impl Row {
    fn span(self) -> Result<Span, TxError> {
        Ok(Span {
            held: held(&self.kind, self.thing.map(|id| id.as_u128()))?,
            host: self.host.map(|host| HostId(host.cast_unsigned())),
            pool: self.pool.map(plain),
            flavor: self.flavor.map(plain),
            size: Size {
                count: number(self.count)?,
                cores: number(self.cores)?,
                memory_mib: number(self.memory_mib)?,
                disk_gib: number(self.disk_gib)?,
            },
            lease: self.lease.map(|id| LeaseId(id.as_u128())),
            reservation: self.reservation.map(|id| ReservationId(id.as_u128())),
            owner: Owner { project: ProjectId(plain(self.project)), user: UserId(plain(self.user_id)) },
            lease_type: self.lease_type.map(plain),
            begins: self.begins,
            window: window(self.starts_us, self.ends_us)?,
            open: self.open_key.is_some(),
        })
    }
}

/// All spans, in the order in which they were added.
pub(crate) async fn spans(db: &mut PgConnection) -> Result<Vec<Span>, TxError> {
    let rows = sqlx::query_as!(
        Row,
        "SELECT open_key, kind, thing, host, pool, flavor, count, cores, memory_mib, disk_gib, lease, reservation,
             project, user_id, lease_type, begins, starts_us, ends_us
         FROM usage_span ORDER BY number"
    );
    rows.fetch_all(db).await?.into_iter().map(Row::span).collect()
}

/// Open spans, ordered by key.
pub(crate) async fn open_spans(db: &mut PgConnection) -> Result<Vec<Span>, TxError> {
    let rows = sqlx::query_as!(
        Row,
        r#"SELECT open_key, kind, thing, host, pool, flavor, count, cores, memory_mib, disk_gib, lease, reservation,
             project, user_id, lease_type, begins, starts_us, ends_us
         FROM usage_span WHERE open_key IS NOT NULL ORDER BY open_key COLLATE "C""#
    );
    rows.fetch_all(db).await?.into_iter().map(Row::span).collect()
}

async fn of_lease(db: &mut PgConnection, lease: LeaseId) -> Result<Vec<Span>, TxError> {
    let rows = sqlx::query_as!(
        Row,
        "SELECT open_key, kind, thing, host, pool, flavor, count, cores, memory_mib, disk_gib, lease, reservation,
             project, user_id, lease_type, begins, starts_us, ends_us
         FROM usage_span WHERE lease = $1",
        uuid(lease.0),
    );
    rows.fetch_all(db).await?.into_iter().map(Row::span).collect()
}

/// Spans of a project that end at `since_us` or later.
async fn of_project(db: &mut PgConnection, project: &ProjectId, since_us: i64) -> Result<Vec<Span>, TxError> {
    let rows = sqlx::query_as!(
        Row,
        "SELECT open_key, kind, thing, host, pool, flavor, count, cores, memory_mib, disk_gib, lease, reservation,
             project, user_id, lease_type, begins, starts_us, ends_us
         FROM usage_span WHERE project = $1 AND ends_us >= $2",
        &text(&project.0),
        since_us,
    );
    rows.fetch_all(db).await?.into_iter().map(Row::span).collect()
}

/// Windows in which something was held on hosts, if they overlap `period`.
pub(crate) async fn held_hosts(
    db: &mut PgConnection,
    period: &Window,
) -> Result<Vec<(HostId, Window)>, TxError> {
    let rows = sqlx::query!(
        r#"SELECT DISTINCT host AS "host!", starts_us, ends_us FROM usage_span
         WHERE host IS NOT NULL AND ends_us > $1 AND starts_us < $2"#,
        us(period.start()),
        us(period.end()),
    );
    let rows = rows.fetch_all(db).await?.into_iter();
    let read = rows.map(|row| Ok((HostId(row.host.cast_unsigned()), window(row.starts_us, row.ends_us)?)));
    let mut held = read.collect::<Result<Vec<_>, TxError>>()?;
    held.sort_unstable_by_key(|(host, window)| (*host, window.start(), window.end()));
    Ok(held)
}

/// Deletes closed spans that ended before `before`, and events from before it, at most `limit` of each.
/// Returns whether a limit was reached.
pub(crate) async fn prune(db: &mut PgConnection, before: Timestamp, limit: u32) -> Result<bool, TxError> {
    let (before_us, rows) = (us(before), i64::from(limit));
    let spans = sqlx::query!(
        "DELETE FROM usage_span WHERE number IN
         (SELECT number FROM usage_span WHERE ends_us < $1 AND open_key IS NULL LIMIT $2)",
        before_us,
        rows,
    );
    let spans = spans.execute(&mut *db).await?.rows_affected();
    let events = sqlx::query!(
        "DELETE FROM usage_event WHERE number IN (SELECT number FROM usage_event WHERE at_us < $1 LIMIT $2)",
        before_us,
        rows,
    );
    let events = events.execute(db).await?.rows_affected();
    Ok(spans.max(events) >= u64::from(limit))
}
