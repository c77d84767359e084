//! Several services on one database.

use std::sync::Arc;

use leases::project::UserId;
use store::conformance::sample::{add, add_hosts, at, commit, hosts, lease, request, slots, window};
use store::{Changes, Commit, CommitError, Revocation, Store, TokenKey};
use tokio::task::JoinSet;

use crate::{database, open};

const SERVICES: usize = 3;
const COMMITS: u128 = 30;

/// Runs all commits at once, each by another service in turn.
async fn race(stores: &[Arc<dyn Store>], commits: Vec<Commit>) -> Vec<Result<(), CommitError>> {
    let mut tasks = JoinSet::new();
    for (commit, store) in commits.into_iter().zip(stores.iter().cycle()) {
        let store = Arc::clone(store);
        tasks.spawn(async move { store.commit(&commit).await.map(drop) });
    }
    tasks.join_all().await
}

async fn services() -> Vec<Arc<dyn Store>> {
    let servers = database();
    let mut stores: Vec<Arc<dyn Store>> = Vec::new();
    for _ in 0..SERVICES {
        stores.push(open(&servers).await);
    }
    stores
}

/// The commits name hosts in different orders, so locking them in that order would deadlock.
#[tokio::test(flavor = "multi_thread")]
async fn w1_of_services_that_want_the_same_hosts_one_gets_them() {
    let stores = services().await;
    stores[0].commit(&commit(add_hosts(1..=6))).await.expect("accepted");
    for round in 0..5 {
        let start = round * 10;
        let wanted = |number: u128| {
            let (two, one) =
                if number.is_multiple_of(2) { ([1, 2, 3], [4, 5, 6]) } else { ([4, 5, 6], [1, 2, 3]) };
            let ids = [round as u128 * 1000 + number * 2, round as u128 * 1000 + number * 2 + 1];
            let writes = [two, one].into_iter().zip(ids);
            commit(writes.map(|(of, id)| add(&lease(id, window(start, start + 10), vec![hosts(&of)]))))
        };
        let results = race(&stores, (0..COMMITS).map(wanted).collect()).await;
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{results:?}");
        let refused = results.iter().filter_map(|result| result.as_ref().err());
        assert!(refused.clone().all(|error| matches!(error, CommitError::Taken { .. })), "{results:?}");
    }
}

/// Whole hosts and slots compete.
#[tokio::test(flavor = "multi_thread")]
async fn w16_of_services_that_want_a_host_and_parts_of_it_one_kind_stands() {
    let stores = services().await;
    stores[0].commit(&commit(add_hosts([1]))).await.expect("accepted");
    for round in 0..5 {
        let start = round * 10;
        let wanted = |number: u128| {
            let given = if number.is_multiple_of(3) { hosts(&[1]) } else { slots(&[(1, 1)]) };
            let id = round as u128 * 1000 + number;
            commit([add(&lease(id, window(start, start + 10), vec![given]))])
        };
        let results = race(&stores, (0..COMMITS).map(wanted).collect()).await;
        let accepted = results.iter().filter(|result| result.is_ok()).count();
        assert!([1, 4].contains(&accepted), "a host, or four slots of it: {results:?}");
        assert!(results.iter().all(|result| !matches!(result, Err(CommitError::Store(_)))), "{results:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_reaches_two_services_is_served_by_one() {
    let stores = services().await;
    let repeated = |number: u128| Commit {
        writes: vec![add(&lease(number, window(0, 9), vec![]))],
        idempotency: Some(request("key", at(0))),
        ..Commit::new(at(0))
    };
    let results = race(&stores, (0..COMMITS).map(repeated).collect()).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{results:?}");
    let refused = results.iter().filter_map(|result| result.as_ref().err());
    assert!(refused.clone().all(|error| matches!(error, CommitError::Repeated(_))), "{results:?}");
    assert_eq!(stores[0].load().await.expect("works").leases.len(), 1);
}

/// All services accept tokens that one service signed, and reject tokens that one service revoked.
#[tokio::test(flavor = "multi_thread")]
async fn services_sign_tokens_with_one_key_and_know_each_others_revocations() {
    let stores = services().await;
    let mut tasks = JoinSet::new();
    for (secret, store) in (1..).zip(&stores) {
        let store = Arc::clone(store);
        let key = TokenKey { number: 1, secret: vec![secret; 32], at: at(0) };
        tasks.spawn(async move { store.add_token_key(&key, 1).await });
    }
    tasks.join_all().await.into_iter().for_each(|added| added.expect("works"));
    let known = stores[0].tokens().await.expect("works");
    assert_eq!(known.keys.len(), 1, "{known:?}");
    let revoked = Revocation { user: UserId("u".to_owned()), token: Some(7), at: at(1), until: at(60) };
    stores[1].revoke_token(&revoked).await.expect("works");
    for store in &stores {
        let seen = store.tokens().await.expect("works");
        assert_eq!((&seen.keys, &seen.revoked[..]), (&known.keys, &[revoked.clone()][..]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_learns_of_the_commits_of_another() {
    let stores = services().await;
    let [writer, reader] = [Arc::clone(&stores[0]), Arc::clone(&stores[1])];
    let mut known = reader.load().await.expect("works").revision;
    for host in 1..=5 {
        let writing = Arc::clone(&writer);
        let written = tokio::spawn(async move { writing.commit(&commit(add_hosts([host]))).await });
        reader.wait_for_change(known).await.expect("works");
        let Changes::Delta(delta) = reader.changes_since(known).await.expect("works") else {
            panic!("it is known what has changed");
        };
        assert!(delta.hosts.len() == 1 && delta.hosts.values().all(Option::is_some));
        known = delta.revision;
        assert_eq!(written.await.expect("ends").expect("accepted").to, known);
    }
}
