//! Reservations that Blazar has made. They are the driver's own objects without the keys by which it
//! recognizes them.

use std::collections::BTreeMap;

use fleet::{Isolation as _, Outcome};
use fleet_openstack::{BlazarReservation, OpenStackFleet};
use leases::ids::{HostId, LeaseId, ReservationId};
use leases::plan::{Action, GuestSize, Place, Recipe};
use leases::project::ProjectId;
use leases::terms::Affinity;
use reqwest::Method;

use crate::handing_over::{LEASE, MINE, ONE, done, handover, seen};
use crate::standin::{Standin, State};

const TWO: HostId = HostId(2);
const ROOM: ReservationId = ReservationId(0xb2);

/// A cloud with a lease of a host, a lease of slots on a second host, and a third host without leases.
async fn leased() -> Standin {
    let cloud = Standin::start(3).await;
    let fleet = cloud.fleet();
    for host in [ONE, TWO, HostId(3)] {
        assert_eq!(fleet.adopt(host).await, Ok(Outcome::Done));
    }
    done(&fleet, &handover(ONE)).await;
    done(&fleet, &[Action::Grant(TWO, ROOM, 3)]).await;
    cloud
}

/// Removes our keys, as if Blazar had made everything.
fn as_of_blazar(state: &mut State) {
    for aggregate in state.aggregates.values_mut() {
        aggregate.metadata.retain(|key, _| !key.starts_with("allot:") && key != "filter_lease_id");
    }
}

fn reservations() -> Vec<BlazarReservation> {
    let size = GuestSize { vcpus: 2, memory_mib: 1024, disk_gib: 10 };
    let whole = BlazarReservation {
        id: MINE,
        lease: LEASE,
        project: ProjectId("mine".to_owned()),
        recipe: Recipe::default(),
        hosts: BTreeMap::from([(ONE, 1)]),
        started: true,
    };
    let recipe = Recipe { size, affinity: Affinity::DistinctHosts };
    vec![BlazarReservation { id: ROOM, recipe, hosts: BTreeMap::from([(TWO, 3)]), ..whole.clone() }, whole]
}

fn hosts() -> BTreeMap<HostId, String> {
    (1..=3).map(|number| (HostId(number), format!("host{number}"))).collect()
}

async fn differences(fleet: &OpenStackFleet, reservations: &[BlazarReservation]) -> String {
    let traces = fleet.compare_with_blazar(reservations, &hosts()).await.expect("an answer");
    traces.differences.join("; ")
}

#[tokio::test]
async fn what_blazar_has_made_becomes_what_the_driver_makes_and_back() {
    let cloud = leased().await;
    let (ours, theirs) = {
        let mut state = cloud.state();
        let ours = format!("{:?}", state.aggregates);
        as_of_blazar(&mut state);
        (ours, format!("{:?}", state.aggregates))
    };
    let fleet = cloud.fleet();
    cloud.exchanges();
    let traces = fleet.compare_with_blazar(&reservations(), &hosts()).await.expect("an answer");
    assert_eq!(traces.differences, [""; 0]);
    assert!(
        cloud.exchanges().iter().all(|asked| asked.method == "GET" || asked.path.contains("auth/tokens"))
    );
    fleet.take_over(&traces).await.expect("done");
    let writes: Vec<_> = cloud.exchanges().into_iter().filter(|asked| asked.method != "GET").collect();
    assert!(writes.iter().all(|asked| asked.body["set_metadata"].is_object()), "{writes:#?}");
    assert_eq!(format!("{:?}", cloud.state().aggregates), ours);
    assert_eq!(seen(&fleet, ONE).await.place, Place::Held(MINE));
    let room = seen(&fleet, TWO).await;
    assert_eq!((room.place, room.slots), (Place::FreePool, BTreeMap::from([(ROOM, 3)])));
    // The service also notes which store controls the cloud.
    let keeper = fleet::Keeper { store: "a".to_owned(), fence: 0 };
    fleet::Inventory::set_keeper(&fleet, keeper).await.expect("noted");
    fleet.give_back(&traces).await.expect("done");
    assert_eq!(format!("{:?}", cloud.state().aggregates), theirs);
}

#[tokio::test]
async fn what_was_taken_over_in_part_is_taken_over_again() {
    let cloud = leased().await;
    let ours = format!("{:?}", cloud.state().aggregates);
    as_of_blazar(&mut cloud.state());
    let fleet = cloud.fleet();
    let traces = fleet.compare_with_blazar(&reservations(), &hosts()).await.expect("an answer");
    cloud.fail(Method::POST, "action", 403, 1);
    assert!(fleet.take_over(&traces).await.is_err());
    let fleet = cloud.fleet();
    let traces = fleet.compare_with_blazar(&reservations(), &hosts()).await.expect("an answer");
    fleet.take_over(&traces).await.expect("done");
    assert_eq!(format!("{:?}", cloud.state().aggregates), ours);
}

#[tokio::test]
async fn what_blazar_says_and_the_cloud_does_not_show_is_named() {
    let cloud = leased().await;
    as_of_blazar(&mut cloud.state());
    let fleet = cloud.fleet();
    let mut wrong = reservations();
    wrong[0].hosts.insert(TWO, 2);
    let said = differences(&fleet, &wrong).await;
    assert!(said.contains("has 2 slots on host host2, and in Placement blazar_host2 has 3"), "{said}");
    let mut wrong = reservations();
    wrong.push(BlazarReservation { id: ReservationId(0xb9), lease: LeaseId(9), ..wrong[0].clone() });
    let said = differences(&fleet, &wrong).await;
    assert!(said.contains("has no flavor") && said.contains("has no aggregate"), "{said}");
    let renamed = BTreeMap::from([(ONE, "host9".to_owned()), (HostId(44), "host44".to_owned())]);
    let traces = fleet.compare_with_blazar(&reservations(), &renamed).await.expect("an answer");
    let said = traces.differences.join("; ");
    assert!(said.contains("host host9 is number 1 in Blazar, and in Nova that is host1"), "{said}");
    assert!(said.contains("host host44 has number 44 in Blazar, but Nova has no such host"), "{said}");
    // One of Blazar's leases isn't among them.
    let said = differences(&fleet, &reservations()[..1]).await;
    assert!(said.contains("belongs to a reservation that was not read"), "{said}");
    assert!(said.contains("host host1 is not leased now, and not in the aggregate freepool"), "{said}");
}
