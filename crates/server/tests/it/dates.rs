//! Dates and durations in requests: what is answered can be sent back, and RFC 3339 is read.

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
