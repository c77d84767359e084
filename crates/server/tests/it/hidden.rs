//! Hidden properties. To members, they look like properties that no host has, in every part of a request that
//! names properties.

use std::collections::BTreeSet;

use axum::http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::site::{Answer, Site, hosts_lease};

/// A hidden property, and a property that no host has.
const HIDDEN: &str = "owner_secret";
const ABSENT: &str = "owner_nobody";

/// Three hosts, two of which have the hidden property.
async fn site() -> Site {
    let site = Site::guarded().await;
    site.add_hosts_as("admin", 3).await;
    for (id, owner) in [(1, "alice"), (2, "bob")] {
        let path = format!("/v1/os-hosts/{id}");
        let body = json!({HIDDEN: owner, "filter_tenant_id": "p"});
        site.send_as("admin", Method::PUT, &path, Some(&body)).await.ok(200);
    }
    let path = format!("/v1/os-hosts/properties/{HIDDEN}");
    site.send_as("admin", Method::PATCH, &path, Some(&json!({"private": true}))).await.ok(200);
    site
}

fn expressions(name: &str) -> Vec<Value> {
    let name = format!("${name}");
    let equal = json!(["==", name, "alice"]);
    vec![
        equal.clone(),
        json!(["!=", name, "alice"]),
        json!([">=", name, "a"]),
        json!(["in", name, "alice", "bob"]),
        json!(["not", equal]),
        json!(["not", ["not", equal]]),
        json!(["and", equal, ["==", "$rack", "r1"]]),
        json!(["or", equal, ["==", "$rack", "r1"]]),
        json!(["or", ["not", equal], ["==", "$rack", "nowhere"]]),
    ]
}

fn hosts(min: u32, fields: &Value) -> Value {
    let mut body = hosts_lease(min, 3, "2030-01-01 12:00", "2030-01-02 12:00");
    let reservation = body["reservations"][0].as_object_mut().expect("an object");
    reservation.extend(fields.as_object().expect("an object").clone());
    body
}

/// Bodies of leases that name the property in different fields and expressions.
fn bodies(name: &str) -> Vec<Value> {
    let mut bodies = Vec::new();
    for expression in expressions(name) {
        let text = expression.to_string();
        for min in [1, 2, 3] {
            bodies.push(hosts(min, &json!({"resource_properties": text})));
            bodies.push(hosts(min, &json!({"hypervisor_properties": text})));
        }
        let mut hinted = hosts(2, &json!({}));
        hinted["scheduler_hints"] = json!({"query": text});
        bodies.push(hinted);
        let mut instances = hosts(1, &json!({}));
        instances["reservations"] = json!([{"resource_type": "virtual:instance", "amount": 3, "vcpus": 1, "memory_mb": 1,
            "disk_gb": 1, "affinity": false, "resource_properties": text}]);
        bodies.push(instances);
    }
    for key in [
        name.to_owned(),
        format!("capabilities:{name}"),
        format!("capabilities:{name}:part"),
        format!("aggregate_instance_extra_specs:{name}"),
    ] {
        for value in ["alice", "s!= alice", "s>= a", "<in> ali", "<or> alice <or> bob", ">= 1"] {
            bodies.push(hosts(1, &json!({"extra_specs": {key.clone(): value}})));
        }
    }
    for value in ["alice", "bob", "eve"] {
        for min in [1, 2, 3] {
            bodies.push(hosts(min, &json!({"image_properties": {name: value}})));
        }
    }
    for min in [1, 2, 3] {
        bodies.push(hosts(min, &json!({"survives": name})));
        bodies.push(hosts(min, &json!({"alike": ["rack", name]})));
    }
    let recurring = |mut body: Value| {
        body["repeat"] = json!({"every": "1d", "times": 2});
        body
    };
    let recurring: Vec<_> = bodies.iter().take(8).cloned().map(recurring).collect();
    bodies.extend(recurring);
    bodies
}

/// The parts of a response that a client can distinguish, with the name of the property replaced by a common one.
fn told(answer: &Answer) -> (u16, String) {
    let status = answer.status.as_u16();
    let json = answer.json();
    let text = if status < 300 && json.get("availability").is_none() {
        // Leaves out hosts and identifiers, which can differ.
        let reservations = &json["lease"]["reservations"];
        [
            "resource_properties",
            "hypervisor_properties",
            "extra_specs",
            "image_properties",
            "survives",
            "min",
            "max",
        ]
        .map(|field| reservations[0][field].to_string())
        .join(" ")
    } else {
        let parts =
            ["error_message", "message", "hint", "availability", "error"].map(|part| json[part].to_string());
        parts.join(" ")
    };
    (status, text.replace(HIDDEN, "NAME").replace(ABSENT, "NAME"))
}

#[tokio::test]
async fn a_member_cannot_tell_a_hidden_property_from_one_that_no_host_has() {
    let site = site().await;
    let mut statuses = BTreeSet::new();
    for (hidden, absent) in bodies(HIDDEN).iter().zip(&bodies(ABSENT)) {
        let path = "/v1/leases?dry_run=true";
        let ask = async |body: &Value| told(&site.send_as("member", Method::POST, path, Some(body)).await);
        let answer = ask(hidden).await;
        assert_eq!(answer, ask(absent).await, "{hidden}");
        statuses.insert(answer.0);
    }
    assert!(statuses.contains(&200) && statuses.contains(&400), "{statuses:?}");
    for (hidden, absent) in expressions(HIDDEN).iter().zip(&expressions(ABSENT)) {
        for field in ["resource_properties", "hypervisor_properties"] {
            let ask = async |expression: &Value| {
                let text = expression.to_string();
                let text = utf8_percent_encode(&text, NON_ALPHANUMERIC);
                let path = format!("/v1/availability?amount=2&duration=P1D&{field}={text}&start=2030-01-01");
                let path = format!("{path}&end=2030-01-03");
                told(&site.send_as("member", Method::GET, &path, None).await)
            };
            let answer = ask(hidden).await;
            assert_eq!(answer, ask(absent).await, "{hidden}");
            assert!(answer.0 == 200 || answer.1.contains("no host has a property NAME"), "{}", answer.1);
        }
    }
    let group = async |name: &str| {
        told(&site.send_as("member", Method::GET, &format!("/v1/calendar?group_by={name}"), None).await)
    };
    assert_eq!(group(HIDDEN).await, group(ABSENT).await);
    assert_eq!(group(HIDDEN).await.0, 400);
}

#[tokio::test]
async fn changes_know_no_hidden_property_either() {
    let site = site().await;
    let lease = site.send_as("member", Method::POST, "/v1/leases", Some(&hosts(1, &json!({})))).await.ok(201);
    let lease = &lease["lease"];
    let path = format!("/v1/leases/{}?dry_run=true", lease["id"].as_str().expect("an id"));
    let id = &lease["reservations"][0]["id"];
    let mut statuses = BTreeSet::new();
    for (hidden, absent) in bodies(HIDDEN).iter().zip(&bodies(ABSENT)) {
        if hidden["reservations"][0]["resource_type"] != "physical:host" {
            continue;
        }
        let ask = async |body: &Value| {
            let mut reservation = body["reservations"][0].clone();
            reservation.as_object_mut().expect("an object").remove("resource_type");
            reservation["id"] = id.clone();
            let body = json!({"reservations": [reservation]});
            told(&site.send_as("member", Method::PUT, &path, Some(&body)).await)
        };
        let answer = ask(hidden).await;
        assert_eq!(answer, ask(absent).await, "{hidden}");
        statuses.insert(answer.0);
    }
    assert!(statuses.contains(&200) && statuses.len() > 1, "{statuses:?}");
}

#[tokio::test]
async fn a_members_lease_goes_on_without_hidden_properties_and_shows_what_was_written() {
    let site = site().await;
    let not_alice = json!(["not", ["==", format!("${HIDDEN}"), "alice"]]).to_string();
    let mut body = hosts(3, &json!({"resource_properties": not_alice, "image_properties": {HIDDEN: "eve"}}));
    body["scheduler_hints"] = json!({"query": not_alice});
    let made = site.send_as("member", Method::POST, "/v1/leases", Some(&body)).await.ok(201);
    let path = format!("/v1/leases/{}", made["lease"]["id"].as_str().expect("an id"));
    for shown in [made, site.send_as("member", Method::GET, &path, None).await.ok(200)] {
        let reservation = &shown["lease"]["reservations"][0];
        assert_eq!(reservation["resource_properties"], not_alice);
        assert_eq!(reservation["image_properties"], json!({HIDDEN: "eve"}));
        assert!(!shown.to_string().contains("\\u0001"), "{shown}");
        assert!(shown["lease"].to_string().matches(HIDDEN).count() >= 3, "{shown}");
    }
    // A decision about a change ignores the property, too.
    let later = json!({"end_date": "2030-01-03 12:00"});
    site.send_as("member", Method::PUT, &path, Some(&later)).await.ok(200);
}

#[tokio::test]
async fn administrators_ask_for_hidden_properties_as_for_others() {
    let site = site().await;
    for (owner, status) in [("alice", 200), ("bob", 200), ("eve", 400)] {
        for fields in [
            json!({"resource_properties": json!(["==", format!("${HIDDEN}"), owner]).to_string()}),
            json!({"extra_specs": {HIDDEN: owner}}),
        ] {
            let body = hosts(1, &fields);
            let answer = site.send_as("admin", Method::POST, "/v1/leases?dry_run=true", Some(&body)).await;
            assert_eq!(answer.status, status, "{owner} {}", answer.text);
        }
    }
    for (min, status) in [(1, 200), (2, 400)] {
        let body = hosts(min, &json!({"alike": [HIDDEN]}));
        let answer = site.send_as("admin", Method::POST, "/v1/leases?dry_run=true", Some(&body)).await;
        assert_eq!(answer.status, status, "{min} {}", answer.text);
    }
}
