//! Scheduler hints through the API. Tests are named after the criteria of CLS.

use axum::http::Method;
use serde_json::{Value, json};
use service::Settings;

use crate::site::{Site, hosts_lease};

/// A lease of `hosts` hosts for a day, with these hints.
fn hinted(hosts: u32, hints: &Value) -> Value {
    let mut body = hosts_lease(hosts, hosts, "2030-01-01 12:00", "2030-01-02 12:00");
    body["scheduler_hints"] = hints.clone();
    body
}

/// Four hosts, two in each rack.
async fn racks(settings: Settings) -> Site {
    let site = Site::of_settings(settings).await;
    site.add_hosts(4).await;
    for (id, rack) in [("1", "a"), ("2", "a"), ("3", "b"), ("4", "b")] {
        site.put(&format!("/v1/os-hosts/{id}"), &json!({"rack": rack})).await.ok(200);
    }
    site
}

async fn hosts_of(site: &Site, lease: &Value) -> Vec<String> {
    let path = format!("/v1/os-hosts/allocations?lease_id={}", lease["id"].as_str().expect("an id"));
    let answer = site.get(&path).await.ok(200);
    let taken = answer["allocations"].as_array().expect("a list").iter();
    let taken = taken.filter(|entry| !entry["reservations"].as_array().expect("a list").is_empty());
    taken.map(|entry| entry["resource_id"].as_str().expect("an id").to_owned()).collect()
}

#[tokio::test]
async fn cls_11_a_hints_are_listed_with_their_values_and_what_goes_together() {
    let site = Site::guarded().await;
    site.add_hosts_as("admin", 1).await;
    let list = async |who| site.send_as(who, Method::GET, "/v1/hints", None).await.ok(200);
    let shown = list("admin").await;
    let names: Vec<_> = shown["hints"].as_array().expect("a list").iter().map(|hint| &hint["name"]).collect();
    assert_eq!(names, ["query", "host", "same_host", "different_host", "location", "group"]);
    let hint = |shown: &Value, name: &str| {
        let all = shown["hints"].as_array().expect("a list").clone();
        all.into_iter().find(|hint| hint["name"] == name).expect("listed")
    };
    assert_eq!(hint(&shown, "host")["values"], json!(["r1-h01"]));
    assert_eq!(hint(&shown, "host")["not_with"], json!(["same_host"]));
    assert_eq!(hint(&shown, "location")["values"], json!(["same", "different"]));
    assert_eq!(hint(&shown, "location")["resource_types"], json!(["physical:host"]));
    assert_eq!(hint(&shown, "group")["applies_to"], "instances");
    assert_eq!(
        hint(&list("member").await, "host")["values"],
        Value::Null,
        "hosts are the operator's business"
    );
}

#[tokio::test]
async fn cls_11_a_a_lease_has_hosts_as_its_hints_want_them_and_shows_them() {
    let site = racks(Settings::default()).await;
    let first =
        site.lease(&hinted(2, &json!({"location": "different", "query": r#"["!=","$rack","c"]"#}))).await;
    let racks = hosts_of(&site, &first).await;
    assert!(racks.len() == 2 && racks != ["1", "2"] && racks != ["3", "4"], "{racks:?}");
    let path = format!("/v1/leases/{}", first["id"].as_str().expect("an id"));
    let shown = site.get(&path).await.ok(200)["lease"]["scheduler_hints"].clone();
    assert_eq!(shown, json!({"location": "different", "query": r#"["!=","$rack","c"]"#}));
    // The same hosts on another day.
    let mut again = hinted(2, &json!({"same_host": first["id"]}));
    again["start_date"] = json!("2030-01-03 12:00");
    again["end_date"] = json!("2030-01-04 12:00");
    let again = site.lease(&again).await;
    assert_eq!(hosts_of(&site, &again).await, racks);
    let others = site.lease(&hinted(1, &json!({"different_host": [first["id"]]}))).await;
    assert!(!racks.contains(&hosts_of(&site, &others).await[0]));
    let plain = site.lease(&hosts_lease(1, 1, "2030-01-01 12:00", "2030-01-02 12:00")).await;
    assert!(plain.get("scheduler_hints").is_none(), "what is not given is not shown");
    let capability = site.put("/v1/os-hosts/1", &json!({"rack": "z"})).await;
    let first_has_it = racks.contains(&"1".to_owned());
    assert_eq!(capability.status == 200, !first_has_it, "a rack that a lease relies on stays");
}

#[tokio::test]
async fn cls_11_b_an_unknown_hint_or_value_is_refused_and_named() {
    let site = racks(Settings::default()).await;
    let unknown = "00000000-0000-0000-0000-000000000001";
    for (hints, wrong) in [
        (json!({"rack": "a"}), "Unknown parameter scheduler_hints.rack".to_owned()),
        (json!({"group": "near"}), "Malformed parameter scheduler_hints.group".to_owned()),
        (json!({"host": "node9"}), "The hint host names node9, which there is not".to_owned()),
        (
            json!({"same_host": unknown}),
            format!("The hint same_host names lease {unknown}, which there is not"),
        ),
        (json!({"host": "r1-h01", "same_host": []}), String::new()),
    ] {
        let answer = site.post("/v1/leases", &hinted(1, &hints)).await;
        if wrong.is_empty() {
            answer.ok(201);
        } else {
            assert_eq!(answer.error(), (400, wrong));
        }
    }
    let lease = site.lease(&hosts_lease(1, 1, "2030-01-01 12:00", "2030-01-02 12:00")).await;
    let both =
        site.post("/v1/leases", &hinted(1, &json!({"host": "r1-h01", "same_host": lease["id"]}))).await;
    assert_eq!(both.error(), (400, "The hints host and same_host cannot be given together".to_owned()));
}

#[tokio::test]
async fn cls_11_b_the_operator_refuses_hints_that_are_too_strict() {
    let mut settings = Settings::default();
    settings.rules.hints.least_hosts = 3;
    settings.rules.hints.single_host = false;
    settings.rules.hints.enabled.remove(&leases::hints::Hint::Location);
    let site = racks(settings).await;
    for (hints, wrong) in [
        (
            json!({"query": ["==", "$rack", "a"]}),
            "The hints are too strict: 2 host(s) match them, and at least 3 have to",
        ),
        (json!({"host": "r1-h01"}), "The hints are too strict: a lease cannot name a single host here"),
        (
            json!({"location": "same"}),
            "The hint location is not supported here: the operator has left it out",
        ),
    ] {
        let answer = site.post("/v1/leases", &hinted(1, &hints)).await;
        assert_eq!(answer.error(), (400, wrong.to_owned()));
    }
    assert_eq!(site.get("/v1/leases").await.ok(200)["leases"], json!([]));
    site.lease(&hinted(1, &json!({"host": ["r1-h01", "r1-h02", "r2-h01"]}))).await;
    let offered = site.get("/v1/hints").await.ok(200);
    assert_eq!((&offered["least_hosts"], &offered["single_host"]), (&json!(3), &json!(false)));
}

#[tokio::test]
async fn cls_11_b_leases_of_others_are_not_there_for_hints() {
    let site = Site::guarded().await;
    site.add_hosts_as("admin", 2).await;
    let body = hosts_lease(1, 1, "2030-01-01 12:00", "2030-01-02 12:00");
    let theirs =
        site.send_as("foreign", Method::POST, "/v1/leases", Some(&body)).await.ok(201)["lease"].clone();
    for hint in ["same_host", "different_host"] {
        let body = hinted(1, &json!({ hint: theirs["id"] }));
        let (status, message) = site.send_as("member", Method::POST, "/v1/leases", Some(&body)).await.error();
        assert_eq!(status, 400);
        assert!(message.ends_with("which there is not"), "{message}");
    }
}

#[tokio::test]
async fn cls_11_c_hints_cannot_be_changed() {
    let site = racks(Settings::default()).await;
    let lease = site.lease(&hinted(1, &json!({"location": "same"}))).await;
    let path = format!("/v1/leases/{}", lease["id"].as_str().expect("an id"));
    for hints in [json!({"location": "different"}), json!({}), Value::Null] {
        let refused = site.put(&path, &json!({"name": "other", "scheduler_hints": hints})).await;
        assert_eq!(refused.error(), (409, "scheduler_hints cannot be updated".to_owned()));
    }
    let renamed = site.put(&path, &json!({"name": "other"})).await.ok(200);
    assert_eq!(renamed["lease"]["scheduler_hints"], json!({"location": "same"}));
}

#[tokio::test]
async fn cls_11_d_instances_are_where_their_lease_and_their_own_hints_want_them() {
    let site = racks(Settings::default()).await;
    let mut body = hinted(3, &json!({"group": "anti-affinity"}));
    body["start_date"] = json!("now");
    let lease = site.lease(&body).await;
    let lease = site.until("2030-01-01T10:00:40Z", &lease, "ACTIVE").await;
    let post = async |hints: Value| {
        let body = json!({"name": "i", "vcpus": 1, "memory_mb": 64, "scheduler_hints": hints});
        site.post("/v1/instances", &body).await
    };
    let first = post(json!({"lease": lease["id"]})).await.ok(201)["instance"].clone();
    let second = post(json!({"lease": lease["id"]})).await.ok(201)["instance"].clone();
    assert_ne!(first["host"], second["host"]);
    let with = post(json!({"lease": lease["id"], "same_host": [first["id"]]})).await;
    assert_eq!(with.error(), (409, "No host is as the hint group wants it".to_owned()));
    let apart = json!({"lease": lease["id"], "different_host": [first["id"], second["id"]]});
    let third = post(apart).await.ok(201)["instance"].clone();
    assert!(third["host"] != first["host"] && third["host"] != second["host"]);
    let fourth = post(json!({"lease": lease["id"]})).await;
    assert_eq!(fourth.error(), (409, "No host is as the hint group wants it".to_owned()));
    let unknown = post(json!({"same_host": [lease["id"]]})).await;
    assert_eq!(unknown.error().0, 400);
}
