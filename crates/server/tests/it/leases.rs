//! Leases.

use axum::http::Method;
use serde_json::{Value, json};

use crate::site::{Site, hosts_lease, request};

const START: &str = "2030-01-02 10:00";
const END: &str = "2030-01-02 12:00";

#[tokio::test]
async fn a_lease_is_made_shown_changed_and_deleted() {
    let site = Site::open().await;
    site.add_hosts(2).await;
    let lease = site.lease(&hosts_lease(1, 2, START, END)).await;
    assert_eq!(lease["status"], "PENDING");
    assert_eq!(lease["start_date"], "2030-01-02T10:00:00.000000");
    assert_eq!(lease["created_at"], "2030-01-01 10:00:30");
    assert_eq!(lease["reservations"][0]["resource_type"], "physical:host");
    let path = format!("/v1/leases/{}", lease["id"].as_str().expect("an identifier"));
    assert_eq!(site.get(&path).await.ok(200)["lease"], lease);
    assert_eq!(site.get("/v1/leases").await.ok(200)["leases"], json!([lease]));
    let renamed = site.put(&path, &json!({"name": "m"})).await.ok(200);
    assert_eq!(renamed["lease"]["name"], "m");
    let deleted = site.delete(&path).await;
    assert_eq!((deleted.status.as_u16(), deleted.text.as_str()), (204, ""));
    assert_eq!(site.get("/v1/leases").await.ok(200)["leases"], json!([]));
}
