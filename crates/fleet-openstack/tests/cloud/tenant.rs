//! Nova's tenant isolation as a fence: the hosts that its options and its filter let each project use.

use std::collections::BTreeSet;

use fleet::{Inventory as _, Isolation as _, Outcome};
use fleet_openstack::Fence;
use leases::ids::{HostId, ReservationId};
use leases::plan::{Action, GuestOwner, Place};

use crate::handing_over::{LEASE, MINE, ONE, adopt, done, handover, seen};
use crate::promises::SPOT;
use crate::standin::{FREE_POOL, Isolation, Standin};

const TWO: HostId = HostId(2);

fn tenant() -> Fence {
    Fence::Tenant { preemptible: [SPOT.to_owned()].into() }
}

/// A cloud with two hosts in the free pool. The lease's owner, another project and the project with
/// preemptible servers look for hosts all the time.
async fn watched() -> Standin {
    let cloud = Standin::with(2, tenant()).await;
    let fleet = cloud.fleet();
    for host in [ONE, TWO] {
        assert_eq!(adopt(&fleet, host).await, Ok(Outcome::Done));
    }
    cloud.state().watched = vec!["mine", "another", SPOT];
    cloud
}

/// Projects that can use the host now, by Nova's options and by its filter.
fn users(cloud: &Standin, host: &str) -> [Vec<&'static str>; 2] {
    let state = cloud.state();
    [Isolation::Options, Isolation::Filter].map(|by| {
        let projects = ["mine", "another", SPOT].into_iter();
        projects.filter(|project| state.lets_in(by, host, project)).collect()
    })
}

#[tokio::test]
async fn a_host_is_its_owners_alone_and_the_free_pool_is_for_preemptible_servers_alone() {
    let cloud = watched().await;
    let fleet = cloud.fleet();
    assert_eq!(users(&cloud, "host1"), [[SPOT], [SPOT]]);
    done(&fleet, &handover(ONE)[..1]).await;
    assert_eq!(users(&cloud, "host1"), [[""; 0]; 2], "it changes hands");
    done(&fleet, &handover(ONE)[1..]).await;
    assert_eq!(users(&cloud, "host1"), [["mine"]; 2]);
    assert_eq!(users(&cloud, "host2"), [[SPOT]; 2]);
    done(&fleet, &[Action::Release(ONE, MINE), Action::Finish(MINE)]).await;
    assert_eq!(users(&cloud, "host1"), [[SPOT], [SPOT]]);
    let state = cloud.state();
    assert!(state.let_in.iter().all(|(_, _, project)| *project != "another"), "{:?}", state.let_in);
    assert!(!state.let_in.iter().any(|(_, host, project)| host == "host2" && *project == "mine"));
    assert_eq!(state.aggregates.len(), 1);
}

#[tokio::test]
async fn servers_are_preemptible_by_their_project() {
    let cloud = watched().await;
    let fleet = cloud.fleet();
    let spot = cloud.state().boot("host1", SPOT, false);
    cloud.state().boot("host1", "another", true);
    let owners: Vec<_> = seen(&fleet, ONE).await.guests.iter().map(|guest| guest.owner).collect();
    assert_eq!(owners, [GuestOwner::Preemptible, GuestOwner::Other], "a flavor marks nothing");
    cloud.state().servers.retain(|id, _| *id == spot);
    assert!(
        seen(&fleet, ONE).await.guests[0].mobility.is_some(),
        "it may go to another host of the free pool"
    );
}

#[tokio::test]
async fn room_is_used_with_the_flavor_of_the_reservation_only() {
    let cloud = watched().await;
    let fleet = cloud.fleet();
    done(&fleet, &[Action::Grant(ONE, MINE, 2)]).await;
    {
        let state = cloud.state();
        let pool = state.aggregates.values().find(|pool| pool.name == MINE.to_string()).expect("a pool");
        assert_eq!(pool.metadata["filter_tenant_id"], "mine");
        assert_eq!(pool.metadata["instance_type"], format!("reservation:{MINE}"));
    }
    assert_eq!(users(&cloud, "host1"), [["mine", SPOT]; 2]);
    done(&fleet, &[Action::Withdraw(ONE, MINE), Action::Finish(MINE)]).await;
    assert_eq!(users(&cloud, "host1"), [[SPOT]; 2]);
    assert!(cloud.state().let_in.iter().all(|(_, _, project)| *project != "another"));
}

#[tokio::test]
async fn the_owner_gets_in_although_nova_does_not_tell_placement() {
    let cloud = watched().await;
    cloud.state().forgets_placement = true;
    let fleet = cloud.fleet();
    done(&fleet, &handover(ONE)).await;
    assert_eq!(users(&cloud, "host1"), [["mine"]; 2]);
    done(&fleet, &[Action::Grant(TWO, ReservationId(0xb2), 1)]).await;
    // Nova would have told Placement about the free pool as well.
    assert_eq!(users(&cloud, "host2")[1], ["mine", SPOT]);
    assert!(users(&cloud, "host2")[0].contains(&"mine"));
}

#[tokio::test]
async fn nobody_starts_servers_beside_those_that_stayed_but_preemptible_ones() {
    let cloud = watched().await;
    let fleet = cloud.fleet();
    done(&fleet, &handover(ONE)).await;
    cloud.state().boot("host1", "mine", false);
    done(&fleet, &[Action::Release(ONE, MINE), Action::Finish(MINE)]).await;
    let observed = seen(&fleet, ONE).await;
    assert_eq!((observed.place, observed.guests[0].owner), (Place::FreePool, GuestOwner::Lease(LEASE)));
    assert_eq!(users(&cloud, "host1"), [[SPOT]; 2]);
}

#[tokio::test]
async fn leases_and_the_free_pool_of_another_fence_are_taken_over() {
    let cloud = Standin::with(2, tenant()).await;
    let before = cloud.fenced_by(Fence::BlazarFilter);
    for host in [ONE, TWO] {
        assert_eq!(adopt(&before, host).await, Ok(Outcome::Done));
    }
    done(&before, &handover(ONE)).await;
    assert_eq!(users(&cloud, "host2")[1], ["mine", "another", SPOT], "the filter is not told of anybody");
    let fleet = cloud.fleet();
    fleet.set_up().await.expect("it is set up");
    assert_eq!(users(&cloud, "host2"), [[SPOT]; 2]);
    let complete = async || {
        let observed = fleet.observe(&BTreeSet::new(), &[]).await.expect("an answer");
        observed.reservations[&MINE].complete
    };
    assert_eq!(complete().await, None, "it is to be prepared again");
    done(&fleet, &[Action::Prepare(MINE)]).await;
    assert!(complete().await.is_some());
    assert_eq!(users(&cloud, "host1"), [["mine"]; 2]);
    cloud.exchanges();
    fleet.set_up().await.expect("it is set up");
    assert_eq!(cloud.exchanges().len(), 1, "a list");
    cloud.fenced_by(Fence::BlazarFilter).set_up().await.expect("it is set up");
    let state = cloud.state();
    let free = state.aggregates.values().find(|pool| pool.name == FREE_POOL).expect("the free pool");
    assert!(free.metadata.is_empty(), "{:?}", free.metadata);
}
