//! Images of servers, made before they are deleted with their lease.

use std::sync::Arc;

use ambient::ManualClock;
use axum::http::Method;
use fleet::conformance::facts;
use fleet::{About, Fleet, FleetError, LeaseFacts, OperationKey, Outcome, perform};
use jiff::{SignedDuration, Timestamp};
use leases::plan::Action;
use leases::project::ProjectId;
use leases::terms::{Affinity, InstanceSize};

use crate::handing_over::{LEASE, MINE, ONE, adopt, done, handover};
use crate::standin::{IMAGE_TIME, Standin};

const SNAPSHOT: Action = Action::Snapshot(ONE, MINE);

/// A cloud in which a lease holds a host with this number of servers.
async fn with_servers(count: usize) -> (Standin, Vec<String>) {
    let cloud = Standin::start(1).await;
    let fleet = cloud.fleet();
    assert_eq!(adopt(&fleet, ONE).await, Ok(Outcome::Done));
    done(&fleet, &handover(ONE)).await;
    let servers = (0..count).map(|_| cloud.state().boot("host1", "mine", false)).collect();
    (cloud, servers)
}

/// Asks for images made for that second.
async fn ask_for(fleet: &dyn Fleet, second: i64) -> Result<Outcome, FleetError> {
    let size = InstanceSize::new(1, 512, 1).expect("a size");
    let of_lease = facts(SNAPSHOT, ProjectId("mine".to_owned()), size, Affinity::Any);
    let images_for = Timestamp::from_second(second).expect("a moment");
    let key = OperationKey::of(SNAPSHOT, 1, Some(LEASE));
    let key = key.with_facts(Some(LeaseFacts { images_for, ..of_lease }));
    perform(fleet, SNAPSHOT, About::default(), &key).await
}

/// Repeats the step until it is no longer pending.
async fn ask(fleet: &dyn Fleet, second: i64) -> Result<Outcome, FleetError> {
    for _ in 0..20 {
        match ask_for(fleet, second).await {
            Ok(Outcome::Pending) => {}
            other => return other,
        }
    }
    Ok(Outcome::Pending)
}

/// Owner, visibility and status of each image.
fn images(cloud: &Standin) -> Vec<(String, String, &'static str)> {
    let state = cloud.state();
    state.images.values().map(|made| (made.owner.clone(), made.visibility.clone(), made.status)).collect()
}

fn theirs(project: &str) -> (String, String, &'static str) {
    (project.to_owned(), "private".to_owned(), "active")
}

#[tokio::test]
async fn images_of_the_leases_servers_are_made_one_after_another_and_are_their_projects() {
    let (cloud, servers) = with_servers(3).await;
    let foreign = cloud.state().boot("host1", "another", false);
    let fleet = cloud.fleet();
    cloud.state().image_looks = Some(2);
    for _ in 0..20 {
        let answer = ask_for(&fleet, 60).await;
        let state = cloud.state();
        assert!(state.images.values().filter(|image| image.status != "active").count() <= 1);
        if answer == Ok(Outcome::Done) {
            break;
        }
        assert_eq!(answer, Ok(Outcome::Pending));
    }
    assert_eq!(images(&cloud), vec![theirs("mine"); 3]);
    let state = cloud.state();
    for server in &servers {
        let named: Vec<_> = state.images.values().filter(|image| image.made_for.contains(server)).collect();
        assert!(matches!(named[..], [image] if image.name == "reserved_server of mine"), "{named:?}");
    }
    assert!(state.images.values().all(|image| !image.made_for.contains(&foreign)));
}

#[tokio::test]
async fn whoever_goes_on_with_images_makes_none_twice_and_those_of_another_moment_do_not_count() {
    let (cloud, _) = with_servers(2).await;
    // Each attempt is made by a service that has just started, and Nova's answers are lost.
    cloud.lose_answer(Method::POST, "/action");
    let mut asked = 0;
    while ask_for(&cloud.fleet(), 60).await != Ok(Outcome::Done) {
        asked += 1;
        assert!(asked < 20);
    }
    assert_eq!(images(&cloud), vec![theirs("mine"); 2]);
    assert_eq!(ask(&cloud.fleet(), 60).await, Ok(Outcome::Done));
    assert_eq!(images(&cloud).len(), 2);
    // The lease was extended.
    assert_eq!(ask(&cloud.fleet(), 120).await, Ok(Outcome::Done));
    assert_eq!(images(&cloud).len(), 4);
}

#[tokio::test]
async fn an_image_of_somebody_else_does_not_count() {
    let (cloud, _) = with_servers(1).await;
    assert_eq!(ask(&cloud.fleet(), 60).await, Ok(Outcome::Done));
    cloud.state().images.values_mut().for_each(|image| "another".clone_into(&mut image.owner));
    assert_eq!(ask(&cloud.fleet(), 60).await, Ok(Outcome::Done));
    assert_eq!(images(&cloud).len(), 2);
}

#[tokio::test]
async fn images_that_may_not_be_given_away_stay_as_nova_has_made_them() {
    let (cloud, _) = with_servers(1).await;
    cloud.state().images_stay = true;
    assert_eq!(ask(&cloud.fleet(), 60).await, Ok(Outcome::Done));
    assert_eq!(images(&cloud), [("p1".to_owned(), "shared".to_owned(), "active")]);
}

#[tokio::test]
async fn an_image_that_nova_could_not_make_is_a_failure_and_is_made_again_alone() {
    let (cloud, _) = with_servers(3).await;
    let fleet = cloud.fleet();
    cloud.state().image_looks = None;
    assert_eq!(ask_for(&fleet, 60).await, Ok(Outcome::Pending));
    {
        let mut state = cloud.state();
        state.images.clear();
        state.image_looks = Some(1);
    }
    let failed = ask(&fleet, 60).await.expect_err("one is missing");
    assert!(
        matches!(&failed, FleetError::Refused(reason) if reason.contains("no image of server")),
        "{failed}"
    );
    assert_eq!(images(&cloud), vec![theirs("mine"); 2], "the others are made all the same");
    assert_eq!(ask(&fleet, 60).await, Ok(Outcome::Done));
    assert_eq!(images(&cloud), vec![theirs("mine"); 3]);
}

#[tokio::test]
async fn servers_in_a_state_of_which_no_image_can_be_made_are_named() {
    let (cloud, servers) = with_servers(2).await;
    let status = |status| cloud.state().servers.get_mut(&servers[0]).expect("there").status = status;
    status("BUILD");
    assert_eq!(ask(&cloud.fleet(), 60).await, Ok(Outcome::Pending), "it is waited for");
    assert_eq!(images(&cloud), [theirs("mine")], "the other is not kept waiting");
    status("ERROR");
    let failed = ask(&cloud.fleet(), 60).await.expect_err("there is none");
    assert!(failed.to_string().contains(&servers[0]) && failed.to_string().contains("ERROR"), "{failed}");
    for gone in ["SOFT_DELETED", "DELETED"] {
        status(gone);
        assert_eq!(ask(&cloud.fleet(), 60).await, Ok(Outcome::Done), "{gone}");
    }
    status("SHUTOFF");
    assert_eq!(ask(&cloud.fleet(), 60).await, Ok(Outcome::Done));
    assert_eq!(images(&cloud).len(), 2);
}

#[tokio::test]
async fn while_a_service_is_away_it_is_waited_for_but_not_forever() {
    let (cloud, _) = with_servers(1).await;
    let clock = Arc::new(ManualClock::new(Timestamp::UNIX_EPOCH));
    let fleet = cloud.fleet_by(clock.clone());
    cloud.fail(Method::GET, "/image/", 503, 30);
    assert_eq!(ask(&fleet, 60).await, Ok(Outcome::Pending));
    clock.advance(IMAGE_TIME);
    let failed = ask(&fleet, 60).await;
    assert!(matches!(&failed, Err(FleetError::Unavailable(reason)) if reason.contains("503")), "{failed:?}");
    // The next attempt has a time limit of its own.
    assert_eq!(ask_for(&fleet, 60).await, Ok(Outcome::Pending));
    clock.advance(IMAGE_TIME - SignedDuration::from_secs(1));
    assert_eq!(ask(&fleet, 60).await, Ok(Outcome::Done));
    // The time limit also holds for an image that never becomes ready.
    cloud.state().image_looks = None;
    assert_eq!(ask(&fleet, 120).await, Ok(Outcome::Pending));
    clock.advance(IMAGE_TIME);
    let failed = ask(&fleet, 120).await;
    assert!(matches!(&failed, Err(FleetError::Unavailable(reason)) if reason.contains("1h")), "{failed:?}");
    // An obstacle that has passed isn't reported as the reason for giving up.
    cloud.fail(Method::GET, "/image/", 503, 1);
    assert_eq!(ask(&fleet, 180).await, Ok(Outcome::Pending));
    clock.advance(IMAGE_TIME);
    let failed = ask(&fleet, 180).await;
    assert!(matches!(&failed, Err(FleetError::Unavailable(reason)) if reason.contains("1h")), "{failed:?}");
}
