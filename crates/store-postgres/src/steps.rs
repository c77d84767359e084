//! Claims and results of steps, and leaders.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use leases::plan::Action;
use sqlx::PgConnection;
use store::encoding::{Outcomes, action_from_key, action_key};
use store::{Claim, Finished, Holder, RecordKey, StoreError};

use crate::columns::{plain, text, us};
use crate::error::TxError;

/// Gives out `count` fences. Returns the last.
pub(crate) async fn take_fences(db: &mut PgConnection, count: i64) -> Result<i64, TxError> {
    let last = sqlx::query_scalar!("UPDATE fence SET last = last + $1 RETURNING last", count);
    Ok(last.fetch_one(db).await?)
}

/// Claims steps without a claim or with an expired claim.
///
/// The lock of the fence's row makes claims take turns, so a later claim of a step has the higher number.
pub(crate) async fn claim(
    db: &mut PgConnection,
    actions: &[Action],
    holder: &Holder,
    now: Timestamp,
    until: Timestamp,
) -> Result<Vec<Claim>, TxError> {
    let steps: BTreeSet<String> = actions.iter().map(|action| action_key(*action)).collect();
    let steps: Vec<String> = steps.into_iter().collect();
    let last = take_fences(db, steps.len() as i64).await?;
    let rows = sqlx::query!(
        "INSERT INTO step_claim (step, holder, fence, until_us)
         SELECT step, $2, $3 - position, $4 FROM unnest($1::text[]) WITH ORDINALITY AS new (step, position)
         ON CONFLICT (step) DO UPDATE SET holder = $2, fence = excluded.fence, until_us = $4
             WHERE step_claim.until_us <= $5
         RETURNING step, fence",
        &steps,
        &text(&holder.0),
        last + 1,
        us(until),
        us(now),
    );
    let mut fences: BTreeMap<Action, u64> = BTreeMap::new();
    for row in rows.fetch_all(db).await? {
        fences.insert(action_from_key(&row.step)?, row.fence.cast_unsigned());
    }
    let claimed = actions.iter().filter_map(|action| {
        let fence = fences.remove(action)?;
        Some(Claim { action: *action, fence })
    });
    Ok(claimed.collect())
}

/// Renews the claims that are still stored with the same fence, and returns them.
///
/// Rows are locked in the order in which [`claim`] locks them, so that two services don't wait for each
/// other.
pub(crate) async fn renew(
    db: &mut PgConnection,
    claims: &[Claim],
    until: Timestamp,
) -> Result<Vec<Claim>, TxError> {
    let by_step: BTreeMap<String, &Claim> =
        claims.iter().map(|claim| (action_key(claim.action), claim)).collect();
    let (steps, fences): (Vec<String>, Vec<i64>) =
        by_step.iter().map(|(step, claim)| (step.clone(), claim.fence.cast_signed())).unzip();
    let renewed = sqlx::query_scalar!(
        r#"WITH own AS (
             SELECT claimed.step FROM step_claim AS claimed
             JOIN unnest($1::text[], $2::bigint[]) AS known (step, fence)
                 ON claimed.step = known.step AND claimed.fence = known.fence
             ORDER BY claimed.step COLLATE "C" FOR UPDATE OF claimed)
         UPDATE step_claim SET until_us = $3 FROM own WHERE step_claim.step = own.step
         RETURNING step_claim.step"#,
        &steps,
        &fences,
        us(until),
    );
    let renewed = renewed.fetch_all(db).await?;
    Ok(renewed.iter().filter_map(|step| by_step.get(step)).map(|claim| (*claim).clone()).collect())
}

/// Releases claims and records results, as [`leases::plan::History`] does. Returns the steps with a changed
/// history.
pub(crate) async fn finish(
    db: &mut PgConnection,
    finished: &[Finished],
    now: Timestamp,
) -> Result<BTreeSet<RecordKey>, TxError> {
    let outcomes = Outcomes::of(finished);
    let (steps, fences): (Vec<String>, Vec<i64>) = outcomes.claims().cloned().unzip();
    let given_up = sqlx::query!(
        "DELETE FROM step_claim USING unnest($1::text[], $2::bigint[]) AS own (step, fence)
         WHERE step_claim.step = own.step AND step_claim.fence = own.fence
         RETURNING step_claim.step, step_claim.fence",
        &steps,
        &fences,
    );
    let given_up = given_up.fetch_all(&mut *db).await?;
    let given_up: BTreeSet<_> = given_up.into_iter().map(|row| (row.step, row.fence)).collect();
    let counted = outcomes.given_up(&given_up).counted();
    let mut changed = BTreeSet::new();
    for (step, action, message) in counted.failed {
        failed(db, &step, us(now), message).await?;
        changed.insert(RecordKey::Step(action));
    }
    changed.append(&mut note_successes(db, &counted.succeeded, us(now)).await?);
    Ok(changed)
}

/// Deletes the failures of these steps, and records the time of snapshots. Returns the steps with a changed
/// history.
async fn note_successes(
    db: &mut PgConnection,
    succeeded: &BTreeMap<String, Action>,
    now_us: i64,
) -> Result<BTreeSet<RecordKey>, sqlx::Error> {
    let steps: Vec<String> = succeeded.keys().cloned().collect();
    let had_failed =
        sqlx::query_scalar!("DELETE FROM step_failure WHERE step = ANY($1) RETURNING step", &steps);
    let had_failed = had_failed.fetch_all(&mut *db).await?;
    let mut changed: BTreeSet<_> =
        had_failed.iter().filter_map(|step| succeeded.get(step)).copied().map(RecordKey::Step).collect();
    for (step, action) in succeeded {
        if action.is_remembered() {
            let noted = sqlx::query!(
                "INSERT INTO step_success (step, at_us) VALUES ($1, $2)
                 ON CONFLICT (step) DO UPDATE SET at_us = $2",
                step,
                now_us,
            );
            noted.execute(&mut *db).await?;
            changed.insert(RecordKey::Step(*action));
        }
    }
    Ok(changed)
}

async fn failed(db: &mut PgConnection, step: &str, now_us: i64, message: &str) -> Result<(), sqlx::Error> {
    let noted = sqlx::query!(
        "INSERT INTO step_failure (step, times, last_at_us, message) VALUES ($1, 1, $2, $3)
         ON CONFLICT (step) DO UPDATE SET
             times = least(step_failure.times + 1, 4294967295), last_at_us = $2, message = $3",
        step,
        now_us,
        &text(message),
    );
    noted.execute(db).await?;
    Ok(())
}

/// Gives up all claims of a holder except the `known` ones.
pub(crate) async fn release(db: &mut PgConnection, holder: &Holder, known: &[Claim]) -> Result<(), TxError> {
    let fences: Vec<i64> = known.iter().map(|claim| claim.fence.cast_signed()).collect();
    let release = sqlx::query!(
        "DELETE FROM step_claim WHERE holder = $1 AND NOT fence = ANY($2)",
        &text(&holder.0),
        &fences
    );
    release.execute(db).await?;
    Ok(())
}

/// Deletes the history of steps. Returns the steps that had any.
pub(crate) async fn prune(db: &mut PgConnection, gone: &[Action]) -> Result<BTreeSet<RecordKey>, TxError> {
    let steps: BTreeSet<String> = gone.iter().map(|action| action_key(*action)).collect();
    let steps: Vec<String> = steps.into_iter().collect();
    let known = sqlx::query_scalar!(
        r#"WITH failure AS (DELETE FROM step_failure WHERE step = ANY($1) RETURNING step),
             success AS (DELETE FROM step_success WHERE step = ANY($1) RETURNING step)
         SELECT step AS "step!" FROM failure UNION SELECT step FROM success"#,
        &steps,
    );
    let mut changed = BTreeSet::new();
    for step in known.fetch_all(db).await? {
        changed.insert(RecordKey::Step(action_from_key(&plain(step)).map_err(StoreError::from)?));
    }
    Ok(changed)
}

/// Makes `holder` the leader, unless another holder leads. Returns whether it leads.
pub(crate) async fn lead(
    db: &mut PgConnection,
    role: &str,
    holder: &Holder,
    now: Timestamp,
    until: Timestamp,
) -> Result<bool, TxError> {
    let taken = sqlx::query!(
        "INSERT INTO leader (role, holder, until_us) VALUES ($1, $2, $3)
         ON CONFLICT (role) DO UPDATE SET holder = $2, until_us = $3
             WHERE leader.holder = $2 OR leader.until_us <= $4",
        &text(role),
        &text(&holder.0),
        us(until),
        us(now),
    );
    let taken = taken.execute(db).await?.rows_affected() == 1;
    Ok(taken && now < until)
}
