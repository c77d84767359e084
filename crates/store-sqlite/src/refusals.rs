//! Counts of refused requests.

use std::collections::BTreeSet;

use jiff::Timestamp;
use leases::project::ProjectId;
use leases::shortage::Shortage;
use leases::window::Window;
use sqlx::SqliteConnection;
use store::encoding::json;
use store::{REFUSAL_RECORDS, RefusalFilter, RefusalRecord, StoreError, most_refused};

use crate::columns::{instant, number, us};
use crate::error::unavailable;

/// Adds to the counts, then deletes the oldest rows of projects that have too many.
pub(crate) async fn add(db: &mut SqliteConnection, refusals: &[RefusalRecord]) -> Result<(), StoreError> {
    if refusals.is_empty() {
        return Ok(());
    }
    let rows = refusals.iter().map(|record| {
        let Shortage { resource_type, kind, missing } = &record.shortage;
        let missing = missing.unwrap_or_default();
        (&record.project.0, us(record.day), resource_type, kind, missing, record.refused)
    });
    let rows = json(&rows.collect::<Vec<_>>());
    let insertion = sqlx::query!(
        "INSERT INTO refusal (project, day_us, resource_type, kind, missing, refused)
         SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5
         FROM json_each(?) WHERE true ORDER BY key
         ON CONFLICT (project, day_us, resource_type, kind, missing) DO UPDATE SET
             refused = refused + excluded.refused",
        rows,
    );
    insertion.execute(&mut *db).await.map_err(unavailable)?;
    let projects: BTreeSet<&ProjectId> = refusals.iter().map(|record| &record.project).collect();
    for project in projects {
        let deletion = sqlx::query!(
            "DELETE FROM refusal WHERE (project, day_us, resource_type, kind, missing) IN (
                 SELECT project, day_us, resource_type, kind, missing FROM refusal WHERE project = ?1
                 ORDER BY day_us DESC, resource_type, kind, missing LIMIT -1 OFFSET ?2
             )",
            project.0,
            REFUSAL_RECORDS,
        );
        deletion.execute(&mut *db).await.map_err(unavailable)?;
    }
    Ok(())
}

/// Sums by shortage, of the kinds that were refused most often. A project has few rows, which are summed here.
pub(crate) async fn sums(
    db: &mut SqliteConnection,
    filter: &RefusalFilter,
    kinds: u32,
) -> Result<Vec<(Shortage, u64)>, StoreError> {
    match &filter.project {
        Some(project) => Ok(most_refused(of_project(db, project, &filter.days).await?, kinds)),
        None => sums_of_all(db, &filter.days, kinds).await,
    }
}

async fn of_project(
    db: &mut SqliteConnection,
    project: &ProjectId,
    days: &Window,
) -> Result<Vec<(Shortage, u64)>, StoreError> {
    let (from_us, to_us) = (us(days.start()), us(days.end()));
    let rows = sqlx::query!(
        "SELECT resource_type, kind, missing, refused FROM refusal
         WHERE project = ? AND day_us >= ? AND day_us < ?",
        project.0,
        from_us,
        to_us,
    );
    let rows = rows.fetch_all(db).await.map_err(unavailable)?.into_iter();
    let read = rows
        .map(|row| Ok((shortage(row.resource_type, row.kind, row.missing)?, row.refused.cast_unsigned())));
    read.collect()
}

async fn sums_of_all(
    db: &mut SqliteConnection,
    days: &Window,
    kinds: u32,
) -> Result<Vec<(Shortage, u64)>, StoreError> {
    let (from_us, to_us) = (us(days.start()), us(days.end()));
    let rows = sqlx::query!(
        r#"WITH known AS MATERIALIZED (
             SELECT resource_type, kind, missing, sum(refused) AS refused FROM refusal
             WHERE day_us >= ?1 AND day_us < ?2 GROUP BY resource_type, kind, missing
         ), most AS (
             SELECT resource_type, kind FROM known GROUP BY resource_type, kind
             ORDER BY sum(refused) DESC, resource_type, kind LIMIT ?3
         )
         SELECT resource_type AS "resource_type!: String", kind AS "kind!: String", missing AS "missing!: i64",
             refused AS "refused!: i64"
         FROM known JOIN most USING (resource_type, kind) ORDER BY resource_type, kind, missing"#,
        from_us,
        to_us,
        kinds,
    );
    let rows = rows.fetch_all(db).await.map_err(unavailable)?.into_iter();
    let read = rows
        .map(|row| Ok((shortage(row.resource_type, row.kind, row.missing)?, row.refused.cast_unsigned())));
    read.collect()
}

fn shortage(resource_type: String, kind: String, missing: i64) -> Result<Shortage, StoreError> {
    let missing: u32 = number(missing)?;
    let missing = (missing > 0).then_some(missing);
    Ok(Shortage { resource_type, kind, missing })
}

pub(crate) async fn all(db: &mut SqliteConnection) -> Result<Vec<RefusalRecord>, StoreError> {
    let rows = sqlx::query!(
        "SELECT project, day_us, resource_type, kind, missing, refused FROM refusal
         ORDER BY project, day_us, resource_type, kind, missing"
    );
    let rows = rows.fetch_all(db).await.map_err(unavailable)?.into_iter();
    let read = rows.map(|row| {
        Ok(RefusalRecord {
            project: ProjectId(row.project),
            day: instant(row.day_us)?,
            shortage: shortage(row.resource_type, row.kind, row.missing)?,
            refused: row.refused.cast_unsigned(),
        })
    });
    read.collect()
}

/// Deletes refusals of days that began before `before`, at most `limit`. Returns whether the limit was
/// reached.
pub(crate) async fn prune(
    db: &mut SqliteConnection,
    before: Timestamp,
    limit: u32,
) -> Result<bool, StoreError> {
    let before_us = us(before);
    let deletion = sqlx::query!(
        "DELETE FROM refusal WHERE (project, day_us, resource_type, kind, missing) IN (
             SELECT project, day_us, resource_type, kind, missing FROM refusal WHERE day_us < ?1 LIMIT ?2
         )",
        before_us,
        limit,
    );
    let deleted = deletion.execute(db).await.map_err(unavailable)?.rows_affected();
    Ok(deleted >= u64::from(limit))
}
