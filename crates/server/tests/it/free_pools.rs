//! Free pools through the API. Tests are named after the calls in FP.

use axum::http::Method;
use serde_json::{Value, json};

use crate::site::{Site, hosts_lease};

async fn send(site: &Site, method: Method, path: &str, body: Option<Value>) -> crate::site::Answer {
    site.send_as("admin", method, path, body.as_ref()).await
}

#[tokio::test]
async fn fp_1_to_8_pools_are_made_filled_shown_renamed_emptied_and_removed() {
    let site = Site::guarded().await;
    site.add_hosts_as("admin", 1).await;
    let body = json!({"name": "fast", "extra_specs": {"ssd": "yes"}, "end_action": "keep"});
    let made = send(&site, Method::POST, "/v1/freepools", Some(body)).await.ok(201)["freepool"].clone();
    let id = made["id"].as_str().expect("an id").to_owned();
    assert_eq!((&made["hosts"], &made["end_action"]), (&json!(0), &json!("keep")));
    let host = json!({"name": "2"});
    let missing = send(&site, Method::POST, "/v1/freepools/fast/hosts", Some(host)).await;
    assert_eq!(missing.status, 404);
    let host = json!({"id": "2"});
    let added =
        send(&site, Method::POST, "/v1/freepools/fast/hosts", Some(host)).await.ok(201)["host"].clone();
    assert_eq!((&added["ssd"], &added["free_pool"]), (&json!("yes"), &json!("fast")));
    let all = send(&site, Method::GET, "/v1/os-hosts", None).await.ok(200);
    let pools: Vec<_> =
        all["hosts"].as_array().expect("a list").iter().map(|host| &host["free_pool"]).collect();
    assert_eq!(pools, [&Value::Null, &json!("fast")], "Blazar's clients see the hosts of every pool");
    let renamed =
        send(&site, Method::PUT, "/v1/freepools/fast", Some(json!({"name": "quick"}))).await.ok(200);
    assert_eq!((&renamed["freepool"]["id"], &renamed["freepool"]["hosts"]), (&made["id"], &json!(1)));
    let list = send(&site, Method::GET, "/v1/freepools", None).await.ok(200);
    let names: Vec<_> =
        list["freepools"].as_array().expect("a list").iter().map(|pool| &pool["name"]).collect();
    assert_eq!(names, [&json!("freepool"), &json!("quick")]);
    let details = send(&site, Method::GET, &format!("/v1/freepools/{id}"), None).await.ok(200);
    assert_eq!(details["freepool"]["extra_specs"], json!({"ssd": "yes"}));
    let hosts = send(&site, Method::GET, "/v1/freepools/quick/hosts", None).await.ok(200);
    assert_eq!(hosts["hosts"].as_array().map(Vec::len), Some(1));
    let refused = send(&site, Method::DELETE, "/v1/freepools/quick", None).await.error();
    assert_eq!(refused, (409, "Can't delete free pool quick. 1 host(s) are in it.".to_owned()));
    let other = send(&site, Method::DELETE, "/v1/freepools/freepool/hosts/2", None).await;
    assert_eq!(other.status, 404, "it is in another pool");
    send(&site, Method::DELETE, "/v1/freepools/quick/hosts/2", None).await.ok(204);
    send(&site, Method::DELETE, "/v1/freepools/quick", None).await.ok(204);
    assert_eq!(send(&site, Method::GET, "/v1/freepools/quick", None).await.status, 404);
}

#[tokio::test]
async fn fp_a_lease_asks_for_hosts_of_a_pool_by_its_name_or_by_what_it_says() {
    let site = Site::guarded().await;
    site.add_hosts_as("admin", 1).await;
    let body = json!({"name": "fast", "extra_specs": {"filter_tenant_id": "p"}});
    send(&site, Method::POST, "/v1/freepools", Some(body)).await.ok(201);
    send(&site, Method::POST, "/v1/freepools/fast/hosts", Some(json!({"id": "2"}))).await.ok(201);
    let mut lease = hosts_lease(1, 1, "2030-01-02 10:00", "2030-01-02 11:00");
    lease["reservations"][0]["resource_properties"] = json!("[\"==\", \"$free_pool\", \"fast\"]");
    let member = site.send_as("member", Method::POST, "/v1/leases", Some(&lease)).await;
    let foreign = site.send_as("foreign", Method::POST, "/v1/leases", Some(&lease)).await.error();
    assert_eq!(member.status, 201, "{}", member.text);
    assert_eq!(foreign.0, 400, "the pool is for another project: {}", foreign.1);
}

#[tokio::test]
async fn fp_4_a_host_is_moved_and_keeps_its_number_capabilities_and_leases() {
    let site = Site::guarded().await;
    site.add_hosts_as("admin", 2).await;
    let pool = json!({"name": "fast", "extra_specs": {"ssd": "yes"}});
    send(&site, Method::POST, "/v1/freepools", Some(pool)).await.ok(201);
    let lease = |start: &str, end: &str| hosts_lease(2, 2, start, end);
    let runs = send(&site, Method::POST, "/v1/leases", Some(lease("now", "2030-01-01 20:00"))).await.ok(201);
    send(&site, Method::POST, "/v1/leases", Some(lease("2030-01-02 10:00", "2030-01-02 12:00")))
        .await
        .ok(201);
    let taken = async |host: &str| {
        let path = format!("/v1/os-hosts/{host}/allocation");
        send(&site, Method::GET, &path, None).await.ok(200)["allocation"].clone()
    };
    let before = taken("1").await;
    assert_eq!(before["reservations"].as_array().map(Vec::len), Some(2));
    let again = send(&site, Method::POST, "/v1/freepools/fast/hosts", Some(json!({"name": "r1-h01"}))).await;
    let (status, text) = again.error();
    let wanted = "r1-h01 is in the pool freepool: move it with `allot freepool add-host --move fast r1-h01` \
                  (PUT /v1/freepools/fast/hosts/1)";
    assert!(status == 409 && text.starts_with(wanted), "{text}");
    let path = "/v1/freepools/fast/hosts/r1-h01";
    for _ in 0..2 {
        let moved = send(&site, Method::PUT, path, None).await.ok(200)["host"].clone();
        assert_eq!(
            (&moved["id"], &moved["rack"], &moved["ssd"], &moved["free_pool"]),
            (&json!("1"), &json!("r1"), &json!("yes"), &json!("fast"))
        );
    }
    assert_eq!(taken("1").await, before);
    site.until_as("member", "2030-01-01T10:01:00Z", &runs["lease"], "ACTIVE").await;
    let audit = send(&site, Method::GET, "/v1/audit?action=host.move", None).await.ok(200);
    assert_eq!(audit["audit"].as_array().map(Vec::len), Some(1), "the second time nothing is changed");

    let mut relies = hosts_lease(1, 1, "2030-01-05 10:00", "2030-01-05 12:00");
    relies["reservations"][0]["resource_properties"] = json!("[\"==\", \"$free_pool\", \"fast\"]");
    send(&site, Method::POST, "/v1/leases", Some(relies)).await.ok(201);
    let refused = send(&site, Method::PUT, "/v1/freepools/freepool/hosts/1", None).await;
    assert!(refused.status == 409 && refused.text.contains("'free_pool'"), "{}", refused.text);
    assert_eq!(send(&site, Method::PUT, "/v1/freepools/nosuch/hosts/1", None).await.status, 404);
    assert_eq!(send(&site, Method::PUT, "/v1/freepools/fast/hosts/99", None).await.status, 404);
    assert_eq!(site.send_as("member", Method::PUT, path, None).await.status, 403);
}
