//! Fences, results of steps, and leaders.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use leases::plan::Action;
use sqlx::SqliteConnection;
use store::encoding::{Outcomes, action_key, json};
use store::{Holder, RecordKey, StoreError};

use crate::columns::us;
use crate::error::unavailable;

/// Gives out `count` fences. Returns the last.
pub(crate) async fn take_fences(db: &mut SqliteConnection, count: i64) -> Result<i64, StoreError> {
    let last = sqlx::query_scalar!("UPDATE fence SET last = last + ? RETURNING last", count);
    last.fetch_one(db).await.map_err(unavailable)
}

/// Records results, as [`leases::plan::History`] does. Returns the steps with a changed history.
pub(crate) async fn finish(
    db: &mut SqliteConnection,
    outcomes: Outcomes<'_>,
    now: Timestamp,
) -> Result<BTreeSet<RecordKey>, StoreError> {
    let now_us = us(now);
    let counted = outcomes.counted();
    let mut changed = BTreeSet::new();
    for (step, action, message) in counted.failed {
        failed(db, &step, now_us, message).await.map_err(unavailable)?;
        changed.insert(RecordKey::Step(action));
    }
    changed.append(&mut note_successes(db, &counted.succeeded, now_us).await.map_err(unavailable)?);
    Ok(changed)
}

/// Deletes the failures of these steps, and records the time of snapshots. Returns the steps with a changed
/// history.
async fn note_successes(
    db: &mut SqliteConnection,
    succeeded: &BTreeMap<String, Action>,
    now_us: i64,
) -> Result<BTreeSet<RecordKey>, sqlx::Error> {
    let steps = json(&succeeded.keys().collect::<Vec<_>>());
    let had_failed = sqlx::query_scalar!(
        "DELETE FROM step_failure WHERE step IN (SELECT value FROM json_each(?)) RETURNING step",
        steps,
    );
    let had_failed = had_failed.fetch_all(&mut *db).await?;
    let mut changed: BTreeSet<_> =
        had_failed.iter().filter_map(|step| succeeded.get(step)).copied().map(RecordKey::Step).collect();
    for (step, action) in succeeded {
        if action.is_remembered() {
            let noted = sqlx::query!(
                "INSERT INTO step_success (step, at_us) VALUES (?1, ?2)
                 ON CONFLICT (step) DO UPDATE SET at_us = ?2",
                step,
                now_us,
            );
            noted.execute(&mut *db).await?;
            changed.insert(RecordKey::Step(*action));
        }
    }
    Ok(changed)
}

async fn failed(
    db: &mut SqliteConnection,
    step: &str,
    now_us: i64,
    message: &str,
) -> Result<(), sqlx::Error> {
    let noted = sqlx::query!(
        "INSERT INTO step_failure (step, times, last_at_us, message) VALUES (?1, 1, ?2, ?3)
         ON CONFLICT (step) DO UPDATE SET times = min(times + 1, 4294967295), last_at_us = ?2, message = ?3",
        step,
        now_us,
        message,
    );
    noted.execute(&mut *db).await?;
    Ok(())
}

/// Deletes the history of steps. Returns the steps that had any.
pub(crate) async fn prune(
    db: &mut SqliteConnection,
    gone: &[Action],
) -> Result<BTreeSet<RecordKey>, StoreError> {
    let mut changed = BTreeSet::new();
    for &action in gone {
        let step = action_key(action);
        let failure = sqlx::query!("DELETE FROM step_failure WHERE step = ?", step);
        let failures = failure.execute(&mut *db).await.map_err(unavailable)?.rows_affected();
        let success = sqlx::query!("DELETE FROM step_success WHERE step = ?", step);
        let successes = success.execute(&mut *db).await.map_err(unavailable)?.rows_affected();
        if failures + successes > 0 {
            changed.insert(RecordKey::Step(action));
        }
    }
    Ok(changed)
}

/// Makes `holder` the leader, unless another holder leads. Returns whether it leads.
pub(crate) async fn lead(
    db: &mut SqliteConnection,
    role: &str,
    holder: &Holder,
    now: Timestamp,
    until: Timestamp,
) -> Result<bool, StoreError> {
    let (now_us, until_us) = (us(now), us(until));
    let taken = sqlx::query!(
        "INSERT INTO leader (role, holder, until_us) VALUES (?1, ?2, ?3)
         ON CONFLICT (role) DO UPDATE SET holder = ?2, until_us = ?3 WHERE holder = ?2 OR until_us <= ?4",
        role,
        holder.0,
        until_us,
        now_us,
    );
    let taken = taken.execute(db).await.map_err(unavailable)?.rows_affected() == 1;
    Ok(taken && now < until)
}
