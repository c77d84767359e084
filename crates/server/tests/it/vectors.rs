//! Requests and responses of Blazar, including those in the HTTP tests of its Tempest plugin (API-clients).

use serde_json::{Value, json};

use crate::site::{Site, hosts_lease};

const START: &str = "2030-01-02 10:00";
const END: &str = "2030-01-02 12:00";

/// The lease with changed fields. A field that is null in `changes` is removed.
fn changed(mut lease: Value, changes: &Value) -> Value {
    for (name, value) in changes.as_object().expect("an object") {
        match value {
            Value::Null => lease.as_object_mut().expect("an object").remove(name),
            value => lease.as_object_mut().expect("an object").insert(name.clone(), value.clone()),
        };
    }
    lease
}

fn of_hosts(changes: &Value) -> Value {
    let mut lease = hosts_lease(1, 1, START, END);
    lease["reservations"][0] = changed(lease["reservations"][0].clone(), changes);
    lease
}

fn of(reservation: &Value) -> Value {
    changed(hosts_lease(1, 1, START, END), &json!({"reservations": [reservation]}))
}

fn of_instances(changes: &Value) -> Value {
    let reservation = json!({
        "resource_type": "virtual:instance", "vcpus": 1, "memory_mb": 512, "disk_gb": 10, "amount": 1,
        "affinity": "None", "resource_properties": "",
    });
    of(&changed(reservation, changes))
}

fn of_addresses(changes: &Value) -> Value {
    let reservation = json!({"resource_type": "virtual:floatingip", "network_id": "public", "amount": 1});
    of(&changed(reservation, changes))
}

/// Rejected requests for leases, with the status and message of the response.
fn refused_requests() -> Vec<(Value, u16, &'static str)> {
    let lease = || hosts_lease(1, 1, START, END);
    vec![
        (json!({}), 400, "Missing parameter name,start_date,end_date"),
        (changed(lease(), &json!({"end_date": null})), 400, "Missing parameter end_date"),
        (hosts_lease(1, 1, "bad", END), 400, "bad is an invalid date. Required format: %Y-%m-%d %H:%M"),
        (hosts_lease(1, 1, "2029-12-31 10:00", END), 400, "Start date must be later than current date"),
        (hosts_lease(1, 1, START, START), 400, "End date must be later than start date."),
        (hosts_lease(1, 1, END, START), 400, "End date must be later than start date."),
        (changed(lease(), &json!({"before_end_date": END})), 403, "Datetime is out of lease limits"),
        (of(&json!({})), 400, "Missing parameter resource_type"),
        (of(&json!({"resource_type": "nope"})), 400, "The nope resource type is not supported"),
        (of_hosts(&json!({"min": null})), 400, "Missing parameter min"),
        (of_hosts(&json!({"max": null})), 400, "Missing parameter max"),
        (of_hosts(&json!({"resource_properties": null})), 400, "Missing parameter resource_properties"),
        (of_hosts(&json!({"min": "x"})), 400, "Malformed parameter min"),
        (of_hosts(&json!({"min": ""})), 400, "Malformed parameter min"),
        (
            of_hosts(&json!({"min": 0})),
            400,
            "Malformed parameter min and max (must be greater than or equal to 1)",
        ),
        (
            of_hosts(&json!({"min": 2, "max": 1})),
            400,
            "Invalid values for min/max of hosts. Max must be equal to or larger than min.",
        ),
        (of_hosts(&json!({"before_end": "bogus"})), 400, "Malformed parameter before_end"),
        (of_hosts(&json!({"resource_properties": "junk"})), 400, ("Malformed requirements junk")),
        (of_hosts(&json!({"resource_properties": "{\"a\":1}"})), 400, ("Malformed requirements {'a': 1}")),
        (
            of_hosts(&json!({"hypervisor_properties": "[\"or\", 1]"})),
            400,
            ("Malformed requirements ['or', 1]"),
        ),
        (
            of_instances(&json!({"affinity": "foo"})),
            400,
            "Malformed parameter affinity (must be a bool value or None)",
        ),
        (of_instances(&json!({"amount": 0})), 400, "amount must be >= 1"),
        (of_instances(&json!({"amount": ""})), 400, "amount must be an integer"),
        (of_instances(&json!({"vcpus": null})), 400, "Missing parameter vcpus"),
        (of_instances(&json!({"vcpus": 0})), 400, "vcpus must be >= 1"),
        (of_instances(&json!({"disk_gb": -1})), 400, "disk_gb must be >= 0"),
        (of_addresses(&json!({"amount": 4})), 400, "Not enough floating IPs available"),
        (
            of_addresses(&json!({"required_floatingips": ["203.0.113.200", "203.0.113.201"]})),
            400,
            "Invalid values for required_floatingips and amount. The amount must be equal to or longer than \
             length of required_floatingips.",
        ),
        (of_addresses(&json!({"required_floatingips": ["x"]})), 400, "IP address x is invalid form."),
        (
            of(&json!({"resource_type": "flavor:instance", "flavor_id": 9, "amount": 1, "affinity": null})),
            400,
            "Flavor 9 not found",
        ),
        (
            of(&json!({"resource_type": "flavor:instance", "flavor_id": 9, "amount": 1, "affinity": true})),
            409,
            "Affinity not supported yet",
        ),
        (hosts_lease(3, 3, START, END), 400, "Not enough hosts available"),
        (of_instances(&json!({"vcpus": 17})), 400, "Not enough hosts available"),
    ]
}

#[tokio::test]
async fn a_request_for_a_lease_that_cannot_be_is_refused_in_blazars_words() {
    let site = Site::open().await;
    site.add_hosts(2).await;
    for last in 200..203 {
        let body =
            json!({"floating_network_id": "public", "floating_ip_address": format!("203.0.113.{last}")});
        site.post("/v1/floatingips", &body).await.ok(201);
    }
    for (body, status, message) in refused_requests() {
        let answer = site.post("/v1/leases", &body).await;
        assert_eq!(answer.error(), (status, message.to_owned()), "{body}");
        let error = answer.json();
        assert_eq!((&error["error_code"], &error["error_name"]), (&json!(status), &json!(status)));
    }
    assert_eq!(site.get("/v1/leases").await.ok(200)["leases"], json!([]), "nothing was left behind");
}

#[tokio::test]
async fn a_refusal_for_want_of_hosts_says_what_became_of_them() {
    let site = Site::open().await;
    site.add_hosts(2).await;
    let answer = site
        .post(
            "/v1/leases",
            &of_hosts(&json!({"min": 2, "max": 2,
        "resource_properties": "[\"==\", \"$rack\", \"r2\"]"})),
        )
        .await;
    let hint = answer.json()["hint"].as_str().expect("a hint").to_owned();
    assert!(hint.contains("2 hosts needed"), "{hint}");
}

#[tokio::test]
async fn a_change_that_cannot_be_is_refused_in_blazars_words() {
    let site = Site::open().await;
    site.add_hosts(2).await;
    let lease = site.lease(&hosts_lease(1, 1, "now", "2030-01-01 12:00")).await;
    let lease = site.until("2030-01-01T10:01:00Z", &lease, "ACTIVE").await;
    let path = format!("/v1/leases/{}", lease["id"].as_str().expect("an identifier"));
    let reservation = &lease["reservations"][0]["id"];
    for (body, status, message) in [
        (json!({"end_date": "2029-01-01 00:00"}), 400, "End date must be later than current and start date"),
        (
            json!({"start_date": "2030-01-01 11:00"}),
            400,
            "Cannot modify the start date of already started leases",
        ),
        (
            json!({"reservations": [{"id": "nope", "min": 1}]}),
            400,
            "Please enter valid reservation IDs. Invalid reservation IDs are: nope",
        ),
        (json!({"reservations": [{"min": 1}]}), 400, "Missing parameter reservation ID"),
        (
            json!({"reservations": [{"id": reservation, "resource_type": "virtual:instance"}]}),
            409,
            "resource_type cannot be updated",
        ),
        (json!({"before_end_date": "2031-01-01 00:00"}), 403, "Datetime is out of lease limits"),
        (json!({"end_date": 5}), 400, "5 is an invalid date. Required format: %Y-%m-%d %H:%M"),
        (
            json!({"reservations": [{"id": reservation, "min": 3, "max": 3}]}),
            400,
            "Not enough hosts available",
        ),
    ] {
        assert_eq!(site.put(&path, &body).await.error(), (status, message.to_owned()), "{body}");
        // W9: a refused update changes nothing.
        assert_eq!(site.get(&path).await.ok(200)["lease"], lease, "{body}");
    }
}

#[tokio::test]
async fn what_the_stock_client_sends_is_understood() {
    let site = Site::open().await;
    site.add_hosts(2).await;
    let body = json!({"name": "lB", "start_date": "now", "end_date": "2030-01-02 10:00", "reservations": [
        {"amount": 2, "disk_gb": 10, "memory_mb": 512, "vcpus": 1, "resource_type": "virtual:instance",
         "affinity": "None", "resource_properties": ""}], "events": [], "before_end_date": null});
    let lease = site.lease(&body).await;
    let reservation = &lease["reservations"][0];
    assert_eq!(reservation["affinity"], Value::Null);
    assert_eq!(reservation["flavor_id"], reservation["id"]);
    assert_eq!(reservation["aggregate_id"], Value::Null, "there is no cloud that has aggregates");
    let path = format!("/v1/leases/{}", lease["id"].as_str().expect("an identifier"));
    let longer = site.put(&path, &json!({"end_date": "2030-01-02 11:00"})).await.ok(200);
    assert_eq!(longer["lease"]["end_date"], "2030-01-02T11:00:00.000000");
    // python-chi sends numbers as text, and lists instead of text.
    let body = of_hosts(&json!({"min": "1", "max": "1", "resource_properties": ["==", "$rack", "r1"]}));
    assert_eq!(site.lease(&body).await["reservations"][0]["min"], 1);
}

#[tokio::test]
async fn the_tempest_plugins_lease_tests_pass() {
    let site = Site::open().await;
    let lease = |start: &str, end: &str| json!({"name": "gabbi", "start_date": start, "end_date": end, "reservations": [], "events": []});
    let backwards = site.post("/v1/leases", &lease("2050-12-27 13:13", "2050-12-26 13:13")).await.error();
    assert_eq!(backwards, (400, "End date must be later than start date.".to_owned()));
    let bogus = site.post("/v1/leases", &lease("Bogus-date 13:13", "2050-12-27 13:13")).await.error();
    let text = "Bogus-date 13:13 is an invalid date. Required format: %Y-%m-%d %H:%M";
    assert_eq!(bogus, (400, text.to_owned()));
    let without =
        json!({"name": "gabbi", "start_date": "2050-12-26 13:13", "reservations": [], "events": []});
    let without = site.post("/v1/leases", &without).await.error();
    assert_eq!(without, (400, "Missing parameter end_date".to_owned()));
    let made = site.lease(&lease("2050-12-26 13:13", "2050-12-27 13:13")).await;
    let count = async || site.get("/v1/leases").await.ok(200)["leases"].as_array().map(Vec::len);
    assert_eq!(count().await, Some(1));
    let path = format!("/v1/leases/{}", made["id"].as_str().expect("an identifier"));
    assert_eq!(site.delete(&path).await.status, 204);
    assert_eq!(count().await, Some(0));
}

#[tokio::test]
async fn the_tempest_plugins_host_and_allocation_tests_pass() {
    let site = Site::open().await;
    let long = json!({"name": "r1-h01", "a".repeat(66): "x"});
    let error = site.post("/v1/os-hosts", &long).await.error();
    assert_eq!(error, (400, "Extra capability key too long".to_owned()));
    let host = site.post("/v1/os-hosts", &json!({"name": "r1-h01"})).await.ok(201)["host"].clone();
    assert_eq!(site.get("/v1/os-hosts").await.ok(200)["hosts"].as_array().map(Vec::len), Some(1));
    let lease = |start: &str, end: &str| {
        let mut lease = hosts_lease(1, 1, start, end);
        lease["reservations"][0]["resource_properties"] = json!("[]");
        lease["reservations"][0]["hypervisor_properties"] = json!("[]");
        lease
    };
    let first = site.lease(&lease("2050-12-26 13:13", "2050-12-27 13:13")).await;
    let second = site.lease(&lease("2050-12-28 13:13", "2050-12-29 13:13")).await;
    let all = site.get("/v1/os-hosts/allocations").await.ok(200);
    assert_eq!(all["allocations"][0]["resource_id"], host["id"]);
    assert_eq!(all["allocations"][0]["reservations"].as_array().map(Vec::len), Some(2));
    let id = first["id"].as_str().expect("an identifier");
    let one = site.get(&format!("/v1/os-hosts/allocations?lease_id={id}")).await.ok(200);
    assert_eq!(one["allocations"].as_array().map(Vec::len), Some(1));
    assert_eq!(one["allocations"][0]["reservations"].as_array().map(Vec::len), Some(1));
    assert_eq!(one["allocations"][0]["reservations"][0]["lease_id"], first["id"]);
    let path = format!("/v1/os-hosts/{}", host["id"].as_str().expect("an identifier"));
    let error = site.delete(&path).await.error();
    assert_eq!(error, (409, "Can't delete host 1. The host is reserved.".to_owned()));
    for lease in [&first, &second] {
        let path = format!("/v1/leases/{}", lease["id"].as_str().expect("an identifier"));
        assert_eq!(site.delete(&path).await.status, 204);
    }
    assert_eq!(site.delete(&path).await.status, 204);
    assert_eq!(site.get("/v1/os-hosts").await.ok(200)["hosts"], json!([]));
}

#[tokio::test]
async fn ten_lists_at_once_are_all_answered() {
    let site = std::sync::Arc::new(Site::open().await);
    let lists: Vec<_> = (0..10)
        .map(|_| {
            let site = std::sync::Arc::clone(&site);
            tokio::spawn(async move { site.get("/v1/leases").await.status })
        })
        .collect();
    for list in lists {
        assert_eq!(list.await.expect("no panic"), 200);
    }
}
