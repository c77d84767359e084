//! Identity of the store, and the last mark of the machine's clock.

use jiff::SignedDuration;
use sqlx::SqliteConnection;
use store::{ClockMark, Origin, StoreError};

use crate::columns::{instant, us};
use crate::error::unavailable;

pub(crate) async fn read(db: &mut SqliteConnection) -> Result<Origin, StoreError> {
    let read = sqlx::query_as("SELECT id, last FROM origin, fence").fetch_one(db).await;
    let (id, last): (String, i64) = read.map_err(unavailable)?;
    Ok(Origin { id: Some(id), last_fence: last.cast_unsigned() })
}

pub(crate) async fn set(db: &mut SqliteConnection, id: &str) -> Result<(), sqlx::Error> {
    sqlx::query("UPDATE origin SET id = ?").bind(id).execute(db).await.map(drop)
}

pub(crate) async fn mark(db: &mut SqliteConnection) -> Result<Option<ClockMark>, StoreError> {
    let read = sqlx::query_as("SELECT at_us, steady_us, boot FROM clock_mark").fetch_optional(db).await;
    let Some((at_us, steady_us, boot)): Option<(i64, i64, String)> = read.map_err(unavailable)? else {
        return Ok(None);
    };
    Ok(Some(ClockMark { at: instant(at_us)?, steady: SignedDuration::from_micros(steady_us), boot }))
}

pub(crate) async fn set_mark(db: &mut SqliteConnection, mark: &ClockMark) -> Result<(), StoreError> {
    let steady_us = i64::try_from(mark.steady.as_micros()).unwrap_or(i64::MAX);
    let insertion =
        sqlx::query("INSERT OR REPLACE INTO clock_mark (one, at_us, steady_us, boot) VALUES (1, ?, ?, ?)");
    let insertion = insertion.bind(us(mark.at)).bind(steady_us).bind(&mark.boot);
    insertion.execute(db).await.map(drop).map_err(unavailable)
}
