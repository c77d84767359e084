//! Hosts, flavors and addresses.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use futures::poll;
use leases::free_pool::FreePool;
use leases::ids::HostId;
use leases::plan::GuestOwner;
use leases::requirement::{Operator, Requirement};
use leases::terms::{FlavorSize, HostsTerms, InstanceSize, ReservationTerms};
use service::{AllocationFilter, Drift, HostSelector, NewFloatingIp, NotFound, ServiceError, Settings};
use simulation::{caller, operator};
use store::FlavorRecord;

use crate::terms::{asking, at, conflict, hosts, hosts_of, make, settings, world, world_with};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w19_hosts_can_be_added_in_parallel() {
    let world = world(200).await;
    for host in world.service.hosts().all() {
        world.service.hosts().remove(&operator(), host.host.id).await.expect("free");
    }
    let adding = (1..=200).map(|number| {
        let service = world.service.clone();
        let capabilities =
            vec![(format!("new{}", number % 7), number.to_string()), ("all".into(), "1".into())];
        tokio::spawn(async move {
            service
                .hosts()
                .add(&operator(), HostSelector::Id(HostId(number)), capabilities, FreePool::DEFAULT)
                .await
        })
    });
    for added in futures::future::join_all(adding.collect::<Vec<_>>()).await {
        added.expect("no panic").expect("added");
    }
    assert!(world.service.hosts().all().iter().all(|host| host.host.capabilities.len() == 2));
    assert_eq!(world.service.hosts().properties().len(), 8);
}

#[tokio::test]
async fn a_host_can_be_taken_on_once_and_only_if_it_is_empty() {
    let world = world(2).await;
    let name = world.service.hosts().all()[0].host.name.clone();
    let again = world
        .service
        .hosts()
        .add(&operator(), HostSelector::Name(name.clone()), Vec::new(), FreePool::DEFAULT)
        .await;
    let again = conflict(again);
    assert!(again.starts_with(&format!("{name} is in the pool freepool: move it with ")), "{again}");
    let unknown = world
        .service
        .hosts()
        .add(&operator(), HostSelector::Name("nope".into()), Vec::new(), FreePool::DEFAULT)
        .await;
    assert!(matches!(unknown, Err(ServiceError::NotFound(NotFound::Machine(name))) if name == "nope"));
    world.service.hosts().remove(&operator(), HostId(1)).await.expect("free");
    world.fleet.start_guest(HostId(1), GuestOwner::Other, None).expect("not ours any more");
    let occupied = world
        .service
        .hosts()
        .add(&operator(), HostSelector::Id(HostId(1)), Vec::new(), FreePool::DEFAULT)
        .await;
    assert!(conflict(occupied).starts_with("Servers [[{'name': '"));
    let long = vec![("k".repeat(65), "v".to_owned())];
    let refused =
        world.service.hosts().add(&operator(), HostSelector::Id(HostId(1)), long, FreePool::DEFAULT).await;
    assert!(matches!(refused, Err(ServiceError::Invalid(text)) if text == "Extra capability key too long"));
}

#[tokio::test]
async fn a_host_that_is_reserved_or_in_use_cannot_be_removed() {
    let mut world = world(1).await;
    let lease = make(&mut world, asking(10, 20, vec![hosts(1)])).await.expect("free");
    let reserved = world.service.hosts().remove(&operator(), HostId(1)).await;
    assert_eq!(conflict(reserved), "Can't delete host 1. The host is reserved.");
    world.run_until(at(11)).await;
    conflict(world.service.hosts().remove(&operator(), HostId(1)).await);
    world.run_until(at(21)).await;
    world.service.hosts().remove(&operator(), HostId(1)).await.expect("free");
    assert!(world.service.hosts().all().is_empty());
    assert_eq!(hosts_of(&lease), [HostId(1)]);
    assert_eq!(world.fleet.look(HostId(1)), None, "the fleet has it back");
}

#[tokio::test]
async fn a_host_whose_lease_was_just_deleted_is_removed_as_soon_as_it_is_taken_back() {
    let patient = Settings { delete_wait: Duration::from_mins(10), ..settings() };
    let mut world = world_with(2, patient, None, |fleet| fleet).await;
    let lease = make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free");
    world.run_until(at(1)).await;
    let host = hosts_of(&lease)[0];
    world.fleet.start_guest(host, GuestOwner::Lease(lease.lease.id), None).expect("the lease holds the host");
    let service = world.service.clone();
    let (operator, owner) = (operator(), caller("p"));
    let mut deleting = pin!(service.leases().delete(&owner, lease.lease.id));
    assert!(poll!(&mut deleting).is_pending(), "its instance is still there");
    let mut removing = pin!(service.hosts().remove(&operator, host));
    assert!(poll!(&mut removing).is_pending(), "so is the host");
    world.touched();
    world.run_until(at(3)).await;
    deleting.await.expect("deleted");
    removing.await.expect("its lease is over");
    // An instance that belongs to no lease doesn't leave by itself.
    let other = if host == HostId(1) { HostId(2) } else { HostId(1) };
    world.fleet.start_guest(other, GuestOwner::Other, None).expect("there is room");
    let refused = conflict(world.service.hosts().remove(&operator, other).await);
    assert_eq!(refused, format!("Can't delete host {other}. It has 1 instance."));
}

#[tokio::test]
async fn a_capability_that_reservations_rely_on_cannot_be_changed() {
    let mut world = world(1).await;
    let set = |key: &str, value: Option<&str>| (key.to_owned(), value.map(str::to_owned));
    let update = async |changes| world.service.hosts().update(&operator(), HostId(1), changes).await;
    update(vec![set("rack", Some("r9")), set("gpu", Some("a100"))]).await.expect("nobody relies on it");
    let requirement = Requirement::compare(Operator::Equal, "gpu", "a100").expect("a requirement");
    let terms = ReservationTerms::Hosts(HostsTerms::new(1, 1).expect("one").requiring(requirement));
    make(&mut world, asking(10, 20, vec![terms])).await.expect("it has one");
    let update = async |changes| world.service.hosts().update(&operator(), HostId(1), changes).await;
    let refused = update(vec![set("rack", Some("r8")), set("gpu", None)]).await;
    assert_eq!(conflict(refused), "Can't add extracapabilities ['gpu'] to Host 1");
    let host = world.service.hosts().get(HostId(1)).expect("there").host.clone();
    assert_eq!(host.capabilities["rack"], "r9", "all or nothing");
    let changed =
        update(vec![set("rack", None), set("gpu", Some("a100"))]).await.expect("gpu stays as it is");
    assert!(!changed.host.capabilities.contains_key("rack"));
    assert!(matches!(update(Vec::new()).await, Err(ServiceError::Invalid(_))));
}

#[tokio::test]
async fn w30_what_the_fleet_knows_of_a_host_is_refreshed() {
    let mut world = world(2).await;
    // As if the host had been entered when the machine was smaller.
    let stale = world.service.hosts().get(HostId(1)).expect("there");
    let mut smaller = store::HostRecord::clone(&stale);
    (smaller.host.vcpus, smaller.version) = (1, stale.version.next());
    let mut commit = store::Commit::new(world.now());
    let expected = Some(stale.version);
    commit.writes.push(store::Write::Host { record: Box::new(smaller), expected });
    store::Store::commit(world.store.as_ref(), &commit).await.expect("committed");
    world.restart().await.expect("opens");
    assert_eq!(world.service.hosts().get(HostId(1)).expect("there").host.vcpus, 1);
    let found = world.service.repairs().drift(None).await.expect("the fleet answers");
    assert!(
        matches!(&found[..], [Drift::Changed { host: HostId(1), what, .. }] if what == "sizes"),
        "{found:?}"
    );
    assert_eq!(world.service.hosts().get(HostId(1)).expect("there").host.vcpus, 1, "looking changes nothing");
    assert_eq!(world.service.repairs().repair(&operator(), None).await.expect("the fleet answers"), []);
    assert_eq!(world.service.hosts().get(HostId(1)).expect("there").host.vcpus, 16);
    // An observation also refreshes the record.
    world.settle().await;
    assert_eq!(world.service.hosts().get(HostId(1)).expect("there").host.vcpus, 16);
}

#[tokio::test]
async fn allocations_have_an_entry_for_every_host() {
    let mut world = world_with(2, settings(), None, |fleet| fleet).await;
    let first = make(&mut world, asking(0, 5, vec![hosts(1)])).await.expect("free");
    let second = make(&mut world, asking(10, 20, vec![hosts(2)])).await.expect("free");
    world.run_until(at(1)).await;
    let count = async |filter| {
        let all = world.service.leases().allocations(&filter).await.expect("nobody has gone");
        all.iter().map(|allocation| allocation.reservations.len()).collect::<Vec<_>>()
    };
    let mut all = count(AllocationFilter::default()).await;
    all.sort_unstable();
    assert_eq!(all, [1, 2]);
    let of = |lease| AllocationFilter { lease: Some(lease), ..AllocationFilter::default() };
    assert_eq!(count(of(second.lease.id)).await, [1, 1]);
    assert_eq!(count(of(first.lease.id)).await.iter().sum::<usize>(), 1);
    let reservation = AllocationFilter {
        reservation: Some(second.lease.reservations[0].id),
        host: Some(HostId(2)),
        ..AllocationFilter::default()
    };
    assert_eq!(count(reservation).await, [1]);
}

#[tokio::test]
async fn an_address_must_lie_where_nobody_else_gives_it_out() {
    let world = world(1).await;
    let network = fleet::simulated::Layout::public_network().id;
    let add = |address: &str, network: &leases::host::NetworkId| {
        let new = NewFloatingIp { network: network.clone(), address: address.parse().expect("an address") };
        let (service, operator) = (world.service.clone(), operator());
        async move { service.floating_ips().add(&operator, new).await }
    };
    let elsewhere = leases::host::NetworkId("nope".into());
    assert!(matches!(add("203.0.113.200", &elsewhere).await, Err(ServiceError::Invalid(_))));
    assert!(matches!(add("10.0.0.1", &network).await, Err(ServiceError::NotFound(NotFound::Subnet { .. }))));
    assert!(matches!(add("203.0.113.1", &network).await, Err(ServiceError::Invalid(_))), "the gateway");
    add("203.0.113.200", &network).await.expect("free");
    conflict(add("203.0.113.200", &network).await);
    world.fleet.take_address([203, 0, 113, 201].into());
    conflict(add("203.0.113.201", &network).await);
}

#[tokio::test]
async fn flavors_come_and_go() {
    let world = world(1).await;
    let flavor = |spec: &str| FlavorRecord {
        id: "f".into(),
        name: "m1.small".into(),
        size: FlavorSize { instance: InstanceSize::new(1, 512, 1).expect("a size"), ephemeral_gib: 0 },
        swap_mib: 0,
        public: true,
        extra_specs: BTreeMap::from([(spec.to_owned(), "1".to_owned())]),
        created_at: at(0),
    };
    let refused = world.service.flavors().put(&operator(), flavor("resources1:VCPU")).await;
    assert!(matches!(refused, Err(ServiceError::Invalid(_))), "no reservation could be made of it");
    world.service.flavors().put(&operator(), flavor("resources:VCPU")).await.expect("entered");
    assert!(world.service.flavors().get("f").is_some());
    world.service.flavors().remove(&operator(), "f").await.expect("there");
    let gone = world.service.flavors().remove(&operator(), "f").await;
    assert!(matches!(gone, Err(ServiceError::NotFound(NotFound::Flavor(_)))));
}

#[tokio::test]
async fn a_property_is_shown_until_it_is_hidden() {
    let world = world(1).await;
    let unknown = world.service.hosts().set_property_private(&operator(), "nope", true).await;
    assert!(matches!(unknown, Err(ServiceError::NotFound(NotFound::Property(_)))));
    let rack = |world: &simulation::World| {
        world
            .service
            .hosts()
            .properties()
            .into_iter()
            .find(|property| property.name == "rack")
            .expect("there")
    };
    assert!(!rack(&world).private);
    let hidden = world.service.hosts().set_property_private(&operator(), "rack", true).await.expect("there");
    assert!(rack(&world).private);
    let shown = world.service.hosts().set_property_private(&operator(), "rack", false).await.expect("there");
    assert_eq!(hidden.id, shown.id);
}
