//! Expressions on host properties: the meaning of `not`, and errors about names that no host has.

use std::collections::BTreeSet;

use axum::http::Method;
use leases::filters::{CustomFilter, Filter};
use leases::requirement::{Operator, Requirement};
use serde_json::{Value, json};
use service::Settings;

use crate::site::{Answer, Site, hosts_lease};

/// A lease of `hosts` hosts that match the expression.
fn asking(hosts: u32, expression: &Value) -> Value {
    let mut body = hosts_lease(hosts, hosts, "2030-01-02 10:00", "2030-01-02 12:00");
    body["reservations"][0]["resource_properties"] = json!(expression.to_string());
    body
}

/// Four hosts. The first has `gpu=yes`, the second has `gpu=no`.
async fn with_gpus(site: &Site, who: &str) {
    site.add_hosts_as(who, 4).await;
    for (id, gpu) in [("1", "yes"), ("2", "no")] {
        site.send_as(who, Method::PUT, &format!("/v1/os-hosts/{id}"), Some(&json!({"gpu": gpu})))
            .await
            .ok(200);
    }
}

/// Number of hosts that match.
async fn matching(site: &Site, body: impl Fn(u32) -> Value) -> u32 {
    for hosts in (1..=4).rev() {
        if site.post("/v1/leases?dry_run=true", &body(hosts)).await.status == 200 {
            return hosts;
        }
    }
    0
}

#[tokio::test]
async fn not_means_that_it_is_not_so_also_for_hosts_without_the_property() {
    let site = Site::open().await;
    with_gpus(&site, "any").await;
    let (yes, other) = (json!(["==", "$gpu", "yes"]), json!(["!=", "$gpu", "yes"]));
    for (expression, hosts) in [
        (yes.clone(), 1),
        (other.clone(), 1),
        (json!(["not", yes]), 3),
        (json!(["not", other]), 3),
        (json!(["not", ["not", yes]]), 1),
        (json!(["not", ["in", "$gpu", "yes", "no"]]), 2),
        (json!(["not", ["and", yes, ["==", "$rack", "r1"]]]), 3),
        (json!(["not", ["or", yes, other]]), 2),
        (json!(["and", ["==", "$rack", "r1"], ["not", yes]]), 3),
        (json!(["or", ["not", yes], ["==", "$gpu", "yes"]]), 4),
        (json!(["not", ["<", "$nosuch", "5"]]), 4),
        (json!(["not", ["==", "$rack", "r1"]]), 0),
    ] {
        assert_eq!(matching(&site, |hosts| asking(hosts, &expression)).await, hosts, "{expression}");
        let hinted = |hosts| {
            let mut body = asking(hosts, &json!([]));
            body["scheduler_hints"] = json!({"query": expression});
            body
        };
        assert_eq!(matching(&site, hinted).await, hosts, "hint {expression}");
        let instances = |hosts: u32| {
            let mut body = asking(hosts, &json!([]));
            body["reservations"][0] = json!({"resource_type": "virtual:instance", "vcpus": 1, "memory_mb": 1024,
                "disk_gb": 1, "amount": hosts, "affinity": false, "resource_properties": expression.to_string()});
            body
        };
        assert_eq!(matching(&site, instances).await, hosts, "instances {expression}");
    }
}

#[tokio::test]
async fn filters_of_the_operator_mean_the_same_by_not() {
    let full = Requirement::compare(Operator::Equal, "state", "full").expect("well formed");
    let custom = CustomFilter {
        name: "NotFull".into(),
        requirement: Requirement::negated(full).expect("well formed"),
    };
    let mut settings = Settings::default();
    settings.rules.filters.custom = vec![custom];
    assert!(settings.rules.filters.enabled.is_superset(&BTreeSet::from([Filter::Json])));
    let site = Site::of_settings(settings).await;
    site.add_hosts(4).await;
    site.put("/v1/os-hosts/1", &json!({"state": "full"})).await.ok(200);
    site.put("/v1/os-hosts/2", &json!({"state": "empty"})).await.ok(200);
    assert_eq!(matching(&site, |hosts| asking(hosts, &json!([]))).await, 3);
}

fn hint(answer: &Answer) -> String {
    assert_eq!(answer.status, 400, "{}", answer.text);
    answer.json()["hint"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_property_that_no_host_has_is_named_with_those_that_there_are() {
    let site = Site::open().await;
    with_gpus(&site, "any").await;
    let rak = json!(["==", "$rak", "r1"]);
    let wanted = "no host has a property rak; there are rack, gpu";
    let refused = [
        site.post("/v1/leases?dry_run=true", &asking(1, &rak)).await,
        site.post("/v1/leases", &asking(1, &rak)).await,
        site.post("/v1/leases", &{
            let mut body = asking(1, &json!([]));
            body["reservations"][0]["extra_specs"] = json!({"rak": "r1"});
            body
        })
        .await,
        site.post("/v1/leases", &{
            let mut body = asking(1, &json!([]));
            body["scheduler_hints"] = json!({"query": rak});
            body
        })
        .await,
        site.post("/v1/leases", &{
            let mut body = asking(1, &rak);
            body["repeat"] = json!({"every": "1d", "times": 2});
            body
        })
        .await,
        site.post("/v1/leases", &{
            let mut body = asking(1, &rak);
            body["lease_type"] = json!("BEST-EFFORT");
            body["start_date"] = json!("now");
            body
        })
        .await,
    ];
    for refused in refused {
        let hint = hint(&refused);
        assert!(hint.ends_with(wanted), "{hint}");
    }
    let lease = site.lease(&asking(1, &json!(["==", "$rack", "r1"]))).await;
    let change = json!({"reservations": [{"id": lease["reservations"][0]["id"], "resource_properties": rak.to_string()}]});
    let path = format!("/v1/leases/{}", lease["id"].as_str().expect("an identifier"));
    assert!(hint(&site.put(&path, &change).await).ends_with(wanted));
    let fields = hint(&site.post("/v1/leases", &asking(1, &json!([">=", "$vcpu", "1"]))).await);
    assert!(fields.contains("no host has a property vcpu; there are vcpus, gpu, rack"), "{fields}");
    let known = hint(&site.post("/v1/leases", &asking(1, &json!(["==", "$rack", "r9"]))).await);
    assert!(known.ends_with("no host has rack=r9; its values are r1"), "{known}");
}

#[tokio::test]
async fn a_value_that_no_host_has_is_named_with_those_that_there_are() {
    let site = Site::open().await;
    with_gpus(&site, "any").await;
    let gpu = "no host has gpu=yess; its values are yes, no";
    for (expression, wanted) in [
        (json!(["==", "$gpu", "yess"]), gpu),
        (json!(["in", "$gpu", "yess"]), gpu),
        (json!(["and", [">=", "$vcpus", "1"], ["==", "$gpu", "yess"]]), gpu),
        (json!(["==", "$availability_zone", "mars"]), "no host has availability_zone=mars; its values are"),
        (
            json!(["==", "$hypervisor_hostname", "r1-h9"]),
            "no host has hypervisor_hostname=r1-h9; its values are",
        ),
    ] {
        let hint = hint(&site.post("/v1/leases", &asking(1, &expression)).await);
        assert!(hint.contains(wanted), "{expression}: {hint}");
    }
    let mut zone = asking(1, &json!([]));
    zone["reservations"][0]["availability_zone"] = json!("mars");
    let hint = hint(&site.post("/v1/leases", &zone).await);
    assert!(hint.contains("no host has availability_zone=mars; its values are"), "{hint}");
}

#[tokio::test]
async fn a_comparison_with_a_value_of_another_type_is_malformed() {
    let site = Site::open().await;
    with_gpus(&site, "any").await;
    site.put("/v1/os-hosts/3", &json!({"gpus": "4"})).await.ok(200);
    let lease = site.lease(&asking(1, &json!([]))).await;
    for (expression, why) in [
        (json!([">=", "$vcpus", "many"]), "$vcpus is a number, and 'many' is not"),
        (json!(["==", "$memory_mb", "64G"]), "$memory_mb is a number, and '64G' is not"),
        (json!(["not", ["<", "$local_gb", "1T"]]), "$local_gb is a number, and '1T' is not"),
        (json!([">", "$gpus", "four"]), "$gpus is a number, and 'four' is not"),
        (json!(["<", "$rack", 5]), "$rack is text, and 5 is a number: its values are r1"),
    ] {
        let answer = site.post("/v1/leases", &asking(1, &expression)).await;
        let (status, text) = answer.error();
        assert!(status == 400 && text.starts_with("Malformed requirements"), "{expression}: {text}");
        assert!(answer.text.contains(why), "{expression}: {}", answer.text);
        let id = &lease["reservations"][0]["id"];
        let change = json!({"reservations": [{"id": id, "resource_properties": expression.to_string()}]});
        let path = format!("/v1/leases/{}", lease["id"].as_str().expect("an identifier"));
        let (_, text) = site.put(&path, &change).await.error();
        assert!(text.starts_with("Malformed requirements"), "{expression}: {text}");
        let expression = expression.to_string().replace('"', "%22").replace('>', "%3E").replace('<', "%3C");
        let path = format!("/v1/availability?resource_properties={expression}");
        let (_, text) = site.get(&path).await.error();
        assert!(text.starts_with("Malformed requirements"), "{expression}: {text}");
    }
    for fine in [json!([">", "$gpus", "2"]), json!(["<", "$rack", "r2"]), json!(["!=", "$gpu", "5"])] {
        site.post("/v1/leases?dry_run=true", &asking(1, &fine)).await.ok(200);
    }
}

#[tokio::test]
async fn names_of_properties_are_shown_to_whoever_may_list_them() {
    let site = Site::guarded().await;
    with_gpus(&site, "admin").await;
    site.send_as("admin", Method::PATCH, "/v1/os-hosts/properties/gpu", Some(&json!({"private": true})))
        .await
        .ok(200);
    let listed = site.send_as("member", Method::GET, "/v1/os-hosts/properties", None).await;
    let body = asking(1, &json!(["==", "$rak", "r1"]));
    let said = async |who: &str| hint(&site.send_as(who, Method::POST, "/v1/leases", Some(&body)).await);
    assert!(said("admin").await.ends_with("no host has a property rak; there are rack, gpu"));
    let member = said("member").await;
    let wanted = match listed.status.as_u16() {
        200 => "no host has a property rak; there is rack",
        _ => "no host has a property rak",
    };
    assert!(member.ends_with(wanted), "{member}");
}

#[tokio::test]
async fn many_unknown_names_make_a_short_hint() {
    let site = Site::open().await;
    with_gpus(&site, "any").await;
    let parts = (0..40).map(|number| json!(["==", format!("${}{number}", "x".repeat(300)), "1"]));
    let expression = Value::Array(std::iter::once(json!("or")).chain(parts).collect());
    let hint = hint(&site.post("/v1/leases", &asking(1, &expression)).await);
    assert_eq!(hint.matches("no host has a property").count(), 3, "{hint}");
    assert!(hint.chars().count() < 1500, "{hint}");
}
