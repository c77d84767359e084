//! Flavors of instance and flavor reservations.

use std::collections::BTreeMap;

use fleet::conformance::facts;
use fleet::{About, LeaseFacts, OperationKey, Outcome, perform};
use leases::plan::Action;
use leases::project::ProjectId;
use leases::requirement::Requirement;
use leases::terms::{
    Affinity, Flavor, FlavorSize, FlavorTerms, InstanceExtras, InstanceSize, InstancesTerms, ReservationTerms,
};
use serde_json::json;

use crate::handing_over::{LEASE, MINE};
use crate::standin::Standin;

/// Size and extra specs of the flavor that the driver creates for a reservation.
async fn made(terms: ReservationTerms) -> (serde_json::Value, BTreeMap<String, String>) {
    let cloud = Standin::start(1).await;
    let action = Action::Prepare(MINE);
    let size = InstanceSize::new(1, 1, 1).expect("a size");
    let facts = facts(action, ProjectId("mine".to_owned()), size, Affinity::Any);
    let facts = LeaseFacts { reservation: Some((MINE, terms)), ..facts };
    let key = OperationKey::of(action, 1, Some(LEASE)).with_facts(Some(facts));
    let prepared = perform(&cloud.fleet(), action, About::default(), &key).await;
    assert_eq!(prepared, Ok(Outcome::Done));
    let state = cloud.state();
    (state.sizes[&MINE.to_string()].clone(), state.specs[&MINE.to_string()].clone())
}

/// Like the function above, for two instances of the flavor `pinned`. `memory_mib` is its memory when it
/// was leased.
async fn made_for(memory_mib: u32) -> (serde_json::Value, BTreeMap<String, String>) {
    let specs = BTreeMap::from([("hw:cpu_policy".to_owned(), "dedicated".to_owned())]);
    let instance = InstanceSize::new(4, memory_mib, 5).expect("a size");
    let flavor = Flavor::new("pinned", FlavorSize { instance, ephemeral_gib: 2 }, &specs).expect("a flavor");
    let terms = FlavorTerms { flavor, amount: 2.try_into().expect("some"), survives: None };
    made(ReservationTerms::Flavor(terms)).await
}

#[tokio::test]
async fn the_flavor_of_instances_has_the_second_disk_and_the_extra_specs_that_were_asked_for() {
    let size = InstanceSize::new(4, 2048, 5).expect("a size");
    let specs = [
        ("hw:cpu_policy", "dedicated"),
        ("trait:CUSTOM_FAST", "required"),
        ("aggregate_instance_extra_specs:reservation", "another"),
        ("blazar:preemptible", "true"),
    ];
    let specs = specs.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let terms = InstancesTerms {
        size,
        extras: InstanceExtras::new(&size, 2, specs).expect("known"),
        amount: 2.try_into().expect("some"),
        affinity: Affinity::Any,
        requirement: Requirement::NONE,
        survives: None,
    };
    let (size, specs) = made(ReservationTerms::Instances(terms)).await;
    for (field, value) in [("vcpus", 4), ("ram", 2048), ("disk", 5), ("OS-FLV-EXT-DATA:ephemeral", 2)] {
        assert_eq!(size[field], json!(value), "{field}: {size}");
    }
    assert_eq!((&*specs["hw:cpu_policy"], &*specs["trait:CUSTOM_FAST"]), ("dedicated", "required"));
    assert_eq!(specs["aggregate_instance_extra_specs:reservation"], MINE.to_string());
    assert!(!specs.contains_key("blazar:preemptible"), "{specs:?}");
}

#[tokio::test]
async fn the_flavor_of_a_leased_flavor_is_that_one_and_its_servers_are_of_the_lease() {
    let (size, specs) = made_for(2048).await;
    for (field, value) in
        [("vcpus", 4), ("ram", 2048), ("disk", 5), ("OS-FLV-EXT-DATA:ephemeral", 2), ("swap", 64)]
    {
        assert_eq!(size[field], json!(value), "{field}: {size}");
    }
    assert_eq!(specs["hw:cpu_policy"], "dedicated");
    assert_eq!(specs["hw:mem_page_size"], "large");
    assert_eq!(specs["aggregate_instance_extra_specs:reservation"], MINE.to_string());
    assert!(!specs.contains_key("blazar:preemptible"), "{specs:?}");
}

#[tokio::test]
async fn a_flavor_that_was_exchanged_since_gives_no_more_than_was_leased() {
    let (size, specs) = made_for(1024).await;
    assert_eq!((&size["ram"], &size["disk"]), (&json!(1024), &json!(7)), "{size}");
    assert_eq!((&*specs["resources:PCPU"], &*specs["resources:VCPU"]), ("4", "0"));
    assert!(!specs.contains_key("hw:mem_page_size"), "{specs:?}");
}
