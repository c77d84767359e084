//! Periods in which hosts were off.

use jiff::{SignedDuration, Timestamp};
use leases::energy::Sleep;
use leases::free_pool::FreePool;
use leases::ids::{FreePoolId, HostId};
use leases::window::Window;
use sqlx::SqliteConnection;
use store::StoreError;

use crate::columns::{number, us, uuid, window};
use crate::error::unavailable;

/// Adds periods that have ended.
pub(crate) async fn write(db: &mut SqliteConnection, slept: &[Sleep]) -> Result<(), StoreError> {
    for sleep in slept {
        let host = sleep.host.0.cast_signed();
        let pool = (sleep.pool != FreePool::DEFAULT).then(|| sleep.pool.0.to_be_bytes().to_vec());
        let (starts_us, ends_us) = (us(sleep.window.start()), us(sleep.window.end()));
        let boot_us = sleep.boot.map(|boot| i64::try_from(boot.as_micros()).unwrap_or(i64::MAX));
        let insertion = sqlx::query!(
            "INSERT INTO host_sleep (host, free_pool, starts_us, ends_us, saved_milliwatts, off_milliwatts,
                 boot_us, failed)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            host,
            pool,
            starts_us,
            ends_us,
            sleep.saved_milliwatts,
            sleep.off_milliwatts,
            boot_us,
            sleep.failed,
        );
        insertion.execute(&mut *db).await.map_err(unavailable)?;
    }
    Ok(())
}

/// Periods that overlap or end at the start of `period`, in the order in which they were added.
pub(crate) async fn read(db: &mut SqliteConnection, period: &Window) -> Result<Vec<Sleep>, StoreError> {
    let (from_us, to_us) = (us(period.start()), us(period.end()));
    let rows = sqlx::query!(
        r#"SELECT host, free_pool, starts_us, ends_us, saved_milliwatts, off_milliwatts, boot_us,
             failed AS "failed: bool"
         FROM host_sleep WHERE ends_us >= ? AND starts_us < ? ORDER BY number"#,
        from_us,
        to_us,
    );
    let read = rows.fetch_all(db).await.map_err(unavailable)?.into_iter().map(|row| {
        Ok(Sleep {
            host: HostId(row.host.cast_unsigned()),
            pool: row.free_pool.map_or(Ok(FreePool::DEFAULT), |id| uuid(&id).map(FreePoolId))?,
            window: window(row.starts_us, row.ends_us)?,
            saved_milliwatts: number(row.saved_milliwatts)?,
            off_milliwatts: number(row.off_milliwatts)?,
            over: true,
            boot: row.boot_us.map(SignedDuration::from_micros),
            failed: row.failed,
        })
    });
    read.collect()
}

/// Deletes periods that ended before `before`, at most `limit`. Returns whether the limit was reached.
pub(crate) async fn prune(
    db: &mut SqliteConnection,
    before: Timestamp,
    limit: u32,
) -> Result<bool, StoreError> {
    let before_us = us(before);
    let deletion = sqlx::query!(
        "DELETE FROM host_sleep WHERE number IN (SELECT number FROM host_sleep WHERE ends_us < ?1 LIMIT ?2)",
        before_us,
        limit,
    );
    let deleted = deletion.execute(db).await.map_err(unavailable)?.rows_affected();
    Ok(deleted >= u64::from(limit))
}
