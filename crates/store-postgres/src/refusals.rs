//! Counts of refused requests.

use std::collections::BTreeSet;

use jiff::Timestamp;
use leases::project::ProjectId;
use leases::shortage::Shortage;
use leases::window::Window;
use sqlx::PgConnection;
use store::{REFUSAL_RECORDS, RefusalFilter, RefusalRecord, StoreError, most_refused};

use crate::columns::{instant, number, plain, text, us};
use crate::error::TxError;
use crate::feed::column;

/// Adds to the counts, then deletes the oldest rows of projects that have too many. Services that add to the same rows do so
/// in one order.
pub(crate) async fn add(db: &mut PgConnection, refusals: &[RefusalRecord]) -> Result<(), TxError> {
    if refusals.is_empty() {
        return Ok(());
    }
    let days_us: Vec<i64> = refusals.iter().map(|record| us(record.day)).collect();
    let missing = |record: &RefusalRecord| i64::from(record.shortage.missing.unwrap_or_default());
    let missing: Vec<i64> = refusals.iter().map(missing).collect();
    let refused: Vec<i64> = refusals.iter().map(|record| record.refused.cast_signed()).collect();
    let insertion = sqlx::query!(
        "INSERT INTO refusal AS known (project, day_us, resource_type, kind, missing, refused)
         SELECT project, day_us, resource_type, kind, missing, sum(refused)::bigint
         FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::bigint[])
             AS new (project, day_us, resource_type, kind, missing, refused)
         GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5
         ON CONFLICT (project, day_us, resource_type, kind, missing) DO UPDATE SET
             refused = known.refused + excluded.refused",
        &column(refusals, |record| &record.project.0),
        &days_us,
        &column(refusals, |record| &record.shortage.resource_type),
        &column(refusals, |record| &record.shortage.kind),
        &missing,
        &refused,
    );
    insertion.execute(&mut *db).await?;
    let projects: BTreeSet<&ProjectId> = refusals.iter().map(|record| &record.project).collect();
    for project in projects {
        let deletion = sqlx::query!(
            "DELETE FROM refusal WHERE (project, day_us, resource_type, kind, missing) IN (
                 SELECT project, day_us, resource_type, kind, missing FROM refusal WHERE project = $1
                 ORDER BY day_us DESC, resource_type, kind, missing OFFSET $2
             )",
            &text(&project.0),
            i64::from(REFUSAL_RECORDS),
        );
        deletion.execute(&mut *db).await?;
    }
    Ok(())
}

/// Sums by shortage, of the kinds that were refused most often. A project has few rows, which are summed here.
pub(crate) async fn sums(
    db: &mut PgConnection,
    filter: &RefusalFilter,
    kinds: u32,
) -> Result<Vec<(Shortage, u64)>, TxError> {
    match &filter.project {
        Some(project) => Ok(most_refused(of_project(db, project, &filter.days).await?, kinds)),
        None => sums_of_all(db, &filter.days, kinds).await,
    }
}

async fn of_project(
    db: &mut PgConnection,
    project: &ProjectId,
    days: &Window,
) -> Result<Vec<(Shortage, u64)>, TxError> {
    let rows = sqlx::query!(
        "SELECT resource_type, kind, missing, refused FROM refusal
         WHERE project = $1 AND day_us >= $2 AND day_us < $3",
        &text(&project.0),
        us(days.start()),
        us(days.end()),
    );
    let read =
        rows.fetch_all(db).await?.into_iter().map(|row| {
            Ok((shortage(row.resource_type, row.kind, row.missing)?, row.refused.cast_unsigned()))
        });
    read.collect()
}

async fn sums_of_all(
    db: &mut PgConnection,
    days: &Window,
    kinds: u32,
) -> Result<Vec<(Shortage, u64)>, TxError> {
    let rows = sqlx::query!(
        r#"WITH known AS MATERIALIZED (
             SELECT resource_type, kind, missing, sum(refused)::bigint AS refused FROM refusal
             WHERE day_us >= $1 AND day_us < $2 GROUP BY resource_type, kind, missing
         ), most AS (
             SELECT resource_type, kind FROM known GROUP BY resource_type, kind
             ORDER BY sum(refused) DESC, resource_type, kind LIMIT $3
         )
         SELECT resource_type AS "resource_type!", kind AS "kind!", missing AS "missing!", refused AS "refused!"
         FROM known JOIN most USING (resource_type, kind) ORDER BY resource_type, kind, missing"#,
        us(days.start()),
        us(days.end()),
        i64::from(kinds),
    );
    let read =
        rows.fetch_all(db).await?.into_iter().map(|row| {
            Ok((shortage(row.resource_type, row.kind, row.missing)?, row.refused.cast_unsigned()))
        });
    read.collect()
}

fn shortage(resource_type: String, kind: String, missing: i64) -> Result<Shortage, StoreError> {
    let missing: u32 = number(missing)?;
    let missing = (missing > 0).then_some(missing);
    Ok(Shortage { resource_type: plain(resource_type), kind: plain(kind), missing })
}

pub(crate) async fn all(db: &mut PgConnection) -> Result<Vec<RefusalRecord>, TxError> {
    let rows = sqlx::query!(
        "SELECT project, day_us, resource_type, kind, missing, refused FROM refusal
         ORDER BY project, day_us, resource_type, kind, missing"
    );
    let read = rows.fetch_all(db).await?.into_iter().map(|row| {
        Ok(RefusalRecord {
            project: ProjectId(plain(row.project)),
            day: instant(row.day_us)?,
            shortage: shortage(row.resource_type, row.kind, row.missing)?,
            refused: row.refused.cast_unsigned(),
        })
    });
    read.collect()
}

/// Deletes refusals of days that began before `before`, at most `limit`. Returns whether the limit was
/// reached.
pub(crate) async fn prune(db: &mut PgConnection, before: Timestamp, limit: u32) -> Result<bool, TxError> {
    let deletion = sqlx::query!(
        "DELETE FROM refusal WHERE (project, day_us, resource_type, kind, missing) IN (
             SELECT project, day_us, resource_type, kind, missing FROM refusal WHERE day_us < $1 LIMIT $2
         )",
        us(before),
        i64::from(limit),
    );
    Ok(deletion.execute(db).await?.rows_affected() >= u64::from(limit))
}
