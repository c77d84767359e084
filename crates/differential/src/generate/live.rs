//! A generated cluster as live sources describe it: documents of the remote API and answers of the master
//! daemon.

use chores::random::Random;

use super::damage;
use super::message::{disks, policy};
use super::model::{Cluster, Group, Instance, Node, Policy, Program, Source};
use crate::json::Json;

/// Status of a cell that the daemon couldn't fill, and of a cell that it didn't try to fill.
const UNAVAILABLE: i64 = 3;
const OFFLINE: i64 = 4;

/// Draws the source of a program's cluster: seldom a live one, unless the program has no other.
pub fn draw(random: &mut Random, program: Program) -> Source {
    match program {
        Program::Hail => Source::File,
        Program::Hscan => random.weighted(&[(50, Source::Rapi), (50, Source::Luxi)]),
        Program::Hsqueeze => random.weighted(&[(88, Source::File), (12, Source::Luxi)]),
        _ => random.weighted(&[(85, Source::File), (8, Source::Rapi), (7, Source::Luxi)]),
    }
}

/// Documents of the remote API, by file name.
pub fn documents(cluster: &Cluster, damage: Option<&(usize, Json)>) -> Vec<(&'static str, String)> {
    let list = |items: Vec<Json>| Json::List(items);
    let mut documents = [
        ("groups.json", list(cluster.groups.iter().map(group_document).collect())),
        ("nodes.json", list(cluster.nodes.iter().map(|node| node_document(cluster, node)).collect())),
        ("instances.json", list(cluster.instances.iter().map(|i| instance_document(cluster, i)).collect())),
        ("info.json", info(cluster)),
    ];
    if let Some((place, value)) = damage {
        damage::apply(&mut documents[place % 4].1, place / 4, value);
    }
    documents.into_iter().map(|(name, document)| (name, document.to_string())).collect()
}

/// Answers of the master daemon, by the name of the file that the simulated daemon reads them from.
pub fn answers(cluster: &Cluster, damage: Option<&(usize, Json)>) -> Vec<(&'static str, String)> {
    let mut answers = [
        ("node.luxi", cluster.nodes.iter().map(|node| node_row(cluster, node)).collect::<Vec<_>>()),
        ("instance.luxi", cluster.instances.iter().map(|i| instance_row(cluster, i)).collect()),
        ("group.luxi", cluster.groups.iter().map(group_row).collect()),
    ];
    if let Some((place, value)) = damage {
        damage_cell(&mut answers[place % 3].1, place / 3, value);
    }
    let mut files = vec![("cluster.luxi", info(cluster).to_string())];
    for (name, rows) in answers {
        let rows = rows.into_iter().map(Json::List).collect();
        let answer = Json::object([("fields", Json::List(Vec::new())), ("data", Json::List(rows))]);
        files.push((name, answer.to_string()));
    }
    files
}

/// Damages a cell like a member of a message. Texts and lists stand for statuses that only cells have.
fn damage_cell(rows: &mut [Vec<Json>], place: usize, value: &Json) {
    let cells: usize = rows.iter().map(Vec::len).sum();
    let mut left = if cells == 0 { 0 } else { place % cells };
    for row in rows {
        if left < row.len() {
            match value {
                Json::Text(text) if *text == damage::REMOVED => drop(row.remove(left)),
                Json::Text(_) => row[left] = cell(UNAVAILABLE, Json::Null),
                Json::List(_) => row[left] = cell(OFFLINE, Json::Null),
                value => row[left] = cell(0, value.clone()),
            }
            return;
        }
        left -= row.len();
    }
}

fn cell(status: i64, value: Json) -> Json {
    Json::List(vec![Json::number(status), value])
}

fn known(value: Json) -> Json {
    cell(0, value)
}

fn group_policy(group: &Group) -> Json {
    policy(group.policy.as_ref().unwrap_or(&Policy::built_in()))
}

fn info(cluster: &Cluster) -> Json {
    let master = cluster.nodes.iter().find(|node| node.role == 'M').or(cluster.nodes.first());
    let hypervisor = cluster.hypervisors.first().map_or("fake", String::as_str);
    Json::object([
        ("name", Json::text("cluster.zone.test")),
        ("master", Json::text(master.map_or("nobody", |node| &node.name))),
        ("tags", Json::texts(&cluster.tags)),
        ("ipolicy", policy(cluster.policy.as_ref().unwrap_or(&Policy::built_in()))),
        ("default_hypervisor", Json::text(hypervisor)),
    ])
}

fn group_document(group: &Group) -> Json {
    Json::object([
        ("name", Json::text(&group.name)),
        ("uuid", Json::text(&group.uuid)),
        ("alloc_policy", Json::text(group.alloc_policy)),
        ("ipolicy", group_policy(group)),
        ("tags", Json::texts(&group.tags)),
        ("node_cnt", Json::number(0)),
    ])
}

fn group_row(group: &Group) -> Vec<Json> {
    vec![
        known(Json::text(&group.uuid)),
        known(Json::text(&group.name)),
        known(Json::text(group.alloc_policy)),
        known(group_policy(group)),
        known(Json::texts(&group.tags)),
    ]
}

/// Resources of an offline node are unknown or outdated.
fn offline(node: &Node) -> bool {
    node.role == 'Y' || node.unknown
}

fn node_document(cluster: &Cluster, node: &Node) -> Json {
    let figure = |value: Json| if node.unknown { Json::Null } else { value };
    let mut parameters = Json::object([("exclusive_storage", Json::Bool(node.exclusive))]);
    parameters.set("cpu_speed", Json::number(node.cpu_speed));
    if !node.exclusive || node.tags.is_empty() {
        parameters.set("spindle_count", Json::number(node.spindles));
    }
    let mut value = Json::object([
        ("name", Json::text(&node.name)),
        ("offline", Json::Bool(offline(node))),
        ("drained", Json::Bool(node.drained)),
        ("ndparams", parameters),
        ("group.uuid", Json::text(&cluster.groups[node.group].uuid)),
        ("tags", Json::texts(&node.tags)),
        ("mtotal", figure(Json::number(node.total_memory))),
        ("mnode", figure(Json::number(node.system_memory))),
        ("mfree", figure(Json::number(node.free_memory))),
        ("dtotal", figure(Json::number(node.total_disk))),
        ("dfree", figure(Json::number(node.free_disk))),
        ("ctotal", figure(Json::number(node.cpus))),
        ("cnos", figure(Json::number(node.system_cpus))),
        ("sptotal", if node.exclusive { figure(Json::number(node.spindles)) } else { Json::Null }),
    ]);
    if node.exclusive || node.free_spindles > 0 {
        value.set("spfree", figure(Json::number(node.free_spindles)));
    }
    if node.spindles % 2 == 0 {
        value.set("vm_capable", Json::Bool(node.spindles != 0 || node.exclusive));
    }
    value
}

fn node_row(cluster: &Cluster, node: &Node) -> Vec<Json> {
    let status = if node.unknown { OFFLINE } else { 0 };
    let figure = |value: Json| if node.unknown { cell(OFFLINE, Json::Null) } else { known(value) };
    // The size of a volume group isn't always available.
    let disk = |value: Json| {
        if status == 0 && node.free_disk % 16 == 5 { cell(UNAVAILABLE, Json::Null) } else { figure(value) }
    };
    vec![
        known(Json::text(&node.name)),
        figure(Json::number(node.total_memory)),
        figure(Json::number(node.system_memory)),
        figure(Json::number(node.free_memory)),
        disk(Json::number(node.total_disk)),
        disk(Json::number(node.free_disk)),
        figure(Json::number(node.cpus)),
        figure(Json::number(node.system_cpus)),
        known(Json::Bool(offline(node))),
        known(Json::Bool(node.drained)),
        known(Json::Bool(node.spindles != 0 || node.exclusive)),
        known(Json::number(node.spindles)),
        known(Json::text(&cluster.groups[node.group].uuid)),
        known(Json::texts(&node.tags)),
        known(Json::Bool(node.exclusive)),
        if node.exclusive { figure(Json::number(node.spindles)) } else { cell(UNAVAILABLE, Json::Null) },
        if node.free_spindles > 0 { figure(Json::number(node.free_spindles)) } else { known(Json::Null) },
        known(Json::number(node.cpu_speed)),
    ]
}

/// Sizes and spindles of an instance's disks, as two lists.
fn disk_lists(instance: &Instance) -> (Json, Json) {
    let (sizes, spindles): (Vec<Json>, Vec<Json>) = disks(instance)
        .into_iter()
        .map(|(size, spindles)| (Json::number(size), spindles.map_or(Json::Null, Json::number)))
        .unzip();
    (Json::List(sizes), Json::List(spindles))
}

fn disk_usage(instance: &Instance) -> Json {
    let metadata = if instance.template == "drbd" { 128 * disks(instance).len() as i64 } else { 0 };
    Json::number(instance.disk + metadata)
}

fn secondaries(cluster: &Cluster, instance: &Instance) -> Json {
    let names: Vec<&str> = instance.secondary.iter().map(|node| cluster.nodes[*node].name.as_str()).collect();
    Json::texts(&names)
}

fn instance_document(cluster: &Cluster, instance: &Instance) -> Json {
    let (sizes, spindles) = disk_lists(instance);
    let running = instance.uses_memory();
    // A running instance counts with the memory it uses, not its configured memory, so these differ.
    let configured = instance.memory + if running { 64 } else { 0 };
    let mut parameters = Json::object([
        ("vcpus", Json::number(instance.vcpus)),
        ("auto_balance", Json::Bool(instance.auto_balance)),
        ("spindle_use", Json::number(instance.spindle_use)),
        ("maxmem", Json::number(configured)),
    ]);
    if instance.vcpus != 4 {
        parameters.set("memory", Json::number(configured));
    }
    let mut value = Json::object([
        ("name", Json::text(&instance.name)),
        ("disk_usage", disk_usage(instance)),
        ("disk.sizes", sizes),
        ("disk.spindles", spindles),
        ("beparams", parameters),
        ("oper_ram", if running { Json::number(instance.memory) } else { Json::Null }),
        ("pnode", Json::text(&cluster.nodes[instance.primary].name)),
        ("snodes", secondaries(cluster, instance)),
        ("status", Json::text(instance.status)),
        ("tags", Json::texts(&instance.tags)),
        ("disk_template", Json::text(instance.template)),
    ]);
    if instance.forthcoming {
        value.set("forthcoming", Json::Bool(true));
    }
    value
}

fn instance_row(cluster: &Cluster, instance: &Instance) -> Vec<Json> {
    let (sizes, spindles) = disk_lists(instance);
    vec![
        known(Json::text(&instance.name)),
        known(disk_usage(instance)),
        known(Json::number(instance.memory)),
        known(Json::number(instance.vcpus)),
        known(Json::text(instance.status)),
        known(Json::text(&cluster.nodes[instance.primary].name)),
        known(secondaries(cluster, instance)),
        known(Json::texts(&instance.tags)),
        known(Json::Bool(instance.auto_balance)),
        known(Json::text(instance.template)),
        known(Json::number(instance.spindle_use)),
        known(sizes),
        known(spindles),
        known(Json::Bool(instance.forthcoming)),
    ]
}
