//! Vendor data for Nova's servers.

use jiff::SignedDuration;
use leases::ids::{GuestId, HostId};
use leases::plan::GuestOwner;
use serde_json::{Value, json};
use service::Settings;

use crate::site::{Site, hosts_lease};

const HOST: HostId = HostId(1);

async fn site() -> Site {
    site_clearing(Some(SignedDuration::from_mins(2))).await
}

/// A site that asks preemptible servers to leave this long before a lease starts. `None` means at its start.
async fn site_clearing(ahead: Option<SignedDuration>) -> Site {
    let mut settings = Settings::default();
    settings.preemption.allowed = true;
    settings.plan_rules.clear_ahead = ahead;
    let site = Site::of_settings(settings).await;
    site.add_hosts(1).await;
    site
}

/// Sends Nova's request, which has more fields than the service needs.
async fn said(site: &Site, guest: GuestId) -> Value {
    let body = json!({
        "project-id": "p", "instance-id": guest.to_string(), "image-id": null, "user-data": "x".repeat(60_000),
        "hostname": "guest", "metadata": {"a": "b"}, "boot-roles": "member,reader",
    });
    site.post("/v1/vendordata", &body).await.ok(200)
}

#[tokio::test]
async fn a_server_in_a_lease_sees_its_lease_and_its_reservation() {
    let site = site().await;
    let lease = site.lease(&hosts_lease(1, 1, "now", "2030-01-01 13:00")).await;
    let lease = &site.until("2030-01-01T10:00:40Z", &lease, "ACTIVE").await;
    let id = api::v1::lease_id(lease["id"].as_str().expect("text")).expect("a UUID");
    // The guest has just started, and hasn't been observed yet.
    let owner = GuestOwner::Lease(id);
    let guest = site.fleet.start_guest(HOST, owner, None).expect("its own host");
    let told = said(&site, guest).await;
    let expected = json!({
        "id": lease["id"], "name": lease["name"], "status": "ACTIVE", "start_date": "2030-01-01T10:00:00Z",
        "end_date": "2030-01-01T13:00:00Z", "end_action": lease["end_action"],
        "reservation_id": lease["reservations"][0]["id"],
    });
    assert_eq!(told, json!({"lease": expected, "preemptible": false}));
}

#[tokio::test]
async fn a_preemptible_server_sees_when_it_is_preempted_as_soon_as_that_is_known() {
    let site = site().await;
    let guest = site.fleet.start_guest(HOST, GuestOwner::Preemptible, None).expect("the free pool");
    assert_eq!(said(&site, guest).await, json!({"preemptible": true}));
    site.lease(&hosts_lease(1, 1, "2030-01-01 12:00", "2030-01-01 13:00")).await;
    let expected = json!({
        "preemptible": true, "shutdown_date": "2030-01-01T11:58:00Z", "gone_date": "2030-01-01T11:59:00Z",
    });
    assert_eq!(said(&site, guest).await, expected);
    // So does a server that was started later.
    let late = site.fleet.start_guest(HOST, GuestOwner::Preemptible, None).expect("the free pool");
    assert_eq!(said(&site, late).await, expected);
}

#[tokio::test]
async fn a_preemptible_server_that_is_asked_when_the_lease_starts_has_its_grace_time_then() {
    let site = site_clearing(None).await;
    let guest = site.fleet.start_guest(HOST, GuestOwner::Preemptible, None).expect("the free pool");
    site.lease(&hosts_lease(1, 1, "2030-01-01 12:00", "2030-01-01 13:00")).await;
    let expected = json!({
        "preemptible": true, "shutdown_date": "2030-01-01T12:00:00Z", "gone_date": "2030-01-01T12:01:00Z",
    });
    assert_eq!(said(&site, guest).await, expected);
}

#[tokio::test]
async fn others_see_nothing_and_what_is_no_server_is_refused() {
    let site = site().await;
    assert_eq!(said(&site, GuestId(5)).await, json!({}));
    let missing = site.post("/v1/vendordata", &json!({"project-id": "p"})).await;
    assert_eq!(missing.error(), (400, "Missing parameter instance-id".to_owned()));
    for wrong in [json!({"instance-id": "i-17"}), json!({"instance-id": 5}), json!({"instance-id": null})] {
        let (status, why) = site.post("/v1/vendordata", &wrong).await.error();
        assert_eq!((status, why.as_str()), (400, "Malformed parameter instance-id"), "{wrong}");
    }
}
