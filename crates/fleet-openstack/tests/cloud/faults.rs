//! Requests that fail at any point, and services that crash there.

use std::collections::BTreeSet;

use axum::http::Method;
use fleet::{Fleet, FleetError, Inventory as _, Outcome};
use fleet_openstack::Fence;
use leases::plan::{Action, Place};

use crate::handing_over::{LEASE, MINE, ONE, adopt, done, handover, seen, step};
use crate::over_committing::ratios;
use crate::standin::{FREE_POOL, Standin};

/// Repeats each step until it is done, with a new driver for each attempt, as after a restart.
pub async fn insist(cloud: &Standin, actions: &[Action]) {
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
    the_handover_goes_on_with(&Fence::BlazarFilter).await;
}

#[tokio::test]
async fn with_isolation_of_tenants_it_does_and_nobody_else_gets_in() {
    the_handover_goes_on_with(&Fence::Tenant { preemptible: BTreeSet::new() }).await;
}

#[tokio::test]
async fn with_traits_it_does_and_nothing_is_left_behind() {
    the_handover_goes_on_with(&Fence::Traits { flavors: Vec::new(), images: false }).await;
}

async fn the_handover_goes_on_with(fence: &Fence) {
    let over_committed = Action::SetRatios(ONE, MINE, ratios(2.0, 1.5));
    let there: Vec<Action> = handover(ONE).into_iter().chain([over_committed]).collect();
    // Requests that change anything, on the way there and back.
    let changes = {
        let cloud = Standin::with(2, fence.clone()).await;
        assert_eq!(adopt(&cloud.fleet(), ONE).await, Ok(Outcome::Done));
        cloud.exchanges();
        insist(&cloud, &there).await;
        insist(&cloud, &[Action::Release(ONE, MINE), Action::Finish(MINE)]).await;
        let changes = cloud.exchanges().into_iter().filter(|exchange| exchange.method != "GET");
        changes.map(|exchange| (exchange.method, exchange.path)).collect::<Vec<_>>()
    };
    assert!(changes.len() >= 10, "{changes:?}");
    for number in 0..changes.len() {
        for lost in [false, true] {
            let cloud = Standin::with(2, fence.clone()).await;
            assert_eq!(adopt(&cloud.fleet(), ONE).await, Ok(Outcome::Done));
            cloud.state().watched = vec!["another"];
            let why = cloud.break_request(&changes, number, lost);
            insist(&cloud, &there).await;
            let held = seen(&cloud.fleet(), ONE).await;
            assert_eq!(held.place, Place::Held(MINE), "{why}");
            assert!(held.overcommit.is_some_and(|told| told.is(ratios(2.0, 1.5))), "{why}: {held:?}");
            assert_eq!(cloud.state().ratios("host1"), [2.0, 1.5], "{why}");
            assert_eq!(cloud.state().pools("host1"), [MINE.to_string()]);
            insist(&cloud, &[Action::Release(ONE, MINE), Action::Finish(MINE)]).await;
            assert_eq!(seen(&cloud.fleet(), ONE).await.place, Place::FreePool);
            let mut state = cloud.state();
            assert_eq!(state.pools("host1"), [FREE_POOL], "{why}");
            assert_eq!(state.ratios("host1"), [4.0, 1.0], "{why}");
            assert!(state.left_open.is_empty() && state.host("host1").enabled);
            let tenant = matches!(fence, Fence::Tenant { .. });
            assert!(!tenant || state.let_in.iter().all(|(_, host, _)| host != "host1"), "{why}");
            if matches!(fence, Fence::Traits { .. }) {
                let traits: Vec<&String> = state.traits.iter().collect();
                assert_eq!(traits, ["COMPUTE_NODE", "CUSTOM_ALLOT_FREE_POOL"], "{why}");
                assert!(state.flavors.is_empty() && !state.plain_let_in, "{why}");
            }
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
    assert_eq!(failed, 0, "what was done although the answer was lost is found");
    assert_eq!(seen(&fleet, ONE).await.slots.get(&MINE), Some(&2));
    // Another client changes the provider between the read and the write.
    cloud.state().providers.values_mut().for_each(|provider| provider.generation += 1);
    done(&fleet, &[Action::Grant(ONE, MINE, 5), Action::Withdraw(ONE, MINE)]).await;
    assert!(seen(&fleet, ONE).await.slots.is_empty());
}

/// Number of flavors, classes, server groups and aggregates.
fn made(cloud: &Standin) -> [usize; 4] {
    let state = cloud.state();
    [state.flavors.len(), state.classes.len(), state.server_groups.len(), state.aggregates.len()]
}

#[tokio::test]
async fn whichever_request_fails_a_reservation_is_prepared_and_nothing_of_it_is_left_behind() {
    let asked = {
        let cloud = Standin::start(1).await;
        insist(&cloud, &[Action::Prepare(MINE), Action::Finish(MINE)]).await;
        let asked = cloud.exchanges().into_iter().map(|exchange| (exchange.method, exchange.path));
        asked.collect::<Vec<_>>()
    };
    // Preparing: aggregate, mark, class, flavor, its specs, access, group, whether it is the only one, note.
    // Finishing: list, group, flavor, class, aggregate.
    assert_eq!(asked.len(), 14, "{asked:#?}");
    for number in 0..asked.len() {
        for (lost, goes_on) in [(false, false), (false, true), (true, false), (true, true)] {
            let cloud = Standin::start(1).await;
            let why = format!("{}, goes on: {goes_on}", cloud.break_request(&asked, number, lost));
            if goes_on {
                insist(&cloud, &[Action::Prepare(MINE)]).await;
                assert_eq!(made(&cloud), [1; 4], "{why}");
                let state = cloud.state();
                let noted = &state.aggregates.values().next().expect("it").metadata;
                assert_eq!(noted["allot:prepared"], "2 1024 10 apart", "{why}");
                assert_eq!(state.server_groups.keys().next(), noted.get("affinity_id"), "{why}");
            } else {
                // The service crashes at this point, and the lease is deleted in the meantime.
                let _ = step(&cloud.fleet(), Action::Prepare(MINE)).await;
            }
            insist(&cloud, &[Action::Finish(MINE)]).await;
            assert_eq!(made(&cloud), [0; 4], "{why}");
        }
    }
}

#[tokio::test]
async fn a_reservation_of_another_size_gets_another_flavor_and_what_is_there_is_not_made_again() {
    let cloud = Standin::start(1).await;
    insist(&cloud, &[Action::Prepare(MINE)]).await;
    cloud.exchanges();
    insist(&cloud, &[Action::Prepare(MINE)]).await;
    let asked = cloud.exchanges();
    assert!(asked.len() <= 11, "everything is looked at: {asked:#?}");
    assert_eq!(
        asked.iter().filter(|asked| asked.status == 200 && asked.path.ends_with("/flavors")).count(),
        0
    );
    let pool = cloud.state().aggregates.values_mut().next().map(|pool| {
        pool.metadata.insert("allot:prepared".to_owned(), "1 512 1 apart".to_owned());
        pool.metadata["affinity_id"].clone()
    });
    insist(&cloud, &[Action::Prepare(MINE)]).await;
    let flavors = cloud.exchanges().into_iter().filter(|exchange| exchange.path.ends_with("/flavors"));
    let made: Vec<_> = flavors.map(|exchange| exchange.body["flavor"]["vcpus"].clone()).collect();
    assert_eq!(made, [2]);
    let state = cloud.state();
    assert_eq!(state.server_groups.keys().next(), pool.as_ref(), "servers are in it");
    assert_eq!(state.flavors[&MINE.to_string()], BTreeSet::from(["mine".to_owned()]));
}

#[tokio::test]
async fn a_cloud_that_does_not_answer_says_so_and_changes_nothing() {
    let cloud = Standin::start(2).await;
    let fleet: &dyn Fleet = &cloud.fleet();
    assert_eq!(adopt(fleet, ONE).await, Ok(Outcome::Done));
    cloud.fail(Method::GET, "servers", 503, 100);
    let error = step(fleet, Action::Fence(ONE)).await.expect_err("no answer");
    assert_eq!(error, FleetError::Unavailable("compute: list servers: answered 503: It broke.".to_owned()));
    assert!(fleet.survey(&[ONE].into(), &[]).await.is_err(), "a round that saw nothing says nothing");
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

#[tokio::test]
async fn a_refused_login_is_told_as_an_obstacle_and_a_lost_one_is_not() {
    let cloud = Standin::start(1).await;
    for (status, obstacle) in
        [(200, None), (503, None), (401, Some("the service's own user can't log in to Keystone"))]
    {
        let fleet = cloud.fleet();
        if status != 200 {
            cloud.fail(Method::POST, "/v3/auth/tokens", status, 1);
        }
        assert_eq!(fleet.obstacle(), None, "it was not tried yet");
        assert_eq!(fleet.machines().await.is_ok(), status == 200);
        assert_eq!(fleet.obstacle(), obstacle, "{status}");
    }
}
