//! Periods in which hosts were off.

use jiff::{SignedDuration, Timestamp};
use leases::energy::Sleep;
use leases::free_pool::FreePool;
use leases::ids::{FreePoolId, HostId};
use leases::window::Window;
use sqlx::PgConnection;

use crate::columns::{number, us, uuid, window};
use crate::error::TxError;

/// Adds periods that have ended.
pub(crate) async fn write(db: &mut PgConnection, slept: &[Sleep]) -> Result<(), TxError> {
    for sleep in slept {
        let insertion = sqlx::query!(
            "INSERT INTO host_sleep (host, free_pool, starts_us, ends_us, saved_milliwatts, off_milliwatts,
                 boot_us, failed)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
            sleep.host.0.cast_signed(),
            (sleep.pool != FreePool::DEFAULT).then(|| uuid(sleep.pool.0)),
            us(sleep.window.start()),
            us(sleep.window.end()),
            i64::from(sleep.saved_milliwatts),
            i64::from(sleep.off_milliwatts),
            sleep.boot.map(|boot| i64::try_from(boot.as_micros()).unwrap_or(i64::MAX)),
            sleep.failed,
        );
        insertion.execute(&mut *db).await?;
    }
    Ok(())
}

/// Periods that overlap or end at the start of `period`, in the order in which they were added.
pub(crate) async fn read(db: &mut PgConnection, period: &Window) -> Result<Vec<Sleep>, TxError> {
    let rows = sqlx::query!(
        "SELECT host, free_pool, starts_us, ends_us, saved_milliwatts, off_milliwatts, boot_us, failed
         FROM host_sleep WHERE ends_us >= $1 AND starts_us < $2 ORDER BY number",
        us(period.start()),
        us(period.end()),
    );
    let read = rows.fetch_all(db).await?.into_iter().map(|row| {
        Ok(Sleep {
            host: HostId(row.host.cast_unsigned()),
            pool: row.free_pool.map_or(FreePool::DEFAULT, |id| FreePoolId(id.as_u128())),
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
pub(crate) async fn prune(db: &mut PgConnection, before: Timestamp, limit: u32) -> Result<bool, TxError> {
    let deletion = sqlx::query!(
        "DELETE FROM host_sleep WHERE number IN (SELECT number FROM host_sleep WHERE ends_us < $1 LIMIT $2)",
        us(before),
        i64::from(limit),
    );
    Ok(deletion.execute(db).await?.rows_affected() >= u64::from(limit))
}
