//! Leases get hosts where no preemptible guest has to leave, if there are any (PRE-06).

use fleet::simulated::Happening;
use leases::lease_type::LeaseType;
use leases::plan::GuestOwner;
use simulation::World;

use crate::preemptible::{allowing, start, state, told};
use crate::terms::{asking, at, hosts, hosts_of, make, minutes, status, world_with};

async fn world(hosts: u32) -> World {
    world_with(hosts, allowing(), None, |fleet| fleet).await
}

#[tokio::test]
async fn pre_06_a_lease_that_starts_soon_spares_preemptible_instances() {
    for immediate in [false, true] {
        let mut world = world(3).await;
        let instance = start(&mut world).await.expect("room").instance.clone();
        world.run_until(at(1)).await;
        let mut new = asking(if immediate { 1 } else { 5 }, 60, vec![hosts(2)]);
        if immediate {
            new.terms.lease_type = LeaseType::Immediate { deadline: at(2) };
        }
        let lease = make(&mut world, new).await.expect("free");
        assert!(!hosts_of(&lease).contains(&instance.host), "{immediate}");
        world.run_until(at(10)).await;
        assert_eq!((status(&world, lease.lease.id), state(&world, instance.id)), ("ACTIVE", "ACTIVE"));
        assert_eq!(told(&world).await, []);
    }
}

#[tokio::test]
async fn pre_06_a_host_that_replaces_a_failed_one_is_where_nobody_has_to_leave() {
    let mut world = world(3).await;
    let lease = make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free");
    world.run_until(at(1)).await;
    let instance = start(&mut world).await.expect("room").instance.clone();
    world.settle().await;
    let own = hosts_of(&lease)[0];
    world.fleet.fail(own);
    world.touched();
    world.run_until(at(1) + minutes(5)).await;
    let healed = world.service.leases().get(lease.lease.id).expect("there");
    let now_on = hosts_of(&healed);
    assert!(now_on[0] != own && now_on[0] != instance.host, "{now_on:?}");
    assert_eq!(state(&world, instance.id), "ACTIVE");
}

#[tokio::test]
async fn pre_06_guests_that_others_have_started_are_spared_too() {
    let mut world = world(2).await;
    let first = leases::ids::HostId(1);
    let owner = GuestOwner::Preemptible;
    world.fleet.happen(Happening::GuestStarts { host: first, owner, runs_for: None });
    world.touched();
    // The next observation of the host notices them.
    world.run_until(at(5)).await;
    let lease = make(&mut world, asking(10, 60, vec![hosts(1)])).await.expect("free");
    assert_eq!(hosts_of(&lease), [leases::ids::HostId(2)]);
}
