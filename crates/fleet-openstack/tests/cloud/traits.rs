//! Isolated aggregates as a fence: the traits that admit a server to a host, and the flavors that require
//! them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use fleet::conformance::facts;
use fleet::{
    About, Fleet, FleetError, Inventory as _, Isolation as _, LeaseFacts, OperationKey, Outcome, perform,
};
use fleet_openstack::Fence;
use leases::ids::{GuestId, HostId};
use leases::plan::{Action, GuestOwner, Place};
use leases::project::ProjectId;
use leases::terms::{Affinity, HostsTerms, InstanceSize, ReservationTerms};

use crate::handing_over::{LEASE, MINE, ONE, adopt, done, handover, seen, step};
use crate::promises::guest;
use crate::standin::{FREE_POOL, Standin};

const TWO: HostId = HostId(2);
const FREE: &str = "CUSTOM_ALLOT_FREE_POOL";

fn traits() -> Fence {
    Fence::Traits { flavors: Vec::new(), images: false }
}

async fn two_hosts() -> Standin {
    let cloud = Standin::with(2, traits()).await;
    let fleet = cloud.fleet();
    for host in [ONE, TWO] {
        assert_eq!(adopt(&fleet, host).await, Ok(Outcome::Done));
    }
    cloud
}

/// Prepares the reservation as a host reservation.
async fn prepare_hosts(fleet: &dyn Fleet) -> Result<Outcome, FleetError> {
    static CLAIMS: AtomicU64 = AtomicU64::new(1 << 32);
    let action = Action::Prepare(MINE);
    let hosts = ReservationTerms::Hosts(HostsTerms::new(1, 1).expect("hosts"));
    let size = InstanceSize::new(1, 512, 1).expect("a size");
    let facts = facts(action, ProjectId("mine".to_owned()), size, Affinity::Any);
    let facts = LeaseFacts { reservation: Some((MINE, hosts)), ..facts };
    let key = OperationKey::of(action, CLAIMS.fetch_add(1, Relaxed), Some(LEASE)).with_facts(Some(facts));
    perform(fleet, action, About::default(), &key).await
}

/// The trait required by the flavor for servers on the lease's hosts.
fn of_lease(cloud: &Standin) -> String {
    let state = cloud.state();
    let specs = &state.specs[&format!("{MINE}.small")];
    let name = specs.keys().find_map(|key| key.strip_prefix("trait:CUSTOM_ALLOT_")).expect("a trait");
    assert_eq!(specs["hw:mem_page_size"], "large", "it is a copy");
    format!("CUSTOM_ALLOT_{name}")
}

#[tokio::test]
async fn servers_are_let_on_a_host_by_the_flavors_of_its_lease_and_by_nothing_else() {
    let cloud = two_hosts().await;
    let fleet = cloud.fleet();
    assert!(cloud.state().admits("host1", &[FREE]), "a preemptible server");
    assert_eq!(prepare_hosts(&fleet).await, Ok(Outcome::Done));
    let observed = fleet.observe(&BTreeSet::new(), &[]).await.expect("an answer");
    assert_eq!(observed.reservations[&MINE].flavors, [format!("{MINE}.small")]);
    let mine = of_lease(&cloud);
    assert!(
        !mine.contains(&MINE.to_string().to_uppercase().replace('-', "_")),
        "a zone tells it to everybody"
    );
    done(&fleet, &handover(ONE)).await;
    {
        let state = cloud.state();
        assert_eq!(state.flavors[&format!("{MINE}.small")], BTreeSet::from(["mine".to_owned()]));
        assert!(state.admits("host1", &[&mine]) && !state.admits("host1", &[FREE]));
        assert!(state.admits("host2", &[FREE]) && !state.admits("host2", &[&mine]));
    }
    let machines = fleet.machines().await.expect("machines");
    assert!(machines.iter().all(|machine| machine.traits.iter().all(|name| name == "COMPUTE_NODE")));
    done(&fleet, &[Action::Release(ONE, MINE), Action::Finish(MINE)]).await;
    {
        let state = cloud.state();
        assert!(state.admits("host1", &[FREE]) && !state.plain_let_in);
        assert!(state.flavors.is_empty() && state.aggregates.len() == 1 && !state.traits.contains(&mine));
    }
    assert_eq!(fleet.abandon(ONE).await, Ok(Outcome::Done));
    assert!(!cloud.state().provider_of("host1").traits.contains(FREE));
}

#[tokio::test]
async fn hosts_are_isolated_although_nova_does_not_tell_placement() {
    let cloud = Standin::with(1, traits()).await;
    cloud.state().forgets_placement = true;
    let fleet = cloud.fleet();
    assert_eq!(adopt(&fleet, ONE).await, Ok(Outcome::Done));
    done(&fleet, &handover(ONE)).await;
    done(&fleet, &[Action::Release(ONE, MINE)]).await;
    assert!(!cloud.state().plain_let_in);
}

#[tokio::test]
async fn room_is_used_with_a_flavor_that_requires_the_trait_of_the_free_pool() {
    let cloud = two_hosts().await;
    let fleet = cloud.fleet();
    done(&fleet, &[Action::Grant(ONE, MINE, 2)]).await;
    {
        let state = cloud.state();
        assert_eq!(state.specs[&MINE.to_string()][&format!("trait:{FREE}")], "required");
        assert!(state.admits("host1", &[FREE]) && !state.admits("host1", &[]));
    }
    done(&fleet, &[Action::Withdraw(ONE, MINE), Action::Finish(MINE)]).await;
    assert!(cloud.state().flavors.is_empty());
}

#[tokio::test]
async fn hosts_and_leases_of_another_fence_are_taken_over() {
    let cloud = Standin::with(2, traits()).await;
    let before = cloud.fenced_by(Fence::BlazarFilter);
    for host in [ONE, TWO] {
        assert_eq!(adopt(&before, host).await, Ok(Outcome::Done));
    }
    done(&before, &handover(ONE)).await;
    let fleet = cloud.fleet();
    fleet.set_up().await.expect("it is set up");
    {
        let state = cloud.state();
        assert!(["host1", "host2"].iter().all(|host| !state.admits(host, &[])));
        assert!(state.admits("host2", &[FREE]) && !state.admits("host1", &[FREE]));
    }
    assert_eq!(prepare_hosts(&fleet).await, Ok(Outcome::Done));
    let mine = of_lease(&cloud);
    assert!(cloud.state().admits("host1", &[&mine]));
    cloud.exchanges();
    fleet.set_up().await.expect("it is set up");
    let changed: Vec<_> =
        cloud.exchanges().into_iter().filter(|asked| asked.path.contains("/resource_providers/")).collect();
    assert!(changed.is_empty(), "{changed:?}");
    cloud.fenced_by(Fence::BlazarFilter).set_up().await.expect("it is set up");
    let state = cloud.state();
    let free = state.aggregates.values().find(|pool| pool.name == FREE_POOL).expect("the free pool");
    assert!(free.metadata.is_empty(), "{:?}", free.metadata);
}

#[tokio::test]
async fn whichever_request_fails_hosts_have_their_flavors_and_none_is_left_behind() {
    let asked = {
        let cloud = Standin::with(1, traits()).await;
        let fleet = cloud.fleet();
        assert_eq!(prepare_hosts(&fleet).await, Ok(Outcome::Done));
        done(&fleet, &[Action::Finish(MINE)]).await;
        cloud.exchanges().into_iter().map(|asked| (asked.method, asked.path)).collect::<Vec<_>>()
    };
    for number in 0..asked.len() {
        for lost in [false, true] {
            let cloud = Standin::with(1, traits()).await;
            let why = cloud.break_request(&asked, number, lost);
            let _ = prepare_hosts(&cloud.fleet()).await;
            crate::faults::insist(&cloud, &[Action::Finish(MINE)]).await;
            let state = cloud.state();
            let left = [state.flavors.len(), state.aggregates.len(), state.traits.len()];
            assert_eq!(left, [0, 0, 1], "{why}");
        }
    }
}

#[tokio::test]
async fn flavors_are_those_that_are_named_and_one_that_is_not_there_is_said() {
    let cloud = Standin::with(1, Fence::Traits { flavors: vec!["preempt".to_owned()], images: false }).await;
    assert_eq!(prepare_hosts(&cloud.fleet()).await, Ok(Outcome::Done));
    let specs = cloud.state().specs[&format!("{MINE}.preempt")].clone();
    assert!(!specs.contains_key("blazar:preemptible"), "servers in a lease are not preemptible: {specs:?}");
    done(&cloud.fleet(), &[Action::Finish(MINE)]).await;
    let other = cloud.fenced_by(Fence::Traits { flavors: vec!["huge".to_owned()], images: false });
    let why = "Nova has no flavor huge, of openstack.lease_flavors".to_owned();
    assert_eq!(prepare_hosts(&other).await, Err(FleetError::Refused(why)));
}

/// A cloud in which images and volumes also mark servers. Its only host is in the free pool.
async fn marked_by_image() -> Standin {
    let cloud = Standin::with(1, Fence::Traits { flavors: Vec::new(), images: true }).await;
    assert_eq!(adopt(&cloud.fleet(), ONE).await, Ok(Outcome::Done));
    cloud
}

/// Owners of the servers on the host.
async fn owners(fleet: &dyn Fleet) -> BTreeMap<GuestId, GuestOwner> {
    seen(fleet, ONE).await.guests.into_iter().map(|guest| (guest.id, guest.owner)).collect()
}

#[tokio::test]
async fn a_server_that_its_image_has_let_into_the_free_pool_is_preemptible_if_images_mark_servers() {
    let cloud = marked_by_image().await;
    let fleet = cloud.fleet();
    let server = guest(&cloud.state().boot("host1", "another", false));
    assert_eq!(owners(&fleet).await, [(server, GuestOwner::Preemptible)].into());
    assert_eq!(owners(&cloud.fenced_by(traits())).await, [(server, GuestOwner::Other)].into());
    done(&fleet, &[Action::Fence(ONE), Action::StopGuest(ONE, server), Action::DeleteGuest(ONE, server)])
        .await;
    assert!(cloud.state().servers.is_empty());
    done(&fleet, &handover(ONE)[1..]).await;
    assert_eq!(seen(&fleet, ONE).await.place, Place::Held(MINE));
}

#[tokio::test]
async fn servers_on_hosts_of_a_lease_and_those_that_stay_after_it_are_not_preemptible_by_their_place() {
    let cloud = marked_by_image().await;
    let fleet = cloud.fleet();
    done(&fleet, &handover(ONE)).await;
    let own = guest(&cloud.state().boot("host1", "mine", false));
    let other = guest(&cloud.state().boot("host1", "another", false));
    let expected = BTreeMap::from([(own, GuestOwner::Lease(LEASE)), (other, GuestOwner::Other)]);
    assert_eq!(owners(&fleet).await, expected);
    done(&fleet, &[Action::Release(ONE, MINE), Action::Finish(MINE)]).await;
    assert_eq!((seen(&fleet, ONE).await.place, owners(&fleet).await), (Place::FreePool, expected));
    let refused = step(&fleet, Action::DeleteGuest(ONE, other)).await;
    assert!(matches!(refused, Err(FleetError::Refused(_))), "{refused:?}");
    // The same after an instance lease.
    let cloud = marked_by_image().await;
    let fleet = cloud.fleet();
    done(&fleet, &[Action::Grant(ONE, MINE, 2)]).await;
    let stays = cloud.state().boot("host1", "mine", false);
    cloud.state().servers.get_mut(&stays).expect("a server").flavor = format!("reservation:{MINE}");
    let beside = guest(&cloud.state().boot("host1", "another", false));
    let of = |owner| BTreeMap::from([(guest(&stays), owner), (beside, GuestOwner::Preemptible)]);
    assert_eq!(owners(&fleet).await, of(GuestOwner::Lease(LEASE)));
    done(&fleet, &[Action::Withdraw(ONE, MINE), Action::Finish(MINE)]).await;
    assert_eq!(owners(&fleet).await, of(GuestOwner::Other));
}

#[tokio::test]
async fn a_server_that_was_on_its_way_to_a_host_when_that_was_added_is_not_preemptible_by_its_place() {
    let cloud = Standin::with(1, Fence::Traits { flavors: Vec::new(), images: true }).await;
    cloud.state().arrives = Some("another");
    let refused = adopt(&cloud.fleet(), ONE).await;
    assert!(matches!(refused, Err(FleetError::Refused(_))), "{refused:?}");
    {
        let state = cloud.state();
        assert!(state.pools("host1").is_empty() && state.servers.len() == 1);
    }
    // The same for a host that was out of the free pool for a while, since any server could have been started
    // on it.
    let cloud = marked_by_image().await;
    cloud.state().boot("host1", "another", false);
    assert_eq!(cloud.fleet().abandon(ONE).await, Ok(Outcome::Done));
    let refused = adopt(&cloud.fleet(), ONE).await;
    assert!(matches!(refused, Err(FleetError::Refused(_))), "{refused:?}");
}
