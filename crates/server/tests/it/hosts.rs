//! Hosts, allocations and properties.

use serde_json::{Value, json};

use crate::site::{Site, hosts_lease};

#[tokio::test]
async fn a_host_is_entered_shown_changed_and_given_back() {
    let site = Site::open().await;
    let host = site.post("/v1/os-hosts", &json!({"name": "r1-h02", "gpu": true, "ssds": 2})).await.ok(201);
    let host = &host["host"];
    assert_eq!(host["id"], "2");
    assert_eq!((&host["gpu"], &host["ssds"]), (&json!("True"), &json!("2")));
    assert_eq!(host["hypervisor_hostname"], "r1-h02");
    assert!(host["cpu_info"].is_string() && host["hypervisor_version"].is_u64() && host["vcpus"] == 16);
    assert_eq!(
        (&host["status"], &host["trust_id"], &host["reservable"]),
        (&json!(null), &json!(null), &json!(true))
    );
    assert_eq!(site.get("/v1/os-hosts/2").await.ok(200)["host"], *host);
    let changed = site.put("/v1/os-hosts/2", &json!({"gpu": null, "rack": "r1"})).await.ok(200);
    assert_eq!(changed["host"]["rack"], "r1");
    assert!(changed["host"].get("gpu").is_none());
    assert_eq!(site.delete("/v1/os-hosts/2").await.status, 204);
    let text = "Object with {'host_id': '2'} not found".to_owned();
    assert_eq!(site.get("/v1/os-hosts/2").await.error(), (404, text));
}

#[tokio::test]
async fn a_host_that_cannot_be_is_refused_in_blazars_words() {
    let site = Site::open().await;
    site.add_hosts(1).await;
    for (body, status, text) in [
        (json!({}), 403, "Invalid values for host {}"),
        (json!({"gpu": "x"}), 403, "Invalid values for host {'gpu': 'x'}"),
        (json!({"name": "x"}), 404, "Host 'x' not found!"),
        (json!({"name": "r1-h02", "a".repeat(65): "x"}), 400, "Extra capability key too long"),
        (
            json!({"name": "r1-h02", "power_saving": "nevr"}),
            400,
            "power_saving: nevr is not valid; the only value is never",
        ),
        (
            json!({"name": "r1-h02", "vcpus": "9"}),
            400,
            "Invalid extra capability vcpus: hosts have a field of that name",
        ),
        (json!({"name": "r1-h02", "gpu": null}), 400, "Malformed parameter gpu"),
        (json!({"id": "9"}), 404, "Host '9' not found!"),
    ] {
        assert_eq!(site.post("/v1/os-hosts", &body).await.error(), (status, text.to_owned()), "{body}");
    }
    let again = site.post("/v1/os-hosts", &json!({"name": "r1-h01"})).await.error();
    assert!(
        again.0 == 409 && again.1.starts_with("r1-h01 is in the pool freepool: move it with "),
        "{again:?}"
    );
    assert_eq!(site.put("/v1/os-hosts/1", &json!({})).await.error(), (400, "No data to update".to_owned()));
    for path in ["/v1/os-hosts/nosuch", "/v1/os-hosts/99", "/v1/os-hosts/nosuch/allocation"] {
        assert_eq!(site.get(path).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn a_capability_that_a_lease_rests_on_is_not_changed() {
    let site = Site::open().await;
    site.add_hosts(1).await;
    let mut body = hosts_lease(1, 1, "2030-01-02 10:00", "2030-01-02 12:00");
    body["reservations"][0]["resource_properties"] = json!("[\"==\", \"$rack\", \"r1\"]");
    site.lease(&body).await;
    let answer = site.put("/v1/os-hosts/1", &json!({"rack": "r9", "gpu": "x"})).await;
    assert_eq!(answer.error(), (409, "Can't add extracapabilities ['rack'] to Host 1".to_owned()));
    assert!(site.get("/v1/os-hosts/1").await.ok(200)["host"].get("gpu").is_none(), "all or nothing");
}

#[tokio::test]
async fn an_allocation_names_the_reservations_of_its_host() {
    let site = Site::open().await;
    site.add_hosts(2).await;
    let lease = site.lease(&hosts_lease(1, 1, "2030-01-02 10:00", "2030-01-02 12:00")).await;
    let all = site.get("/v1/os-hosts/allocations").await.ok(200)["allocations"].clone();
    assert_eq!(all.as_array().map(Vec::len), Some(2), "one entry for every host");
    let taken = all.as_array().expect("a list").iter().find(|host| host["reservations"] != json!([]));
    let taken = taken.expect("a host");
    let expected = json!({
        "id": lease["reservations"][0]["id"], "lease_id": lease["id"],
        "start_date": "2030-01-02T10:00:00.000000", "end_date": "2030-01-02T12:00:00.000000",
    });
    assert_eq!(taken["reservations"], json!([expected]));
    let path = format!("/v1/os-hosts/{}/allocation", taken["resource_id"].as_str().expect("text"));
    assert_eq!(site.get(&path).await.ok(200)["allocation"], *taken);
    let none = site.get(&format!("{path}?lease_id=nosuch")).await.ok(200);
    assert_eq!(none["allocation"]["reservations"], json!([]));
}

#[tokio::test]
async fn properties_are_listed_hidden_and_shown() {
    let site = Site::open().await;
    site.add_hosts(2).await;
    site.put("/v1/os-hosts/2", &json!({"gpu": "a100"})).await.ok(200);
    let plain = site.get("/v1/os-hosts/properties").await.ok(200)["resource_properties"].clone();
    assert_eq!(plain, json!([{"property": "gpu"}, {"property": "rack"}]));
    let detail = site.get("/v1/os-hosts/properties?detail=True").await.ok(200)["resource_properties"].clone();
    assert_eq!(detail[0], json!({"property": "gpu", "private": false, "values": ["a100"]}));
    let patch = axum::http::Method::PATCH;
    let hide = json!({"private": true});
    let answer = site.send_as("", patch.clone(), "/v1/os-hosts/properties/gpu", Some(&hide)).await.ok(200);
    let property = &answer["resource_property"];
    assert_eq!((&property["property_name"], &property["private"]), (&json!("gpu"), &json!(true)));
    assert_eq!(property["resource_type"], "physical:host");
    let plain = site.get("/v1/os-hosts/properties").await.ok(200)["resource_properties"].clone();
    assert_eq!(plain, json!([{"property": "rack"}]));
    let all = site.get("/v1/os-hosts/properties?detail=True&all=True").await.ok(200);
    assert_eq!(all["resource_properties"].as_array().map(Vec::len), Some(2));
    let unknown = site.send_as("", patch.clone(), "/v1/os-hosts/properties/nosuch", Some(&hide)).await;
    assert_eq!(unknown.status, 404);
    let wrong = site.send_as("", patch, "/v1/os-hosts/properties/gpu", Some(&json!({"private": "x"}))).await;
    assert_eq!(wrong.error(), (400, "Malformed parameter private".to_owned()));
}

#[tokio::test]
async fn an_administrator_sees_where_store_and_fleet_differ() {
    let site = Site::open().await;
    site.add_hosts(1).await;
    assert_eq!(site.get("/v1/drift").await.ok(200), json!({"drift": []}));
    assert_eq!(site.post("/v1/drift/repair", &json!({})).await.ok(200), json!({"drift": []}));
}

/// The host of a lease with one host.
async fn host_of(site: &Site, lease: &Value) -> String {
    let id = lease["id"].as_str().expect("an identifier");
    let allocations = site.get(&format!("/v1/os-hosts/allocations?lease_id={id}")).await.ok(200);
    let entries = allocations["allocations"].as_array().expect("a list");
    let has = |entry: &&Value| entry["reservations"].as_array().is_some_and(|taken| !taken.is_empty());
    let entry = entries.iter().find(has).unwrap_or_else(|| panic!("no host: {allocations}"));
    entry["resource_id"].as_str().expect("text").to_owned()
}

#[tokio::test]
async fn a_host_that_is_closed_takes_no_new_leases_and_those_to_come_get_others() {
    let site = Site::open().await;
    site.add_hosts(2).await;
    let runs = site.lease(&hosts_lease(1, 1, "now", "2030-01-01 20:00")).await;
    let runs = site.until("2030-01-01T10:01:00Z", &runs, "ACTIVE").await;
    let own = host_of(&site, &runs).await;
    let later = site.lease(&hosts_lease(1, 1, "2030-01-02 10:00", "2030-01-02 12:00")).await;
    let both = site.lease(&hosts_lease(2, 2, "2030-01-03 10:00", "2030-01-03 12:00")).await;
    let path = |host: &str| format!("/v1/os-hosts/{host}");
    // `runs` has started, `later` can move to the other host, and `both` needs both hosts.
    for host in [host_of(&site, &later).await, own.clone()] {
        let closed = site.put(&path(&host), &json!({"reservable": false})).await.ok(200)["host"].clone();
        assert_eq!(closed["reservable"], false);
        until_it_has_left(&site, &later, &host).await;
        assert_eq!(host_of(&site, &runs).await, own, "what runs goes on");
        let kept = site.get(&format!("/v1/leases/{}", both["id"].as_str().expect("text"))).await.ok(200);
        assert_eq!(kept["lease"]["degraded"], false, "there is no other for it");
        let refused =
            site.post("/v1/leases", &hosts_lease(2, 2, "2030-01-04 10:00", "2030-01-04 12:00")).await;
        assert_eq!(refused.error().1, "Not enough hosts available");
        assert!(refused.text.contains("1 closed for new leases"), "{}", refused.text);
        let opened = site.put(&path(&host), &json!({"reservable": "True"})).await.ok(200)["host"].clone();
        assert_eq!(opened["reservable"], true);
    }
    let longer = json!({"end_date": "2030-01-01 21:00"});
    site.put(&path(&own), &json!({"reservable": false, "gpu": "yes"})).await.ok(200);
    let id = runs["id"].as_str().expect("text");
    site.put(&format!("/v1/leases/{id}"), &longer).await.ok(200);
    let inside = json!({"name": "i", "vcpus": 1, "memory_mb": 1024,
        "scheduler_hints": {"reservation": runs["reservations"][0]["id"]}});
    site.post("/v1/instances", &inside).await.ok(201);
    let audit = site.get(&format!("/v1/audit?object_id={own}")).await.ok(200);
    let actions: Vec<_> =
        audit["audit"].as_array().expect("a list").iter().map(|entry| &entry["action"]).collect();
    assert_eq!(actions[..2], ["host.update", "host.close"]);
    assert!(
        actions[2..].iter().all(
            |action| ["host.open", "host.close", "host.create"].contains(&action.as_str().expect("text"))
        )
    );
    for wrong in [json!({"reservable": null}), json!({"reservable": "maybe"})] {
        assert_eq!(
            site.put(&path(&own), &wrong).await.error(),
            (400, "Malformed parameter reservable".to_owned())
        );
    }
}

#[tokio::test]
async fn a_lease_that_has_not_started_leaves_a_closed_host_as_soon_as_there_is_another() {
    let site = Site::open().await;
    site.add_hosts(1).await;
    let later = site.lease(&hosts_lease(1, 1, "2030-01-02 10:00", "2030-01-02 12:00")).await;
    let first = host_of(&site, &later).await;
    site.put(&format!("/v1/os-hosts/{first}"), &json!({"reservable": false})).await.ok(200);
    assert_eq!(host_of(&site, &later).await, first, "there is no other");
    site.post("/v1/os-hosts", &json!({"id": "2"})).await.ok(201);
    until_it_has_left(&site, &later, &first).await;
}

async fn until_it_has_left(site: &Site, lease: &Value, host: &str) {
    for _ in 0..1000 {
        if host_of(site, lease).await != host {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("it is still on the closed host");
}
