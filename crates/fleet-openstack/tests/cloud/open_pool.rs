//! A fence that admits servers of any project to the free pool.

use fleet::{Isolation as _, Outcome};
use fleet_openstack::Fence;
use leases::ids::HostId;
use leases::plan::{Action, GuestOwner, Place};
use leases::preemption::ProjectPattern;

use crate::handing_over::{MINE, ONE, done, seen, step};
use crate::promises::guest;
use crate::standin::Standin;

const TWO: HostId = HostId(2);
const OPEN: Fence = Fence::AllotFilter { open_pool: true, projects: Vec::new() };
const CLOSED: Fence = Fence::AllotFilter { open_pool: false, projects: Vec::new() };

#[tokio::test]
async fn hosts_with_servers_are_taken_on_in_an_open_pool_only() {
    let cloud = Standin::start(2).await;
    let server = cloud.state().boot("host1", "another", false);
    assert!(cloud.fenced_by(CLOSED).adopt(ONE).await.is_err());
    let fleet = cloud.fenced_by(OPEN);
    assert!(fleet.adopts_with_guests() && !cloud.fenced_by(CLOSED).adopts_with_guests());
    assert_eq!(fleet.adopt(ONE).await, Ok(Outcome::Done));
    let observed = seen(&fleet, ONE).await;
    assert_eq!((observed.place, observed.guests[0].id), (Place::FreePool, guest(&server)));
    assert_eq!(observed.guests[0].owner, GuestOwner::Other);
}

#[tokio::test]
async fn a_host_is_handed_over_once_servers_of_others_were_moved_to_another_one() {
    let cloud = Standin::start(2).await;
    let fleet = cloud.fenced_by(OPEN);
    let server = cloud.state().boot("host1", "another", false);
    for host in [ONE, TWO] {
        assert_eq!(fleet.adopt(host).await, Ok(Outcome::Done));
    }
    done(&fleet, &[Action::Fence(ONE), Action::Verify(ONE, MINE)]).await;
    assert_eq!(seen(&fleet, ONE).await.place, Place::Fenced { verified_for: None }, "somebody is there");
    assert!(seen(&fleet, ONE).await.guests[0].mobility.is_some());
    let moving = step(&fleet, Action::MoveGuest(ONE, guest(&server), TWO)).await;
    assert_eq!(moving, Ok(Outcome::Pending));
    done(&fleet, &[Action::Verify(ONE, MINE), Action::Hold(ONE, MINE)]).await;
    assert_eq!(seen(&fleet, ONE).await.place, Place::Held(MINE));
    let state = cloud.state();
    assert_eq!((state.servers[&server].host.as_str(), state.servers[&server].status), ("host2", "ACTIVE"));
}

#[tokio::test]
async fn servers_are_preemptible_by_a_hint_where_the_fence_sees_hints() {
    let cloud = Standin::start(1).await;
    let fleet = cloud.fenced_by(CLOSED);
    assert_eq!(fleet.adopt(ONE).await, Ok(Outcome::Done));
    cloud.exchanges();
    let server = cloud.state().boot("host1", "another", false);
    assert_eq!(seen(&fleet, ONE).await.guests[0].owner, GuestOwner::Other);
    cloud.state().servers.get_mut(&server).expect("a server").hinted = Some(true);
    assert_eq!(seen(&fleet, ONE).await.guests[0].owner, GuestOwner::Preemptible);
    let lists = cloud.exchanges().into_iter().filter(|asked| asked.path.contains("/servers/detail"));
    assert!(lists.into_iter().all(|asked| asked.version == "compute 2.100"));
}

#[tokio::test]
async fn servers_of_listed_projects_are_preemptible_unless_their_hint_or_flavor_says_otherwise() {
    let cloud = Standin::start(1).await;
    let Ok(pattern) = "spot-*".parse::<ProjectPattern>();
    let fleet = cloud.fenced_by(Fence::AllotFilter { open_pool: false, projects: vec![pattern] });
    assert_eq!(fleet.adopt(ONE).await, Ok(Outcome::Done));
    let owner_of = async |project: &str, hinted: Option<bool>, of_flavor: Option<&str>| {
        {
            let mut state = cloud.state();
            state.servers.clear();
            let id = state.boot("host1", project, false);
            let server = state.servers.get_mut(&id).expect("a server");
            server.hinted = hinted;
            server.specs.extend(of_flavor.map(|says| ("blazar:preemptible".to_owned(), says.to_owned())));
        }
        seen(&fleet, ONE).await.guests[0].owner
    };
    let (preemptible, regular) = (GuestOwner::Preemptible, GuestOwner::Other);
    assert_eq!(owner_of("spot-ci", None, None).await, preemptible);
    assert_eq!(owner_of("web", None, None).await, regular);
    assert_eq!(owner_of("web", Some(true), None).await, preemptible);
    assert_eq!(owner_of("spot-ci", Some(false), None).await, regular);
    assert_eq!(owner_of("spot-ci", None, Some("false")).await, regular);
    assert_eq!(owner_of("spot-ci", None, Some("true")).await, preemptible);
}

#[tokio::test]
async fn a_host_is_taken_on_with_servers_of_listed_projects_and_with_no_server_that_opted_out() {
    let cloud = Standin::start(1).await;
    let Ok(all) = "*".parse::<ProjectPattern>();
    let fleet = cloud.fenced_by(Fence::AllotFilter { open_pool: false, projects: vec![all] });
    let server = cloud.state().boot("host1", "another", false);
    cloud.state().servers.get_mut(&server).expect("a server").hinted = Some(false);
    assert!(fleet.adopt(ONE).await.is_err());
    cloud.state().servers.get_mut(&server).expect("a server").hinted = None;
    assert_eq!(fleet.adopt(ONE).await, Ok(Outcome::Done));
}
