//! A generated cluster and request as an iallocator message (`hail FILE`).

use super::model::{Cluster, Group, Instance, Node, Policy, Spec};
use crate::json::Json;

/// The whole message.
pub fn render(cluster: &Cluster, request: &Json) -> Json {
    let dictionary = |members: Vec<(String, Json)>| Json::Object(members);
    Json::object([
        ("version", Json::number(2)),
        ("cluster_name", Json::text("cluster.zone.test")),
        ("cluster_tags", Json::texts(&cluster.tags)),
        ("enabled_hypervisors", Json::texts(&cluster.hypervisors)),
        ("ipolicy", policy(&Policy::built_in())),
        ("nodegroups", dictionary(cluster.groups.iter().map(|g| (g.uuid.clone(), group(g))).collect())),
        ("nodes", dictionary(cluster.nodes.iter().map(|n| (n.name.clone(), node(cluster, n))).collect())),
        (
            "instances",
            dictionary(cluster.instances.iter().map(|i| (i.name.clone(), placed(cluster, i))).collect()),
        ),
        ("request", request.clone()),
    ])
}

fn group(group: &Group) -> Json {
    let built_in = Policy::built_in();
    Json::object([
        ("name", Json::text(&group.name)),
        ("alloc_policy", Json::text(group.alloc_policy)),
        ("networks", Json::texts(&group.networks)),
        ("ipolicy", policy(group.policy.as_ref().unwrap_or(&built_in))),
        ("tags", Json::texts(&group.tags)),
    ])
}

pub fn policy(policy: &Policy) -> Json {
    let bounds =
        policy.bounds.iter().map(|(min, max)| Json::object([("min", spec(min)), ("max", spec(max))]));
    Json::object([
        ("minmax", Json::List(bounds.collect())),
        ("std", spec(&policy.standard)),
        ("disk-templates", Json::texts(&policy.templates)),
        ("vcpu-ratio", Json::number(policy.vcpu_ratio)),
        ("spindle-ratio", Json::number(policy.spindle_ratio)),
    ])
}

fn spec(spec: &Spec) -> Json {
    let names = ["memory-size", "cpu-count", "disk-size", "disk-count", "nic-count", "spindle-use"];
    Json::Object(names.iter().zip(spec).map(|(name, n)| ((*name).to_owned(), Json::number(n))).collect())
}

fn node(cluster: &Cluster, node: &Node) -> Json {
    let mut parameters = Json::object([("exclusive_storage", Json::Bool(node.exclusive))]);
    parameters.set("spindle_count", Json::number(node.spindles));
    let mut value = Json::object([
        ("tags", Json::texts(&node.tags)),
        ("group", Json::text(&cluster.groups[node.group].uuid)),
        ("offline", Json::Bool(node.role == 'Y')),
        ("drained", Json::Bool(node.drained)),
        ("master_candidate", Json::Bool(true)),
        ("vm_capable", Json::Bool(!node.unknown)),
        ("ndparams", parameters),
    ]);
    if !node.unknown {
        value.set("total_memory", Json::number(node.total_memory));
        value.set("reserved_memory", Json::number(node.system_memory));
        value.set("free_memory", Json::number(node.free_memory));
        value.set("total_disk", Json::number(node.total_disk));
        value.set("free_disk", Json::number(node.free_disk));
        value.set("total_spindles", Json::number(node.spindles));
        value.set("free_spindles", Json::number(node.free_spindles));
        value.set("total_cpus", Json::number(node.cpus));
        value.set("reserved_cpus", Json::number(node.system_cpus));
    }
    value
}

fn placed(cluster: &Cluster, item: &Instance) -> Json {
    let mut value = instance(item);
    let nodes = [Some(item.primary), item.secondary];
    let names: Vec<&str> = nodes.iter().flatten().map(|n| cluster.nodes[*n].name.as_str()).collect();
    value.set("nodes", Json::texts(&names));
    value
}

/// Sizes and spindles of an instance's disks.
///
/// Every fourth instance has two disks; the second takes the odd spindle.
pub fn disks(item: &Instance) -> Vec<(i64, Option<i64>)> {
    if item.disk == 0 {
        Vec::new()
    } else if item.disk % 4 == 1 {
        let (size, spindles) = (item.disk / 2, item.spindles.map(|s| s / 2));
        vec![(size, spindles), (item.disk - size, item.spindles.map(|s| s - s / 2))]
    } else {
        vec![(item.disk, item.spindles)]
    }
}

/// Members that existing and requested instances share.
pub fn instance(item: &Instance) -> Json {
    let disk = |size: i64, spindles: Option<i64>| {
        let spindles = spindles.map_or(Json::Null, Json::number);
        Json::object([("mode", Json::text("rw")), ("size", Json::number(size)), ("spindles", spindles)])
    };
    let disks: Vec<Json> = disks(item).into_iter().map(|(size, spindles)| disk(size, spindles)).collect();
    let metadata = if item.template == "drbd" { 128 * disks.len() as i64 } else { 0 };
    let state = match item.status {
        "ADMIN_down" | "ERROR_down" | "USER_down" => "down",
        "ADMIN_offline" => "offline",
        _ => "up",
    };
    let nic = |network: &Option<String>| {
        let network = network.as_ref().map_or(Json::Null, Json::text);
        Json::object([("mac", Json::text("aa:00:00:00:00:01")), ("network", network)])
    };
    Json::object([
        ("memory", Json::number(item.memory)),
        ("vcpus", Json::number(item.vcpus)),
        ("disk_space_total", Json::number(item.disk + metadata)),
        ("disks", Json::List(disks)),
        ("disk_template", Json::text(item.template)),
        ("tags", Json::texts(&item.tags)),
        ("spindle_use", Json::number(item.spindle_use)),
        ("nics", Json::List(item.networks.iter().map(nic).collect())),
        ("admin_state", Json::text(state)),
        ("forthcoming", Json::Bool(item.forthcoming)),
    ])
}
