//! Notifications and half-hourly samples of reservations, for metering.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use fleet::simulated::{Happening, Layout};
use leases::ids::LeaseId;
use leases::instance::LeaseHint;
use leases::plan::{GuestOwner, GuestSize};
use leases::terms::{Flavor, FlavorSize, FlavorTerms, InstanceSize, ReservationTerms};
use serde_json::{Value, json};
use service::{NewFloatingIp, NewInstance, Placing, Settings, is_for_meters};
use simulation::{World, caller, operator};
use store::{NewNotification, Notification};

use crate::terms::{
    addresses, asking, at, change, dates, hosts, hosts_of, make, settings, slots, status, world, world_with,
};

/// Meter definitions that Allotment ships.
const METERS: &str = include_str!("../../../../contrib/ceilometer/allot.yaml");

/// A world with metering.
async fn metered(hosts: u32) -> World {
    world_with(hosts, Settings { metered: true, ..settings() }, None, |fleet| fleet).await
}

fn flavor(amount: u32) -> ReservationTerms {
    let instance = InstanceSize::new(4, 1024, 10).expect("a size");
    let size = FlavorSize { instance, ephemeral_gib: 0 };
    let flavor = Flavor::new("m1.medium", size, &BTreeMap::new()).expect("understood");
    let amount = NonZeroU32::new(amount).expect("some");
    ReservationTerms::Flavor(FlavorTerms { flavor, amount, survives: None })
}

async fn told(world: &World) -> Vec<NewNotification> {
    let told = world.service.notifications().after(None, 0, 1000).await.expect("works");
    told.into_iter().map(|told| told.content).collect()
}

fn payload(told: &NewNotification) -> Value {
    serde_json::from_str(&told.payload).expect("JSON")
}

/// All remaining samples of this half hour.
async fn samples(world: &World, position: &mut u64) -> Vec<Notification> {
    let mut all = Vec::new();
    while let Some(part) = world.service.notifications().samples(*position).await {
        assert!(part.position > *position, "{} does not go on", part.position);
        *position = part.position;
        all.extend(part.samples);
    }
    all
}

/// Event type of each sample, and the index of its lease.
fn kinds(samples: &[Notification], leases: &[LeaseId]) -> Vec<(String, usize)> {
    let place = |sample: &Notification| {
        let lease = payload(&sample.content)["lease_id"].as_str().expect("text").to_owned();
        leases.iter().position(|id| id.to_string() == lease).expect("known")
    };
    let mut kinds: Vec<_> =
        samples.iter().map(|sample| (sample.content.event_type.clone(), place(sample))).collect();
    kinds.sort();
    kinds
}

async fn start_instance(world: &mut World, lease: LeaseId) {
    let size = GuestSize { vcpus: 2, memory_mib: 1024, disk_gib: 10 };
    let new = NewInstance {
        name: "web".to_owned(),
        placing: Placing { size: Some(size), hint: Some(LeaseHint::Lease(lease)), ..Placing::default() },
        requeue: false,
    };
    world.service.instances().create(&caller("p"), new).await.expect("there is room");
    world.settle().await;
}

#[tokio::test]
async fn of_each_reservation_there_are_notifications_with_amounts() {
    let mut world = metered(3).await;
    let new = NewFloatingIp { network: Layout::public_network().id, address: [203, 0, 113, 200].into() };
    world.service.floating_ips().add(&operator(), new).await.expect("free");
    let parts = vec![hosts(2), slots(3, 2), flavor(2), addresses(1)];
    let lease = make(&mut world, asking(0, 60, parts)).await.expect("free").lease.clone();
    world.run_until(at(10)).await;
    change(&mut world, lease.id, dates(None, Some(90))).await.expect("free");
    world.run_until(at(95)).await;
    assert_eq!(status(&world, lease.id), "TERMINATED");
    world.service.leases().delete(&caller("p"), lease.id).await.expect("over");
    let told = told(&world).await;
    let of_reservations: Vec<&NewNotification> = told.iter().filter(|told| is_for_meters(told)).collect();
    let types: Vec<&str> = of_reservations
        .iter()
        .map(|told| told.event_type.strip_prefix("blazar.reservation.").expect("the prefix"))
        .collect();
    let started = ["physical_host", "virtual_instance", "flavor_instance", "virtual_floatingip"];
    let expected = [["create"; 4], started, ["update"; 4], ["end"; 4], ["delete"; 4]].concat();
    assert_eq!(types, expected);
    let of_lease = told.iter().find(|told| told.event_type == "lease.event.start_lease").expect("it started");
    let of_lease = payload(of_lease);
    let amounts = |[hosts, instances, addresses, vcpus, memory_mb, disk_gb]: [u64; 6]| {
        json!({
            "hosts": hosts, "instances": instances, "addresses": addresses,
            "vcpus": vcpus, "memory_mb": memory_mb, "disk_gb": disk_gb,
        })
    };
    let by_type = [
        json!({
            "resource_type": "physical:host", "hypervisor_properties": null, "resource_properties": null,
            "before_end": "default", "min": 2, "max": 2, "reserved": amounts([2, 0, 0, 32, 131_072, 2000]),
        }),
        json!({
            "resource_type": "virtual:instance", "vcpus": 2, "memory_mb": 1, "disk_gb": 1, "amount": 3,
            "affinity": null, "resource_properties": null, "flavor_id": lease.reservations[1].id.to_string(),
            "reserved": amounts([0, 3, 0, 6, 3, 3]),
        }),
        json!({
            "resource_type": "flavor:instance", "vcpus": 4, "memory_mb": 1024, "disk_gb": 10, "amount": 2,
            "affinity": null, "resource_properties": null, "flavor_id": lease.reservations[2].id.to_string(),
            "reserved": amounts([0, 2, 0, 8, 2048, 20]),
        }),
        json!({
            "resource_type": "virtual:floatingip", "network_id": "public", "amount": 1,
            "reserved": amounts([0, 0, 1, 0, 0, 0]),
        }),
    ];
    for (number, of_type) in by_type.into_iter().enumerate() {
        let id = lease.reservations[number].id.to_string();
        let mut expected = json!({
            "lease_id": lease.id.to_string(), "lease_name": "a lease", "user_id": "p-user", "project_id": "p",
            "trust_id": null, "start_date": "2030-01-01T12:00:00.000000",
            "end_date": "2030-01-01T13:00:00.000000", "lease_status": "ACTIVE", "degraded": false,
            "reservation_id": id, "resource_id": id, "reservation_status": "active",
            "missing_resources": false, "resources_changed": false,
            "created_at": of_lease["reservations"][number]["created_at"],
            "updated_at": of_lease["reservations"][number]["updated_at"],
        });
        for (name, value) in of_type.as_object().expect("an object") {
            expected[name] = value.clone();
        }
        let told = of_reservations[4 + number];
        assert_eq!(payload(told), expected);
        assert_eq!((told.lease, told.project.0.as_str()), (None, "p"));
    }
}

#[tokio::test]
async fn a_lease_that_loses_a_host_has_less() {
    let mut world = metered(2).await;
    let lease = make(&mut world, asking(0, 60, vec![hosts(2)])).await.expect("free");
    world.run_until(at(10)).await;
    world.fleet.fail(hosts_of(&lease)[0]);
    world.run_until(at(20)).await;
    let told = told(&world).await;
    let updated: Vec<Value> =
        told.iter().filter(|told| told.event_type == "blazar.reservation.update").map(payload).collect();
    assert_eq!(updated.len(), 1, "{updated:?}");
    assert_eq!(updated[0]["missing_resources"], true);
    assert_eq!(updated[0]["reserved"]["hosts"], 1);
    assert_eq!(updated[0]["reserved"]["vcpus"], 16);
}

#[tokio::test]
async fn nothing_is_written_for_meters_that_nobody_reads() {
    let mut world = world(1).await;
    make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free");
    world.run_until(at(90)).await;
    let told = told(&world).await;
    assert!(!told.is_empty() && !told.iter().any(is_for_meters), "{told:?}");
}

#[tokio::test]
async fn every_half_hour_there_is_one_sample_of_what_holds_and_of_what_is_used() {
    let mut world = metered(3).await;
    let mut leases = Vec::new();
    for new in
        [asking(0, 120, vec![hosts(1)]), asking(0, 61, vec![slots(3, 2)]), asking(40, 120, vec![hosts(1)])]
    {
        leases.push(make(&mut world, new).await.expect("free").lease.id);
    }
    let used = leases[0];
    let exists = |lease: usize| ("blazar.reservation.exists".to_owned(), lease);
    let in_use = |lease: usize| ("blazar.reservation.in_use".to_owned(), lease);
    world.run_until(at(5)).await;
    let mut position = 0;
    let first = samples(&world, &mut position).await;
    assert_eq!(kinds(&first, &leases), [exists(0), exists(1)]);
    assert!(first.iter().all(|sample| sample.at == at(0)));
    let numbers: Vec<u64> = first.iter().map(|sample| sample.number).collect();
    assert!(numbers.is_sorted() && numbers[1] < position);
    world.run_until(at(10)).await;
    start_instance(&mut world, used).await;
    let host = hosts_of(&world.service.leases().get(used).expect("there"))[0];
    let owner = GuestOwner::Lease(used);
    world.fleet.happen(Happening::GuestStarts { host, owner, runs_for: None });
    world.touched();
    world.run_until(at(29)).await;
    assert!(samples(&world, &mut position).await.is_empty(), "those of this half hour were sent");
    world.run_until(at(31)).await;
    let second = samples(&world, &mut position).await;
    assert_eq!(kinds(&second, &leases), [exists(0), exists(1), in_use(0)]);
    assert!(second.iter().all(|sample| sample.at == at(30)));
    let sample = second.iter().find(|sample| sample.content.event_type.ends_with("in_use")).expect("one");
    let sample = payload(&sample.content);
    assert_eq!(sample["reserved"]["vcpus"], 16);
    assert_eq!(sample["used"]["instances"], 2, "{sample}");
    assert!(sample["used"]["vcpus"].as_u64().is_some_and(|vcpus| vcpus > 2), "{sample}");
    // Late samples cover leases that were active then and still are.
    world.run_until(at(85)).await;
    assert_eq!(kinds(&samples(&world, &mut position).await, &leases), [exists(0), exists(2), in_use(0)]);
    let told = told(&world).await;
    let is_sample =
        |told: &NewNotification| told.event_type.ends_with("exists") || told.event_type.ends_with("in_use");
    assert!(!told.iter().any(is_sample), "samples aren't stored");
}

#[tokio::test]
async fn samples_come_in_parts_and_go_on_after_a_restart() {
    let mut world = metered(10).await;
    for _ in 0..3 {
        make(&mut world, asking(0, 60, vec![slots(1, 1); 50])).await.expect("free");
    }
    world.run_until(at(5)).await;
    let first = world.service.notifications().samples(0).await.expect("some");
    assert_eq!(first.samples.len(), 100);
    world.restart().await.expect("the store works");
    let unseen = world.service.notifications().samples(first.position).await;
    assert!(unseen.is_none(), "it isn't known yet what is used: {unseen:?}");
    world.run_until(at(10)).await;
    let mut position = first.position;
    let rest = samples(&world, &mut position).await;
    assert_eq!(rest.len(), 50);
    let reservations: BTreeSet<String> = first
        .samples
        .iter()
        .chain(&rest)
        .map(|sample| payload(&sample.content)["reservation_id"].to_string())
        .collect();
    assert_eq!(reservations.len(), 150);
    world.clock.set(at(4));
    assert!(samples(&world, &mut position).await.is_empty(), "the same half hour");
    world.clock.set(at(-1));
    assert!(samples(&world, &mut position).await.is_empty(), "one that is over");
}

#[tokio::test]
async fn meters_are_defined_by_fields_that_there_are() {
    let mut world = metered(1).await;
    let lease = make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free").lease.id;
    world.run_until(at(10)).await;
    start_instance(&mut world, lease).await;
    let all = samples(&world, &mut 0).await;
    let sample = all.iter().find(|sample| sample.content.event_type.ends_with("in_use")).expect("one");
    let sample = payload(&sample.content);
    let of_reservations = METERS.split("- name: '").filter(|meter| meter.starts_with("blazar.reservation."));
    let mut checked = 0;
    for meter in of_reservations {
        for path in meter.split("$.payload.").skip(1) {
            let path = path.split_whitespace().next().expect("a path");
            assert!(sample.pointer(&format!("/{}", path.replace('.', "/"))).is_some(), "{path} of {meter}");
            checked += 1;
        }
    }
    assert!(checked > 40, "{checked}");
}
