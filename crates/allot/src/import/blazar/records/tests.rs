//! Imports the recorded responses of a real Blazar 18, and checks which entries are left out.

use leases::ids::LeaseId;
use proptest::prelude::*;
use store::Store as _;
use store::memory::MemoryStore;

use super::*;
use crate::config::DatabaseChoice;

/// Responses of a Blazar 18. The leases reserve hosts, instances with each affinity, a flavor, and two
/// resources at once. Some run, some start later, some are over.
const RECORDED: &str = include_str!("blazar-18.json");

fn recorded() -> Value {
    serde_json::from_str(RECORDED).expect("JSON")
}

fn read(document: Value) -> (Saved, Records) {
    let saved: Saved = serde_json::from_value(document).expect("a saved Blazar");
    let records = Records::of(&saved, &Given::new(), || 7);
    (saved, records)
}

/// Applies a change to the recorded lease of that name. Returns the reason why it's left out.
fn refusal(name: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut document = recorded();
    let leases = document["leases"].as_array_mut().expect("leases");
    change(leases.iter_mut().find(|lease| lease["name"] == name).expect("a lease"));
    let (saved, records) = read(document);
    assert_eq!(records.archive.snapshot.leases.len() + 1, saved.leases.len(), "the others are taken");
    let [left] = &records.left_out[..] else { panic!("{:?}", records.left_out) };
    assert!(left.what.contains(name), "{left:?}");
    left.why.clone()
}

/// An entry without `kinds` and without the fields that Blazar and Allot each set on their own.
fn told(value: &Value, kinds: &[&str]) -> Map<String, Value> {
    const OWN: [&str; 6] =
        ["created_at", "updated_at", "aggregate_id", "server_group_id", "resource_id", "trust_id"];
    let mut told = value.as_object().expect("an object").clone();
    told.retain(|key, _| !OWN.contains(&key.as_str()) && !kinds.contains(&key.as_str()));
    told
}

#[test]
fn leases_are_told_as_blazar_told_them() {
    let (saved, records) = read(recorded());
    assert_eq!(records.left_out, []);
    assert_eq!(records.archive.snapshot.leases.len(), saved.leases.len());
    for record in &records.archive.snapshot.leases {
        let ours = serde_json::to_value(api::v1::Lease::from(record)).expect("JSON");
        let theirs = saved.leases.iter().find(|lease| lease["id"] == ours["id"]).expect("the same lease");
        for (key, value) in told(theirs, &["events", "reservations"]) {
            assert_eq!(ours[&key], value, "{key} of {}", theirs["name"]);
        }
        assert_eq!(ours["created_at"], theirs["created_at"]);
        let events = |lease: &Value| -> BTreeSet<String> {
            let events = lease["events"].as_array().expect("events").iter();
            events
                .map(|event| format!("{} {} {}", event["event_type"], event["time"], event["status"]))
                .collect()
        };
        assert_eq!(events(&ours), events(theirs), "{}", theirs["name"]);
        for theirs in theirs["reservations"].as_array().expect("reservations") {
            let mut all = ours["reservations"].as_array().expect("reservations").iter();
            let ours = all.find(|own| own["id"] == theirs["id"]).expect("the same reservation");
            for (key, value) in told(theirs, &[]) {
                assert_eq!(ours[&key], value, "{key} of reservation {}", theirs["id"]);
            }
        }
    }
}

#[tokio::test]
async fn a_store_takes_all_of_it_in_with_usage_from_the_beginning() {
    let (_, records) = read(recorded());
    let store = MemoryStore::new();
    store.import(&records.archive).await.expect("accepted");
    let kept = store.export().await.expect("works");
    assert_eq!(kept.snapshot.leases, records.archive.snapshot.leases);
    let open = store.open_usage().await.expect("works").len();
    let running = kept.snapshot.leases.iter().filter(|record| record.lease.status == LeaseStatus::Active);
    let held = |record: &LeaseRecord| {
        let own = record.lease.reservations.iter();
        1 + own.map(|own| own.allocation.hosts().len()).sum::<usize>()
    };
    assert_eq!(open, running.map(held).sum::<usize>(), "each lease, and each host of it");
    let started = |span: &leases::usage::Span| span.window.start();
    let starts: BTreeSet<Timestamp> = records.archive.usage.opened.iter().map(started).collect();
    assert_eq!(starts.len(), 1, "from the start of the leases, not of the import");
}

#[test]
fn hosts_have_what_blazar_says_of_them() {
    let (_, records) = read(recorded());
    let hosts = &records.archive.snapshot.hosts;
    assert_eq!(hosts.len(), 10);
    let host = &hosts[0].host;
    assert_eq!((host.id, host.name.as_str(), host.vcpus, host.memory_mib), (HostId(1), "node1", 16, 65536));
    let capabilities: Vec<(&str, &str)> =
        host.capabilities.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(capabilities, [("gpu", "yes"), ("rack", "r1")]);
}

#[test]
fn the_cloud_is_told_where_each_reservation_is() {
    let (saved, records) = read(recorded());
    let of = |name: &str| -> Vec<&BlazarReservation> {
        let lease = saved.leases.iter().find(|lease| lease["name"] == name).expect("a lease");
        let id = lease_id(lease["id"].as_str().expect("text")).expect("a UUID");
        records.reservations.iter().filter(|own| own.lease == id).collect()
    };
    let [apart] = of("i-apart")[..] else { panic!("one") };
    assert!(apart.started && apart.hosts.values().eq(&[1, 1]));
    let [now] = of("i-now")[..] else { panic!("one") };
    assert!(now.hosts.values().eq(&[3]) && now.recipe.size.memory_mib == 512);
    let [later] = of("h-later")[..] else { panic!("one") };
    assert!(!later.started && later.hosts.len() == 3 && later.recipe == Recipe::default());
    assert_eq!(of("two").len(), 2);
    assert_eq!(of("short"), [] as [&BlazarReservation; 0], "it is over");
}

#[test]
fn what_blazar_would_have_done_by_then_is_said() {
    let (saved, records) = read(recorded());
    assert_eq!(records.due(saved.read_at).count(), 0);
    let all = records.due(Timestamp::MAX).collect::<Vec<_>>();
    let pending =
        records.archive.snapshot.leases.iter().filter(|r| r.lease.status == LeaseStatus::Pending).count();
    assert_eq!(all.len(), 2 * pending + 4, "starts and ends of leases to come, ends of running ones");
    assert!(all.is_sorted_by_key(|undone| undone.at));
    assert_eq!(all[0].kind, EventKind::EndLease);
}

#[test]
fn what_cannot_be_taken_over_is_named_and_nothing_else_is_lost() {
    let lease = |name: &str, key: &'static str, value: Value| refusal(name, move |lease| lease[key] = value);
    let reservation = |name: &str, key: &'static str, value: Value| {
        refusal(name, move |lease| lease["reservations"][0][key] = value)
    };
    for (why, part) in [
        (lease("h-now", "status", json!("STARTING")), "wait until Blazar has done that"),
        (lease("h-now", "status", json!("WONDERFUL")), "status WONDERFUL"),
        (lease("h-now", "status", json!("PENDING")), "contradicts its events"),
        (lease("h-now", "start_date", json!("tomorrow")), "invalid date tomorrow"),
        (lease("h-now", "start_date", json!("2026-11-26T00:00:00.000000")), "is not due when it starts"),
        (lease("h-now", "end_date", json!("2020-01-01T00:00:00.000000")), "End date must be later"),
        (lease("h-now", "user_id", json!(["bob"])), "invalid type"),
        (reservation("h-now", "resource_type", json!("device")), "no resource type device"),
        (reservation("h-now", "resource_type", json!("virtual:floatingip")), "network_id"),
        (reservation("h-now", "id", json!("mine")), "isn't a UUID"),
        (reservation("h-now", "status", json!("lost")), "status lost"),
        (reservation("h-now", "resource_properties", json!("[")), "reservation "),
        (reservation("h-now", "min", json!(4)), "Max must be equal to or larger than min"),
        (reservation("h-later", "max", json!(2)), "has 3 allocations, not the requested amount"),
        (reservation("i-now", "amount", json!(4)), "has 3 allocations, not the requested amount"),
        (reservation("i-now", "affinity", json!("maybe")), "affinity"),
        (reservation("f-later", "resource_properties", json!("m1.small")), "its flavor is not in"),
        (reservation("f-later", "resource_properties", json!("{\"id\": \"f1\"}")), "its flavor: "),
    ] {
        assert!(why.contains(part), "{why} has no {part}");
    }
}

#[test]
fn a_lease_that_lacks_hosts_and_says_so_is_taken_over() {
    let mut document = recorded();
    let leases = document["leases"].as_array_mut().expect("leases");
    let lacking = leases.iter_mut().find(|lease| lease["name"] == "h-now").expect("a lease");
    (lacking["reservations"][0]["min"], lacking["reservations"][0]["max"]) = (json!(4), json!(4));
    lacking["reservations"][0]["missing_resources"] = json!(true);
    let (_, records) = read(document);
    assert_eq!(records.left_out, []);
    assert!(records.archive.snapshot.leases.iter().any(|record| record.lease.degraded()));
}

#[test]
fn of_two_leases_that_have_a_host_at_once_the_later_is_left_out() {
    let mut document = recorded();
    // Blazar allows this if two requests arrive at the same moment.
    let leases = document["leases"].as_array_mut().expect("leases");
    let mut twin = leases.iter().find(|lease| lease["name"] == "h-later").expect("a lease").clone();
    let (id, reservation) = (LeaseId(0xa1).to_string(), ReservationId(0xb1).to_string());
    (twin["id"], twin["name"], twin["created_at"]) = (json!(id), json!("twin"), json!("2026-11-26 09:30:00"));
    let old = std::mem::replace(&mut twin["reservations"][0]["id"], json!(reservation));
    leases.push(twin);
    for host in document["allocations"].as_array_mut().expect("allocations") {
        let reservations = host["reservations"].as_array_mut().expect("reservations");
        if let Some(own) = reservations.iter().find(|own| own["id"] == old).cloned() {
            let mut own = own;
            (own["id"], own["lease_id"]) = (json!(reservation), json!(id));
            reservations.push(own);
        }
    }
    let (_, records) = read(document);
    let [left] = &records.left_out[..] else { panic!("{:?}", records.left_out) };
    assert!(left.what.contains("twin") && left.why.contains("at the same time as lease"), "{left:?}");
    assert!(left.why.contains("h-later"), "{left:?}");
}

/// The recorded Blazar with floating IPs `203.0.113.x` in one network, and leases of them: name, whether it
/// runs, amount, required addresses.
fn with_addresses(last: &[u8], leases: &[(&str, bool, u32, Value)]) -> Value {
    let mut document = recorded();
    document["floating_ips"] = last
        .iter()
        .map(|last| {
            let id = leases::ids::FloatingIpId((*last).into()).to_string();
            json!({"id": id, "floating_network_id": "net", "subnet_id": "sub", "reservable": true,
                   "floating_ip_address": format!("203.0.113.{last}"), "created_at": "2026-11-26 08:00:00"})
        })
        .collect();
    let all = document["leases"].as_array_mut().expect("leases");
    for (position, (name, runs, amount, required)) in leases.iter().enumerate() {
        let like = if *runs { "h-now" } else { "h-later" };
        let mut lease = all.iter().find(|lease| lease["name"] == like).expect("a lease").clone();
        let id = 0xc0 + position as u128;
        (lease["id"], lease["name"]) = (json!(LeaseId(id).to_string()), json!(name));
        lease["reservations"][0]["id"] = json!(ReservationId(id).to_string());
        lease["reservations"][0]["resource_type"] = json!("virtual:floatingip");
        for (key, value) in [("network_id", json!("net")), ("amount", json!(amount))] {
            lease["reservations"][0][key] = value;
        }
        lease["reservations"][0]["required_floatingips"] = required.clone();
        all.push(lease);
    }
    document
}

/// Last numbers of the addresses that the named lease holds.
fn addresses_of(records: &Records, name: &str) -> Vec<u128> {
    let leases = records.archive.snapshot.leases.iter();
    let mut named = leases.filter(|record| record.lease.name == name);
    let Some(record) = named.next() else { return Vec::new() };
    let Allocation::FloatingIps(ips) = &record.lease.reservations[0].allocation else { panic!("{record:?}") };
    ips.iter().map(|ip| ip.0).collect()
}

#[test]
fn running_leases_keep_their_addresses_and_those_of_later_ones_are_chosen() {
    let none = || json!([]);
    let leases = [
        ("later", false, 1, none()),
        ("now", true, 1, none()),
        ("wants", false, 1, json!(["203.0.113.1"])),
        ("too-many", false, 9, none()),
    ];
    let saved: Saved = serde_json::from_value(with_addresses(&[1, 2, 3], &leases)).expect("a saved Blazar");
    let ip = |last: u128| leases::ids::FloatingIpId(last);
    let given = Given::from([(ip(2), ReservationId(0xc1)), (ip(3), ReservationId(0xee))]);
    let records = Records::of(&saved, &given, || 7);
    assert_eq!(addresses_of(&records, "now"), [2], "it has that one in the cloud");
    assert_eq!(addresses_of(&records, "wants"), [1], "it asks for it");
    let [left] = &records.left_out[..] else { panic!("{:?}", records.left_out) };
    assert!(left.what.contains("too-many") && left.why.contains("not enough addresses"), "{left:?}");
    let others = records.addresses_of_others(&given);
    assert!(others.len() == 1 && others[0].contains("203.0.113.3 "), "{others:?}");
    assert_eq!(
        addresses_of(&records, "later"),
        [2],
        "another one asks for the first, and this one is free by then"
    );
}

#[tokio::test]
async fn a_database_has_afterwards_what_was_read() {
    let leases = [("now", true, 1, json!([])), ("later", false, 1, json!(["203.0.113.1"]))];
    let (_, records) = read(with_addresses(&[1, 2], &leases));
    assert_eq!(records.left_out, []);
    let directory = tempfile::tempdir().expect("a directory");
    let database = DatabaseChoice::Sqlite(directory.path().join("allot.db"));
    let taken_in = crate::database::take_in(&records.archive, &database).await;
    assert!(taken_in.is_ok(), "{taken_in:?}");
}

#[test]
fn addresses_hosts_without_number_and_private_properties() {
    let mut document = recorded();
    document["floating_ips"] = json!([
        {"id": "x", "floating_network_id": "n", "floating_ip_address": "172.24.4.101"}
    ]);
    document["hosts"][0]["id"] = json!("one");
    document["properties"] = json!([{"property": "rack", "private": true}, {"property": "gpu"}]);
    let (_, records) = read(document);
    let whats: Vec<&str> = records.left_out.iter().map(|left| left.what.as_str()).collect();
    assert!(whats.iter().any(|what| what.contains("172.24.4.101")), "{whats:?}");
    assert!(whats.iter().any(|what| what.starts_with("host one")), "{whats:?}");
    assert!(whats.iter().any(|what| what.starts_with("lease ")), "a lease had that host: {whats:?}");
    let properties: Vec<&str> =
        records.archive.snapshot.properties.iter().map(|property| property.name.as_str()).collect();
    assert_eq!(properties, ["rack"]);
}

/// JSON pointers to every value in a document.
fn places(value: &Value, path: &str, places: &mut Vec<String>) {
    match value {
        Value::Array(entries) => {
            entries
                .iter()
                .enumerate()
                .for_each(|(at, entry)| self::places(entry, &format!("{path}/{at}"), places));
        }
        Value::Object(fields) => fields.iter().for_each(|(key, field)| {
            self::places(field, &format!("{path}/{}", key.replace('~', "~0").replace('/', "~1")), places);
        }),
        _ => {}
    }
    places.push(path.to_owned());
}

proptest! {
    #[test]
    fn whatever_a_blazar_says_what_is_taken_is_something_a_store_can_keep(
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..9_usize), 1..4),
    ) {
        let mut document = recorded();
        let mut all = Vec::new();
        for part in ["hosts", "allocations", "leases", "properties", "floating_ips"] {
            let entries = document[part].as_array().expect("a list").len();
            (0..entries).for_each(|at| places(&document[part][at], &format!("/{part}/{at}"), &mut all));
        }
        for (at, which) in changes {
            let value = [
                json!(null), json!(-1), json!(1e300), json!(u64::MAX), json!(""), json!("\u{202e}x\n"),
                json!([[]]), json!({"id": {}}), json!("-9999-01-01T00:00:00.000000"),
            ][which].clone();
            if let Some(place) = document.pointer_mut(&all[at.index(all.len())]) {
                *place = value;
            }
        }
        let (saved, records) = read(document);
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        // Hosts with a changed size can be too small, and two hosts can share a number or a name.
        let imported = runtime.block_on(MemoryStore::new().import(&records.archive));
        let missing = saved.leases.len() - records.archive.snapshot.leases.len();
        prop_assert!(missing <= records.left_out.len(), "what is not taken is named");
        if let Err(error) = imported {
            prop_assert!(matches!(error, store::archive::ImportError::Refused(_)), "{error}");
        }
    }
}
