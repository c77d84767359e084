//! Dates and durations in requests: values from responses can be sent back, and RFC 3339 is accepted.

use axum::http::Method;
use jiff::SignedDuration;
use serde_json::{Value, json};
use service::Settings;

use crate::site::{Site, hosts_lease};

const FIELDS: [&str; 2] = ["start_date", "end_date"];

fn path_of(lease: &Value) -> String {
    format!("/v1/leases/{}", lease["id"].as_str().expect("an identifier"))
}

#[tokio::test]
async fn a_lease_that_is_sent_back_as_it_was_answered_stays_as_it_is() {
    let site = Site::open().await;
    site.add_hosts(1).await;
    let lease = site.lease(&hosts_lease(1, 1, "2030-01-02 10:00", "2030-01-02 12:00")).await;
    let same =
        json!({"name": lease["name"], "start_date": lease["start_date"], "end_date": lease["end_date"]});
    let answer = site.put(&path_of(&lease), &same).await.ok(200)["lease"].clone();
    assert_eq!(answer, lease);
    let before_end = lease["events"].as_array().expect("a list").iter();
    let before_end = before_end.filter(|event| event["event_type"] == "before_end_lease");
    for event in before_end {
        site.put(&path_of(&lease), &json!({"before_end_date": event["time"]})).await.ok(200);
    }
}

/// A lease with a reservation of each type that needs hosts.
fn mixed_lease() -> Value {
    json!({"name": "l", "start_date": "2030-01-02 10:00", "end_date": "2030-01-02 12:00", "end_action": "keep",
    "before_end_date": "2030-01-02 11:30", "scheduler_hints": {"query": "[\">=\", \"$vcpus\", \"1\"]"},
    "reservations": [
        {"resource_type": "physical:host", "min": 1, "max": 2, "hypervisor_properties": "",
            "resource_properties": "[\">=\", \"$vcpus\", \"1\"]", "memory_mib": 1, "homogeneous": true},
        {"resource_type": "virtual:instance", "vcpus": 1, "memory_mb": 1, "disk_gb": 1, "amount": 2,
            "affinity": false, "resource_properties": null},
        {"resource_type": "flavor:instance", "flavor_id": "f", "amount": 1, "affinity": null},
    ]})
}

/// Reservations as requested, without the fields that the service adds.
fn asked(lease: &Value) -> Vec<Value> {
    let own = [
        "id",
        "lease_id",
        "resource_id",
        "flavor_id",
        "server_group_id",
        "hosts",
        "created_at",
        "updated_at",
    ];
    let mut reservations = lease["reservations"].as_array().expect("a list").clone();
    for fields in reservations.iter_mut().filter_map(Value::as_object_mut) {
        fields.retain(|name, _| !own.contains(&name.as_str()));
    }
    reservations
}

#[tokio::test]
async fn a_lease_that_was_read_is_made_again_at_another_date() {
    let site = Site::open().await;
    site.add_hosts(4).await;
    let flavor = json!({"id": "f", "name": "f", "vcpus": 1, "ram": 1, "disk": 0});
    site.post("/v1/flavors", &flavor).await.ok(201);
    let first = site.lease(&mixed_lease()).await;
    let mut copy = site.get(&format!("{}?detail=true", path_of(&first))).await.ok(200)["lease"].clone();
    copy["start_date"] = json!("2030-01-09T10:00:00.000000");
    copy["end_date"] = json!("2030-01-09T12:00:00.000000");
    let second = site.lease(&copy).await;
    assert_ne!(second["id"], first["id"]);
    assert_eq!(asked(&second), asked(&first));
    for field in ["name", "end_action", "scheduler_hints", "lease_type"] {
        assert_eq!(second[field], first[field], "{field}");
    }
    let immediate = json!({"name": "i", "lease_type": "IMMEDIATE", "duration": "1h",
        "reservations": hosts_lease(1, 1, "", "")["reservations"]});
    let mut copy = site.lease(&immediate).await;
    copy["start_date"] = json!("now");
    assert_ne!(site.lease(&copy).await["id"], copy["id"]);
}

#[tokio::test]
async fn a_whole_lease_is_sent_back_in_every_state_and_nothing_changes() {
    let site = Site::open().await;
    site.add_hosts(4).await;
    let flavor = json!({"id": "f", "name": "f", "vcpus": 1, "ram": 1, "disk": 0});
    site.post("/v1/flavors", &flavor).await.ok(201);
    let lease = site.lease(&mixed_lease()).await;
    let path = path_of(&lease);
    for (instant, status) in [
        ("2030-01-01T10:01:00Z", "PENDING"),
        ("2030-01-02T10:01:00Z", "ACTIVE"),
        ("2030-01-02T12:02:00Z", "TERMINATED"),
    ] {
        site.until(instant, &lease, status).await;
        let read = site.get(&format!("{path}?detail=true")).await.ok(200)["lease"].clone();
        let plain = site.get(&path).await.ok(200)["lease"].clone();
        assert_eq!(site.put(&path, &read).await.ok(200)["lease"], plain, "{status}");
        let mut renamed = read.clone();
        renamed["name"] = json!(status);
        let answer = site.put(&path, &renamed).await.ok(200)["lease"].clone();
        assert_eq!(answer["name"], status);
        // `read` has the state before the change.
        let again = site.put(&path, &read).await.ok(200)["lease"].clone();
        assert_eq!(
            (&again["name"], &again["reservations"][0]["hosts"]),
            (&read["name"], &read["reservations"][0]["hosts"])
        );
        for wrong in ["status", "degraded", "series_id", "lease_type", "timeout_date"] {
            let mut changed = read.clone();
            changed[wrong] = json!("x");
            assert_eq!(site.put(&path, &changed).await.error(), (400, format!("Unknown parameter {wrong}")));
        }
        let mut changed = read.clone();
        changed["events"][0]["time"] = json!("2030-01-02T10:30:00.000000");
        assert_eq!(site.put(&path, &changed).await.error(), (400, "Unknown parameter events".to_owned()));
    }
}

#[tokio::test]
async fn a_lease_that_started_between_two_minutes_is_sent_back_as_well() {
    let site = Site::still_of_settings(Settings::default()).await;
    site.add_hosts(1).await;
    let best_effort = json!({"lease_type": "BEST-EFFORT", "duration": "2h", "timeout": "1d", "name": "l",
        "reservations": hosts_lease(1, 1, "", "")["reservations"]});
    let lease = site.lease(&best_effort).await;
    let path = path_of(&lease);
    site.pass(SignedDuration::from_millis(83_250)).await;
    let active = site.get(&path).await.ok(200)["lease"].clone();
    assert_eq!(active["status"], "ACTIVE");
    let same = json!({"start_date": active["start_date"], "end_date": active["end_date"]});
    let answer = site.put(&path, &same).await.ok(200)["lease"].clone();
    assert_eq!(FIELDS.map(|field| &answer[field]), FIELDS.map(|field| &active[field]));
    let deadline = active["timeout_date"].as_str().and_then(|text| text.strip_suffix('Z')).expect("RFC 3339");
    for read_before_an_upgrade in [format!("{deadline}.000000"), deadline.replace('T', " ")] {
        let mut sent = active.clone();
        sent["timeout_date"] = json!(read_before_an_upgrade);
        let answer = site.put(&path, &sent).await.ok(200)["lease"].clone();
        assert_eq!(answer["timeout_date"], active["timeout_date"], "{read_before_an_upgrade}");
    }
    let moved = json!({"start_date": "2030-01-01T09:00:00Z"});
    assert_eq!(site.put(&path, &moved).await.status, 400, "that is another start");
}

#[tokio::test]
async fn dates_of_all_forms_are_read_and_what_is_none_is_refused_as_in_blazar() {
    let site = Site::open().await;
    for (start, shown) in [
        ("2030-01-02 10:00", "2030-01-02T10:00:00.000000"),
        ("2030-01-02T10:00:00Z", "2030-01-02T10:00:00.000000"),
        ("2030-01-02T10:00:00.000000", "2030-01-02T10:00:00.000000"),
        ("2030-01-02T10:00:00+02:00", "2030-01-02T08:00:00.000000"),
        ("2030-01-02", "2030-01-02T00:00:00.000000"),
        ("2030-01-02T10:00:45Z", "2030-01-02T10:00:00.000000"),
    ] {
        let lease = json!({"name": "l", "start_date": start, "end_date": "2030-01-03T00:00Z"});
        assert_eq!(site.lease(&lease).await["start_date"], shown, "{start}");
    }
    for wrong in ["2030-01-02T10:00:00[Europe/Rome]", "tomorrow", "2030-02-30T10:00:00Z", "10:00"] {
        let lease = json!({"name": "l", "start_date": wrong, "end_date": "2030-01-03 00:00"});
        let refused = site.post("/v1/leases", &lease).await;
        let text = format!("{wrong} is an invalid date. Required format: %Y-%m-%d %H:%M");
        assert_eq!(refused.error(), (400, text));
        assert!(refused.text.contains("2030-01-02T10:00:00+02:00"), "{}", refused.text);
    }
    for late in ["9999-12-31 23:58", "9999-12-31T23:58:00-08:00", "9999-01-01"] {
        let lease = json!({"name": "l", "start_date": "2030-01-02 10:00", "end_date": late});
        let (status, text) = site.post("/v1/leases", &lease).await.error();
        assert!(status == 400 && text.contains("is later than dates can be"), "{text}");
    }
}

#[tokio::test]
async fn periods_are_asked_with_dates_as_they_are_answered() {
    let site = Site::open().await;
    for start in [
        "2029-12-01T00:00:00.000000",
        "2029-12-01 00:00:00",
        "2029-12-01",
        "2029-12-01T00:00:00Z",
        "2029-12-01 00:00",
    ] {
        for end in ["2030-01-01T10:00:00.000000", "9999-12-31 23:58", "now"] {
            let path = format!("/v1/usage?start={start}&end={end}").replace(' ', "%20");
            site.get(&path).await.ok(200);
        }
    }
    assert_eq!(site.get("/v1/usage?start=yesterday").await.status, 400);
}

#[tokio::test]
async fn durations_have_whole_minutes_and_both_spellings() {
    let site = Site::open().await;
    site.add_hosts(1).await;
    let lease = |duration: &str| json!({"name": "l", "start_date": "2030-01-02 10:00", "duration": duration});
    for duration in ["P1DT4H", "1d4h", "1d 4h", "28h", "PT1680M"] {
        assert_eq!(
            site.lease(&lease(duration)).await["end_date"],
            "2030-01-03T14:00:00.000000",
            "{duration}"
        );
    }
    for duration in ["30s", "PT90S", "1h1s"] {
        let refused = site.post("/v1/leases", &lease(duration)).await;
        assert_eq!(refused.error(), (400, "Malformed parameter duration".to_owned()), "{duration}");
        assert!(refused.text.contains("whole minutes"), "{}", refused.text);
        let pool = json!({"host_count": 1, "duration": duration});
        assert_eq!(site.post("/v1/leasepools", &pool).await.status, 400, "{duration}");
        let mut recurs = lease("1h");
        recurs["repeat"] = json!({"every": duration, "times": 2});
        let (status, text) = site.post("/v1/leases", &recurs).await.error();
        assert_eq!((status, text.as_str()), (400, "Malformed parameter repeat.every"), "{duration}");
    }
    let pool = json!({"host_count": 1, "duration": "1d4h"});
    site.send_as("any", Method::POST, "/v1/leasepools", Some(&pool)).await.ok(201);
}
