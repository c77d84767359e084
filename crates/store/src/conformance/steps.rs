//! Promises about claims and results of steps.

use std::sync::Arc;

use leases::ids::{HostId, ReservationId};
use leases::plan::{Action, History};

use super::records::loaded;
use super::sample::at;
use crate::{Claim, Finished, Holder, Store};

const FENCE: Action = Action::Fence(HostId(1));
const SNAPSHOT: Action = Action::Snapshot(HostId(1), ReservationId(7));

fn holder(name: &str) -> Holder {
    Holder(name.to_owned())
}

async fn claim(store: &Arc<dyn Store>, actions: &[Action], name: &str, now: i64) -> Vec<Claim> {
    store.claim(actions, &holder(name), at(now), at(now + 10)).await.expect("works")
}

async fn finish(store: &Arc<dyn Store>, claim: &Claim, result: Result<(), &str>, now: i64) {
    let result = result.map_err(str::to_owned);
    store.finish(&[Finished { claim: claim.clone(), result }], at(now)).await.expect("works");
}

/// Even the holder can't claim a step twice.
pub async fn a_claim_excludes_others_until_it_is_over(store: &Arc<dyn Store>) {
    let first = claim(store, &[SNAPSHOT, FENCE], "a", 0).await;
    let actions: Vec<Action> = first.iter().map(|claim| claim.action).collect();
    assert_eq!(actions, [SNAPSHOT, FENCE], "in the order given");
    assert_eq!(claim(store, &[FENCE], "b", 9).await, []);
    assert_eq!(claim(store, &[FENCE], "a", 9).await, []);
    let second = claim(store, &[FENCE], "b", 10).await;
    assert!(second[0].fence > first[1].fence);
    assert_eq!(claim(store, &[FENCE, FENCE], "c", 20).await.len(), 1);
}

/// Late or repeated results aren't recorded.
pub async fn a_step_is_finished_once_and_under_the_last_claim(store: &Arc<dyn Store>) {
    let first = claim(store, &[FENCE], "a", 0).await.remove(0);
    let second = claim(store, &[FENCE], "b", 10).await.remove(0);
    finish(store, &first, Err("late"), 11).await;
    assert_eq!(loaded(store).await.history, History::default());
    assert_eq!(claim(store, &[FENCE], "c", 12).await, [], "the claim is still b's");
    finish(store, &second, Err("no route"), 13).await;
    finish(store, &second, Err("no route"), 14).await;
    assert_eq!(loaded(store).await.history.failures[&FENCE].times, 1);
    let third = claim(store, &[FENCE], "c", 15).await.remove(0);
    assert!(third.fence > second.fence, "also after the step was finished");
    finish(store, &third, Ok(()), 99).await;
    assert_eq!(loaded(store).await.history, History::default(), "over, but claimed by nobody else");
}

/// Renewal extends the claims that still hold, and doesn't revive lost ones.
pub async fn a_claim_is_renewed_until_it_is_lost(store: &Arc<dyn Store>) {
    let renew = async |claims: &[Claim], until| store.renew_claims(claims, at(until)).await.expect("works");
    assert_eq!(renew(&[], 20).await, []);
    let mine = claim(store, &[SNAPSHOT, FENCE], "a", 0).await;
    assert_eq!(renew(&mine[1..], 20).await, mine[1..]);
    let taken = claim(store, &[SNAPSHOT, FENCE], "b", 19).await;
    assert_eq!(taken.iter().map(|claim| claim.action).collect::<Vec<_>>(), [SNAPSHOT]);
    assert_eq!(renew(&mine, 30).await, mine[1..], "the other is b's");
    finish(store, &taken[0], Err("no space"), 20).await;
    assert_eq!(loaded(store).await.history.failures[&SNAPSHOT].times, 1, "b's claim was left alone");
    assert_eq!(renew(&mine[1..], 40).await, mine[1..], "over, but claimed by nobody else");
    assert_eq!(claim(store, &[FENCE], "b", 39).await, []);
    finish(store, &mine[1], Ok(()), 40).await;
    assert_eq!(renew(&mine, 50).await, [], "finished");
    let next = claim(store, &[FENCE], "a", 41).await;
    store.release_claims(&holder("a"), &[]).await.expect("works");
    assert_eq!(renew(&next, 60).await, [], "released");
    assert_eq!(claim(store, &[FENCE], "b", 42).await.len(), 1);
}

/// A restarted service doesn't wait for its own claims.
pub async fn released_claims_can_be_taken_by_others(store: &Arc<dyn Store>) {
    let mine = claim(store, &[FENCE], "a", 0).await.remove(0);
    let others = claim(store, &[SNAPSHOT], "b", 0).await;
    store.release_claims(&holder("a"), &[]).await.expect("works");
    finish(store, &mine, Err("late"), 1).await;
    assert_eq!(loaded(store).await.history, History::default());
    let again = claim(store, &[FENCE, SNAPSHOT], "c", 1).await;
    assert!(again.len() == 1 && again[0].fence > others[0].fence);
}

/// A service that never heard of its claim doesn't wait for it, and keeps the claims that it knows.
pub async fn claims_that_their_holder_knows_of_are_not_released(store: &Arc<dyn Store>) {
    let known = claim(store, &[FENCE], "a", 0).await;
    claim(store, &[SNAPSHOT], "a", 0).await;
    store.release_claims(&holder("a"), &known).await.expect("works");
    let again = claim(store, &[FENCE, SNAPSHOT], "b", 1).await;
    assert_eq!(again.iter().map(|claim| claim.action).collect::<Vec<_>>(), [SNAPSHOT]);
}

/// The store counts as [`History`] does.
pub async fn failures_are_counted_until_a_success(store: &Arc<dyn Store>) {
    let mut expected = History::default();
    for (action, result, now) in [
        (FENCE, Err("no route"), 1),
        (SNAPSHOT, Err("no space"), 2),
        (FENCE, Err("refused"), 3),
        (SNAPSHOT, Ok(()), 4),
        (SNAPSHOT, Ok(()), 5),
    ] {
        let claimed = claim(store, &[action], "a", now).await.remove(0);
        finish(store, &claimed, result, now).await;
        match result {
            Ok(()) => expected.succeeded(action, at(now)),
            Err(message) => expected.failed(action, at(now), message),
        }
        assert_eq!(loaded(store).await.history, expected);
    }
    store.prune_steps(&[SNAPSHOT]).await.expect("works");
    expected.done.clear();
    assert_eq!(loaded(store).await.history, expected);
    store.prune_steps(&[FENCE, SNAPSHOT]).await.expect("works");
    assert_eq!(loaded(store).await.history, History::default());
}

/// Each result counts under its own claim, independent of the rest.
pub async fn steps_are_finished_together(store: &Arc<dyn Store>) {
    const UNFENCE: Action = Action::Unfence(HostId(2));
    const OTHERS: Action = Action::Fence(HostId(3));
    let failed_before = claim(store, &[FENCE], "a", 0).await.remove(0);
    finish(store, &failed_before, Err("no route"), 1).await;
    let late = claim(store, &[OTHERS], "a", 2).await.remove(0);
    claim(store, &[OTHERS], "b", 12).await;
    let mine = claim(store, &[SNAPSHOT, UNFENCE, FENCE], "a", 12).await;
    let results = [(late, Err("late")), (mine[0].clone(), Ok(())), (mine[1].clone(), Err("refused"))];
    let results = results.into_iter().chain([(mine[2].clone(), Ok(()))]);
    let finished = results.map(|(claim, result)| Finished { claim, result: result.map_err(str::to_owned) });
    let finished: Vec<Finished> = finished.collect();
    for repeated in 0..2 {
        store.finish(&finished, at(13 + repeated)).await.expect("works");
        let mut expected = History::default();
        expected.succeeded(SNAPSHOT, at(13));
        expected.failed(UNFENCE, at(13), "refused");
        assert_eq!(loaded(store).await.history, expected);
    }
    let free = claim(store, &[OTHERS, FENCE, UNFENCE, SNAPSHOT], "c", 14).await;
    assert_eq!(free.iter().map(|claim| claim.action).collect::<Vec<_>>(), [FENCE, UNFENCE, SNAPSHOT]);
}
