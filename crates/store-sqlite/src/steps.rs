//! Claims of steps and what became of steps; who leads.

use std::collections::BTreeSet;

use jiff::Timestamp;
use leases::plan::Action;
use sqlx::SqliteConnection;
use store::encoding::action_key;
use store::{Claim, Finished, Holder, RecordKey, StoreError};

use crate::columns::us;
use crate::error::unavailable;

/// Claims those that are not claimed, or whose claim is over.
pub(crate) async fn claim(
    db: &mut SqliteConnection,
    actions: &[Action],
    holder: &Holder,
    now: Timestamp,
    until: Timestamp,
) -> Result<Vec<Claim>, StoreError> {
    let (now_us, until_us) = (us(now), us(until));
    let last =
        sqlx::query_scalar!("SELECT last FROM fence").fetch_one(&mut *db).await.map_err(unavailable)?;
    let mut fence = last;
    let mut claims = Vec::new();
    for &action in actions {
        let step = action_key(action);
        let next = fence + 1;
        let claimed = sqlx::query!(
            "INSERT INTO step_claim (step, holder, fence, until_us) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (step) DO UPDATE SET holder = ?2, fence = ?3, until_us = ?4 WHERE until_us <= ?5",
            step,
            holder.0,
            next,
            until_us,
            now_us,
        );
        if claimed.execute(&mut *db).await.map_err(unavailable)?.rows_affected() == 1 {
            fence = next;
            claims.push(Claim { action, fence: next.cast_unsigned() });
        }
    }
    sqlx::query!("UPDATE fence SET last = ?", fence).execute(&mut *db).await.map_err(unavailable)?;
    Ok(claims)
}

/// Gives up claims and records results, as [`leases::plan::History`] does. Returns the steps that have another
/// history now.
pub(crate) async fn finish(
    db: &mut SqliteConnection,
    finished: &[Finished],
    now: Timestamp,
) -> Result<BTreeSet<RecordKey>, StoreError> {
    let now_us = us(now);
    let mut changed = BTreeSet::new();
    for Finished { claim, result } in finished {
        let (step, fence) = (action_key(claim.action), claim.fence.cast_signed());
        let given_up = sqlx::query!("DELETE FROM step_claim WHERE step = ? AND fence = ?", step, fence);
        if given_up.execute(&mut *db).await.map_err(unavailable)?.rows_affected() == 0 {
            continue;
        }
        let has_changed = match result {
            Ok(()) => succeeded(db, claim.action, &step, now_us).await,
            Err(message) => failed(db, &step, now_us, message).await.map(|()| true),
        };
        if has_changed.map_err(unavailable)? {
            changed.insert(RecordKey::Step(claim.action));
        }
    }
    Ok(changed)
}

async fn succeeded(
    db: &mut SqliteConnection,
    action: Action,
    step: &str,
    now_us: i64,
) -> Result<bool, sqlx::Error> {
    let had_failed = sqlx::query!("DELETE FROM step_failure WHERE step = ?", step);
    let had_failed = had_failed.execute(&mut *db).await?.rows_affected() > 0;
    if matches!(action, Action::Snapshot(..)) {
        let noted = sqlx::query!(
            "INSERT INTO step_success (step, at_us) VALUES (?1, ?2)
             ON CONFLICT (step) DO UPDATE SET at_us = ?2",
            step,
            now_us,
        );
        noted.execute(&mut *db).await?;
        return Ok(true);
    }
    Ok(had_failed)
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

/// Gives up all claims of a holder but those that it knows of.
pub(crate) async fn release(
    db: &mut SqliteConnection,
    holder: &Holder,
    known: &[Claim],
) -> Result<(), StoreError> {
    let fences: Vec<String> = known.iter().map(|claim| claim.fence.to_string()).collect();
    let fences = format!("[{}]", fences.join(","));
    let release = sqlx::query!(
        "DELETE FROM step_claim WHERE holder = ? AND fence NOT IN (SELECT value FROM json_each(?))",
        holder.0,
        fences
    );
    release.execute(&mut *db).await.map_err(unavailable)?;
    Ok(())
}

/// Forgets what became of steps. Returns those of which anything was known.
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

/// Whether the holder leads now.
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
