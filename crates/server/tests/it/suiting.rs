//! Requirements on hosts through the API. Tests are named after the criteria of CLS.

use leases::filters::{CustomFilter, Filter};
use leases::requirement::{Operator, Requirement};
use serde_json::{Value, json};
use service::Settings;

use crate::site::{Answer, Site, hosts_lease};

/// A lease of `hosts` hosts with these properties, for a day.
fn like(hosts: u32, properties: &Value) -> Value {
    let mut body = hosts_lease(hosts, hosts, "2030-01-01 12:00", "2030-01-02 12:00");
    let fields = body["reservations"][0].as_object_mut().expect("an object");
    fields.extend(properties.as_object().expect("an object").clone());
    body
}

fn hint(answer: &Answer) -> String {
    answer.json()["hint"].as_str().unwrap_or_default().to_owned()
}

/// Four hosts in the region `north`.
async fn north() -> Site {
    let mut settings = Settings::default();
    settings.rules.region = Some("north".to_owned());
    let site = Site::of_settings(settings).await;
    site.add_hosts(4).await;
    site
}

#[tokio::test]
async fn cls_05_properties_are_checked_stored_and_returned() {
    let site = north().await;
    let zone = site.get("/v1/os-hosts/1").await.ok(200)["host"]["availability_zone"].clone();
    let properties = json!({
        "region": "north", "availability_zone": zone, "vcpus": 16, "memory_mib": 65_536, "disk_gib": 1000,
        "homogeneous": true, "extra_specs": {"capabilities:cpu_info:arch": "x86_64", "rack": "<in> r"},
        "image_properties": {"hw_architecture": "x86_64"},
    });
    let lease = site.lease(&like(1, &properties)).await;
    let path = format!("/v1/leases/{}", lease["id"].as_str().expect("an identifier"));
    let shown = site.get(&path).await.ok(200)["lease"].clone();
    for (name, value) in properties.as_object().expect("an object") {
        assert_eq!(shown["reservations"][0][name], *value, "{name}");
    }
    for (name, value, filter) in [
        ("availability_zone", json!("nowhere"), "AvailabilityZoneFilter"),
        ("vcpus", json!(17), "CoreFilter"),
        ("memory_mib", json!(65_537), "RamFilter"),
        ("disk_gib", json!(1001), "DiskFilter"),
        ("extra_specs", json!({"vcpus": ">= 17"}), "ComputeCapabilitiesFilter"),
        ("extra_specs", json!({"trait:HW_GPU": "required"}), "PlacementFilter"),
        ("image_properties", json!({"hw_architecture": "aarch64"}), "ImagePropertiesFilter"),
    ] {
        let refused = site.post("/v1/leases", &like(1, &json!({ name: value }))).await;
        assert_eq!(refused.error(), (400, "Not enough hosts available".to_owned()), "{name}");
        assert!(hint(&refused).contains("0 of 4 hosts left, 4 "), "{}", hint(&refused));
        // The hint also lists values that no host has, after the counts.
        let counts = hint(&refused).split("; ").next().unwrap_or_default().to_owned();
        assert!(counts.ends_with(&format!("({filter})")), "{}", hint(&refused));
    }
    let plain = site.lease(&like(1, &json!({}))).await;
    assert!(plain["reservations"][0].get("vcpus").is_none(), "what is not asked for is not shown");
}

#[tokio::test]
async fn cls_05_hosts_of_a_lease_have_equal_values_of_the_properties_that_it_names() {
    let site = Site::open().await;
    site.add_hosts(4).await;
    for (id, mhz) in [("1", "2600"), ("2", "3200"), ("3", "3200")] {
        site.put(&format!("/v1/os-hosts/{id}"), &json!({"cpu_mhz": mhz})).await.ok(200);
    }
    let refused = site.post("/v1/leases", &like(3, &json!({"alike": ["cpu_mhz"]}))).await;
    assert_eq!(refused.error().0, 400);
    let counts = "3 hosts needed: 2 of 4 hosts left, 1 without a property of alike, \
                  1 unlike the largest group of equal hosts (homogeneous, alike)";
    assert!(hint(&refused).starts_with(counts), "{}", hint(&refused));
    for unknown in [json!(["cpu_mhz", "cpu_mhs"]), json!(["cpu_mhs"])] {
        let refused = site.post("/v1/leases", &like(1, &json!({ "alike": unknown }))).await;
        let text = "Malformed requirements: alike: no host has a property cpu_mhs; there are cpu_mhz, rack";
        assert_eq!(refused.error(), (400, text.to_owned()));
    }
    let lease = site.lease(&like(2, &json!({"alike": ["rack", "cpu_mhz"]}))).await;
    let path = format!("/v1/leases/{}", lease["id"].as_str().expect("an identifier"));
    let shown = site.get(&path).await.ok(200)["lease"].clone();
    assert_eq!(shown["reservations"][0]["alike"], json!(["cpu_mhz", "rack"]));
    let relied = site.put("/v1/os-hosts/2", &json!({"cpu_mhz": "2600"})).await;
    assert_eq!(relied.error(), (409, "Can't add extracapabilities ['cpu_mhz'] to Host 2".to_owned()));
    let change =
        |alike: Value| json!({"reservations": [{"id": lease["reservations"][0]["id"], "alike": alike}]});
    let refused = site.put(&path, &change(json!(["cpu_mhs"]))).await;
    assert!(refused.error().1.starts_with("Malformed requirements: alike: "), "{}", refused.error().1);
    let changed = site.put(&path, &change(Value::Null)).await.ok(200);
    assert_eq!(changed["lease"]["reservations"][0].get("alike"), None);
}

#[tokio::test]
async fn cls_05_another_region_is_refused_by_its_name() {
    let site = north().await;
    let elsewhere = site.post("/v1/leases", &like(1, &json!({"region": "south"}))).await;
    let text = "Region south is not served here: this service is of region north";
    assert_eq!(elsewhere.error(), (400, text.to_owned()));
    assert_eq!(site.get("/v1/leases").await.ok(200)["leases"], json!([]));
}

#[tokio::test]
async fn cls_05_properties_of_a_lease_can_be_changed() {
    let site = north().await;
    let lease = site.lease(&like(1, &json!({"vcpus": 8}))).await;
    let path = format!("/v1/leases/{}", lease["id"].as_str().expect("an identifier"));
    let id = lease["reservations"][0]["id"].clone();
    let change = |properties: Value| {
        let mut entry = json!({"id": id});
        entry.as_object_mut().expect("an object").extend(properties.as_object().expect("an object").clone());
        json!({"reservations": [entry]})
    };
    let refused = site.put(&path, &change(json!({"vcpus": 17}))).await;
    assert_eq!(refused.error().0, 400);
    let changed = site.put(&path, &change(json!({"vcpus": null, "extra_specs": {"vcpus": "<= 16"}}))).await;
    let reservation = changed.ok(200)["lease"]["reservations"][0].clone();
    assert!(reservation.get("vcpus").is_none());
    assert_eq!(reservation["extra_specs"], json!({"vcpus": "<= 16"}));
}

#[tokio::test]
async fn cls_06_expressions_and_extra_specs_find_the_same_hosts() {
    let site = Site::open().await;
    site.add_hosts(4).await;
    for (id, ssds) in [("1", "2"), ("2", "10"), ("3", "ten")] {
        site.put(&format!("/v1/os-hosts/{id}"), &json!({"ssds": ssds})).await.ok(200);
    }
    for (specs, expression, hosts) in [
        (json!({"ssds": ">= 2"}), r#"["and", [">=", "$ssds", 2], ["!=", "$ssds", "ten"]]"#, 2),
        (json!({"capabilities:ssds": "== 10"}), r#"["==", "$ssds", "10"]"#, 1),
        (json!({"aggregate_instance_extra_specs:ssds": "s== ten"}), r#"["==", "$ssds", "ten"]"#, 1),
        (json!({"ssds": "<or> 2 <or> ten"}), r#"["in", "$ssds", "2", "ten"]"#, 2),
        (json!({"hypervisor_type": "QEMU"}), r#"["==", "$hypervisor_type", "QEMU"]"#, 4),
    ] {
        for properties in [json!({"extra_specs": specs}), json!({"resource_properties": expression})] {
            let refused = site.post("/v1/leases", &like(5, &properties)).await;
            assert_eq!(refused.error().0, 400);
            let left = format!("5 hosts needed: {hosts} of 4 hosts left");
            assert!(hint(&refused).starts_with(&left), "{properties}: {}", hint(&refused));
        }
    }
    let wrong = site.post("/v1/leases", &like(1, &json!({"extra_specs": {"ssds": ">= many"}}))).await;
    let (status, message) = wrong.error();
    assert_eq!(status, 400);
    assert!(message.starts_with("Malformed extra_specs: ssds is compared as a number"), "{message}");
}

#[tokio::test]
async fn cls_07_filters_are_chosen_in_the_settings_and_named_in_refusals() {
    let mut settings = Settings::default();
    let filters = &mut settings.rules.filters;
    filters.enabled.remove(&Filter::Core);
    let requirement = Requirement::compare(Operator::NotEqual, "hypervisor_hostname", "r1-h01");
    let requirement = requirement.expect("well formed");
    filters.custom.push(CustomFilter { name: "NotTheFirst".into(), requirement });
    filters.isolated_hosts.insert("r1-h02".to_owned());
    let site = Site::of_settings(settings).await;
    site.add_hosts(4).await;
    let tenant = json!({"filter_tenant_id": "somebody"});
    site.put("/v1/os-hosts/3", &tenant).await.ok(200);
    let refused = site.post("/v1/leases", &like(2, &json!({}))).await;
    let expected = "2 hosts needed: 1 of 4 hosts left, 1 kept from leases (IsolatedHostsFilter), \
                    1 for other projects (AggregateMultiTenancyIsolation), \
                    1 against the operator's rules (NotTheFirst)";
    assert_eq!((refused.error().0, hint(&refused).as_str()), (400, expected));
    let left_out = site.post("/v1/leases", &like(1, &json!({"vcpus": 1}))).await;
    let text = "vcpus is not supported here: the operator has left CoreFilter out";
    assert_eq!(left_out.error(), (400, text.to_owned()));
    site.lease(&like(1, &json!({}))).await;
}

#[tokio::test]
async fn fb_f_a_lease_that_is_to_survive_failures_says_so_and_has_hosts_in_reserve() {
    let site = Site::of_settings(Settings::default()).await;
    site.add_hosts(4).await;
    for (id, rack) in [("1", "a"), ("2", "a"), ("3", "b"), ("4", "b")] {
        site.put(&format!("/v1/os-hosts/{id}"), &json!({ "rack": rack })).await.ok(200);
    }
    let lease = site.lease(&like(1, &json!({"survives": "rack"}))).await;
    let reservation = &lease["reservations"][0];
    assert_eq!((&reservation["survives"], &reservation["min"]), (&json!("rack"), &json!(1)));
    let path = format!("/v1/leases/{}", lease["id"].as_str().expect("an identifier"));
    let number_of_hosts = async || {
        let path =
            format!("/v1/os-hosts/allocations?lease_id={}", lease["id"].as_str().expect("an identifier"));
        let answer = site.get(&path).await.ok(200);
        let taken = answer["allocations"].as_array().expect("a list").iter();
        taken.filter(|entry| !entry["reservations"].as_array().expect("a list").is_empty()).count()
    };
    assert_eq!(number_of_hosts().await, 2, "one in either rack");
    let refused = site.post("/v1/leases", &like(2, &json!({"survives": "rack"}))).await;
    assert!(hint(&refused).contains("needed in case others fail"), "{}", hint(&refused));
    for (wrong, message) in [("", "Malformed parameter survives"), (" ", "Malformed parameter survives")] {
        let answer = site.post("/v1/leases", &like(1, &json!({ "survives": wrong }))).await;
        assert_eq!(answer.error(), (400, message.to_owned()));
    }
    let id = reservation["id"].as_str().expect("an identifier");
    let change = json!({"reservations": [{"id": id, "survives": null}]});
    site.put(&path, &change).await.ok(200);
    let shown = site.get(&path).await.ok(200);
    assert_eq!((shown["lease"]["reservations"][0].get("survives"), number_of_hosts().await), (None, 1));
    let room = json!({
        "name": "room", "start_date": "2030-01-05 12:00", "end_date": "2030-01-05 13:00", "events": [],
        "before_end_date": null,
        "reservations": [{
            "resource_type": "virtual:instance", "vcpus": 4, "memory_mb": 1024, "disk_gb": 1, "amount": 4,
            "affinity": null, "resource_properties": "", "survives": "host",
        }],
    });
    assert_eq!(site.lease(&room).await["reservations"][0]["survives"], "host");
}
