//! Requests as sent by clients of Blazar's forks, such as Nectar's Warre.

use axum::http::Method;
use serde_json::{Value, json};

use crate::site::Site;

/// A lease as requested by Warre: an instance with two disks, and extra specs of its flavor.
fn instance(ephemeral_gb: u32, extra_specs: &Value) -> Value {
    json!({
        "name": "Reservation 1", "start_date": "2030-01-02 10:00", "end_date": "2030-01-02 12:00",
        "before_end_date": null, "events": [],
        "reservations": [{
            "resource_type": "virtual:instance", "amount": 1, "vcpus": 2, "memory_mb": 1024, "disk_gb": 300,
            "ephemeral_gb": ephemeral_gb, "affinity": null, "resource_properties": null, "extra_specs": extra_specs,
        }],
    })
}

fn path_of(lease: &Value) -> String {
    format!("/v1/leases/{}", lease["id"].as_str().expect("an identifier"))
}

#[tokio::test]
async fn warre_makes_extends_and_deletes_leases() {
    let site = Site::open().await;
    site.add_hosts(1).await;
    let specs = json!({"hw:watchdog_action": "reset"});
    let lease = site.lease(&instance(400, &specs)).await;
    let shown = &lease["reservations"][0];
    assert_eq!((&shown["disk_gb"], &shown["ephemeral_gb"]), (&json!(300), &json!(400)));
    assert_eq!((&shown["extra_specs"], &shown["flavor_id"]), (&specs, &shown["id"]));
    let refused = site.post("/v1/leases", &instance(400, &specs)).await;
    assert_eq!(refused.error(), (400, "Not enough hosts available".to_owned()), "the host has 1000 GiB");
    let plain = site.lease(&instance(0, &Value::Null)).await;
    for absent in ["ephemeral_gb", "extra_specs"] {
        assert!(plain["reservations"][0].get(absent).is_none(), "{absent}");
    }
    let extend = async |end: &str| site.put(&path_of(&lease), &json!({"end_date": end})).await.ok(200);
    assert_eq!(extend("2030-01-02 14:00").await["lease"]["end_date"], "2030-01-02T14:00:00.000000");
    site.until("2030-01-02T10:01:00Z", &lease, "ACTIVE").await;
    assert_eq!(extend("2030-01-02 15:00").await["lease"]["end_date"], "2030-01-02T15:00:00.000000");
    for lease in [&lease, &plain] {
        assert_eq!(site.delete(&path_of(lease)).await.status, 204);
    }
}

#[tokio::test]
async fn the_second_disk_and_extra_specs_of_instances_stay_as_they_are() {
    let site = Site::open().await;
    site.add_hosts(1).await;
    let specs = json!({"hw:watchdog_action": "reset"});
    let lease = site.lease(&instance(10, &specs)).await;
    let id = lease["reservations"][0]["id"].clone();
    let change = |fields: Value| {
        let mut entry = json!({"id": id});
        entry.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
        json!({"reservations": [entry]})
    };
    let same = change(json!({"ephemeral_gb": 10, "extra_specs": specs, "vcpus": 4}));
    let changed = site.put(&path_of(&lease), &same).await.ok(200)["lease"]["reservations"][0].clone();
    assert_eq!((&changed["vcpus"], &changed["extra_specs"]), (&json!(4), &specs));
    for (name, value) in [("ephemeral_gb", json!(11)), ("extra_specs", json!({}))] {
        let refused = site.put(&path_of(&lease), &change(json!({ name: value }))).await;
        assert_eq!(refused.error(), (400, format!("Malformed parameter {name}")));
    }
    // A copy can be requested with the fields of the response.
    let copy = site.lease(&lease).await;
    assert_eq!(copy["reservations"][0]["ephemeral_gb"], 10);
    assert_eq!(copy["reservations"][0]["extra_specs"], specs);
}

#[tokio::test]
async fn extra_specs_that_reservations_cannot_keep_are_refused() {
    let site = Site::open().await;
    site.add_hosts(1).await;
    for (specs, message) in [
        (json!({"a/b": "1"}), "Malformed parameter extra_specs"),
        (json!(["a"]), "Malformed parameter extra_specs"),
        (
            json!({"resources1:VGPU": "1"}),
            "flavor of the reservation has the extra spec resources1:VGPU=1, which reservations do not support",
        ),
        (json!({"trait:CUSTOM_FAST": "required"}), "Not enough hosts available"),
        (json!({"resources:VGPU": 1}), "Not enough hosts available"),
    ] {
        let refused = site.post("/v1/leases", &instance(0, &specs)).await;
        assert_eq!(refused.error(), (400, message.to_owned()), "{specs}");
    }
}

#[tokio::test]
async fn extra_specs_of_instances_are_for_administrators_by_default() {
    let site = Site::guarded().await;
    site.add_hosts_as("admin", 1).await;
    let specs = json!({"hw:watchdog_action": "reset"});
    let ask = async |token: &str, specs: &Value| {
        site.send_as(token, Method::POST, "/v1/leases", Some(&instance(10, specs))).await
    };
    let message = "Policy doesn't allow blazar:leases:extra_specs to be performed".to_owned();
    assert_eq!(ask("member", &specs).await.error(), (403, message));
    ask("member", &json!({})).await.ok(201);
    ask("admin", &specs).await.ok(201);
}
