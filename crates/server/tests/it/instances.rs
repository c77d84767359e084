//! Instances through the API. Tests are named after the criteria of CLS.

use axum::http::Method;
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::site::{Site, hosts_lease};

fn instance(lease: Option<&Value>) -> Value {
    let mut body = json!({"name": "web", "vcpus": 2, "memory_mb": 2048, "disk_gb": 10});
    if let Some(lease) = lease {
        body["scheduler_hints"] = json!({"lease": lease["id"]});
    }
    body
}

/// A site with two hosts. The member's project has leased one for an hour.
async fn leased() -> (Site, Value) {
    let site = Site::guarded().await;
    site.add_hosts_as("admin", 2).await;
    let lease = hosts_lease(1, 1, "now", "2030-01-01 11:00");
    let lease =
        site.send_as("member", Method::POST, "/v1/leases", Some(&lease)).await.ok(201)["lease"].clone();
    let lease = site.until_as("member", "2030-01-01T10:00:40Z", &lease, "ACTIVE").await;
    (site, lease)
}

async fn status(site: &Site, who: &str, instance: &Value, wanted: &str) -> Value {
    let path = format!("/v1/instances/{}", instance["id"].as_str().expect("an id"));
    for _ in 0..10_000 {
        let now = site.send_as(who, Method::GET, &path, None).await.ok(200)["instance"].clone();
        if now["status"] == wanted {
            return now;
        }
        tokio::task::yield_now().await;
    }
    panic!("the instance does not become {wanted}");
}

#[tokio::test]
async fn cls_08_d_an_instance_of_a_lease_is_started_listed_and_deleted() {
    let (site, lease) = leased().await;
    let post = async |who, body: &Value| site.send_as(who, Method::POST, "/v1/instances", Some(body)).await;
    let made = post("member", &instance(Some(&lease))).await.ok(201)["instance"].clone();
    assert_eq!((&made["status"], &made["lease_id"]), (&json!("BUILD"), &lease["id"]));
    assert_eq!(made["reservation_id"], lease["reservations"][0]["id"]);
    assert!(made["host"].is_string(), "its own lease's host");
    let active = status(&site, "member", &made, "ACTIVE").await;
    assert_eq!((&active["memory_mb"], &active["disk_gb"]), (&json!(2048), &json!(10)));
    let beside = post("member", &instance(None)).await.ok(201)["instance"].clone();
    assert_eq!((&beside["lease_id"], &beside["host"]), (&Value::Null, &Value::Null));
    let list = async |who, query: &str| {
        let path = format!("/v1/instances{query}");
        let body = site.send_as(who, Method::GET, &path, None).await.ok(200);
        body["instances"].as_array().expect("a list").len()
    };
    let of_lease = format!("?lease_id={}", lease["id"].as_str().expect("an id"));
    assert_eq!((list("member", "").await, list("member", &of_lease).await), (2, 1));
    assert_eq!((list("foreign", "").await, list("admin", "?project_id=q").await), (0, 0));
    let path = format!("/v1/instances/{}", made["id"].as_str().expect("an id"));
    site.send_as("member", Method::DELETE, &path, None).await.ok(204);
    for _ in 0..10_000 {
        if site.send_as("member", Method::GET, &path, None).await.status == 404 {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!((list("member", "").await, list("member", &of_lease).await), (1, 0));
}

#[tokio::test]
async fn cls_08_c_who_has_no_such_lease_is_told_that_there_is_none() {
    let (site, lease) = leased().await;
    let body = instance(Some(&lease));
    let refused = site.send_as("foreign", Method::POST, "/v1/instances", Some(&body)).await;
    let id = lease["id"].as_str().expect("an id");
    assert_eq!(refused.error(), (404, format!("Object with {{'lease_id': '{id}'}} not found")));
}

#[tokio::test]
async fn cls_08_a_a_lease_that_is_over_has_no_instances_and_gets_none() {
    let (site, lease) = leased().await;
    let body = instance(Some(&lease));
    let made =
        site.send_as("member", Method::POST, "/v1/instances", Some(&body)).await.ok(201)["instance"].clone();
    status(&site, "member", &made, "ACTIVE").await;
    site.until_as("member", "2030-01-01T11:00:01Z", &lease, "TERMINATED").await;
    let (status, message) = site.send_as("member", Method::POST, "/v1/instances", Some(&body)).await.error();
    assert_eq!(status, 409);
    assert!(message.contains("is TERMINATED"), "{message}");
    for _ in 0..10_000 {
        // Hosts are observed at intervals.
        site.clock.set(site.now() + SignedDuration::from_secs(1));
        let left = site.send_as("member", Method::GET, "/v1/instances", None).await.ok(200);
        if left["instances"] == json!([]) {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("the instance of a lease that is over stays");
}

#[tokio::test]
async fn what_has_no_room_is_refused() {
    let (site, lease) = leased().await;
    let mut body = instance(Some(&lease));
    body["vcpus"] = json!(17);
    let refused = site.send_as("member", Method::POST, "/v1/instances", Some(&body)).await;
    let message = "No host has room for 17 vCPUs, 2048 MiB of memory and 10 GiB of disk; 1 host(s) may have \
                   instances of this kind";
    assert_eq!(refused.error(), (409, message.to_owned()));
}
