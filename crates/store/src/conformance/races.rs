//! Promises about concurrent callers.

use std::sync::Arc;
use std::task::{Context, Waker};

use leases::ids::HostId;
use leases::plan::Action;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::records::{accept, loaded};
use super::sample::*;
use crate::{Advance, Commit, CommitError, Holder, LeaseRecord, Store};

const AT_ONCE: usize = 12;

/// Starts all commits at the same time.
pub(super) async fn race(store: &Arc<dyn Store>, commits: Vec<Commit>) -> Vec<Result<Advance, CommitError>> {
    let start = Arc::new(Barrier::new(commits.len()));
    let mut tasks = JoinSet::new();
    for commit in commits {
        let (store, start) = (Arc::clone(store), Arc::clone(&start));
        tasks.spawn(async move {
            start.wait().await;
            store.commit(&commit).await
        });
    }
    tasks.join_all().await
}

fn leases_of(given: impl Fn() -> leases::lease::Allocation) -> Vec<Commit> {
    let record = |number| lease(number as u128, window(0, 60), vec![given()]);
    (1..=AT_ONCE).map(|number| commit([add(&record(number))])).collect()
}

/// Blazar accepted several, up to all.
pub async fn w1_of_parallel_bookings_of_a_host_one_stands(store: &Arc<dyn Store>) {
    accept(store, add_hosts(1..=8)).await;
    let results = race(store, leases_of(|| hosts(&[1, 2, 3, 4, 5, 6, 7, 8]))).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    assert!(results.iter().filter_map(|r| r.as_ref().err()).all(|e| matches!(e, CommitError::Taken { .. })));
    assert_eq!(loaded(store).await.leases.len(), 1);
}

pub async fn w2_of_parallel_bookings_of_slots_as_many_stand_as_fit(store: &Arc<dyn Store>) {
    accept(store, add_hosts([1])).await;
    let results = race(store, leases_of(|| slots(&[(1, 1)]))).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 4);
    assert!(results.iter().filter_map(|r| r.as_ref().err()).all(|e| matches!(e, CommitError::NoRoom(_))));
    assert_eq!(loaded(store).await.leases.len(), 4);
}

/// All other callers get [`CommitError::Stale`].
pub async fn of_parallel_changes_of_a_lease_one_stands(store: &Arc<dyn Store>) {
    accept(store, add_hosts([1])).await;
    let old = lease(1, window(0, 60), vec![hosts(&[1])]);
    accept(store, [add(&old)]).await;
    let change = |end| commit([replace(&old, lease(1, window(0, end), vec![hosts(&[1])]).lease)]);
    let results = race(store, (1..=AT_ONCE as i64).map(change).collect()).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    assert!(results.iter().filter_map(|r| r.as_ref().err()).all(|e| matches!(e, CommitError::Stale { .. })));
}

pub async fn of_parallel_claims_of_a_step_one_stands(store: &Arc<dyn Store>) {
    let steps: Vec<Action> = (0..20).map(|host| Action::Fence(HostId(host))).collect();
    let mut tasks = JoinSet::new();
    for number in 0..AT_ONCE {
        let (store, steps) = (Arc::clone(store), steps.clone());
        let holder = Holder(format!("holder {number}"));
        tasks.spawn(async move { store.claim(&steps, &holder, at(0), at(1)).await.expect("works") });
    }
    let mut claimed: Vec<Action> =
        tasks.join_all().await.into_iter().flatten().map(|claim| claim.action).collect();
    claimed.sort_unstable();
    assert_eq!(claimed, steps);
}

/// A caller can stop waiting for its commit at any time, for example when a client hangs up.
pub async fn a_commit_that_is_broken_off_happens_whole_or_not_at_all(store: &Arc<dyn Store>) {
    accept(store, add_hosts([1, 2])).await;
    let mut records: Vec<LeaseRecord> = Vec::new();
    for polls in 0..12 {
        let number = 10 * (u128::from(polls as u32) + 1);
        let start = i64::from(polls) * 10;
        let [a, b] = [1, 2]
            .map(|host| lease(number + u128::from(host), window(start, start + 10), vec![hosts(&[host])]));
        let commit = Commit { audit: vec![audit("lease.create")], ..commit([add(&a), add(&b)]) };
        {
            let mut future = store.commit(&commit);
            let mut context = Context::from_waker(Waker::noop());
            for _ in 0..polls {
                if future.as_mut().poll(&mut context).is_ready() {
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
        records.extend([a, b]);
    }
    // In any case, the store still works.
    accept(store, [add(&lease(1, window(500, 600), vec![hosts(&[1, 2])]))]).await;
    let snapshot = loaded(store).await;
    let here = |record: &LeaseRecord| snapshot.leases.contains(record);
    let pairs: Vec<bool> = records
        .chunks(2)
        .map(|pair| {
            assert_eq!(here(&pair[0]), here(&pair[1]), "half a commit: {}", pair[0].lease.name);
            here(&pair[0])
        })
        .collect();
    let audited = store.audit(100).await.expect("works").len();
    assert_eq!(audited, pairs.iter().filter(|committed| **committed).count());
}
