//! Changes by administrators to the objects of running leases in the cloud.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::Method;
use fleet::conformance::facts;
use fleet::{
    Difference, Fleet, Inventory as _, Isolation as _, LeaseFacts, Outcome, Wanted, WantedReservation,
};
use fleet_openstack::{Fence, OpenStackFleet};
use leases::ids::{HostId, LeaseId, ReservationId};
use leases::plan::{Action, GuestOwner, Observed, Place};
use leases::project::ProjectId;
use leases::terms::{Affinity, HostsTerms, InstanceSize, ReservationTerms};

use crate::handing_over::{LEASE, MINE, ONE, adopt, done, handover, seen, step_for};
use crate::promises::guest;
use crate::standin::{Aggregate, FREE_POOL, Provider, Standin, State};

const STORE: &str = "store of the tests";

/// A reservation that the store doesn't have.
const OTHER: ReservationId = ReservationId(0xb2);

/// The store's record of the reservation that `action` is the last step for.
fn stored(action: Action, lease: LeaseId) -> (ReservationId, WantedReservation) {
    let size = InstanceSize::new(2, 1024, 10).expect("a size");
    let facts = facts(action, ProjectId("mine".to_owned()), size, Affinity::DistinctHosts);
    let (reservation, mut terms) = facts.reservation.expect("a reservation");
    if let Action::Hold(..) = action {
        terms = hosts_terms();
    }
    let slots = match action {
        Action::Grant(host, _, slots) => BTreeMap::from([(host, slots)]),
        _ => BTreeMap::new(),
    };
    (reservation, WantedReservation { lease, project: facts.project, terms, slots, is_kept: true })
}

fn hosts_terms() -> ReservationTerms {
    ReservationTerms::Hosts(HostsTerms::new(1, 1).expect("one host"))
}

fn wanted(action: Action) -> Wanted {
    Wanted { store: Some(STORE.to_owned()), reservations: [stored(action, LEASE)].into() }
}

/// Looks at the whole cloud and returns the differences too.
async fn look(fleet: &OpenStackFleet) -> (Observed, Vec<Difference>) {
    let fleet: &dyn Fleet = fleet;
    let observed = fleet.survey(&[ONE].into(), &[]).await.expect("an answer").1;
    (observed, fleet.differences().await)
}

/// A running lease, and a driver that knows about it.
async fn running(fence: Fence, last: Action) -> (Standin, OpenStackFleet) {
    let cloud = Standin::with(2, fence).await;
    let fleet = cloud.fleet();
    assert_eq!(adopt(&fleet, ONE).await, Ok(Outcome::Done));
    let keeper = fleet::Keeper { store: STORE.to_owned(), fence: 0 };
    fleet.set_keeper(keeper).await.expect("an answer");
    match last {
        Action::Hold(..) => done(&fleet, &handover(ONE)).await,
        other => done(&fleet, &[Action::Prepare(MINE), other]).await,
    }
    fleet.expect(wanted(last)).await;
    let (_, found) = look(&fleet).await;
    assert_eq!(found, [], "nothing was changed");
    (cloud, fleet)
}

/// Takes the steps that the planner would take after this observation.
async fn heal(fleet: &OpenStackFleet, observed: &Observed, last: Action) -> Vec<Action> {
    let mut steps = Vec::new();
    if observed.reservations.get(&MINE).is_none_or(|seen| seen.complete.is_none()) {
        steps.push(Action::Prepare(MINE));
    }
    if let Action::Grant(host, _, slots) = last
        && observed.hosts[&host].slots.get(&MINE) != Some(&slots)
    {
        steps.push(last);
    }
    for step in &steps {
        if let (Action::Prepare(_), Action::Hold(..)) = (step, last) {
            prepare_hosts(fleet).await;
        } else {
            done(fleet, &[*step]).await;
        }
    }
    steps
}

/// Prepares the reservation as a host reservation.
async fn prepare_hosts(fleet: &OpenStackFleet) {
    let size = InstanceSize::new(2, 1024, 10).expect("a size");
    let facts = facts(Action::Prepare(MINE), ProjectId("mine".to_owned()), size, Affinity::Any);
    let facts = LeaseFacts { reservation: Some((MINE, hosts_terms())), ..facts };
    let key = fleet::OperationKey::of(Action::Prepare(MINE), 1_000_000, Some(LEASE)).with_facts(Some(facts));
    assert_eq!(fleet::Isolation::prepare(fleet, MINE, &key).await, Ok(Outcome::Done));
}

fn pool(state: &mut State) -> &mut Aggregate {
    state.aggregates.values_mut().find(|pool| pool.name == MINE.to_string()).expect("the lease's aggregate")
}

/// The provider of the lease's slots, which the caller is about to change.
fn slots(state: &mut State) -> &mut Provider {
    let mut providers = state.providers.values_mut();
    let provider = providers.find(|provider| provider.name == "blazar_host1").expect("its slots");
    provider.generation += 1;
    provider
}

fn class() -> String {
    format!("CUSTOM_RESERVATION_{}", MINE.to_string().to_uppercase().replace('-', "_"))
}

/// The state of the cloud as text, for comparisons.
fn shown(state: &mut State) -> String {
    let mut metadata = pool(state).metadata.clone();
    // A group that is created again has another identifier.
    let group = metadata.remove("affinity_id").and_then(|id| state.server_groups.get(&id).cloned());
    let pool = pool(state);
    let pool = (pool.zone.clone(), pool.hosts.clone(), metadata);
    let slots: Vec<_> = state.providers.values().map(|provider| provider.inventories.clone()).collect();
    format!("{pool:?} {:?} {:?} {:?} {group:?} {slots:?}", state.flavors, state.specs, state.sizes)
}

type Change = fn(&mut State);

/// Makes each change as an administrator would. It must be reported first, and then undone.
async fn each_is_reported_and_undone(fence: fn() -> Fence, last: Action, changes: &[(Change, &str)]) {
    for (number, (change, said)) in changes.iter().enumerate() {
        let (cloud, fleet) = running(fence(), last).await;
        let before = shown(&mut cloud.state());
        change(&mut cloud.state());
        let changed = shown(&mut cloud.state());
        assert_ne!(before, changed, "change {number}");
        let now = fleet.all_differences().await.expect("an answer");
        assert!(now.iter().any(|found| found.what.contains(said)), "the doctor's look: {said}: {now:?}");
        let (observed, found) = look(&fleet).await;
        assert!(found.iter().any(|found| found.what.contains(said) && found.is_undone), "{said}: {found:?}");
        assert!(found.iter().all(|found| found.reservation == Some(MINE) && !found.for_owner.is_empty()));
        assert_eq!(heal(&fleet, &observed, last).await, [], "{said}: it is reported before it is undone");
        assert_eq!(shown(&mut cloud.state()), changed, "{said}");
        let (observed, _) = look(&fleet).await;
        assert_eq!(heal(&fleet, &observed, last).await.len(), 1, "{said}");
        assert_eq!(shown(&mut cloud.state()), before, "{said}");
        let (observed, found) = look(&fleet).await;
        assert_eq!(found, [], "{said}");
        assert_eq!(heal(&fleet, &observed, last).await, [], "{said}");
    }
}

#[tokio::test]
async fn what_a_lease_of_instances_has_is_compared_and_restored() {
    let changes: [(Change, &str); 16] = [
        (
            |state| _ = pool(state).metadata.insert("blazar:owner".to_owned(), "bob".to_owned()),
            "blazar:owner",
        ),
        (|state| _ = pool(state).metadata.remove("filter_tenant_id"), "filter_tenant_id"),
        (|state| _ = pool(state).metadata.remove("reservation"), "key reservation"),
        (|state| _ = pool(state).metadata.insert("allot:lease".to_owned(), "x".to_owned()), "allot:lease"),
        (|state| _ = pool(state).metadata.remove("filter_lease_id"), "filter_lease_id"),
        (|state| _ = state.flavors.remove(&MINE.to_string()), "was deleted"),
        (
            |state| state.specs.values_mut().for_each(|specs| specs.retain(|key, _| key.contains("CUSTOM"))),
            "extra spec aggregate_instance_extra_specs:reservation",
        ),
        (
            |state| state.specs.values_mut().flatten().for_each(|(_, value)| *value = "7".to_owned()),
            "is 7, expected 1",
        ),
        (|state| state.sizes.values_mut().for_each(|size| size["ram"] = 4096.into()), "has another size"),
        (
            |state| state.flavors.values_mut().for_each(|projects| _ = projects.insert("bob".to_owned())),
            "projects with access to flavor",
        ),
        (|state| state.flavors.values_mut().for_each(BTreeSet::clear), ": none, expected mine"),
        (|state| state.server_groups.clear(), "server group"),
        (
            |state| {
                state.server_groups.insert("other".to_owned(), "of somebody".to_owned());
                pool(state).metadata.insert("affinity_id".to_owned(), "other".to_owned());
            },
            "is called of somebody",
        ),
        (|state| _ = slots(state).inventories.remove(&class()), "has 0 of CUSTOM_RESERVATION_"),
        (|state| _ = slots(state).inventories.insert(class(), 5), "has 5 of CUSTOM_RESERVATION_"),
        (|state| pool(state).hosts.clear(), "host host1 is not in aggregate"),
    ];
    each_is_reported_and_undone(|| Fence::BlazarFilter, Action::Grant(ONE, MINE, 2), &changes).await;
}

#[tokio::test]
async fn what_a_lease_of_hosts_has_is_compared_and_restored() {
    let hosts: [(Change, &str); 5] = [
        (
            |state| _ = pool(state).metadata.insert("blazar:owner".to_owned(), "bob".to_owned()),
            "blazar:owner",
        ),
        (|state| _ = pool(state).metadata.remove("blazar:owner"), "is missing, expected mine"),
        (|state| _ = pool(state).metadata.remove("allot:lease"), "allot:lease"),
        (
            |state| _ = pool(state).metadata.insert("filter_lease_id".to_owned(), "x".to_owned()),
            "filter_lease_id",
        ),
        (|state| pool(state).zone = Some("nova2".to_owned()), "is nova2, expected blazar_"),
    ];
    let hold = Action::Hold(ONE, MINE);
    each_is_reported_and_undone(|| Fence::BlazarFilter, hold, &hosts).await;
    let tenant: [(Change, &str); 1] = [(
        |state| _ = pool(state).metadata.insert("filter_tenant_id".to_owned(), "b".to_owned()),
        "is b, expected",
    )];
    each_is_reported_and_undone(|| Fence::Tenant { preemptible: BTreeSet::new() }, hold, &tenant).await;
    let traits: [(Change, &str); 4] = [
        (|state| state.specs.values_mut().for_each(BTreeMap::clear), "extra spec trait:CUSTOM_ALLOT_"),
        (|state| pool(state).metadata.retain(|key, _| !key.starts_with("trait:")), "key trait:CUSTOM_ALLOT_"),
        (|state| state.flavors.clear(), "was deleted"),
        (
            |state| state.flavors.values_mut().for_each(|projects| _ = projects.insert("bob".to_owned())),
            "bob, mine, expected mine",
        ),
    ];
    each_is_reported_and_undone(|| Fence::Traits { flavors: Vec::new(), images: false }, hold, &traits).await;
}

#[tokio::test]
async fn aggregates_of_an_older_version_get_the_key_of_lease_pools_at_the_start_and_those_of_others_stay() {
    for last in [Action::Hold(ONE, MINE), Action::Grant(ONE, MINE, 2)] {
        let (cloud, fleet) = running(Fence::BlazarFilter, last).await;
        let before = shown(&mut cloud.state());
        pool(&mut cloud.state()).metadata.remove("filter_lease_id");
        let (theirs, named) = {
            let mut state = cloud.state();
            let theirs = state.add_aggregate("theirs", None);
            let named = state.add_aggregate(&OTHER.to_string(), None);
            for id in [theirs, named] {
                let other = state.aggregates.get_mut(&id).expect("it");
                other.metadata.insert("filter_lease_id".to_owned(), "somebody's".to_owned());
            }
            (theirs, named)
        };
        fleet.set_up().await.expect("it is set up");
        assert_eq!(shown(&mut cloud.state()), before);
        let (observed, found) = look(&fleet).await;
        assert_eq!(found, [], "the lease is not reported as degraded");
        assert!(!observed.reservations[&OTHER].marked, "the key alone does not make it a lease's");
        for id in [theirs, named] {
            assert_eq!(cloud.state().aggregates[&id].metadata["filter_lease_id"], "somebody's");
        }
        cloud.exchanges();
        fleet.set_up().await.expect("it is set up");
        assert!(cloud.exchanges().iter().all(|asked| asked.method == "GET"), "nothing is left to do");
    }
}

#[tokio::test]
async fn whose_servers_are_is_what_the_store_says() {
    let (cloud, fleet) = running(Fence::BlazarFilter, Action::Hold(ONE, MINE)).await;
    let own = cloud.state().boot("host1", "mine", false);
    let foreign = cloud.state().boot("host1", "bob", false);
    for zone in [None, Some("nova".to_owned())] {
        pool(&mut cloud.state()).metadata.insert("blazar:owner".to_owned(), "bob".to_owned());
        pool(&mut cloud.state()).zone = zone;
        let there = seen(&fleet, ONE).await;
        assert_eq!(there.place, Place::Held(MINE));
        let owners: BTreeMap<_, _> = there.guests.iter().map(|guest| (guest.id, guest.owner)).collect();
        let expected = [(guest(&own), GuestOwner::Lease(LEASE)), (guest(&foreign), GuestOwner::Other)];
        assert_eq!(owners, expected.into());
    }
    // Servers in slots behave the same way.
    let (cloud, fleet) = running(Fence::BlazarFilter, Action::Grant(ONE, MINE, 2)).await;
    for project in ["mine", "bob"] {
        let id = cloud.state().boot("host1", project, false);
        cloud.state().servers.get_mut(&id).expect("a server").flavor = format!("reservation:{MINE}");
    }
    pool(&mut cloud.state()).metadata.insert("blazar:owner".to_owned(), "bob".to_owned());
    let guests = seen(&fleet, ONE).await.guests;
    for guest in guests {
        let own = guest.project == Some(ProjectId("mine".to_owned()));
        assert_eq!(guest.owner == GuestOwner::Lease(LEASE), own, "{guest:?}");
    }
}

#[tokio::test]
async fn the_free_pool_has_its_keys_again_and_a_claim_of_another_store_stays() {
    let hold = Action::Hold(ONE, MINE);
    let free =
        |state: &mut State| *state.aggregates.iter().find(|(_, pool)| pool.name == FREE_POOL).expect("it").0;
    let key = |cloud: &Standin| {
        let mut state = cloud.state();
        let id = free(&mut state);
        state.aggregates[&id].metadata.get("allot:store").cloned()
    };
    let (cloud, fleet) = running(Fence::Tenant { preemptible: BTreeSet::new() }, hold).await;
    {
        let mut state = cloud.state();
        let id = free(&mut state);
        state.aggregates.get_mut(&id).expect("it").metadata.clear();
    }
    let (_, found) = look(&fleet).await;
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(key(&cloud), None, "it is reported first");
    look(&fleet).await;
    assert_eq!(key(&cloud).as_deref(), Some(STORE));
    assert_eq!(look(&fleet).await.1, []);
    // It is deleted, and the next adopted host creates it again.
    {
        let mut state = cloud.state();
        let id = free(&mut state);
        state.aggregates.remove(&id);
    }
    assert_eq!(adopt(&fleet, HostId(2)).await, Ok(Outcome::Done));
    assert_eq!(key(&cloud).as_deref(), Some(STORE));
    {
        let mut state = cloud.state();
        let id = free(&mut state);
        let metadata = &mut state.aggregates.get_mut(&id).expect("it").metadata;
        metadata.insert("allot:store".to_owned(), "another".to_owned());
    }
    for _ in 0..3 {
        let (_, found) = look(&fleet).await;
        assert!(
            found.iter().any(|found| found.what.contains("--accept fleet") && !found.is_undone),
            "{found:?}"
        );
        assert_eq!(key(&cloud).as_deref(), Some("another"));
    }
}

#[tokio::test]
async fn a_look_asks_no_more_for_many_leases_and_reads_all_of_them_in_turn() {
    let cloud = Standin::start(1).await;
    let fleet = cloud.fleet();
    assert_eq!(adopt(&fleet, ONE).await, Ok(Outcome::Done));
    let mut all = Wanted::default();
    for number in 0..120 {
        let (reservation, lease) = (ReservationId(0x1000 + number), LeaseId(0x2000 + number));
        assert_eq!(step_for(&fleet, lease, Action::Prepare(reservation)).await, Ok(Outcome::Done));
        all.reservations.extend([stored(Action::Prepare(reservation), lease)]);
    }
    fleet.expect(all).await;
    cloud.exchanges();
    let mut read = BTreeSet::new();
    for _ in 0..3 {
        assert_eq!(look(&fleet).await.1, []);
        let asked = cloud.exchanges();
        assert!(asked.len() <= 60, "{}", asked.len());
        let access = asked.iter().filter(|asked| asked.path.ends_with("/os-flavor-access"));
        read.extend(access.map(|asked| asked.path.clone()));
    }
    assert_eq!(read.len(), 120, "each has had its turn");
    cloud.exchanges();
    assert_eq!(fleet.all_differences().await, Ok(Vec::new()));
    assert!(cloud.exchanges().len() >= 120, "the doctor reads all");
    // A failed request leads to no conclusions, and hides nothing else.
    cloud.fail(Method::GET, "/flavors/detail", 503, 1);
    cloud.state().flavors.clear();
    assert_eq!(look(&fleet).await.1, []);
    assert_eq!(look(&fleet).await.1.len(), 120);
}

#[tokio::test]
async fn what_belongs_to_a_lease_that_ends_is_not_restored() {
    let last = Action::Grant(ONE, MINE, 2);
    let (cloud, fleet) = running(Fence::BlazarFilter, last).await;
    let mut ending = wanted(last);
    ending.reservations.values_mut().for_each(|reserved| reserved.is_kept = false);
    fleet.expect(ending).await;
    cloud.state().flavors.clear();
    for _ in 0..2 {
        assert_eq!(look(&fleet).await.1, []);
    }
}
