//! Servers that stay when their lease ends.

use axum::http::Method;
use fleet::{FleetError, Isolation as _, Outcome};
use leases::ids::{HostId, LeaseId, ReservationId};
use leases::plan::{Action, GuestOwner, Place};

use crate::faults::insist;
use crate::handing_over::{LEASE, MINE, ONE, adopt, done, handover, seen, step, step_for};
use crate::promises::guest;
use crate::standin::{FREE_POOL, Standin};

const TWO: HostId = HostId(2);
const THEIRS: ReservationId = ReservationId(0xb2);

fn kept() -> String {
    format!("{MINE} kept")
}

/// A cloud with two hosts, both held by a lease, and a server of its owner on the first one.
async fn in_use() -> (Standin, String) {
    let cloud = Standin::start(2).await;
    for host in [ONE, TWO] {
        assert_eq!(adopt(&cloud.fleet(), host).await, Ok(Outcome::Done));
        done(&cloud.fleet(), &handover(host)).await;
    }
    let server = cloud.state().boot("host1", "mine", false);
    cloud.exchanges();
    (cloud, server)
}

/// Steps that end the lease of both hosts.
const ENDING: [Action; 3] = [Action::Release(ONE, MINE), Action::Release(TWO, MINE), Action::Finish(MINE)];

#[tokio::test]
async fn servers_stay_untouched_the_leases_access_goes_and_the_host_is_in_nobodys_pool() {
    let (cloud, server) = in_use().await;
    let fleet = cloud.fleet();
    done(&fleet, &ENDING).await;
    {
        let mut state = cloud.state();
        assert_eq!(state.servers[&server].status, "ACTIVE");
        assert_eq!(state.pools("host1"), [FREE_POOL.to_owned(), kept()]);
        assert_eq!(state.pools("host2"), [FREE_POOL], "nothing was there");
        assert!(state.host("host1").enabled && state.left_open.is_empty());
        assert!(state.aggregates.values().all(|pool| !pool.metadata.contains_key("blazar:owner")));
    }
    let touched =
        cloud.exchanges().into_iter().filter(|asked| asked.path.contains(&format!("/servers/{server}")));
    assert_eq!(touched.count(), 0, "nobody has asked anything of the server");
    let observed = seen(&fleet, ONE).await;
    assert_eq!((observed.place, observed.guests[0].owner), (Place::FreePool, GuestOwner::Lease(LEASE)));
    assert_eq!(observed.guests[0].mobility, None);
    let refused = fleet.abandon(ONE).await.expect_err("Nova does not let it go");
    assert!(refused.to_string().contains("servers that stayed after reservation"), "{refused}");
    let forced = cloud.state().boot("host1", "another", false);
    let refused = step(&fleet, Action::DeleteGuest(ONE, guest(&forced))).await;
    assert!(matches!(refused, Err(FleetError::Refused(_))), "{refused:?}");
}

#[tokio::test]
async fn once_servers_that_stayed_are_gone_the_host_can_be_leased_again() {
    let (cloud, server) = in_use().await;
    let fleet = cloud.fleet();
    done(&fleet, &ENDING).await;
    cloud.state().servers.remove(&server);
    assert_eq!(seen(&fleet, ONE).await.place, Place::Fenced { verified_for: None });
    done(&fleet, &[Action::Unfence(ONE)]).await;
    {
        let state = cloud.state();
        assert_eq!((state.pools("host1"), state.aggregates.len()), (vec![FREE_POOL.to_owned()], 1));
    }
    assert_eq!(fleet.abandon(ONE).await, Ok(Outcome::Done));
}

#[tokio::test]
async fn a_lease_that_waits_for_the_host_gets_it_when_they_are_gone() {
    let (cloud, server) = in_use().await;
    let fleet = cloud.fleet();
    done(&fleet, &ENDING).await;
    let other = async |actions: &[Action]| {
        for action in actions {
            assert_eq!(step_for(&fleet, LeaseId(0xa2), *action).await, Ok(Outcome::Done), "{action}");
        }
    };
    other(&[Action::Fence(ONE), Action::Verify(ONE, THEIRS)]).await;
    assert_eq!(seen(&fleet, ONE).await.place, Place::Fenced { verified_for: None }, "somebody is there");
    // The lease is deleted, and the host is back in its earlier place.
    other(&[Action::Unfence(ONE)]).await;
    assert_eq!(seen(&fleet, ONE).await.place, Place::FreePool);
    assert_eq!(cloud.state().pools("host1"), [FREE_POOL.to_owned(), kept()]);
    other(&[Action::Fence(ONE)]).await;
    cloud.state().servers.remove(&server);
    other(&[Action::Verify(ONE, THEIRS), Action::Hold(ONE, THEIRS)]).await;
    assert_eq!(cloud.state().pools("host1"), [THEIRS.to_string()]);
    assert!(cloud.state().aggregates.values().all(|pool| pool.name != kept()));
}

#[tokio::test]
async fn a_lease_that_gets_its_host_back_finds_its_servers_there() {
    let (cloud, server) = in_use().await;
    let fleet = cloud.fleet();
    done(&fleet, &[Action::Release(ONE, MINE)]).await;
    done(&fleet, &handover(ONE)).await;
    let observed = seen(&fleet, ONE).await;
    assert_eq!((observed.place, observed.guests[0].owner), (Place::Held(MINE), GuestOwner::Lease(LEASE)));
    let state = cloud.state();
    assert_eq!((state.pools("host1"), state.servers[&server].status), (vec![MINE.to_string()], "ACTIVE"));
    assert!(state.aggregates.values().all(|pool| pool.name != kept()));
}

#[tokio::test]
async fn a_host_that_a_crash_left_in_the_gate_of_another_reservation_can_be_held() {
    let cloud = Standin::start(1).await;
    let fleet = cloud.fleet();
    assert_eq!(adopt(&fleet, ONE).await, Ok(Outcome::Done));
    done(&fleet, &handover(ONE)[..2]).await;
    // Passes the mark of the reservation's aggregate, and loses the answer about the host that joins the
    // gate.
    cloud.pass(Method::POST, "/action", 1);
    cloud.lose_answer(Method::POST, "/action");
    cloud.pass(Method::GET, "os-aggregates", 2);
    cloud.fail(Method::GET, "os-aggregates", 500, 1);
    let crashed = step(&fleet, Action::Hold(ONE, MINE)).await;
    assert!(crashed.is_err(), "{crashed:?}");
    assert!(cloud.state().pools("host1").contains(&format!("{MINE} gate")));
    // Its lease is deleted, and another one starts.
    done(&fleet, &[Action::Unfence(ONE), Action::Fence(ONE)]).await;
    let gate = cloud.state().aggregates.values_mut().find(|pool| pool.name.ends_with(" gate")).map(|gate| {
        gate.hosts.insert("host1".to_owned());
    });
    assert!(gate.is_some());
    done(&fleet, &[Action::Verify(ONE, THEIRS), Action::Hold(ONE, THEIRS)]).await;
    let state = cloud.state();
    assert_eq!(state.pools("host1"), [THEIRS.to_string()]);
    assert!(state.left_open.is_empty());
}

#[tokio::test]
async fn whichever_request_fails_servers_stay_and_the_host_comes_back() {
    let ending = async |cloud: &Standin, server: &str| {
        insist(cloud, &ENDING).await;
        assert_eq!(seen(&cloud.fleet(), ONE).await.place, Place::FreePool);
        assert_eq!(cloud.state().servers[server].status, "ACTIVE");
        cloud.state().servers.remove(server);
        insist(cloud, &[Action::Unfence(ONE)]).await;
        assert_eq!(seen(&cloud.fleet(), ONE).await.place, Place::FreePool);
    };
    let (cloud, server) = in_use().await;
    ending(&cloud, &server).await;
    let changes = cloud.exchanges().into_iter().filter(|asked| asked.method != "GET");
    let asked: Vec<_> = changes.map(|asked| (asked.method, asked.path)).collect();
    assert!(asked.len() >= 12, "{asked:#?}");
    for number in 0..asked.len() {
        for lost in [false, true] {
            let (cloud, server) = in_use().await;
            let why = cloud.break_request(&asked, number, lost);
            ending(&cloud, &server).await;
            let mut state = cloud.state();
            let aggregates: Vec<&String> = state.aggregates.values().map(|pool| &pool.name).collect();
            assert_eq!(aggregates, [FREE_POOL], "{why}");
            assert!(state.host("host1").enabled && state.left_open.is_empty(), "{why}");
        }
    }
}

#[tokio::test]
async fn servers_of_an_instance_lease_stay_and_what_they_use_goes_with_them() {
    let cloud = Standin::start(1).await;
    let fleet = cloud.fleet();
    assert_eq!(adopt(&fleet, ONE).await, Ok(Outcome::Done));
    done(&fleet, &[Action::Grant(ONE, MINE, 2)]).await;
    let server = cloud.state().boot("host1", "mine", false);
    cloud.state().servers.get_mut(&server).expect("a server").flavor = format!("reservation:{MINE}");
    done(&fleet, &[Action::Withdraw(ONE, MINE), Action::Finish(MINE)]).await;
    let slots = |cloud: &Standin| {
        let state = cloud.state();
        let provider =
            state.providers.values().find(|provider| provider.name == "blazar_host1").expect("one");
        provider.inventories.len()
    };
    {
        let state = cloud.state();
        assert_eq!(state.servers[&server].status, "ACTIVE");
        assert!(state.flavors.is_empty() && state.aggregates.len() == 1, "the project's access is gone");
    }
    assert_eq!((slots(&cloud), seen(&fleet, ONE).await.guests[0].owner), (1, GuestOwner::Other));
    // The next step on the host's slots cleans up once the server is gone.
    done(&fleet, &[Action::Grant(ONE, THEIRS, 1)]).await;
    assert_eq!(slots(&cloud), 2, "Placement does not let it go yet");
    cloud.state().servers.clear();
    done(&fleet, &[Action::Withdraw(ONE, THEIRS), Action::Finish(THEIRS)]).await;
    assert_eq!((slots(&cloud), cloud.state().classes.len()), (0, 0));
}
