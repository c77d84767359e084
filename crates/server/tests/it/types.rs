//! Lease types through the API. Tests are named after the criteria of CLS.

use axum::http::Method;
use fleet::simulated::{Fault, PlannedFault, Verb};
use jiff::SignedDuration;
use leases::ids::HostId;
use leases::plan::GuestOwner;
use serde_json::{Value, json};
use service::{LeaseFilter, Settings};

use crate::site::{Site, hosts_lease};

/// A lease of this type, with `hosts` hosts for an hour.
fn of_type(lease_type: &str, hosts: u32) -> Value {
    let mut body = hosts_lease(hosts, hosts, "now", "2030-01-01 12:00");
    body["lease_type"] = json!(lease_type);
    body["duration"] = json!("1h");
    let fields = body.as_object_mut().expect("an object");
    fields.remove("start_date");
    fields.remove("end_date");
    body
}

fn state(lease: &Value) -> (&str, &str) {
    (lease["lease_type"].as_str().unwrap_or_default(), lease["lease_state"].as_str().unwrap_or_default())
}

#[tokio::test]
async fn cls_01_b_a_scheduled_lease_is_inactive_and_then_active() {
    let site = Site::open().await;
    site.add_hosts(1).await;
    let mut body = hosts_lease(1, 1, "2030-01-01 11:00", "2030-01-01 12:00");
    body["lease_type"] = json!("SCHEDULE");
    let lease = site.lease(&body).await;
    assert_eq!((state(&lease), &lease["timeout_date"]), (("SCHEDULE", "INACTIVE"), &Value::Null));
    let active = site.until("2030-01-01T11:00:01Z", &lease, "ACTIVE").await;
    assert_eq!(state(&active), ("SCHEDULE", "ACTIVE"));
}

#[tokio::test]
async fn cls_02_a_the_answer_to_an_immediate_lease_says_that_it_is_active() {
    let site = Site::open().await;
    site.add_hosts(2).await;
    let lease = site.lease(&of_type("IMMEDIATE", 2)).await;
    assert_eq!((lease["status"].as_str(), state(&lease)), (Some("ACTIVE"), ("IMMEDIATE", "ACTIVE")));
    assert_eq!(lease["end_date"], "2030-01-01T11:00:00.000000");
    let refused = site.post("/v1/leases", &of_type("IMMEDIATE", 1)).await;
    assert_eq!(refused.error(), (400, "Not enough hosts available".to_owned()));
    assert_eq!(site.get("/v1/leases").await.ok(200)["leases"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn cls_02_a_an_immediate_lease_that_could_not_start_is_answered_so_and_gone() {
    let site = Site::still_of_settings(Settings::default()).await;
    site.add_hosts(1).await;
    // The host is observed, and then another guest starts on it.
    site.pass(SignedDuration::ZERO).await;
    site.fleet.start_guest(HostId(1), GuestOwner::Other, None).expect("a free host");
    let body = of_type("IMMEDIATE", 1);
    let mut request = Box::pin(site.post("/v1/leases", &body));
    // The lease is created, because the host hasn't been observed again.
    while site.service.leases().all(&LeaseFilter::default()).is_empty() {
        assert!(futures::poll!(request.as_mut()).is_pending());
        tokio::task::yield_now().await;
    }
    for seconds in [0, 1, 119] {
        assert!(futures::poll!(request.as_mut()).is_pending());
        site.pass(SignedDuration::from_secs(seconds)).await;
    }
    let (status, message) = request.await.error();
    assert_eq!(status, 400);
    assert!(message.starts_with("The lease could not start at once"), "{message}");
    assert_eq!(site.get("/v1/leases").await.ok(200)["leases"], json!([]));
}

#[tokio::test]
async fn cls_04_c_a_best_effort_lease_shows_its_timeout_among_its_events() {
    let site = Site::open().await;
    site.add_hosts(1).await;
    site.lease(&hosts_lease(1, 1, "now", "2030-01-01 10:30")).await;
    let mut body = of_type("BEST-EFFORT", 1);
    body["timeout"] = json!("PT45M");
    let lease = site.lease(&body).await;
    assert_eq!((lease["status"].as_str(), state(&lease)), (Some("PENDING"), ("BEST-EFFORT", "IN-PROGRESS")));
    assert_eq!(lease["start_date"], "2030-01-01T10:30:00.000000");
    assert_eq!(lease["timeout_date"], "2030-01-01T10:45:30Z");
    let events = lease["events"].as_array().expect("a list");
    let timeout = events.iter().find(|event| event["event_type"] == "timeout").expect("there");
    let shown = (&timeout["time"], &timeout["status"]);
    assert_eq!(shown, (&json!("2030-01-01T10:45:30.000000"), &json!("UNDONE")));
    let active = site.until("2030-01-01T10:30:01Z", &lease, "ACTIVE").await;
    assert_eq!(state(&active), ("BEST-EFFORT", "ACTIVE"));
    body["timeout"] = json!("8d");
    assert_eq!(
        site.post("/v1/leases", &body).await.error(),
        (400, "timeout must be at most 168h".to_owned())
    );
}

#[tokio::test]
async fn clients_that_know_no_types_ask_for_one_with_an_event() {
    let site = Site::open().await;
    site.add_hosts(1).await;
    let mut body = hosts_lease(1, 1, "now", "2030-01-01 11:00");
    body["events"] = json!([{"event_type": "lease_type:best-effort", "event_date": "2030-01-01 10:40"}]);
    let lease = site.lease(&body).await;
    assert_eq!(lease["lease_type"], "BEST-EFFORT");
    assert_eq!(lease["timeout_date"], "2030-01-01T10:40:00Z");
}

#[tokio::test]
async fn cls_03_b_the_answer_to_a_best_effort_lease_has_the_plan_in_short() {
    let site = Site::guarded().await;
    site.add_hosts_as("admin", 4).await;
    for host in 1..=4 {
        site.fleet.start_guest(HostId(host), GuestOwner::Other, None).expect("a free host");
    }
    site.pass(SignedDuration::from_secs(40)).await;
    let made = site.send_as("member", Method::POST, "/v1/leases", Some(&of_type("BEST-EFFORT", 1))).await;
    let lease = made.ok(201)["lease"].clone();
    assert_eq!(state(&lease), ("BEST-EFFORT", "IN-PROGRESS"));
    let summary = &lease["plan"];
    assert_eq!((&summary["hosts_to_clear"], &summary["instances_to_move"]), (&json!(1), &json!(1)));
    assert_eq!(summary["expected_seconds"], 120);
    let path = format!("/v1/leases/{}/plan", lease["id"].as_str().expect("an id"));
    let shown = async |who| site.send_as(who, Method::GET, &path, None).await.ok(200)["plan"].clone();
    let theirs = shown("member").await;
    assert_eq!(
        (&theirs["summary"], &theirs["moves"]),
        (summary, &Value::Null),
        "the instances are another's"
    );
    assert_eq!(shown("admin").await["moves"].as_array().map(Vec::len), Some(1));
    site.pass(SignedDuration::from_secs(60)).await;
    let done = shown("admin").await;
    assert_eq!((&done["moved"], &done["moves"][0]["state"]), (&json!(1), &json!("moved")));
    let waits = site.send_as("member", Method::GET, &path, None).await.ok(200);
    assert_eq!(waits["plan"]["moved"], 1);
}

#[tokio::test]
async fn owners_are_told_why_a_lease_is_blocked_without_guests_hosts_or_the_fleets_words() {
    let site = Site::guarded().await;
    site.add_hosts_as("admin", 4).await;
    for host in 1..=4 {
        site.fleet.start_guest(HostId(host), GuestOwner::Other, None).expect("a free host");
    }
    site.pass(SignedDuration::from_secs(40)).await;
    let fault =
        PlannedFault { verb: Some(Verb::Migrate), host: None, after: 0, times: 1000, fault: Fault::Refuse };
    site.fleet.plan_fault(fault);
    let made = site.send_as("member", Method::POST, "/v1/leases", Some(&of_type("BEST-EFFORT", 1))).await;
    let path = format!("/v1/leases/{}", made.ok(201)["lease"]["id"].as_str().expect("an id"));
    site.pass(SignedDuration::from_secs(5)).await;
    let reason = async |who, path: &str| {
        let answer = site.send_as(who, Method::GET, path, None).await.ok(200);
        let lease = if answer["lease"].is_null() { &answer["leases"][0] } else { &answer["lease"] };
        lease["status_reason"].as_str().expect("it is blocked").to_owned()
    };
    for path in [path.as_str(), "/v1/leases"] {
        let own = reason("member", path).await;
        assert!(own.starts_with("an instance could not be moved out of the way yet ("), "{own}");
        let all = reason("admin", path).await;
        assert!(all.starts_with("could not move guest ") && all.contains(" from host "), "{all}");
    }
    let told = site.send_as("member", Method::GET, "/v1/notifications", None).await.ok(200);
    assert!(!told.to_string().contains("could not move guest"), "{told}");
}
