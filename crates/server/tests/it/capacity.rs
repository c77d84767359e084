//! Refused requests through the API.

use std::sync::Arc;

use axum::http::Method;
use jiff::SignedDuration;
use serde_json::{Value, json};
use store::memory::MemoryStore;

use crate::site::{Site, hosts_lease};

async fn get(site: &Site, who: &str, path: &str) -> Value {
    site.send_as(who, Method::GET, path, None).await.ok(200)["capacity"].clone()
}

/// Sends a request that is refused: it needs `hosts` hosts of a rack that has two.
async fn refuse(site: &Site, who: &str, path: &str, hosts: u32) {
    let mut lease = hosts_lease(hosts, hosts, "2030-01-02 10:00", "2030-01-02 12:00");
    lease["reservations"][0]["resource_properties"] = json!(r#"["==", "$rack", "r1"]"#);
    site.send_as(who, Method::POST, path, Some(&lease)).await.ok(400);
}

fn of_rack(refused: u64, met_by: &Value) -> Value {
    json!({"resource_type": "physical:host", "kind": "rack=r1", "refused": refused, "met_by": met_by})
}

#[tokio::test]
async fn members_see_refusals_of_their_project_and_administrators_all() {
    let site = Site::still(Arc::new(MemoryStore::new())).await;
    site.add_hosts_as("admin", 2).await;
    site.pass(SignedDuration::ZERO).await;
    assert_eq!(get(&site, "member", "/v1/capacity").await, json!([]));
    refuse(&site, "member", "/v1/leases?dry_run=true", 3).await;
    refuse(&site, "member", "/v1/leases", 3).await;
    refuse(&site, "member", "/v1/leases", 6).await;
    refuse(&site, "foreign", "/v1/leases", 3).await;
    site.pass(SignedDuration::from_mins(1)).await;

    let of_p = json!([of_rack(2, &json!([{"more": 1, "met": 1}, {"more": 4, "met": 2}]))]);
    let of_q = json!([of_rack(1, &json!([{"more": 1, "met": 1}]))]);
    let of_all = json!([of_rack(3, &json!([{"more": 1, "met": 2}, {"more": 4, "met": 3}]))]);
    for who in ["member", "reader"] {
        assert_eq!(get(&site, who, "/v1/capacity").await, of_p);
        assert_eq!(get(&site, who, "/v1/capacity?project_id=p").await, of_p);
    }
    assert_eq!(get(&site, "foreign", "/v1/capacity").await, of_q);
    assert_eq!(get(&site, "admin", "/v1/capacity").await, of_all);
    assert_eq!(get(&site, "admin", "/v1/capacity?project_id=q").await, of_q);
    let other = site.send_as("foreign", Method::GET, "/v1/capacity?project_id=p", None).await;
    assert_eq!(other.status, 403, "{}", other.text);
}

#[tokio::test]
async fn refusals_are_asked_for_by_period() {
    let site = Site::still(Arc::new(MemoryStore::new())).await;
    site.add_hosts_as("admin", 1).await;
    site.pass(SignedDuration::ZERO).await;
    refuse(&site, "member", "/v1/leases", 2).await;
    site.pass(SignedDuration::from_mins(1)).await;
    let path = "/v1/capacity?start=2029-12-01&end=2030-01-01";
    let answer = site.send_as("member", Method::GET, path, None).await.ok(200);
    assert_eq!(
        (&answer["start"], &answer["end"]),
        (&json!("2029-12-01T00:00:00Z"), &json!(site.now().to_string()))
    );
    assert_eq!(answer["capacity"].as_array().map(Vec::len), Some(1));
    for elsewhere in ["start=2029-11-01&end=2029-12-31", "start=2031-01-01&end=2031-02-01"] {
        assert_eq!(get(&site, "member", &format!("/v1/capacity?{elsewhere}")).await, json!([]));
    }
    site.send_as("member", Method::GET, "/v1/capacity?start=soon", None).await.ok(400);
}
