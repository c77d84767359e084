//! The document describes bodies and the readers accept them. Both must have the same fields.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use leases::admission::TermsChange;
use leases::ids::{LeaseId, ReservationId};
use leases::lease::{self, Allocation, EndAction, NewLease};
use leases::lease_type::Deadlines;
use leases::project::{Owner, ProjectId, UserId};
use serde_json::{Value, json};
use store::{FlavorRecord, LeaseRecord};
use utoipa::PartialSchema;

use super::*;
use crate::v1::sent_back::{READ_ONLY, read_only as read_only_of};
use crate::v1::{
    FlavorRequest, FloatingIpRequest, FreePoolRequest, HostsQuestionRequest, InstanceRequest,
    LeasePoolRequest, LeaseRequest, LeaseUpdate, Limits, MaintenanceRequest, MoreHosts, RequestError,
    SchedulerHints, UnknownFields, lease_of_pool, read_property_update, reservation_properties, swapped_host,
};

/// A field that no body has.
const NO_FIELD: &str = "no_such_field";

/// Fields of a body, or of one of its forms, in the document's schema.
fn described(schema: &Value) -> BTreeSet<String> {
    schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
}

fn schema<B: PartialSchema>() -> Value {
    serde_json::to_value(B::schema()).expect("JSON")
}

/// Fields that a reader knows. It names them when it rejects one more, at that place in the body.
fn read_of<T>(
    read: impl Fn(&Value) -> Result<T, RequestError>,
    mut body: Value,
    place: &str,
) -> BTreeSet<String> {
    let object = body.pointer_mut(place).and_then(Value::as_object_mut).expect("an object");
    object.insert(NO_FIELD.to_owned(), json!(1));
    match read(&body) {
        Err(RequestError::Unknown { parameter, known }) if parameter.ends_with(NO_FIELD) => {
            known.into_iter().map(str::to_owned).collect()
        }
        Err(other) => panic!("{body}: {other}"),
        Ok(_) => panic!("{body} is taken"),
    }
}

/// Fields of a reservation that a reader knows. It names them when it ignores one more.
fn read_of_reservation(ignored: &[UnknownFields]) -> BTreeSet<String> {
    let [unknown] = ignored else { panic!("{ignored:?}") };
    assert_eq!(unknown.names, [NO_FIELD]);
    unknown.known.iter().map(|name| (*name).to_owned()).collect()
}

fn now() -> Timestamp {
    "2030-01-01T10:00:30Z".parse().expect("an instant")
}

fn small_flavor(_: &str) -> Option<FlavorRecord> {
    let body = json!({"name": "small", "vcpus": 1, "ram": 512, "disk": 0});
    FlavorRequest::read(&body).and_then(|flavor| flavor.record("small".to_owned(), now())).ok()
}

fn read_lease(body: &Value) -> Result<LeaseRequest, RequestError> {
    LeaseRequest::read(body, now(), &Deadlines::default(), &small_flavor, &Limits::default())
}

/// One minimal reservation of each type.
fn reservations() -> Vec<Value> {
    vec![
        json!({"resource_type": "physical:host", "min": 1, "max": 1, "hypervisor_properties": "",
            "resource_properties": ""}),
        json!({"resource_type": "virtual:instance", "vcpus": 1, "memory_mb": 1, "disk_gb": 1, "amount": 1,
            "affinity": null, "resource_properties": ""}),
        json!({"resource_type": "flavor:instance", "flavor_id": "small", "amount": 1, "affinity": null}),
        json!({"resource_type": "virtual:floatingip", "network_id": "n", "amount": 1}),
    ]
}

fn lease_body() -> Value {
    json!({"name": "l", "start_date": "now", "end_date": "2030-01-02 10:00", "reservations": reservations(),
        "repeat": {"every": "1w", "times": 2}, "scheduler_hints": {}})
}

/// A lease with these reservations.
fn present() -> lease::Lease {
    let terms = read_lease(&lease_body()).expect("a lease").terms;
    let allocations = vec![
        Allocation::Hosts(BTreeSet::new()),
        Allocation::Slots(BTreeMap::new()),
        Allocation::Slots(BTreeMap::new()),
        Allocation::FloatingIps(BTreeSet::new()),
    ];
    let new = NewLease {
        id: LeaseId(1),
        name: "l".to_owned(),
        owner: Owner { project: ProjectId("p".to_owned()), user: UserId("u".to_owned()) },
        end_action: EndAction::DeleteGuests,
        reservations: (10..14).map(ReservationId).collect(),
    };
    lease::Lease::new(new, terms, allocations, None)
}

#[test]
fn a_new_lease_has_the_fields_that_are_read() {
    let parts = [
        ("", schema::<LeaseCreate>()),
        ("/repeat", schema::<RepeatCreate>()),
        ("/scheduler_hints", schema::<SchedulerHints>()),
    ];
    for (place, schema) in parts {
        assert_eq!(described(&schema), read_of(read_lease, lease_body(), place), "{place}");
    }
}

#[test]
fn reservations_of_every_type_have_the_fields_that_are_read() {
    let forms = schema::<ReservationCreate>();
    let forms = forms["oneOf"].as_array().expect("a form for each type");
    assert_eq!(forms.len(), reservations().len());
    for (position, form) in forms.iter().enumerate() {
        let mut body = lease_body();
        body["reservations"][position][NO_FIELD] = json!(1);
        let mut read = read_of_reservation(&read_lease(&body).expect("well formed").ignored);
        if position == 2 {
            // Clients copy it from reservations of the other type, so an empty value is accepted.
            assert!(read.remove("resource_properties"));
        }
        assert_eq!(described(form), read, "{position}");
    }
}

#[test]
fn a_change_of_a_lease_has_the_fields_that_are_read() {
    let lease = present();
    let shown = Lease::from(&LeaseRecord::new(lease.clone(), BTreeMap::new(), now()));
    let read_change = |body: &Value| LeaseUpdate::read(body, now(), &lease, &shown, &Limits::default());
    let mut read = read_of(read_change, json!({}), "");
    // A change of hints has an error of its own.
    assert!(read.remove("scheduler_hints"));
    assert_eq!(described(&schema::<LeaseChange>()), read);
    let mut read = BTreeSet::new();
    for reservation in &lease.reservations {
        let body = json!({"reservations": [{"id": reservation.id.to_string(), NO_FIELD: 1}]});
        let update = read_change(&body).expect("well formed");
        assert_eq!(update.changes.reservations, [(reservation.id, TermsChange::None)]);
        read.extend(read_of_reservation(&update.ignored));
    }
    assert_eq!(described(&schema::<ReservationChange>()), read);
}

#[test]
fn fields_of_answers_are_fields_of_requests_or_read_only() {
    let set = described(&schema::<LeaseCreate>());
    let answered = described(&schema::<Lease>());
    let read_only: BTreeSet<String> = answered.difference(&set).cloned().collect();
    assert_eq!(read_only, READ_ONLY.iter().map(|name| (*name).to_owned()).collect());
    let forms = schema::<ReservationCreate>();
    let types = ["physical:host", "virtual:instance", "flavor:instance", "virtual:floatingip"];
    for (form, resource_type) in forms["oneOf"].as_array().expect("forms").iter().zip(types) {
        let set = described(form);
        for name in read_only_of(resource_type) {
            assert!(!set.contains(*name), "{resource_type} {name}");
        }
    }
}

/// The record of the lease of [`lease_body`].
fn stored() -> LeaseRecord {
    let lease = present();
    let wording = read_lease(&lease_body()).expect("a lease").wording;
    let words: BTreeMap<_, _> = lease.reservations.iter().map(|own| own.id).zip(wording).collect();
    LeaseRecord::new(lease, words, now())
}

#[test]
fn properties_of_a_reservation_are_its_own_fields_of_answers() {
    let record = stored();
    let shown = serde_json::to_value(Lease::from(&record)).expect("JSON");
    for (own, shown) in
        record.lease.reservations.iter().zip(shown["reservations"].as_array().expect("a list"))
    {
        let properties = reservation_properties(&record, own);
        let fields = properties.as_object().expect("an object");
        assert!(fields.iter().all(|(name, value)| shown[name] == *value), "{properties}");
        assert!(fields.contains_key("resource_type") && !fields.contains_key("aggregate_id"), "{properties}");
    }
}

#[test]
fn a_lease_that_was_read_asks_for_the_same_again() {
    let shown = serde_json::to_value(Lease::from(&stored())).expect("JSON");
    let again = read_lease(&shown).expect("well formed");
    let asked = read_lease(&lease_body()).expect("well formed");
    assert_eq!((again.terms, again.wording), (asked.terms, asked.wording));
}

#[test]
fn other_bodies_have_the_fields_that_are_read() {
    let limits = Limits::default();
    let size = json!({"name": "a", "vcpus": 1, "memory_mb": 1, "scheduler_hints": {}});
    let question = json!({"scheduler_hints": {}});
    let maintenance = json!({"hosts": ["a"], "duration": "2h"});
    let flavor = json!({"name": "a", "vcpus": 1, "ram": 1, "disk": 0});
    let address = json!({"floating_network_id": "n", "floating_ip_address": "203.0.113.9"});
    let new_pool = |body: &Value| FreePoolRequest::read(body, true);
    let pool_change = |body: &Value| FreePoolRequest::read(body, false);
    let read_maintenance = |body: &Value| MaintenanceRequest::read(body, now(), &limits);
    let bodies = [
        ("instance", schema::<InstanceCreate>(), read_of(InstanceRequest::read, size.clone(), "")),
        ("hints", schema::<LeaseHints>(), read_of(InstanceRequest::read, size, "/scheduler_hints")),
        ("question", schema::<HostsQuestion>(), read_of(HostsQuestionRequest::read, question, "")),
        ("maintenance", schema::<MaintenanceCreate>(), read_of(read_maintenance, maintenance, "")),
        ("flavor", schema::<FlavorCreate>(), read_of(FlavorRequest::read, flavor, "")),
        ("address", schema::<FloatingIpCreate>(), read_of(FloatingIpRequest::read, address, "")),
        ("free pool", schema::<FreePoolCreate>(), read_of(new_pool, json!({"name": "a"}), "")),
        ("free pool's change", schema::<FreePoolChange>(), read_of(pool_change, json!({}), "")),
        ("lease pool", schema::<LeasePoolCreate>(), read_of(lease_of_pool, json!({"host_count": 1}), "")),
        ("lease pool's change", schema::<LeasePoolChange>(), read_of(LeasePoolRequest::read, json!({}), "")),
        ("growth", schema::<LeasePoolGrowth>(), read_of(MoreHosts::read, json!({}), "")),
        ("swap", schema::<LeasePoolSwap>(), read_of(swapped_host, json!({"host_id": "1"}), "")),
        ("property", schema::<PropertyChange>(), read_of(read_property_update, json!({"private": true}), "")),
    ];
    for (name, schema, read) in bodies {
        assert_eq!(described(&schema), read, "{name}");
    }
}
