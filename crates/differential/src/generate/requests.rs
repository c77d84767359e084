//! Draws iallocator requests of all six types, some of them invalid.

use chores::random::Random;

use super::cluster::{Shape, TEMPLATES, new_instance};
use super::model::{Cluster, Instance};
use super::{message, tags};
use crate::json::Json;

/// Draws a request of one type.
type Kind = fn(&mut Random, &Shape, &Cluster) -> Json;

/// Draws the `request` member.
pub fn draw(random: &mut Random, shape: &Shape, cluster: &Cluster) -> Json {
    let kinds: &[(usize, Kind)] = if cluster.instances.is_empty() {
        &[(80, allocate), (20, multi_allocate)]
    } else {
        &[
            (36, allocate),
            (14, multi_allocate),
            (14, relocate),
            (18, node_evacuate),
            (12, change_group),
            (6, allocate_secondary),
        ]
    };
    random.weighted(kinds)(random, shape, cluster)
}

/// Adds the members of another object to a request.
pub(super) fn append(request: &mut Json, more: Json) {
    if let (Json::Object(members), Json::Object(more)) = (request, more) {
        members.extend(more);
    }
}

fn wanted(random: &mut Random, shape: &Shape, number: usize) -> (Json, Instance) {
    let mut instance = new_instance(random, shape);
    if random.chance(15) {
        instance.template = random.pick(&TEMPLATES);
        instance.disk = if instance.template == "diskless" { 0 } else { instance.disk.max(5000) };
    }
    if random.chance(6) {
        instance.memory = random.pick(&[64, 30_000, 40_000, 100_000]);
    }
    if shape.tags && random.chance(60) {
        instance.tags = tags::for_instance(random);
    }
    if random.chance(4) {
        instance.status = "ADMIN_down";
    }
    instance.forthcoming = random.chance(3 + shape.forthcoming);
    let usual = if instance.template == "drbd" { 2 } else { 1 };
    let nodes = if random.chance(96) { usual } else { random.pick(&[0, 1, 2, 3]) };
    let mut request = Json::object([
        ("name", Json::text(format!("new{number}.zone.test"))),
        ("required_nodes", Json::number(nodes)),
    ]);
    append(&mut request, message::instance(&instance));
    (request, instance)
}

fn group_name(random: &mut Random, cluster: &Cluster) -> Json {
    let group = random.one_of(&cluster.groups);
    match random.below(20) {
        0 => Json::text("nosuch"),
        1 => Json::Null,
        2..=6 => Json::text(&group.uuid),
        _ => Json::text(&group.name),
    }
}

fn allocate(random: &mut Random, shape: &Shape, cluster: &Cluster) -> Json {
    let mut request = Json::object([("type", Json::text("allocate"))]);
    let (instance, _) = wanted(random, shape, 0);
    append(&mut request, instance);
    if random.chance(30) {
        request.set("group_name", group_name(random, cluster));
    }
    if random.chance(12) {
        let names: Vec<String> = cluster.nodes.iter().map(|n| n.name.clone()).collect();
        let count = random.below(5);
        let mut nodes = random.some(&names, count);
        if random.chance(10) {
            nodes.push("nosuch".to_owned());
        }
        request.set("restrict-to-nodes", if random.chance(90) { Json::texts(&nodes) } else { Json::Null });
    }
    request
}

fn multi_allocate(random: &mut Random, shape: &Shape, cluster: &Cluster) -> Json {
    let mut instances = Vec::new();
    for number in 0..random.weighted(&[(5, 0), (25, 1), (30, 2), (25, 3), (15, 5)]) {
        let (mut instance, _) = wanted(random, shape, number);
        if random.chance(10) {
            instance.set("group_name", group_name(random, cluster));
        }
        instances.push(instance);
    }
    let mut request =
        Json::object([("type", Json::text("multi-allocate")), ("instances", Json::List(instances))]);
    if random.chance(40) {
        request.set("group_name", group_name(random, cluster));
    }
    request
}

fn relocate(random: &mut Random, _: &Shape, cluster: &Cluster) -> Json {
    let instance = random.one_of(&cluster.instances);
    let usual = instance.secondary.unwrap_or(instance.primary);
    let mut from = vec![cluster.nodes[usual].name.clone()];
    match random.below(100) {
        0..6 => from.push(random.one_of(&cluster.nodes).name.clone()),
        6..12 => from = vec![random.one_of(&cluster.nodes).name.clone()],
        12..14 => from = vec!["nosuch".to_owned()],
        _ => {}
    }
    let name = if random.chance(3) { "nosuch".to_owned() } else { instance.name.clone() };
    Json::object([
        ("type", Json::text("relocate")),
        ("name", Json::text(name)),
        ("relocate_from", Json::texts(&from)),
        ("required_nodes", Json::number(if random.chance(4) { 2 } else { 1 })),
    ])
}

/// Names of instances for one request: either from one node or from the whole cluster.
fn victims(random: &mut Random, cluster: &Cluster) -> Vec<String> {
    let node = random.below(cluster.nodes.len());
    let any = random.chance(40);
    let of_node = cluster.instances.iter().filter(|i| any || i.primary == node || i.secondary == Some(node));
    let names: Vec<String> = of_node.map(|i| i.name.clone()).collect();
    let count = 1 + random.below(8);
    let mut names = random.some(&names, count);
    if random.chance(10) {
        names.reverse();
    }
    if let Some(first) = names.first_mut().filter(|_| random.chance(15)) {
        // a name without the cluster's common suffix is accepted too
        *first = first.split('.').next().unwrap_or_default().to_owned();
    }
    if random.chance(3) {
        names.push("nosuch".to_owned());
    }
    names
}

fn node_evacuate(random: &mut Random, _: &Shape, cluster: &Cluster) -> Json {
    let mode = random.weighted(&[(35, "primary-only"), (35, "secondary-only"), (28, "all"), (2, "some")]);
    Json::object([
        ("type", Json::text("node-evacuate")),
        ("instances", Json::texts(&victims(random, cluster))),
        ("evac_mode", Json::text(mode)),
    ])
}

fn change_group(random: &mut Random, shape: &Shape, cluster: &Cluster) -> Json {
    if cluster.groups.len() < 2 && random.chance(85) {
        // no other group to change to
        return node_evacuate(random, shape, cluster);
    }
    // Usually instances of one group move to other groups, sometimes any instances to any group.
    let source = (!random.chance(15)).then(|| random.below(cluster.groups.len()));
    let mut names = victims(random, cluster);
    if let Some(source) = source {
        let there = cluster.instances.iter().filter(|i| cluster.nodes[i.primary].group == source);
        let there: Vec<String> = there.map(|i| i.name.clone()).collect();
        let count = 1 + random.below(5);
        names = random.some(&there, count);
    }
    let mut targets = Vec::new();
    let all = random.chance(30);
    for (index, group) in cluster.groups.iter().enumerate() {
        if !all && (source != Some(index) || random.chance(10)) && random.chance(65) {
            targets.push(if random.chance(50) { group.name.clone() } else { group.uuid.clone() });
        }
    }
    if random.chance(3) {
        targets.push("nosuch".to_owned());
    }
    Json::object([
        ("type", Json::text("change-group")),
        ("instances", Json::texts(&names)),
        ("target_groups", Json::texts(&targets)),
    ])
}

fn allocate_secondary(random: &mut Random, _: &Shape, cluster: &Cluster) -> Json {
    let plain: Vec<&Instance> = cluster.instances.iter().filter(|i| i.secondary.is_none()).collect();
    let instance = if plain.is_empty() || random.chance(15) {
        random.one_of(&cluster.instances)
    } else {
        random.pick(&plain)
    };
    Json::object([("type", Json::text("allocate-secondary")), ("name", Json::text(&instance.name))])
}
