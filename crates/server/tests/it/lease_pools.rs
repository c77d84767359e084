//! Lease pools through the API. Tests are named after the calls in LP.

use axum::http::Method;
use serde_json::{Value, json};

use crate::site::{Answer, Site};

async fn send(site: &Site, who: &str, method: Method, path: &str, body: Value) -> Answer {
    let body = (!body.is_null()).then_some(body);
    site.send_as(who, method, path, body.as_ref()).await
}

async fn get(site: &Site, who: &str, path: &str) -> Value {
    send(site, who, Method::GET, path, Value::Null).await.ok(200)
}

/// A site with three hosts, a pool of one of them for an hour, and the pool's path.
async fn pooled() -> (Site, Value, String) {
    let site = Site::guarded().await;
    site.add_hosts_as("admin", 3).await;
    let body = json!({"name": "mine", "host_count": 1, "duration": "1h"});
    let pool = send(&site, "member", Method::POST, "/v1/leasepools", body).await.ok(201)["leasepool"].clone();
    let path = format!("/v1/leasepools/{}", pool["id"].as_str().expect("an id"));
    (site, pool, path)
}

fn names(list: &Value) -> Vec<String> {
    let pools = list["leasepools"].as_array().expect("a list");
    pools.iter().map(|pool| pool["name"].as_str().expect("text").to_owned()).collect()
}

/// Requests an instance in the pool. Returns whether there was capacity.
async fn start(site: &Site, pool: &Value, vcpus: u64, memory_mb: u64) -> bool {
    let hint = json!({"reservation": pool["id"]});
    let body = json!({"name": "i", "vcpus": vcpus, "memory_mb": memory_mb, "scheduler_hints": hint});
    send(site, "member", Method::POST, "/v1/instances", body).await.status == 201
}

#[tokio::test]
async fn lp_1_4_6_7_a_pool_is_there_from_the_start_of_its_lease_with_its_metadata() {
    let (site, pool, path) = pooled().await;
    assert_eq!(
        (&pool["name"], &pool["hosts"], &pool["project_id"]),
        (&json!("mine"), &json!(1), &json!("p"))
    );
    let lease =
        get(&site, "member", &format!("/v1/leases/{}", pool["lease_id"].as_str().expect("an id"))).await;
    assert_eq!(
        (&lease["lease"]["status"], &lease["lease"]["lease_type"]),
        (&json!("ACTIVE"), &json!("IMMEDIATE"))
    );
    assert_eq!(pool["id"], lease["lease"]["reservations"][0]["id"]);
    assert_eq!(pool["metadata"], json!({"filter_lease_id": pool["lease_id"], "blazar:owner": "p"}));
    assert!(start(&site, &pool, 1, 1024).await);
    let hosts = get(&site, "member", &format!("{path}/hosts")).await;
    assert_eq!(hosts["hosts"][0]["instances"][0]["name"], "i", "{hosts}");
    let details = get(&site, "reader", &path).await;
    let ratio = |name: &str| details["leasepool"][name].clone();
    assert_eq!((ratio("cpu_allocation_ratio"), ratio("ram_allocation_ratio")), (Value::Null, Value::Null));
    assert_eq!(names(&get(&site, "member", "/v1/leasepools").await), ["mine"]);
    assert_eq!(names(&get(&site, "admin", "/v1/leasepools").await), ["mine"]);
    assert_eq!(names(&get(&site, "admin", "/v1/leasepools?project_id=q").await), [""; 0]);
    assert_eq!(names(&get(&site, "foreign", "/v1/leasepools").await), [""; 0]);
    assert_eq!(send(&site, "foreign", Method::GET, &path, Value::Null).await.status, 404);
    let future = json!({"name": "l", "start_date": "2030-01-02 10:00", "end_date": "2030-01-02 11:00",
        "reservations": [{"resource_type": "physical:host", "min": 1, "max": 1, "hypervisor_properties": "",
            "resource_properties": "", "pool_name": "later"}]});
    send(&site, "member", Method::POST, "/v1/leases", future).await.ok(201);
    assert_eq!(
        names(&get(&site, "member", "/v1/leasepools").await),
        ["mine"],
        "it is not there before its start"
    );
}

#[tokio::test]
async fn lp_2_a_pool_that_is_deleted_gives_its_hosts_back() {
    let (site, pool, path) = pooled().await;
    send(&site, "member", Method::DELETE, &path, Value::Null).await.ok(204);
    assert_eq!(send(&site, "member", Method::GET, &path, Value::Null).await.status, 404);
    let lease = format!("/v1/leases/{}", pool["lease_id"].as_str().expect("an id"));
    assert_eq!(send(&site, "member", Method::GET, &lease, Value::Null).await.status, 404);
    let body = json!({"host_count": 3, "duration": "1h"});
    let all = send(&site, "member", Method::POST, "/v1/leasepools", body).await;
    assert_eq!(all.status, 201, "{}", all.text);
}

#[tokio::test]
async fn lp_3_a_pool_is_renamed_and_instances_find_it_by_its_identifier() {
    let (site, pool, path) = pooled().await;
    let renamed = send(&site, "member", Method::PUT, &path, json!({"name": "ours"})).await.ok(200);
    assert_eq!((&renamed["leasepool"]["id"], &renamed["leasepool"]["name"]), (&pool["id"], &json!("ours")));
    assert!(start(&site, &pool, 1, 1024).await);
    let unnamed = send(&site, "member", Method::PUT, &path, json!({"name": null})).await.ok(200);
    assert_eq!(unnamed["leasepool"]["name"], pool["id"]);
}

#[tokio::test]
async fn lp_5_a_pool_grows_by_hosts_that_match_or_stays_as_it_is() {
    let (site, _, path) = pooled().await;
    let hosts = format!("{path}/hosts");
    let none = json!({"host_count": 1, "extra_specs": {"rack": "nosuch"}});
    let refused = send(&site, "member", Method::POST, &hosts, none).await;
    assert_eq!(refused.error(), (400, "Not enough hosts available".to_owned()));
    let many = send(&site, "member", Method::POST, &hosts, json!({"host_count": 3})).await;
    assert_eq!(many.status, 400);
    let grown = send(&site, "member", Method::POST, &hosts, json!({"host_count": 2})).await.ok(200);
    assert_eq!(grown["leasepool"]["hosts"], 3);
    assert_eq!(get(&site, "member", &hosts).await["hosts"].as_array().map(Vec::len), Some(3));
}

#[tokio::test]
async fn lp_8_9_ratios_say_how_much_instances_may_have_and_not_less_than_they_have() {
    let (site, pool, path) = pooled().await;
    let host = get(&site, "admin", "/v1/os-hosts").await["hosts"][0].clone();
    let (vcpus, memory) =
        (host["vcpus"].as_u64().expect("a number"), host["memory_mb"].as_u64().expect("one"));
    let set = async |body: Value| send(&site, "member", Method::PUT, &path, body).await;
    assert!(start(&site, &pool, vcpus, memory / 2).await);
    assert!(!start(&site, &pool, 1, 1024).await, "there are no CPUs left");
    let more = set(json!({"cpu_allocation_ratio": 2.0})).await.ok(200)["leasepool"].clone();
    assert_eq!(more["metadata"]["cpu_allocation_ratio"], "2");
    assert!(!start(&site, &pool, vcpus, memory).await, "there is not the memory");
    set(json!({"ram_allocation_ratio": "1.5"})).await.ok(200);
    assert!(start(&site, &pool, vcpus, memory).await, "now there is");
    for less in [json!({"cpu_allocation_ratio": 1.9}), json!({"ram_allocation_ratio": null})] {
        let refused = set(less).await;
        assert!(
            refused.status == 409 && refused.text.contains("more than it would have to give"),
            "{}",
            refused.text
        );
    }
    assert_eq!(get(&site, "member", &path).await["leasepool"]["ram_allocation_ratio"], 1.5);
    assert_eq!(set(json!({"cpu_allocation_ratio": 0})).await.status, 400);
}

#[tokio::test]
async fn lp_10_instances_that_name_a_pool_run_on_its_hosts() {
    let (site, pool, path) = pooled().await;
    assert!(start(&site, &pool, 1, 1024).await);
    let own = get(&site, "member", &format!("{path}/hosts")).await["hosts"][0]["name"].clone();
    let instances = get(&site, "member", "/v1/instances").await;
    assert_eq!(
        (&instances["instances"][0]["host"], &instances["instances"][0]["reservation_id"]),
        (&own, &pool["id"])
    );
}

#[tokio::test]
async fn lp_1_an_administrator_makes_a_pool_for_a_project_which_is_its_own_then() {
    let site = Site::guarded().await;
    site.add_hosts_as("admin", 4).await;
    let made = async |who: &str, field: &str, project: &str| {
        let body = json!({"name": project, "host_count": 1, "duration": "1h", field: project});
        send(&site, who, Method::POST, "/v1/leasepools", body).await
    };
    let pool = made("admin", "tenant_id", "q").await.ok(201)["leasepool"].clone();
    assert_eq!((&pool["project_id"], &pool["metadata"]["blazar:owner"]), (&json!("q"), &json!("q")));
    let path = format!("/v1/leasepools/{}", pool["id"].as_str().expect("an id"));
    assert_eq!(names(&get(&site, "foreign", "/v1/leasepools").await), ["q"]);
    assert_eq!(send(&site, "member", Method::GET, &path, Value::Null).await.status, 404);
    let lease = format!("/v1/leases/{}", pool["lease_id"].as_str().expect("an id"));
    let lease = get(&site, "foreign", &lease).await["lease"].clone();
    assert_eq!((&lease["project_id"], &lease["user_id"]), (&json!("q"), &json!("admin")));
    let audited = get(&site, "admin", "/v1/audit?tenant_id=q").await["audit"].clone();
    assert_eq!(
        (&audited[0]["action"], &audited[0]["user_id"], &audited[0]["object_id"]),
        (&json!("lease.create"), &json!("admin"), &pool["lease_id"])
    );
    made("admin", "project_id", "p").await.ok(201);
    made("member", "tenant_id", "p").await.ok(201);
    for field in ["tenant_id", "project_id"] {
        assert_eq!(made("member", field, "q").await.status, 403, "only administrators may");
    }
    let both = json!({"host_count": 1, "duration": "1h", "tenant_id": "q", "project_id": "p"});
    assert_eq!(send(&site, "admin", Method::POST, "/v1/leasepools", both).await.status, 400);
    for (query, wanted) in [
        ("tenant_id=q", vec!["q"]),
        ("project_id=q", vec!["q"]),
        ("tenant_id=p", vec!["p", "p"]),
        ("tenant_id=q&project_id=q", vec!["q"]),
        ("tenant_id=nosuch", vec![]),
    ] {
        assert_eq!(names(&get(&site, "admin", &format!("/v1/leasepools?{query}")).await), wanted, "{query}");
        let leases = get(&site, "admin", &format!("/v1/leases?{query}")).await["leases"].clone();
        assert_eq!(leases.as_array().map(Vec::len), Some(wanted.len()), "{query}");
    }
    assert_eq!(
        send(&site, "member", Method::GET, "/v1/leasepools?tenant_id=q", Value::Null).await.status,
        403
    );
    let differ =
        send(&site, "admin", Method::GET, "/v1/leasepools?tenant_id=q&project_id=p", Value::Null).await;
    assert_eq!(differ.status, 400);
}
