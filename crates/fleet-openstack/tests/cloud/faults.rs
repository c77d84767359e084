//! A cloud that fails in the middle of everything, and services that crash there.

use axum::http::Method;
use fleet::{Fleet, FleetError, Outcome};
use leases::plan::{Action, Place};

use crate::handing_over::{LEASE, MINE, ONE, adopt, done, handover, seen, step};
use crate::standin::{FREE_POOL, Standin};

/// Does it until it is done, by a driver that knows nothing of what was done before: each step that fails is tried
/// again after a restart.
async fn insist(cloud: &Standin, actions: &[Action]) {
    for action in actions {
        let mut outcomes = Vec::new();
        while outcomes.last() != Some(&Ok(Outcome::Done)) {
            assert!(outcomes.len() < 5, "{action}: {outcomes:?}");
            outcomes.push(step(&cloud.fleet(), *action).await);
        }
    }
}

#[tokio::test]
async fn whichever_request_fails_the_handover_goes_on_from_there() {
    // How many requests change anything, on the way there and back.
    let changes = {
        let cloud = Standin::start(2).await;
        assert_eq!(adopt(&cloud.fleet(), ONE).await, Ok(Outcome::Done));
        cloud.exchanges();
        insist(&cloud, &handover(ONE)).await;
        insist(&cloud, &[Action::Release(ONE, MINE)]).await;
        let changes = cloud.exchanges().into_iter().filter(|exchange| exchange.method != "GET");
        changes.map(|exchange| (exchange.method, exchange.path)).collect::<Vec<_>>()
    };
    assert!(changes.len() >= 10, "{changes:?}");
    for (number, (method, path)) in changes.iter().enumerate() {
        for lost in [false, true] {
            let cloud = Standin::start(2).await;
            assert_eq!(adopt(&cloud.fleet(), ONE).await, Ok(Outcome::Done));
            let part = path.trim_end_matches(|c: char| c.is_ascii_digit());
            let part = if part.contains("/action") { "/action" } else { part };
            let before = changes[..number].iter().filter(|(m, p)| m == method && p.contains(part)).count();
            // The same kinds of requests before it are served.
            cloud.pass(Method::from_bytes(method.as_bytes()).expect("a method"), part, before);
            if lost {
                cloud.lose_answer(Method::from_bytes(method.as_bytes()).expect("a method"), part);
            } else {
                cloud.fail(Method::from_bytes(method.as_bytes()).expect("a method"), part, 500, 1);
            }
            insist(&cloud, &handover(ONE)).await;
            let held = seen(&cloud.fleet(), ONE).await.place;
            assert_eq!(held, Place::Held(MINE), "request {number}, {method} {path}, lost: {lost}");
            assert_eq!(cloud.state().pools("host1"), [MINE.to_string()]);
            insist(&cloud, &[Action::Release(ONE, MINE)]).await;
            assert_eq!(seen(&cloud.fleet(), ONE).await.place, Place::FreePool);
            let mut state = cloud.state();
            assert_eq!(state.pools("host1"), [FREE_POOL], "request {number}, {method} {path}, lost: {lost}");
            assert!(state.left_open.is_empty() && state.host("host1").enabled);
        }
    }
}

#[tokio::test]
async fn slots_are_granted_and_withdrawn_although_every_request_fails_once() {
    let cloud = Standin::start(2).await;
    assert_eq!(adopt(&cloud.fleet(), ONE).await, Ok(Outcome::Done));
    for method in [Method::PUT, Method::POST] {
        for part in ["inventories", "os-aggregates", "flavors", "resource_providers", "resource_classes"] {
            cloud.lose_answer(method.clone(), part);
        }
    }
    let fleet = cloud.fleet();
    let mut failed = 0;
    for action in [Action::Grant(ONE, MINE, 2), Action::Grant(ONE, MINE, 3), Action::Grant(ONE, MINE, 2)] {
        while step(&fleet, action).await != Ok(Outcome::Done) {
            failed += 1;
            assert!(failed < 20);
        }
    }
    assert!(failed > 3, "each lost answer is a try: {failed}");
    assert_eq!(seen(&fleet, ONE).await.slots.get(&MINE), Some(&2));
    // Somebody else changes the provider between the question and the change.
    cloud.state().providers.values_mut().for_each(|provider| provider.generation += 1);
    done(&fleet, &[Action::Grant(ONE, MINE, 5), Action::Withdraw(ONE, MINE)]).await;
    assert!(seen(&fleet, ONE).await.slots.is_empty());
}

#[tokio::test]
async fn a_cloud_that_does_not_answer_says_so_and_changes_nothing() {
    let cloud = Standin::start(2).await;
    let fleet: &dyn Fleet = &cloud.fleet();
    assert_eq!(adopt(fleet, ONE).await, Ok(Outcome::Done));
    cloud.fail(Method::GET, "servers", 503, 100);
    let error = step(fleet, Action::Fence(ONE)).await.expect_err("no answer");
    assert_eq!(error, FleetError::Unavailable("compute: list servers: answered 503: It broke.".to_owned()));
    assert!(fleet.survey(&[ONE].into()).await.is_err(), "a round that saw nothing says nothing");
    assert!(cloud.state().host("host1").enabled);
}

#[tokio::test]
async fn a_store_leaves_its_name_in_the_cloud() {
    let cloud = Standin::start(1).await;
    let fleet: &dyn Fleet = &cloud.fleet();
    assert_eq!(fleet.keeper().await, Ok(Some(fleet::Keeper::default())));
    let keeper = fleet::Keeper { store: format!("store of {LEASE}"), fence: 0 };
    assert_eq!(fleet.set_keeper(keeper.clone()).await, Ok(()));
    let another: &dyn Fleet = &cloud.fleet();
    assert_eq!(another.keeper().await, Ok(Some(keeper)));
}
