//! A fleet with a fence that lets anybody's servers into the free pool.

use fleet::{Isolation as _, Outcome};
use fleet_openstack::Fence;
use leases::ids::HostId;
use leases::plan::{Action, GuestOwner, Place};

use crate::handing_over::{MINE, ONE, done, seen, step};
use crate::promises::guest;
use crate::standin::Standin;

const TWO: HostId = HostId(2);
const OPEN: Fence = Fence::AllotFilter { open_pool: true };
const CLOSED: Fence = Fence::AllotFilter { open_pool: false };

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
    cloud.state().servers.get_mut(&server).expect("a server").hinted = true;
    assert_eq!(seen(&fleet, ONE).await.guests[0].owner, GuestOwner::Preemptible);
    let lists = cloud.exchanges().into_iter().filter(|asked| asked.path.contains("/servers/detail"));
    assert!(lists.into_iter().all(|asked| asked.version == "compute 2.100"));
}
