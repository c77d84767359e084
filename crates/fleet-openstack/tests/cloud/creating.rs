//! Objects that several steps and services create at the same time unless they exist.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::http::Method;
use fleet::Outcome;
use fleet_openstack::Fence;
use futures::future::join_all;
use leases::ids::HostId;
use leases::plan::{Action, Place};

use crate::handing_over::{MINE, ONE, adopt, done, handover, seen, step};
use crate::standin::{Exchange, FREE_POOL, Standin};

const FENCES: [fn() -> Fence; 3] = [
    || Fence::BlazarFilter,
    || Fence::Tenant { preemptible: BTreeSet::new() },
    || Fence::Traits { flavors: Vec::new(), images: false },
];

/// Number of requests that another request overtook.
fn duplicates(asked: &[Exchange]) -> usize {
    asked.iter().filter(|asked| asked.answer.to_string().contains("DBDuplicateEntry")).count()
}

#[tokio::test]
async fn steps_of_one_service_do_not_overtake_each_other_when_they_create_the_same() {
    for fence in FENCES {
        let cloud = Standin::with(6, fence()).await;
        let fleet = cloud.fleet();
        let hosts = || (1..=6).map(HostId);
        assert_eq!(join_all(hosts().map(|host| adopt(&fleet, host))).await, vec![Ok(Outcome::Done); 6]);
        // The lease's aggregate doesn't exist, so each step tries to create it.
        join_all(hosts().map(async |host| done(&fleet, &handover(host)).await)).await;
        assert_eq!(duplicates(&cloud.exchanges()), 0);
        assert_eq!(seen(&fleet, HostId(6)).await.place, Place::Held(MINE));
    }
}

#[tokio::test]
async fn two_services_that_create_the_same_take_what_the_other_one_has_created() {
    let mut overtaken = 0;
    for (round, fence) in FENCES.iter().cycle().take(24).enumerate() {
        let cloud = Standin::with(4, fence()).await;
        let (one, other) = (cloud.fleet(), cloud.fleet());
        let late = Duration::from_millis(round as u64 / 3);
        let both = async |action: fn(HostId) -> Vec<Action>| {
            let steps = (1..=4).map(HostId).map(async |host| {
                let fleet = if host.0 % 2 == 0 { &one } else { &other };
                tokio::time::sleep(late * u32::from(host.0 % 2 == 0)).await;
                done(fleet, &action(host)).await;
            });
            join_all(steps).await;
        };
        let taken_on = join_all((1..=4).map(HostId).map(async |host| {
            let fleet = if host.0 % 2 == 0 { &one } else { &other };
            adopt(fleet, host).await
        }));
        assert_eq!(taken_on.await, vec![Ok(Outcome::Done); 4]);
        both(|host| handover(host).to_vec()).await;
        both(|host| vec![Action::Release(host, MINE)]).await;
        done(&one, &[Action::Finish(MINE)]).await;
        both(|_| vec![Action::Prepare(MINE)]).await;
        {
            let state = cloud.state();
            assert_eq!((state.flavors.len(), state.classes.len(), state.server_groups.len()), (1, 1, 1));
            let pool = state.aggregates.values().find(|pool| pool.name == MINE.to_string()).expect("it");
            assert_eq!(state.server_groups.keys().next(), pool.metadata.get("affinity_id"));
            assert_eq!(state.flavors[&MINE.to_string()], BTreeSet::from(["mine".to_owned()]));
        }
        both(|host| vec![Action::Grant(host, MINE, 2)]).await;
        both(|host| vec![Action::Withdraw(host, MINE)]).await;
        done(&one, &[Action::Finish(MINE)]).await;
        {
            let state = cloud.state();
            assert!(state.flavors.is_empty() && state.classes.is_empty() && state.server_groups.is_empty());
            let names: Vec<&String> = state.aggregates.values().map(|pool| &pool.name).collect();
            assert_eq!(names, [FREE_POOL]);
        }
        overtaken += duplicates(&cloud.exchanges());
    }
    assert!(overtaken > 10, "{overtaken}");
}

#[tokio::test]
async fn whatever_was_created_although_the_answer_is_500_is_taken() {
    for (method, part) in [
        (Method::POST, "/os-aggregates"),
        (Method::POST, "/flavors"),
        (Method::POST, "/os-extra_specs"),
        (Method::POST, "/flavors/ecdcc9ea-d38d-4032-a9e3-3a8dbcc06753/action"),
        (Method::POST, "/os-server-groups"),
        (Method::PUT, "/resource_classes/"),
        (Method::POST, "/resource_providers"),
        (Method::POST, "/inventories"),
    ] {
        let cloud = Standin::start(1).await;
        assert_eq!(adopt(&cloud.fleet(), ONE).await, Ok(Outcome::Done));
        cloud.lose_answer(method.clone(), part);
        done(&cloud.fleet(), &[Action::Grant(ONE, MINE, 2)]).await;
        // Nova created no object, so the step fails with a reason.
        let cloud = Standin::start(1).await;
        assert_eq!(adopt(&cloud.fleet(), ONE).await, Ok(Outcome::Done));
        cloud.fail(method, part, 500, 9);
        let error = step(&cloud.fleet(), Action::Grant(ONE, MINE, 2)).await.expect_err(part);
        assert!(error.to_string().contains("answered 500"), "{part}: {error}");
    }
    let cloud = Standin::with(1, Fence::Traits { flavors: Vec::new(), images: false }).await;
    cloud.lose_answer(Method::PUT, "/traits/CUSTOM_ALLOT_FREE_POOL");
    assert_eq!(adopt(&cloud.fleet(), ONE).await, Ok(Outcome::Done));
}

#[tokio::test]
async fn an_aggregate_with_the_name_of_ours_in_another_zone_is_not_taken() {
    let cloud = Standin::start(1).await;
    let fleet = cloud.fleet();
    assert_eq!(adopt(&fleet, ONE).await, Ok(Outcome::Done));
    done(&fleet, &handover(ONE)[..2]).await;
    cloud.state().add_aggregate(&format!("{MINE} gate"), None);
    let refused = step(&fleet, Action::Hold(ONE, MINE)).await.expect_err("everybody could use it");
    assert!(refused.to_string().contains("not in the availability zone blazar_"), "{refused}");
}
