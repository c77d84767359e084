//! Healthy clusters of ordinary nodes, unbalanced by growth, for demonstrations and measurements.

use chores::random::Random;

use super::message;
use super::model::{Cluster, Group, Instance, Node};
use super::requests::append;
use crate::json::Json;

/// A cluster of drbd instances whose older nodes are fuller.
pub fn cluster(nodes: usize, instances_per_node: usize, seed: u64) -> Cluster {
    let mut random = Random::new(seed);
    let mut cluster = Cluster { hypervisors: vec!["xen-pvm".to_owned()], ..Cluster::default() };
    cluster.groups.push(Group {
        name: "default".to_owned(),
        uuid: "6a2d5e0e-8ba5-4e7c-9d2b-3c0f4b6f1a01".to_owned(),
        alloc_policy: "preferred",
        tags: Vec::new(),
        networks: Vec::new(),
        policy: None,
    });
    let width = nodes.to_string().len();
    cluster.nodes = (1..=nodes).map(|n| node(format!("node{n:0width$}.example.com"), n == 1)).collect();
    let mut fuller = vec![0; nodes];
    for number in 1..=if nodes < 2 { 0 } else { nodes * instances_per_node } {
        let mut instance = instance(&mut random, format!("inst{number}.example.com"));
        // Full nodes are skipped, so that the cluster stays N+1 safe.
        let draw = |random: &mut Random| {
            if random.chance(35) { random.below(nodes.div_ceil(3)) } else { random.below(nodes) }
        };
        instance.primary = draw(&mut random);
        while fuller[instance.primary] + instance.memory > 46_000 && fuller.iter().any(|f| *f < 36_000) {
            instance.primary = (instance.primary + 1) % nodes;
        }
        fuller[instance.primary] += instance.memory;
        let secondary = draw(&mut random);
        instance.secondary =
            Some(if secondary == instance.primary { (secondary + 1) % nodes } else { secondary });
        cluster.instances.push(instance);
    }
    for (index, node) in cluster.nodes.iter_mut().enumerate() {
        for instance in &cluster.instances {
            if instance.primary == index {
                node.free_memory -= instance.memory;
            }
            if instance.primary == index || instance.secondary == Some(index) {
                node.free_disk -= instance.disk;
            }
        }
    }
    cluster
}

fn node(name: String, master: bool) -> Node {
    Node {
        name,
        group: 0,
        unknown: false,
        role: if master { 'M' } else { 'N' },
        drained: false,
        total_memory: 65536.0,
        system_memory: 1024,
        free_memory: 65536 - 1024,
        total_disk: 2_000_000.0,
        free_disk: 2_000_000,
        cpus: 32.0,
        system_cpus: 1,
        cpu_speed: 1.0,
        spindles: 4,
        free_spindles: 0,
        exclusive: false,
        tags: Vec::new(),
    }
}

fn instance(random: &mut Random, name: String) -> Instance {
    let (memory, vcpus) =
        random.weighted(&[(35, (1024, 1)), (35, (2048, 2)), (20, (4096, 2)), (10, (8192, 4))]);
    Instance {
        name,
        memory,
        disk: random.weighted(&[(50, 10_240), (35, 20_480), (15, 61_440)]),
        vcpus,
        status: "running",
        auto_balance: true,
        primary: 0,
        secondary: None,
        template: "drbd",
        tags: Vec::new(),
        spindle_use: 1,
        spindles: None,
        forthcoming: false,
        networks: Vec::new(),
    }
}

/// Request to allocate one drbd instance of ordinary size.
pub fn allocate() -> Json {
    let mut request = Json::object([
        ("type", Json::text("allocate")),
        ("name", Json::text("new.example.com")),
        ("required_nodes", Json::number(2)),
    ]);
    let mut wanted = instance(&mut Random::new(1), String::new());
    (wanted.memory, wanted.disk) = (2048, 20_480);
    append(&mut request, message::instance(&wanted));
    request
}

/// Request for a new secondary of one drbd instance.
pub fn relocate(cluster: &Cluster) -> Json {
    let moved = cluster.instances.iter().find(|i| i.secondary.is_some());
    let (name, from) = moved.map_or((String::new(), Vec::new()), |i| {
        (i.name.clone(), i.secondary.iter().map(|s| cluster.nodes[*s].name.clone()).collect())
    });
    Json::object([
        ("type", Json::text("relocate")),
        ("name", Json::text(name)),
        ("relocate_from", Json::texts(&from)),
        ("required_nodes", Json::number(1)),
    ])
}
