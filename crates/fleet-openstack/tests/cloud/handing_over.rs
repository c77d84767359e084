//! Handovers of hosts and slots, from the cloud's point of view.

use std::collections::BTreeSet;

use fleet::conformance::facts;
use fleet::{About, Fleet, FleetError, OperationKey, Outcome, perform};
use fleet_openstack::Fence;
use futures::future::join_all;
use leases::host::Health;
use leases::ids::{HostId, LeaseId, ReservationId};
use leases::plan::{Action, GuestOwner, ObservedHost, Place};
use leases::project::ProjectId;
use leases::terms::{Affinity, InstanceSize};

use crate::promises::guest;
use crate::standin::{FREE_POOL, Standin};

pub const ONE: HostId = HostId(1);
pub const MINE: ReservationId = ReservationId(0xecdc_c9ea_d38d_4032_a9e3_3a8d_bcc0_6753);
pub const LEASE: LeaseId = LeaseId(0xa1);

/// Takes a step for the lease, under a claim of its own.
pub async fn step(fleet: &dyn Fleet, action: Action) -> Result<Outcome, FleetError> {
    step_for(fleet, LEASE, action).await
}

/// Takes a step for that lease, under a claim of its own.
pub async fn step_for(fleet: &dyn Fleet, lease: LeaseId, action: Action) -> Result<Outcome, FleetError> {
    static CLAIMS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    let fence = CLAIMS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let size = InstanceSize::new(2, 1024, 10).expect("a size");
    let facts = facts(action, ProjectId("mine".to_owned()), size, Affinity::DistinctHosts);
    perform(
        fleet,
        action,
        About::default(),
        &OperationKey::of(action, fence, Some(lease)).with_facts(Some(facts)),
    )
    .await
}

pub async fn done(fleet: &dyn Fleet, actions: &[Action]) {
    for action in actions {
        assert_eq!(step(fleet, *action).await, Ok(Outcome::Done), "{action}");
    }
}

pub async fn adopt(fleet: &dyn Fleet, host: HostId) -> Result<Outcome, FleetError> {
    fleet.adopt(host).await
}

pub async fn seen(fleet: &dyn Fleet, host: HostId) -> ObservedHost {
    let mut observed = fleet.observe(&BTreeSet::from([host]), &[]).await.expect("an answer");
    observed.hosts.remove(&host).expect("it was adopted")
}

pub fn handover(host: HostId) -> [Action; 3] {
    [Action::Fence(host), Action::Verify(host, MINE), Action::Hold(host, MINE)]
}

#[tokio::test]
async fn a_lease_has_an_aggregate_that_its_owner_can_use_and_the_host_is_never_without_a_pool() {
    let cloud = Standin::start(2).await;
    let fleet = cloud.fleet();
    assert_eq!(adopt(&fleet, ONE).await, Ok(Outcome::Done));
    assert_eq!(cloud.state().pools("host1"), [FREE_POOL]);
    done(&fleet, &[Action::Fence(ONE)]).await;
    let reason = cloud.state().host("host1").reason.clone();
    assert_eq!(reason.as_deref(), Some("allot: changing hands"));
    assert_eq!(seen(&fleet, ONE).await.health, Health::Up, "its own fence is no failure");
    done(&fleet, &handover(ONE)[1..]).await;
    {
        let state = cloud.state();
        let pool = state.aggregates.values().find(|pool| pool.name == MINE.to_string()).expect("a pool");
        assert_eq!(pool.zone.as_deref(), Some("blazar_ecdcc9ea-d38d-4032-a9e3-3a8dbcc06753"));
        assert_eq!(pool.metadata["blazar:owner"], "mine");
        assert_eq!(state.pools("host1"), [MINE.to_string()]);
        assert!(state.hosts["host1"].enabled);
    }
    // The owner starts a server. Servers of other projects aren't touched.
    let own = cloud.state().boot("host1", "mine", false);
    let own_preemptible = cloud.state().boot("host1", "mine", true);
    let forced = cloud.state().boot("host1", "another", false);
    let mut owners: Vec<_> =
        seen(&fleet, ONE).await.guests.into_iter().map(|seen| (seen.id, seen.owner)).collect();
    owners.sort_by_key(|(id, _)| *id);
    assert_eq!(
        owners,
        [
            (guest(&own), GuestOwner::Lease(LEASE)),
            (guest(&own_preemptible), GuestOwner::Lease(LEASE)),
            (guest(&forced), GuestOwner::Other)
        ]
    );
    let refused = step(&fleet, Action::DeleteGuest(ONE, guest(&forced))).await;
    assert!(matches!(refused, Err(FleetError::Refused(_))), "{refused:?}");
    done(&fleet, &[own, own_preemptible].map(|id| Action::DeleteGuest(ONE, guest(&id)))).await;
    cloud.state().servers.clear();
    done(&fleet, &[Action::Release(ONE, MINE)]).await;
    {
        let state = cloud.state();
        assert_eq!(state.pools("host1"), [FREE_POOL]);
        assert!(state.hosts["host1"].enabled && state.left_open.is_empty());
    }
    done(&fleet, &[Action::Finish(MINE)]).await;
    assert!(cloud.state().aggregates.values().all(|pool| pool.name == FREE_POOL));
}

#[tokio::test]
async fn aggregates_of_leases_of_hosts_and_instances_have_the_key_of_lease_pools_with_every_fence() {
    let fences = [
        Fence::BlazarFilter,
        Fence::AllotFilter { open_pool: false, projects: Vec::new() },
        Fence::Tenant { preemptible: BTreeSet::new() },
        Fence::Traits { flavors: Vec::new(), images: false },
    ];
    let hold = handover(ONE);
    let ways: [(&[Action], Action); 2] = [
        (&hold, Action::Release(ONE, MINE)),
        (&[Action::Prepare(MINE), Action::Grant(ONE, MINE, 1)], Action::Withdraw(ONE, MINE)),
    ];
    for fence in fences {
        for (start, end) in ways {
            let cloud = Standin::with(1, fence.clone()).await;
            let fleet = cloud.fleet();
            assert_eq!(adopt(&fleet, ONE).await, Ok(Outcome::Done));
            done(&fleet, start).await;
            let keys = || {
                let state = cloud.state();
                let keys =
                    state.aggregates.values().map(|pool| pool.metadata.get("filter_lease_id").cloned());
                keys.flatten().collect::<Vec<_>>()
            };
            assert_eq!(keys(), [LEASE.to_string()], "{fence:?}");
            // Its servers stay, but the key doesn't.
            cloud.state().boot("host1", "mine", false);
            done(&fleet, &[end, Action::Finish(MINE)]).await;
            assert_eq!(keys(), [""; 0], "{fence:?}");
        }
    }
}

#[tokio::test]
async fn schedulers_know_all_hosts_of_a_lease_that_change_hands_at_the_same_time() {
    let cloud = Standin::start(4).await;
    let fleet = cloud.fleet();
    let hosts = || (1..=4).map(HostId);
    let taken_on = join_all(hosts().map(|host| adopt(&fleet, host))).await;
    assert_eq!(taken_on, vec![Ok(Outcome::Done); 4], "of steps that create the free pool at once none fails");
    assert_eq!(cloud.state().wrongly_told(), [""; 0]);
    let handovers: Vec<_> = hosts().map(handover).collect();
    join_all(handovers.iter().map(|steps| done(&fleet, steps))).await;
    assert_eq!(cloud.state().wrongly_told(), [""; 0]);
    // Now with two services.
    let other = cloud.fleet();
    let back = hosts().map(|host| {
        let fleet = if host.0 % 2 == 0 { &fleet } else { &other };
        async move { done(fleet, &[Action::Release(host, MINE)]).await }
    });
    join_all(back).await;
    assert_eq!(cloud.state().pools("host4"), [FREE_POOL]);
    assert!(!cloud.state().wrongly_told().contains(&FREE_POOL.to_owned()));
}

#[tokio::test]
async fn what_the_operator_has_disabled_stays_disabled() {
    let cloud = Standin::start(2).await;
    let fleet = cloud.fleet();
    assert_eq!(adopt(&fleet, ONE).await, Ok(Outcome::Done));
    let disable = || {
        let mut state = cloud.state();
        let host = state.host("host1");
        (host.enabled, host.reason) = (false, Some("maintenance".to_owned()));
    };
    disable();
    assert_eq!(seen(&fleet, ONE).await.health, Health::Failed);
    let refused = step(&fleet, Action::Fence(ONE)).await.expect_err("it is not ours");
    assert!(refused.to_string().contains("maintenance"), "{refused}");
    cloud.state().host("host1").enabled = true;
    done(&fleet, &handover(ONE)).await;
    disable();
    assert_eq!(seen(&fleet, ONE).await.place, Place::Held(MINE));
    done(&fleet, &[Action::Release(ONE, MINE)]).await;
    assert_eq!(seen(&fleet, ONE).await.place, Place::FreePool);
    assert_eq!(cloud.state().host("host1").reason.as_deref(), Some("maintenance"));
}

#[tokio::test]
async fn preemptible_servers_leave_a_fenced_host_and_those_that_have_shut_down_need_no_more_time() {
    let cloud = Standin::start(2).await;
    let fleet = cloud.fleet();
    assert_eq!(adopt(&fleet, ONE).await, Ok(Outcome::Done));
    let server = cloud.state().boot("host1", "another", true);
    let id = guest(&server);
    done(&fleet, &[Action::Fence(ONE)]).await;
    let before = seen(&fleet, ONE).await.guests.remove(0);
    assert_eq!((before.owner, before.stopping_since), (GuestOwner::Preemptible, None));
    assert!(before.mobility.is_some(), "it may go to another host of the free pool");
    assert_eq!(before.launched_at, "2026-11-30T02:39:54Z".parse().ok(), "a resize resets Nova's launched_at");
    done(&fleet, &[Action::StopGuest(ONE, id), Action::StopGuest(ONE, id)]).await;
    let after = seen(&fleet, ONE).await.guests.remove(0);
    assert_eq!(after.stopping_since, Some(jiff::Timestamp::UNIX_EPOCH), "the grace time is over");
    cloud.state().slow_deletion = 2;
    done(&fleet, &[Action::DeleteGuest(ONE, id)]).await;
    assert!(cloud.state().servers.is_empty());
    done(&fleet, &[Action::DeleteGuest(ONE, id), Action::Verify(ONE, MINE)]).await;
    assert_eq!(seen(&fleet, ONE).await.place, Place::Fenced { verified_for: Some(MINE) });
}

#[tokio::test]
async fn a_server_that_was_asked_to_leave_in_vain_is_started_again_unless_it_did_not_run() {
    let cloud = Standin::start(2).await;
    let fleet = cloud.fleet();
    assert_eq!(adopt(&fleet, ONE).await, Ok(Outcome::Done));
    let [ran, off] = [(); 2].map(|()| cloud.state().boot("host1", "another", true));
    cloud.state().servers.get_mut(&off).expect("a server").status = "SHUTOFF";
    let status = |server: &String| cloud.state().servers[server].status;
    for server in [&ran, &off] {
        done(&fleet, &[Action::StopGuest(ONE, guest(server))]).await;
        assert_eq!(status(server), "SHUTOFF");
    }
    assert_eq!(step(&fleet, Action::ResumeGuest(ONE, guest(&ran))).await, Ok(Outcome::Pending));
    done(&fleet, &[Action::ResumeGuest(ONE, guest(&ran)), Action::ResumeGuest(ONE, guest(&off))]).await;
    assert_eq!([&ran, &off].map(status), ["ACTIVE", "SHUTOFF"]);
    assert!(seen(&fleet, ONE).await.guests.iter().all(|guest| guest.stopping_since.is_none()));
    // They can be asked again.
    done(&fleet, &[Action::StopGuest(ONE, guest(&ran))]).await;
    assert_eq!(status(&ran), "SHUTOFF");
}

#[tokio::test]
async fn a_server_that_only_placement_knows_of_is_in_the_way() {
    let cloud = Standin::start(2).await;
    let fleet = cloud.fleet();
    assert_eq!(adopt(&fleet, ONE).await, Ok(Outcome::Done));
    let server = cloud.state().boot("host1", "another", false);
    cloud.state().servers.get_mut(&server).expect("a server").listed = false;
    done(&fleet, &handover(ONE)).await;
    assert_eq!(seen(&fleet, ONE).await.place, Place::Fenced { verified_for: None });
    cloud.state().servers.clear();
    done(&fleet, &handover(ONE)[1..2]).await;
    // After verification, a server arrives that was on its way for a long time.
    cloud.state().boot("host1", "another", true);
    done(&fleet, &handover(ONE)[2..]).await;
    assert_eq!(seen(&fleet, ONE).await.place, Place::Fenced { verified_for: None });
    assert!(!cloud.state().host("host1").enabled);
}

#[tokio::test]
async fn slots_are_a_flavor_an_aggregate_and_a_class_of_resources() {
    let cloud = Standin::start(2).await;
    let fleet = cloud.fleet();
    for host in [1, 2] {
        assert_eq!(adopt(&fleet, HostId(host)).await, Ok(Outcome::Done));
    }
    done(&fleet, &[Action::Grant(ONE, MINE, 2), Action::Grant(HostId(2), MINE, 1)]).await;
    let class = "CUSTOM_RESERVATION_ECDCC9EA_D38D_4032_A9E3_3A8DBCC06753";
    {
        let state = cloud.state();
        assert_eq!(state.flavors[&MINE.to_string()], BTreeSet::from(["mine".to_owned()]));
        let pool = state.aggregates.values().find(|pool| pool.name == MINE.to_string()).expect("a pool");
        assert_eq!(pool.zone, None);
        assert_eq!((pool.metadata["filter_tenant_id"].as_str(), pool.hosts.len()), ("mine", 2));
        let provider = state.providers.values().find(|other| other.name == "blazar_host1").expect("one");
        assert_eq!(provider.inventories[class], 2);
        assert_eq!(state.pools("host1").len(), 2, "it stays in the free pool");
    }
    // A server with the reservation's flavor belongs to the lease, on any host.
    let server = cloud.state().boot("host1", "mine", false);
    cloud.state().servers.get_mut(&server).expect("a server").flavor = format!("reservation:{MINE}");
    let observed = seen(&fleet, ONE).await;
    assert_eq!((observed.guests[0].owner, observed.slots[&MINE]), (GuestOwner::Lease(LEASE), 2));
    cloud.state().servers.clear();
    let refused = fleet::Isolation::abandon(&fleet, ONE).await;
    assert!(matches!(refused, Err(FleetError::Refused(_))), "{refused:?}");
    done(&fleet, &[Action::Withdraw(ONE, MINE)]).await;
    let waits = step(&fleet, Action::Finish(MINE)).await.expect_err("the other host has slots still");
    assert!(waits.to_string().contains("host host2 is still in aggregate"), "{waits}");
    done(&fleet, &[Action::Withdraw(HostId(2), MINE), Action::Finish(MINE)]).await;
    {
        let state = cloud.state();
        assert!(state.flavors.is_empty() && state.classes.is_empty() && state.aggregates.len() == 1);
    }
    assert_eq!(fleet::Isolation::abandon(&fleet, ONE).await, Ok(Outcome::Done));
    let state = cloud.state();
    let provider = state.providers.values().find(|other| other.name == "blazar_host1");
    let provider = provider.expect("nova-compute needs what it has seen below its own");
    assert!(provider.inventories.is_empty() && state.pools("host1").is_empty());
}

#[tokio::test]
async fn hosts_that_go_back_at_the_same_time_leave_nothing_behind() {
    let cloud = Standin::start(3).await;
    let fleet = cloud.fleet();
    let hosts = [1, 2, 3].map(HostId);
    for host in hosts {
        assert_eq!(adopt(&fleet, host).await, Ok(Outcome::Done));
    }
    futures::future::join_all(hosts.map(async |host| done(&fleet, &handover(host)).await)).await;
    assert!(hosts.iter().all(|host| cloud.state().pools(&format!("host{host}")) == [MINE.to_string()]));
    futures::future::join_all(hosts.map(async |host| done(&fleet, &[Action::Release(host, MINE)]).await))
        .await;
    done(&fleet, &[Action::Finish(MINE)]).await;
    assert_eq!(cloud.state().aggregates.len(), 1);
    futures::future::join_all(hosts.map(async |host| done(&fleet, &[Action::Grant(host, MINE, 1)]).await))
        .await;
    assert_eq!(cloud.state().server_groups.len(), 1, "of three that need it one makes it");
    futures::future::join_all(hosts.map(async |host| done(&fleet, &[Action::Withdraw(host, MINE)]).await))
        .await;
    done(&fleet, &[Action::Finish(MINE)]).await;
    let state = cloud.state();
    assert!(state.flavors.is_empty() && state.classes.is_empty() && state.aggregates.len() == 1);
}
