//! Free pools. Tests are named by the calls of FP.

use std::collections::BTreeMap;

use leases::free_pool::FreePool;
use leases::ids::{FreePoolId, HostId};
use leases::lease::EndAction;
use leases::requirement::{Operator, Requirement};
use leases::terms::{HostsTerms, ReservationTerms};
use service::{FreePoolChange, HostSelector, NewFreePool, NewLease, NotFound, ServiceError};
use simulation::{World, caller, operator};

use crate::terms::{asking, at, conflict, hosts, hosts_of, make, slots, status, world};

fn pool(name: &str, specs: &[(&str, &str)]) -> NewFreePool {
    let extra_specs: BTreeMap<_, _> =
        specs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    NewFreePool { name: name.to_owned(), extra_specs, end_action: None }
}

async fn create(world: &World, new: NewFreePool) -> FreePoolId {
    world.service.free_pools().create(&operator(), new).await.expect("a new name").pool.id
}

/// Moves a host from the default pool to another one.
async fn transfer(world: &World, host: u64, to: FreePoolId) {
    world.service.hosts().remove_from_pool(&operator(), HostId(host)).await.expect("free");
    let selector = HostSelector::Id(HostId(host));
    world.service.hosts().add(&operator(), selector, Vec::new(), to).await.expect("in no pool");
}

fn of_rack(rack: &str, count: u32) -> ReservationTerms {
    let rack = Requirement::compare(Operator::Equal, "rack", rack.to_owned()).expect("well formed");
    ReservationTerms::Hosts(HostsTerms::new(count, count).expect("a range").requiring(rack))
}

#[tokio::test]
async fn fp_1_names_of_free_pools_are_unique() {
    let world = world(0).await;
    create(&world, pool("fast", &[])).await;
    for taken in ["fast", "freepool"] {
        let again = world.service.free_pools().create(&operator(), pool(taken, &[])).await;
        assert_eq!(conflict(again), format!("There is a free pool named {taken} already."));
    }
    let long = world.service.free_pools().create(&operator(), pool("x", &[(&"k".repeat(65), "v")])).await;
    assert!(matches!(long, Err(ServiceError::Invalid(_))), "{long:?}");
    assert_eq!(world.service.free_pools().all().len(), 2, "a refused one leaves nothing behind");
}

#[tokio::test]
async fn fp_2_a_free_pool_is_removed_only_without_hosts() {
    let world = world(1).await;
    let fast = create(&world, pool("fast", &[])).await;
    transfer(&world, 1, fast).await;
    let refused = world.service.free_pools().delete(&operator(), fast).await;
    assert_eq!(conflict(refused), "Can't delete free pool fast. 1 host(s) are in it.");
    world.service.hosts().remove(&operator(), HostId(1)).await.expect("free");
    world.service.free_pools().delete(&operator(), fast).await.expect("empty");
    assert!(world.service.free_pools().get("fast").is_none());
    let gone = world.service.free_pools().delete(&operator(), fast).await;
    assert!(matches!(gone, Err(ServiceError::NotFound(NotFound::FreePool(_)))), "{gone:?}");
    let always = world.service.free_pools().delete(&operator(), FreePool::DEFAULT).await;
    assert!(conflict(always).starts_with("Can't delete free pool freepool."));
}

#[tokio::test]
async fn fp_3_a_free_pool_is_renamed_and_its_leases_stay() {
    let mut world = world(1).await;
    let lease = make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free");
    let renamed = FreePoolChange { name: Some("house".to_owned()), ..FreePoolChange::default() };
    let record =
        world.service.free_pools().update(&operator(), FreePool::DEFAULT, renamed).await.expect("a name");
    assert_eq!((record.pool.id, record.pool.name.as_str()), (FreePool::DEFAULT, "house"));
    world.run_until(at(1)).await;
    assert_eq!(status(&world, lease.lease.id), "ACTIVE");
    assert_eq!(world.service.hosts().get(HostId(1)).expect("there").host.pool, FreePool::DEFAULT);
    create(&world, pool("freepool", &[])).await;
    let back = FreePoolChange { name: Some("freepool".to_owned()), ..FreePoolChange::default() };
    conflict(world.service.free_pools().update(&operator(), FreePool::DEFAULT, back).await);
    world.restart().await.expect("it opens");
    let names: Vec<_> =
        world.service.free_pools().all().iter().map(|record| record.pool.name.clone()).collect();
    assert_eq!(names, ["house", "freepool"], "after a restart");
}

#[tokio::test]
async fn fp_4_a_host_is_in_one_pool_and_has_what_that_says() {
    let mut world = world(2).await;
    let fast = create(&world, pool("fast", &[("rack", "r9")])).await;
    let selector = || HostSelector::Id(HostId(2));
    let again = world.service.hosts().add(&operator(), selector(), Vec::new(), fast).await;
    assert!(conflict(again).contains(" is in the pool "), "it is in another pool");
    transfer(&world, 2, fast).await;
    world.run_until(at(1)).await;
    let lease = make(&mut world, asking(1, 60, vec![of_rack("r9", 1)])).await.expect("by its pool's word");
    assert_eq!(hosts_of(&lease), [HostId(2)]);
    let own = vec![("rack".to_owned(), Some("r1".to_owned()))];
    let refused = world.service.hosts().update(&operator(), HostId(2), own).await;
    assert_eq!(conflict(refused), "Can't add extracapabilities ['rack'] to Host 2");
    let other = FreePoolChange { extra_specs: Some(BTreeMap::new()), ..FreePoolChange::default() };
    let refused = world.service.free_pools().update(&operator(), fast, other).await;
    assert_eq!(conflict(refused), "Can't change 'rack' of free pool fast: host 2 is reserved for it.");
    let properties = world.service.hosts().properties();
    let of =
        |name: &str| properties.iter().find(|known| known.name == name).map(|known| known.values.clone());
    assert_eq!(of("free_pool"), Some(vec!["fast".to_owned(), "freepool".to_owned()]));
    let stored = &world.service.hosts().get(HostId(2)).expect("there").host.capabilities;
    assert!(stored.is_empty(), "what the pool says stays with the pool: {stored:?}");
}

#[tokio::test]
async fn fp_5_a_host_that_leaves_is_replaced_in_leases_that_have_not_begun() {
    let mut world = world(2).await;
    let lease = make(&mut world, asking(30, 60, vec![hosts(1)])).await.expect("free");
    let [leaving] = hosts_of(&lease)[..] else { panic!("one host") };
    world.service.hosts().remove_from_pool(&operator(), leaving).await.expect("there is another");
    let replaced = hosts_of(&world.service.leases().get(lease.lease.id).expect("there"));
    assert!(replaced.len() == 1 && replaced[0] != leaving, "{replaced:?}");
    let last = world.service.hosts().remove_from_pool(&operator(), replaced[0]).await;
    let id = lease.lease.id;
    let text =
        format!("Can't remove host {}. Lease {id} is to have it, and there is no other for it.", replaced[0]);
    assert_eq!(conflict(last), text);
    world.run_until(at(31)).await;
    assert_eq!(status(&world, id), "ACTIVE");
    let held = world.service.hosts().remove_from_pool(&operator(), replaced[0]).await;
    assert_eq!(conflict(held), format!("Can't remove host {}. Lease {id} has it.", replaced[0]));
}

#[tokio::test]
async fn cls_09_the_end_action_is_that_of_the_pool_of_the_hosts() {
    let mut world = world(2).await;
    let new = NewFreePool { end_action: Some(EndAction::MoveGuests), ..pool("fast", &[("rack", "r9")]) };
    let fast = create(&world, new).await;
    transfer(&world, 2, fast).await;
    world.run_until(at(1)).await;
    let mut action = async |new: NewLease| make(&mut world, new).await.expect("free").lease.end_action;
    assert_eq!(action(asking(10, 20, vec![of_rack("r9", 1)])).await, EndAction::MoveGuests);
    assert_eq!(action(asking(10, 20, vec![hosts(1)])).await, EndAction::DeleteGuests, "as the service does");
    let said =
        NewLease { end_action: Some(EndAction::DeleteGuests), ..asking(30, 40, vec![of_rack("r9", 1)]) };
    assert_eq!(action(said).await, EndAction::DeleteGuests);
    assert_eq!(action(asking(50, 60, vec![hosts(2)])).await, EndAction::MoveGuests, "the least disruptive");
    let shared = asking(70, 80, vec![slots(2, 16)]);
    assert_eq!(action(shared).await, EndAction::KeepGuests, "nobody is moved from hosts that are shared");
}

/// Changes of host 3 of pool `fast`. Some invalidate an offer of this host.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// Sets a capability that the request doesn't use.
    Note,
    /// Moves the host to another pool.
    Move,
    /// Changes a property that the host gets from its pool.
    Specify,
    /// Changes a property of the host itself.
    Describe,
    Remove,
}

async fn change_host(world: &World, fast: FreePoolId, change: Change) -> Result<(), ServiceError> {
    let (service, operator, host) = (&world.service, operator(), HostId(3));
    let say = |name: &str, text: &str| {
        vec![(name.to_owned(), Some(text.to_owned()))] as Vec<(String, Option<String>)>
    };
    match change {
        Change::Note => service.hosts().update(&operator, host, say("colour", "red")).await.map(drop),
        Change::Move => service.free_pools().move_host(&operator, host, FreePool::DEFAULT).await.map(drop),
        Change::Specify => {
            let extra_specs = Some(BTreeMap::from([("rack".to_owned(), "r8".to_owned())]));
            let change = FreePoolChange { extra_specs, ..FreePoolChange::default() };
            service.free_pools().update(&operator, fast, change).await.map(drop)
        }
        Change::Describe => service.hosts().update(&operator, host, say("rack", "r8")).await.map(drop),
        Change::Remove => service.hosts().remove(&operator, host).await,
    }
}

#[tokio::test]
async fn an_offer_holds_only_while_its_hosts_are_as_they_were_asked_for() {
    for change in [Change::Note, Change::Move, Change::Specify, Change::Describe, Change::Remove] {
        let mut world = world(3).await;
        let fast = create(&world, pool("fast", &[("rack", "r9")])).await;
        transfer(&world, 2, fast).await;
        transfer(&world, 3, fast).await;
        world.run_until(at(1)).await;
        // This lease doesn't depend on the host's rack.
        let name = world.service.hosts().get(HostId(2)).expect("taken on").host.name.clone();
        let name = Requirement::compare(Operator::Equal, "hypervisor_hostname", name).expect("well formed");
        let named = ReservationTerms::Hosts(HostsTerms::new(1, 1).expect("a range").requiring(name));
        make(&mut world, asking(1, 60, vec![named])).await.expect("free");
        let new = NewLease { asked_at: world.now(), ..asking(1, 60, vec![of_rack("r9", 2)]) };
        let offers = world
            .service
            .offers()
            .for_lease(&caller("q"), &new, service::Hold::Default)
            .await
            .expect("the store works");
        world.touched();
        let offer = offers.offers.first().expect("there is something else").lease.id;
        change_host(&world, fast, change).await.expect("nobody has leased it");
        let accepted = world.service.offers().accept(&caller("q"), offer).await;
        match change {
            Change::Note => assert!(accepted.is_ok(), "{change:?}: {accepted:?}"),
            _ => assert!(
                matches!(accepted, Err(ServiceError::NotFound(NotFound::Offer(_)))),
                "{change:?}: {accepted:?}"
            ),
        }
    }
}
