//! Hooks of whole reservations and of adopted hosts, and facts of leases that hooks receive.

use std::fs;
use std::sync::Arc;

use ambient::ManualClock;
use fleet::conformance;
use fleet::hooks::HooksFleet;
use fleet::{FleetError, Isolation as _, LeaseFacts, OperationKey, Outcome};
use jiff::{SignedDuration, Timestamp};
use leases::ids::{HostId, ReservationId};
use leases::project::{ProjectId, UserId};
use leases::requirement::Requirement;
use leases::terms::{Affinity, InstanceSize, InstancesTerms, ReservationTerms};
use leases::window::Window;
use serde_json::{Value, json};

use crate::hooks::{HOST, MINE, Rack, THEIRS, config_with, key, rack};

const MORE: [&str; 4] = ["on_adopt", "on_abandon", "on_prepare", "on_finish"];
const OTHER: HostId = HostId(2);

/// A fleet of the rack's machines with all hooks.
fn open(rack: &Rack) -> HooksFleet {
    let clock = Arc::new(ManualClock::new(Timestamp::UNIX_EPOCH));
    HooksFleet::open(&config_with(&rack.directory, &MORE), clock).expect("a fleet")
}

fn whole_rack() -> Rack {
    let mut rack = rack();
    rack.fleet = open(&rack);
    rack
}

impl Rack {
    async fn adopted(&self) {
        for host in [HOST, OTHER] {
            assert_eq!(self.fleet.adopt(host).await, Ok(Outcome::Done));
        }
        self.log();
    }

    async fn verified_for(&self, host: HostId, reservation: ReservationId) {
        assert_eq!(self.fleet.fence(host, &key(1)).await, Ok(Outcome::Done));
        assert_eq!(self.fleet.verify(host, reservation, &key(1)).await, Ok(Outcome::Done));
        self.log();
    }
}

#[tokio::test]
async fn a_reservation_is_prepared_before_its_first_host_and_finished_after_its_last() {
    let rack = whole_rack();
    rack.adopted().await;
    for host in [HOST, OTHER] {
        rack.verified_for(host, MINE).await;
    }
    let (one, two) = (key(1), key(1));
    let both = tokio::join!(rack.fleet.hold(HOST, MINE, &one), rack.fleet.hold(OTHER, MINE, &two));
    assert_eq!(both, (Ok(Outcome::Done), Ok(Outcome::Done)));
    let mut log = rack.log();
    assert_eq!(log.remove(0), format!("on_prepare  {MINE}"));
    log.sort();
    assert_eq!(log, [format!("on_hold node1 {MINE}"), format!("on_hold node2 {MINE}")]);
    let (one, two) = (key(2), key(2));
    let both = tokio::join!(rack.fleet.release(HOST, MINE, &one), rack.fleet.release(OTHER, MINE, &two));
    assert_eq!(both, (Ok(Outcome::Done), Ok(Outcome::Done)));
    let mut log = rack.log();
    assert_eq!(log.pop(), Some(format!("on_finish  {MINE}")));
    log.sort();
    assert_eq!(log, [format!("on_release node1 {MINE}"), format!("on_release node2 {MINE}")]);
}

#[tokio::test]
async fn what_failed_or_was_interrupted_is_prepared_and_finished_again() {
    let mut rack = whole_rack();
    rack.adopted().await;
    rack.verified_for(HOST, MINE).await;
    rack.set_failing("on_prepare", true);
    assert!(matches!(rack.fleet.hold(HOST, MINE, &key(1)).await, Err(FleetError::Unavailable(_))));
    rack.set_failing("on_prepare", false);
    rack.fleet = open(&rack);
    rack.log();
    // The lease no longer wants the host, so the begun handover is undone.
    assert_eq!(rack.fleet.unfence(HOST, &key(2)).await, Ok(Outcome::Done));
    let undone =
        [format!("on_release node1 {MINE}"), format!("on_finish  {MINE}"), "on_unfence node1".to_owned()];
    assert_eq!(rack.log(), undone);

    rack.verified_for(HOST, MINE).await;
    assert_eq!(rack.fleet.hold(HOST, MINE, &key(3)).await, Ok(Outcome::Done));
    rack.set_failing("on_finish", true);
    assert!(rack.fleet.release(HOST, MINE, &key(4)).await.is_err());
    rack.set_failing("on_finish", false);
    rack.fleet = open(&rack);
    rack.log();
    assert_eq!(rack.fleet.release(HOST, MINE, &key(5)).await, Ok(Outcome::Done));
    assert_eq!(rack.log(), [format!("on_release node1 {MINE}"), format!("on_finish  {MINE}")]);
}

#[tokio::test]
async fn room_and_addresses_are_of_reservations_as_well_and_each_reservation_is_on_its_own() {
    let rack = whole_rack();
    rack.adopted().await;
    let known = conformance::address();
    let ip = known.id;
    assert_eq!(rack.fleet.grant(HOST, MINE, 2, &key(1)).await, Ok(Outcome::Done));
    assert_eq!(rack.fleet.grant(OTHER, MINE, 1, &key(1)).await, Ok(Outcome::Done));
    assert_eq!(rack.fleet.assign(&known, THEIRS, &key(1)).await, Ok(Outcome::Done));
    let prepared =
        |log: &[String]| log.iter().filter(|line| line.starts_with("on_prepare")).cloned().collect();
    let log: Vec<String> = prepared(&rack.log());
    assert_eq!(log, [format!("on_prepare  {MINE}"), format!("on_prepare  {THEIRS}")]);
    assert_eq!(rack.fleet.withdraw(HOST, MINE, &key(2)).await, Ok(Outcome::Done));
    assert_eq!(rack.log(), [format!("on_withdraw node1 {MINE}")]);
    assert_eq!(rack.fleet.withdraw(OTHER, MINE, &key(2)).await, Ok(Outcome::Done));
    assert_eq!(rack.log(), [format!("on_withdraw node2 {MINE}"), format!("on_finish  {MINE}")]);
    assert_eq!(rack.fleet.unassign(ip, Some(&known), THEIRS, &key(2)).await, Ok(Outcome::Done));
    assert_eq!(rack.log(), [format!("on_unassign {ip} {THEIRS}"), format!("on_finish  {THEIRS}")]);
}

#[tokio::test]
async fn one_of_two_services_prepares_and_one_finishes() {
    let rack = whole_rack();
    let other = open(&rack);
    rack.adopted().await;
    for host in [HOST, OTHER] {
        rack.verified_for(host, MINE).await;
    }
    let (one, two) = (key(1), key(1));
    let both = tokio::join!(rack.fleet.hold(HOST, MINE, &one), other.hold(OTHER, MINE, &two));
    assert_eq!(both, (Ok(Outcome::Done), Ok(Outcome::Done)));
    assert_eq!(rack.log().iter().filter(|line| line.starts_with("on_prepare")).count(), 1);
    let (one, two) = (key(2), key(2));
    let both = tokio::join!(other.release(HOST, MINE, &one), rack.fleet.release(OTHER, MINE, &two));
    assert_eq!(both, (Ok(Outcome::Done), Ok(Outcome::Done)));
    let log = rack.log();
    assert_eq!(log.iter().filter(|line| line.starts_with("on_finish")).count(), 1);
    assert_eq!(log.last(), Some(&format!("on_finish  {MINE}")));
}

#[tokio::test]
async fn hosts_are_adopted_and_abandoned_by_hooks() {
    let mut rack = whole_rack();
    for _ in 0..2 {
        assert_eq!(rack.fleet.adopt(HOST).await, Ok(Outcome::Done));
    }
    assert_eq!(rack.log(), ["on_adopt node1"], "once");
    for _ in 0..2 {
        assert_eq!(rack.fleet.abandon(HOST).await, Ok(Outcome::Done));
    }
    assert_eq!(rack.log(), ["on_abandon node1"], "once");
    rack.set_failing("on_adopt", true);
    assert!(matches!(rack.fleet.adopt(HOST).await, Err(FleetError::Unavailable(_))));
    rack.fleet = open(&rack);
    rack.log();
    assert_eq!(rack.fleet.abandon(HOST).await, Ok(Outcome::Done));
    assert_eq!(rack.log(), ["on_abandon node1"], "it may have been adopted by half");
    rack.set_failing("on_adopt", false);
    assert_eq!(rack.fleet.adopt(HOST).await, Ok(Outcome::Done));
    rack.set_failing("on_abandon", true);
    assert!(rack.fleet.abandon(HOST).await.is_err());
    rack.set_failing("on_abandon", false);
    rack.log();
    assert_eq!(rack.fleet.abandon(HOST).await, Ok(Outcome::Done));
    assert_eq!(rack.log(), ["on_abandon node1"]);
}

#[tokio::test]
async fn hooks_are_told_of_the_lease_and_what_is_asked_for() {
    let rack = whole_rack();
    rack.adopted().await;
    let asked = InstancesTerms {
        size: InstanceSize::new(4, 8192, 20).expect("a size"),
        amount: 3.try_into().expect("some"),
        affinity: Affinity::DistinctHosts,
        requirement: Requirement::NONE,
        survives: None,
        extras: None,
    };
    let facts = LeaseFacts {
        name: "shop \0\"front\"".to_owned(),
        project: ProjectId("red".to_owned()),
        user: UserId("mary".to_owned()),
        window: Window::starting(Timestamp::UNIX_EPOCH, SignedDuration::from_hours(2)),
        reservation: Some((MINE, ReservationTerms::Instances(asked))),
        properties: Some(json!({"amount": 3, "resource_properties": "[\"==\", \"$gpu\", \"v\u{0}100\"]"})),
        images_for: jiff::Timestamp::UNIX_EPOCH,
    };
    let own = |fence| OperationKey { facts: Some(Arc::new(facts.clone())), ..key(fence) };
    let told = || -> Value {
        let told = fs::read_to_string(rack.directory.join("told.json")).expect("it was told");
        serde_json::from_str(&told).expect("an object")
    };
    assert_eq!(rack.fleet.grant(HOST, MINE, 2, &own(1)).await, Ok(Outcome::Done));
    let wanted = json!({"moment": "on_grant", "host_name": "node1", "lease": own(1).lease.expect("one").to_string(),
        "lease_name": facts.name, "project": "red", "user": "mary", "start": "1970-01-01T00:00:00Z",
        "end": "1970-01-01T02:00:00Z", "properties": facts.properties, "resource_type": "virtual:instance", "amount": 3,
        "affinity": false, "vcpus": 4, "memory_mib": 8192, "disk_gib": 20, "slots": 2, "guest": null});
    let seen = told();
    for (field, value) in wanted.as_object().expect("an object") {
        assert_eq!(&seen[field], value, "{field}: {seen}");
    }
    let variables = fs::read_to_string(rack.directory.join("variables")).expect("it was told");
    let wanted = "mary 1970-01-01T00:00:00Z 1970-01-01T02:00:00Z [\"==\", \"$gpu\", \"v 100\"]\n";
    assert_eq!(variables, wanted);
    // Terms of one reservation aren't passed for another.
    assert_eq!(rack.fleet.grant(HOST, THEIRS, 1, &own(2)).await, Ok(Outcome::Done));
    let seen = told();
    assert_eq!((&seen["lease_name"], &seen["amount"]), (&json!(facts.name), &Value::Null), "{seen}");
    assert_eq!((&seen["user"], &seen["properties"]), (&json!("mary"), &Value::Null), "{seen}");
    // The address itself is passed while it is leasable.
    let ip = conformance::address();
    assert_eq!(rack.fleet.assign(&ip, THEIRS, &own(1)).await, Ok(Outcome::Done));
    let seen = told();
    assert_eq!((&seen["address"], &seen["network"]), (&json!("203.0.113.200"), &json!("public")), "{seen}");
    assert_eq!(rack.fleet.unassign(ip.id, None, THEIRS, &own(2)).await, Ok(Outcome::Done));
    let seen = told();
    assert_eq!((&seen["floating_ip"], &seen["address"]), (&json!(ip.id.to_string()), &Value::Null), "{seen}");
    // An unknown lease has no name.
    assert_eq!(rack.fleet.withdraw(HOST, MINE, &key(3)).await, Ok(Outcome::Done));
    let seen = told();
    assert_eq!(
        (&seen["moment"], &seen["lease_name"], &seen["project"]),
        (&json!("on_finish"), &Value::Null, &Value::Null)
    );
}
