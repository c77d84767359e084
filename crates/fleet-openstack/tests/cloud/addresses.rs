//! Addresses of external networks.

use std::collections::BTreeSet;

use axum::http::Method;
use fleet::conformance::{self, facts};
use fleet::{About, Fleet, FleetError, Inventory as _, OperationKey, Outcome, UNCERTAIN, perform};
use leases::host::{FloatingIp, NetworkId};
use leases::ids::{FloatingIpId, ReservationId};
use leases::plan::Action;
use leases::project::ProjectId;
use leases::terms::{Affinity, InstanceSize};

use crate::handing_over::{LEASE, MINE};
use crate::standin::{NETWORK, Standin};

const THEIRS: ReservationId = ReservationId(0xb2);

fn address() -> FloatingIp {
    FloatingIp { network: NetworkId(NETWORK.to_owned()), ..conformance::address() }
}

async fn step(fleet: &dyn Fleet, action: Action) -> Result<Outcome, FleetError> {
    static CLAIMS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    let fence = CLAIMS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let size = InstanceSize::new(1, 1, 1).expect("a size");
    let facts = facts(action, ProjectId("mine".to_owned()), size, Affinity::Any);
    let key = OperationKey::of(action, fence, Some(LEASE)).with_facts(Some(facts));
    perform(fleet, action, About { address: Some(&address()), ..About::default() }, &key).await
}

/// The reservation that holds the address, according to the driver.
async fn holder(fleet: &dyn Fleet) -> Option<ReservationId> {
    let seen = fleet.observe(&BTreeSet::new(), &[address()]).await.expect("an answer");
    seen.floating_ips.get(&address().id).copied()
}

#[tokio::test]
async fn an_address_is_a_floating_ip_of_the_leases_project_as_blazar_makes_it() {
    let cloud = Standin::start(1).await;
    let fleet = cloud.fleet();
    assert_eq!(step(&fleet, Action::Assign(address().id, MINE)).await, Ok(Outcome::Done));
    let made: Vec<_> = cloud.state().floating_ips.values().cloned().collect();
    let [made] = &made[..] else { panic!("{made:?}") };
    assert_eq!((made.address.as_str(), made.project.as_str()), ("203.0.113.200", "mine"));
    assert_eq!(made.tags, ["blazar".to_owned(), format!("reservation:{MINE}")]);
    assert_eq!(holder(&fleet).await, Some(MINE));
    assert_eq!(step(&fleet, Action::Unassign(address().id, MINE)).await, Ok(Outcome::Done));
    assert!(cloud.state().floating_ips.is_empty());
}

#[tokio::test]
async fn a_project_can_neither_keep_an_address_nor_get_at_somebody_elses_by_its_tags() {
    let cloud = Standin::start(1).await;
    let fleet = cloud.fleet();
    let retag = |tags: &[String]| {
        let mut state = cloud.state();
        state.floating_ips.values_mut().for_each(|ip| ip.tags = tags.to_vec());
    };
    for (tags, seen) in [
        (Vec::new(), UNCERTAIN),
        (vec!["blazar".to_owned(), format!("reservation:{THEIRS}")], THEIRS),
        (vec!["reservation:nobody".to_owned()], UNCERTAIN),
    ] {
        assert_eq!(step(&fleet, Action::Assign(address().id, MINE)).await, Ok(Outcome::Done));
        retag(&tags);
        assert_eq!(holder(&fleet).await, Some(seen), "{tags:?}");
        // The planner does this next.
        assert_eq!(step(&fleet, Action::Unassign(address().id, seen)).await, Ok(Outcome::Done));
        assert_eq!(holder(&fleet).await, None, "{tags:?}");
    }
}

#[tokio::test]
async fn an_address_whose_tags_could_not_be_set_is_not_taken_for_handed_out() {
    let cloud = Standin::start(1).await;
    let fleet = cloud.fleet();
    cloud.fail(Method::PUT, "/tags", 500, 1);
    assert!(step(&fleet, Action::Assign(address().id, MINE)).await.is_err());
    assert_eq!(holder(&fleet).await, Some(UNCERTAIN));
}

#[tokio::test]
async fn hosts_are_seen_while_neutron_is_away_and_addresses_are_as_they_were() {
    let cloud = Standin::start(1).await;
    let fleet = cloud.fleet();
    let other = FloatingIp { id: FloatingIpId(0xc2), address: [203, 0, 113, 201].into(), ..address() };
    assert_eq!(step(&fleet, Action::Assign(address().id, MINE)).await, Ok(Outcome::Done));
    assert_eq!(holder(&fleet).await, Some(MINE));
    cloud.fail(Method::GET, "/network/", 503, 9);
    assert_eq!(holder(&fleet).await, Some(MINE));
    assert!(step(&fleet, Action::Unassign(address().id, MINE)).await.is_err());
    let never_seen = fleet.observe(&BTreeSet::new(), &[address(), other]).await;
    assert!(matches!(never_seen, Err(FleetError::Unavailable(_))), "{never_seen:?}");
    // A driver that has just started has no earlier answer.
    assert!(cloud.fleet().observe(&BTreeSet::new(), &[address()]).await.is_err());
}

#[tokio::test]
async fn networks_are_those_that_neutron_calls_external() {
    let cloud = Standin::start(1).await;
    let networks = cloud.fleet().networks().await.expect("an answer");
    let [network] = &networks[..] else { panic!("{networks:?}") };
    assert_eq!(network.id.0, NETWORK);
    let [subnet] = &network.subnets[..] else { panic!("{network:?}") };
    assert_eq!((subnet.cidr, subnet.gateway), (([203, 0, 113, 0].into(), 24), Some([203, 0, 113, 1].into())));
    assert_eq!(subnet.allocation_pools, [([203, 0, 113, 2].into(), [203, 0, 113, 101].into())]);
}
