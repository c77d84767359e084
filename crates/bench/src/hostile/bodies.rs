//! Request bodies of attacks. Marks are expanded to the limits in the API document:
//!
//! | mark | expands to |
//! | --- | --- |
//! | `"$max"` | the longest string, or an object with the maximum number of strings |
//! | `"$expression"`, `"$values"` | the longest expression, or one with the maximum number of values |
//! | `["$each", ITEM]` | a list with the maximum number of items; `{i}` in a string is the index of the item |
//! | `"$rest"` as a field | as many additional fields as the limit leaves |
//! | `["$times", N]` | the number N, scaled down together with the lists |
//! | `"$hosts"`, `["$share", N]` | the number of hosts, or that number divided by N |
//!
//! `{name}` in a string is a variable of the client.

use serde_json::{Value, json};

fn whole_hosts(min: &Value, max: &Value, expression: &str) -> Value {
    json!({"resource_type": "physical:host", "min": min, "max": max, "hypervisor_properties": "",
           "resource_properties": expression})
}

fn instances(amount: u64, affinity: Option<bool>, expression: &str) -> Value {
    json!({"resource_type": "virtual:instance", "amount": amount, "vcpus": 1, "memory_mb": 1, "disk_gb": 1,
           "affinity": affinity, "resource_properties": expression})
}

fn lease(reservations: &Value) -> Value {
    json!({"name": "$max", "start_date": "{start}", "end_date": "{end}", "reservations": reservations})
}

fn with(mut body: Value, more: Value) -> Value {
    if let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) {
        body.extend(more);
    }
    body
}

pub fn large_lease() -> Value {
    lease(&json!(["$each", instances(1, None, "$expression")]))
}

pub fn large_series() -> Value {
    with(large_lease(), json!({"repeat": {"every": "1d", "times": ["$times", 200]}}))
}

/// A series with the maximum number of leases.
pub fn long_series() -> Value {
    with(
        lease(&json!([instances(1, None, "")])),
        json!({"repeat": {"every": "1d", "times": ["$times", 200]}}),
    )
}

/// A series that reserves many hosts for a year.
pub fn wide_series() -> Value {
    let hosts = whole_hosts(&json!(1), &json!(["$times", 100]), "");
    with(lease(&json!([hosts])), json!({"repeat": {"every": "1w", "times": 52}}))
}

pub fn many_values() -> Value {
    lease(&json!(["$each", whole_hosts(&json!(1), &json!(1), "$values")]))
}

/// Comparisons with a property that differs on each host.
pub fn comparisons() -> Value {
    let comparison = json!([">=", "$hypervisor_hostname", "a"]);
    let all = std::iter::once(json!("and")).chain(std::iter::repeat_n(comparison, 20)).collect::<Vec<_>>();
    lease(&json!([whole_hosts(&json!(1), &json!(1), &json!(all).to_string())]))
}

pub fn distinct_instances() -> Value {
    lease(&json!([with(instances(1, Some(false), ""), json!({"amount": ["$times", 1000]}))]))
}

pub fn many_instances() -> Value {
    lease(&json!([with(instances(1, None, ""), json!({"amount": ["$times", 20_000]}))]))
}

pub fn all_hosts() -> Value {
    lease(&json!([whole_hosts(&json!("$hosts"), &json!("$hosts"), "")]))
}

/// All hosts, at a time when some are already leased.
pub fn refused() -> Value {
    with(all_hosts(), json!({"start_date": "{tomorrow}", "end_date": "{next_week}"}))
}

pub fn waiting() -> Value {
    with(refused(), json!({"waitlist": true}))
}

pub fn best_effort() -> Value {
    json!({"name": "$max", "lease_type": "best-effort", "duration": "4h", "timeout": "7d",
           "reservations": [whole_hosts(&json!(["$share", 5]), &json!(["$share", 5]), "")]})
}

pub fn large_change() -> Value {
    let reservation = json!({"id": "{reservation_{i}}", "resource_properties": "$expression"});
    with(lease(&json!(["$each", reservation])), json!({}))
}

/// 32 bytes long.
pub fn short_change() -> Value {
    json!({"end_date": "{end_of_lease}"})
}

pub fn maintenance() -> Value {
    json!({"duration": "1h", "hosts": ["{host_id}"]})
}

pub fn login() -> Value {
    json!({"auth": {"identity": {"methods": ["password"], "password": {"user": {
        "name": "{member}", "domain": {"id": "default"}, "password": "password"}}},
        "scope": {"project": {"name": "{project}", "domain": {"id": "default"}}}}})
}

pub fn session() -> Value {
    json!({"user": "{member}", "password": "password", "project": "{project}"})
}

pub fn instance() -> Value {
    json!({"name": "$max", "vcpus": 1, "memory_mb": 1, "disk_gb": 1, "image_properties": "$max",
           "flavor_properties": "$max", "scheduler_hints": {"preemptible": true}})
}

pub fn filter() -> Value {
    json!({"vcpus": 1, "memory_mb": 1, "disk_gb": 1, "project_id": "{project}", "hosts": ["$each", "r1-h{i}"],
           "image_properties": "$max", "flavor_properties": "$max"})
}

pub fn vendordata() -> Value {
    json!({"instance-id": "4d8a8b06-6ee4-4bd0-94f6-cf9f8d1ab3d5"})
}

/// A machine with the maximum number of capabilities.
pub fn host() -> Value {
    json!({"id": "{machine}", "$rest": "$max"})
}

pub fn host_change() -> Value {
    json!({"$rest": "$max"})
}

pub fn property() -> Value {
    json!({"private": false})
}

pub fn free_pool() -> Value {
    json!({"name": "{user}-{n}", "extra_specs": "$max"})
}

pub fn free_pool_change() -> Value {
    json!({"extra_specs": "$max"})
}

pub fn small_lease_pool() -> Value {
    json!({"name": "{user}-{n}", "host_count": 1, "duration": "1h"})
}

pub fn lease_pool() -> Value {
    json!({"name": "$max", "host_count": ["$times", 100], "duration": "1h", "extra_specs": {}})
}

pub fn lease_pool_change() -> Value {
    json!({"name": "$max"})
}

pub fn lease_pool_hosts() -> Value {
    json!({"host_count": 1})
}

pub fn lease_pool_swap() -> Value {
    json!({"host_id": "{pooled_host}"})
}

pub fn floating_ip() -> Value {
    json!({"floating_network_id": "public", "floating_ip_address": "{address}"})
}

pub fn flavor() -> Value {
    json!({"id": "{user}-{n}", "name": "{user}-{n}", "vcpus": 1, "ram": 1, "disk": 1, "extra_specs": "$max"})
}

pub fn flavor_change() -> Value {
    json!({"name": "{user}", "vcpus": 1, "ram": 1, "disk": 1, "extra_specs": "$max"})
}

/// A cluster in Ganeti's text format.
pub fn cluster(nodes: usize, instances: usize) -> String {
    let node = |node| format!("n{node}|32768|1024|30720|409600|300000|16|N|u1|1||N|0|1|1.0\n");
    let instance = |instance| {
        let (primary, secondary) = (instance % nodes, (instance + 1) % nodes);
        format!("i{instance}|1024|10240|1|running|Y|n{primary}|n{secondary}|drbd||1|-|N\n")
    };
    let nodes: String = (0..nodes).map(node).collect();
    let instances: String = (0..instances).map(instance).collect();
    format!("g1|u1|preferred||\n\n{nodes}\n{instances}\n\n")
}

/// A cluster as large as the body limit of placement requests allows.
fn largest_cluster() -> String {
    cluster(36_000, 108_000)
}

pub fn balance() -> Value {
    json!({"text": largest_cluster()})
}

pub fn drain() -> Value {
    json!({"text": largest_cluster(), "nodes": ["n1"]})
}

pub fn fit() -> Value {
    json!({"text": largest_cluster(), "shape": "10g,1g,1"})
}

pub fn what_if() -> Value {
    json!({"text": largest_cluster(), "lose": ["n1"]})
}

pub fn large_drain() -> Value {
    json!({"text": cluster(20_000, 60_000), "nodes": ["n1"]})
}

pub fn small_drain() -> Value {
    json!({"text": cluster(3, 3), "nodes": ["n1"]})
}
