//! Claims of steps and what became of steps; who leads.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use leases::plan::Action;
use sqlx::SqliteConnection;
use store::encoding::{Outcomes, action_key, json};
use store::{Claim, Finished, Holder, RecordKey, StoreError};

use crate::columns::us;
use crate::error::unavailable;

/// Gives out so many fences; returns the last.
pub(crate) async fn take_fences(db: &mut SqliteConnection, count: i64) -> Result<i64, StoreError> {
    let last = sqlx::query_scalar!("UPDATE fence SET last = last + ? RETURNING last", count);
    last.fetch_one(db).await.map_err(unavailable)
}

/// Claims those that are not claimed, or whose claim is over.
pub(crate) async fn claim(
    db: &mut SqliteConnection,
    actions: &[Action],
    holder: &Holder,
    now: Timestamp,
    until: Timestamp,
) -> Result<Vec<Claim>, StoreError> {
    let steps: BTreeMap<String, Action> =
        actions.iter().map(|action| (action_key(*action), *action)).collect();
    let (now_us, until_us) = (us(now), us(until));
    let count = i64::try_from(steps.len()).unwrap_or(i64::MAX);
    let last = take_fences(db, count).await?;
    let keys = json(&steps.keys().collect::<Vec<_>>());
    // A statement costs more than a row.
    let rows = sqlx::query!(
        "INSERT INTO step_claim (step, holder, fence, until_us)
         SELECT value, ?2, ?3 - key, ?4 FROM json_each(?1) WHERE true
         ON CONFLICT (step) DO UPDATE SET holder = ?2, fence = excluded.fence, until_us = ?4
             WHERE until_us <= ?5
         RETURNING step, fence",
        keys,
        holder.0,
        last,
        until_us,
        now_us,
    );
    let mut fences: BTreeMap<Action, u64> = BTreeMap::new();
    for row in rows.fetch_all(db).await.map_err(unavailable)? {
        if let Some(action) = steps.get(&row.step) {
            fences.insert(*action, row.fence.cast_unsigned());
        }
    }
    // In the order in which they were asked for.
    let claimed = actions.iter().filter_map(|action| {
        let fence = fences.remove(action)?;
        Some(Claim { action: *action, fence })
    });
    Ok(claimed.collect())
}

/// Gives up claims and records results, as [`leases::plan::History`] does. Returns the steps that have another
/// history now.
pub(crate) async fn finish(
    db: &mut SqliteConnection,
    finished: &[Finished],
    now: Timestamp,
) -> Result<BTreeSet<RecordKey>, StoreError> {
    let now_us = us(now);
    let outcomes = Outcomes::of(finished);
    let claims = json(&outcomes.claims().collect::<Vec<_>>());
    let given_up = sqlx::query!(
        "DELETE FROM step_claim
         WHERE (step, fence) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))
         RETURNING step, fence",
        claims,
    );
    let given_up = given_up.fetch_all(&mut *db).await.map_err(unavailable)?;
    let given_up: BTreeSet<_> = given_up.into_iter().map(|row| (row.step, row.fence)).collect();
    let counted = outcomes.counted(&given_up);
    let mut changed = BTreeSet::new();
    for (step, action, message) in counted.failed {
        failed(db, &step, now_us, message).await.map_err(unavailable)?;
        changed.insert(RecordKey::Step(action));
    }
    changed.append(&mut note_successes(db, &counted.succeeded, now_us).await.map_err(unavailable)?);
    Ok(changed)
}

/// Forgets how often steps failed before, and remembers snapshots. Returns the steps that have another history now.
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

/// Gives up all claims of a holder but those that it knows of.
pub(crate) async fn release(
    db: &mut SqliteConnection,
    holder: &Holder,
    known: &[Claim],
) -> Result<(), StoreError> {
    let fences = json(&known.iter().map(|claim| claim.fence).collect::<Vec<_>>());
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
