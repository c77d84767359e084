//! Tests of the simulated fleet: what differs from call to call. What all drivers promise is in
//! [`crate::conformance`].

use std::collections::BTreeSet;
use std::sync::Arc;

use ambient::ManualClock;
use jiff::Timestamp;
use leases::ids::{HostId, LeaseId, ReservationId};
use leases::plan::{GuestOwner, Place};

use super::*;
use crate::{Inventory as _, Isolation as _};

const HOST: HostId = HostId(1);
const LEASE: LeaseId = LeaseId(10);
const RESERVATION: ReservationId = ReservationId(100);

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).expect("a time")
}

fn key(key: &str) -> OperationKey {
    OperationKey { key: key.to_owned(), fence: 1, lease: Some(LEASE) }
}

async fn fleet() -> (Arc<ManualClock>, SimulatedFleet) {
    let clock = Arc::new(ManualClock::new(at(0)));
    let fleet = SimulatedFleet::new(clock.clone(), 1, &Layout::of_machines(3));
    for host in 1..=2 {
        assert_eq!(fleet.adopt(HostId(host)).await, Ok(Outcome::Done));
    }
    (clock, fleet)
}

async fn hand_over(fleet: &SimulatedFleet) {
    assert_eq!(fleet.fence(HOST, &key("fence")).await, Ok(Outcome::Done));
    assert_eq!(fleet.verify(HOST, RESERVATION, &key("verify")).await, Ok(Outcome::Done));
    assert_eq!(fleet.hold(HOST, RESERVATION, &key("hold")).await, Ok(Outcome::Done));
}

#[tokio::test]
async fn a_guest_in_flight_is_waited_for_and_seen_once_it_has_landed() {
    let (clock, fleet) = fleet().await;
    let fleet = fleet.with_timing(Timing { boot: Between::secs(30, 30), ..Timing::IMMEDIATE });
    let guest = fleet.start_guest(HOST, GuestOwner::Preemptible, None).expect("free pool");
    assert_eq!(fleet.fence(HOST, &key("fence")).await, Ok(Outcome::Done));
    assert_eq!(fleet.verify(HOST, RESERVATION, &key("verify")).await, Ok(Outcome::Pending));
    assert!(fleet.look(HOST).expect("taken on").guests.is_empty());
    assert_eq!(fleet.next_event(), Some(at(30)));
    clock.set(at(30));
    assert_eq!(fleet.verify(HOST, RESERVATION, &key("verify")).await, Ok(Outcome::Done));
    let seen = fleet.look(HOST).expect("taken on");
    assert_eq!(seen.place, Place::Fenced { verified_for: None });
    assert_eq!(seen.guests[0].id, guest);
    assert!(fleet.violations().is_empty());
}

#[tokio::test]
async fn guests_of_a_lease_start_on_what_it_holds_and_nobody_elses_do() {
    let (_, fleet) = fleet().await;
    hand_over(&fleet).await;
    assert!(fleet.start_guest(HOST, GuestOwner::Lease(LEASE), None).is_some());
    for owner in [GuestOwner::Preemptible, GuestOwner::Other, GuestOwner::Lease(LeaseId(11))] {
        assert_eq!(fleet.start_guest(HOST, owner, None), None);
    }
    assert_eq!(fleet.start_guest(HostId(2), GuestOwner::Lease(LEASE), None), None);
    assert_eq!(fleet.grant(HostId(2), RESERVATION, 2, &key("grant")).await, Ok(Outcome::Done));
    assert!(fleet.start_guest(HostId(2), GuestOwner::Lease(LEASE), None).is_some());
}

#[tokio::test]
async fn hosts_that_were_not_taken_on_are_not_observed() {
    let (_, fleet) = fleet().await;
    let hosts: BTreeSet<HostId> = (1..=9).map(HostId).collect();
    let seen = fleet.observe(&hosts).await.expect("an answer");
    assert_eq!(seen.hosts.into_keys().collect::<Vec<_>>(), [HostId(1), HostId(2)]);
    assert_eq!(fleet.machines().await.expect("an answer").len(), 3);
}
