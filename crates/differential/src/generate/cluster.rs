//! Draws clusters: symmetric or mixed, healthy or not, covering everything that the formats can express.

use chores::random::Random;

use super::model::{Cluster, Group, Instance, Node, Policy, Program};

pub const TEMPLATES: [&str; 9] =
    ["diskless", "file", "sharedfile", "plain", "blockdev", "drbd", "rbd", "ext", "gluster"];
const STATUSES: [&str; 9] = [
    "ADMIN_down",
    "ADMIN_offline",
    "ERROR_down",
    "ERROR_up",
    "ERROR_nodedown",
    "ERROR_nodeoffline",
    "running",
    "USER_down",
    "ERROR_wrongnode",
];
const NETWORKS: [&str; 3] = ["net-a", "net-b", "net-c"];

/// Parameters for drawing a cluster.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Number of nodes.
    pub nodes: usize,
    /// Number of groups.
    pub groups: usize,
    /// Wanted number of instances.
    pub instances: usize,
    /// All nodes are alike, and so are all instances: decisions depend on tie-breaks.
    pub symmetric: bool,
    /// Groups with exclusive storage, percent.
    pub exclusive: usize,
    /// The most common disk template.
    pub template: &'static str,
    /// Instances with another template, percent.
    pub other_templates: usize,
    /// Intended share of memory in use, percent.
    pub fill: i64,
    /// Share of unusual properties (statuses, offline nodes, odd values), percent.
    pub oddity: usize,
    /// Whether nodes, instances and the cluster have tags.
    pub tags: bool,
    /// Nodes that were switched off to save power, percent.
    pub standby: usize,
    /// Groups of one node, percent.
    pub lonely: usize,
    /// Additional offline nodes on top of [`Self::oddity`], percent.
    pub offline: usize,
    /// Additional forthcoming instances on top of [`Self::oddity`], percent.
    pub forthcoming: usize,
    /// Whether most groups have their own policy.
    pub several_policies: bool,
}

impl Shape {
    /// Draws a small cluster's shape, of any kind that's useful for `program`.
    pub fn draw(random: &mut Random, program: Program) -> Self {
        let mut shape = Self::any(random);
        match program {
            // hsqueeze only switches off nodes whose instances all have such templates, which aren't bound to
            // a node.
            Program::Hsqueeze => {
                if random.chance(70) {
                    shape.template = random.pick(&["rbd", "ext", "sharedfile"]);
                    shape.other_templates = random.weighted(&[(80, 0), (20, 25)]);
                }
                shape.standby = random.weighted(&[(40, 0), (40, 25), (20, 50)]);
            }
            // Reboots need several nodes to choose from. The hard case is mirrored instances next to
            // unmirrored ones.
            Program::Hroller => {
                shape.nodes = shape.nodes.max(random.between(2, 8) as usize);
                if random.chance(60) {
                    shape.template = "drbd";
                    shape.other_templates = random.weighted(&[(45, 0), (40, 20), (15, 50)]);
                }
            }
            // The reference takes seconds for every instance that fits. On few nodes, redundancy ends early.
            Program::Hspace => {
                shape.nodes = random.weighted(&[(1, 0), (4, 1), (50, 2), (35, 4), (10, 7)]);
                shape.nodes += if shape.nodes < 2 { 0 } else { random.below(3) };
                shape.groups = random.weighted(&[(70, 1), (22, 2), (8, 3)]);
                shape.nodes += 2 * (shape.groups - 1);
                shape.instances = shape.nodes * random.below(4);
                shape.oddity = random.weighted(&[(50, 0), (40, 8), (10, 25)]);
                shape.other_templates = random.weighted(&[(60, 0), (30, 25), (10, 70)]);
            }
            _ => {}
        }
        shape
    }

    fn any(random: &mut Random) -> Self {
        let nodes = random.weighted(&[(1, 0), (2, 1), (40, 2), (30, 8), (6, 14)]);
        let nodes = if nodes < 2 { nodes } else { nodes + random.below(7) };
        let groups = random.weighted(&[(60, 1), (24, 2), (10, 3), (6, 4)]);
        // groups of one or two nodes, where little is possible, are common enough without help
        let nodes = if nodes > 1 && random.chance(70) { nodes + 2 * (groups - 1) } else { nodes };
        let most = if nodes > 12 { 25 } else { 60 };
        let instances = if random.chance(70) { nodes * random.below(6) } else { random.below(most + 1) };
        let template = random.weighted(&[
            (55, "drbd"),
            (12, "plain"),
            (12, "rbd"),
            (8, "ext"),
            (4, "sharedfile"),
            (3, "gluster"),
            (2, "blockdev"),
            (2, "file"),
            (2, "diskless"),
        ]);
        Self {
            nodes,
            groups,
            instances: instances.min(most),
            symmetric: random.chance(20),
            exclusive: random.weighted(&[(80, 0), (10, 100), (10, 50)]),
            template,
            other_templates: random.weighted(&[(50, 0), (30, 25), (20, 70)]),
            fill: random.weighted(&[(45, 20), (33, 35), (15, 55), (7, 100)]),
            oddity: random.weighted(&[(30, 0), (50, 8), (20, 25)]),
            tags: random.chance(45),
            standby: 0,
            lonely: 0,
            offline: 0,
            forthcoming: 0,
            several_policies: false,
        }
    }
}

impl Policy {
    /// Policy that applies if none is given.
    pub fn built_in() -> Self {
        Self {
            standard: [128, 1, 1024, 1, 1, 1],
            bounds: vec![([128, 1, 1024, 1, 1, 1], [32768, 8, 1_048_576, 16, 8, 12])],
            templates: TEMPLATES.to_vec(),
            vcpu_ratio: 4.0,
            spindle_ratio: 32.0,
        }
    }
}

/// Draws a cluster of that shape.
pub fn draw(random: &mut Random, shape: &Shape) -> Cluster {
    let domain = random.weighted(&[(50, ".zone.test"), (40, ""), (10, ".test")]);
    let mut cluster = Cluster::default();
    for index in 0..shape.groups {
        let group = draw_group(random, shape, index);
        cluster.groups.push(group);
    }
    let exclusive: Vec<bool> = (0..shape.groups).map(|_| random.chance(shape.exclusive)).collect();
    let shared: Vec<usize> = (0..shape.groups)
        .filter(|group| *group == 0 || shape.lonely == 0 || !random.chance(shape.lonely))
        .collect();
    let alike = draw_node(random, shape, false);
    for index in 0..shape.nodes {
        let group = if index < shape.groups { index } else { random.pick(&shared) };
        let mut node = if shape.symmetric { alike.clone() } else { draw_node(random, shape, true) };
        node.name = format!("node{index}{domain}");
        node.group = group;
        node.exclusive = exclusive[group];
        if node.exclusive {
            node.spindles = random.between(2, 12);
        }
        if index == 0 && random.chance(90) {
            node.role = 'M';
        }
        cluster.nodes.push(node);
    }
    if shape.oddity > 0 && random.chance(10) && !cluster.nodes.is_empty() {
        // a name that differs only after its first component, is of another domain, or isn't ASCII
        let node = random.below(cluster.nodes.len());
        let name = random.pick(&["knötchen.zone.test", "node0.other.test", "lone"]);
        name.clone_into(&mut cluster.nodes[node].name);
    }
    if shape.nodes > 0 {
        let alike = draw_instance(random, shape);
        for index in 0..shape.instances {
            let mut instance = if shape.symmetric { alike.clone() } else { draw_instance(random, shape) };
            instance.name = format!("inst{index}{domain}");
            place(random, shape, &cluster, &mut instance);
            cluster.instances.push(instance);
        }
    }
    settle_nodes(random, shape, &mut cluster);
    if random.chance(60) {
        cluster.policy = Some(draw_policy(random));
    }
    cluster.hypervisors =
        (random.weighted(&[(60, &["xen-pvm"][..]), (30, &["kvm", "fake"]), (5, &["fake"]), (5, &[])]))
            .iter()
            .map(|h| (*h).to_owned())
            .collect();
    if shape.tags {
        super::tags::decorate(random, &mut cluster);
    }
    if shape.standby > 0 {
        switch_off_nodes(random, shape, &mut cluster);
    }
    cluster
}

/// Marks nodes as switched off. Some still have instances, as after a failed evacuation.
fn switch_off_nodes(random: &mut Random, shape: &Shape, cluster: &mut Cluster) {
    for (index, node) in cluster.nodes.iter_mut().enumerate() {
        let used = cluster.instances.iter().any(|i| i.primary == index || i.secondary == Some(index));
        let percent = if used { shape.standby / 5 } else { shape.standby };
        if random.chance(percent) {
            node.role = 'Y';
            node.tags.push(
                (random.pick(&["htools:standby:auto", "htools:standby:", "htools:standby"])).to_owned(),
            );
        }
    }
}

fn draw_group(random: &mut Random, shape: &Shape, index: usize) -> Group {
    let networks: Vec<String> = NETWORKS.iter().map(|n| (*n).to_owned()).collect();
    Group {
        name: format!("group{index}"),
        uuid: format!("uuid-{index}"),
        alloc_policy: random.weighted(&[(75, "preferred"), (17, "last_resort"), (8, "unallocable")]),
        tags: if random.chance(10) { vec!["some:tag".to_owned()] } else { Vec::new() },
        networks: if random.chance(70) { networks } else { random.some(&networks, 1) },
        policy: ((shape.oddity > 0 || shape.several_policies) && random.chance(60))
            .then(|| draw_policy(random)),
    }
}

fn draw_policy(random: &mut Random) -> Policy {
    let mut policy = Policy::built_in();
    policy.vcpu_ratio =
        random.weighted(&[(40, 4.0), (20, 8.0), (15, 1.5), (10, 2.75), (10, 32.0), (5, 0.05)]);
    policy.spindle_ratio = random.weighted(&[(72, 32.0), (15, 8.0), (5, 0.1), (8, 3.3)]);
    if random.chance(50) {
        policy.templates = {
            let count = 5 + random.below(5);
            random.some(&TEMPLATES, count)
        };
    }
    if !policy.templates.contains(&"drbd") && random.chance(60) {
        policy.templates.push("drbd");
    }
    if random.chance(30) {
        // several intervals: quarter, half and full nodes
        let mut bounds = vec![
            ([128, 1, 1024, 1, 1, 1], [4096, 2, 60_000, 4, 4, 4]),
            ([4096, 2, 60_000, 1, 1, 1], [8192, 4, 130_000, 4, 4, 8]),
            ([8192, 4, 120_000, 1, 1, 1], [32768, 16, 1_048_576, 16, 8, 16]),
        ];
        if random.chance(50) {
            bounds.reverse();
        }
        bounds.truncate(1 + random.below(3));
        policy.bounds = bounds;
    }
    if random.chance(15) {
        policy.standard = [1024, 2, 20_000, 1, 1, 2];
    }
    policy
}

fn draw_node(random: &mut Random, shape: &Shape, varied: bool) -> Node {
    let memory = random.weighted(&[(50, 32768), (30, 65536), (20, 16384)]);
    let fraction = if varied && random.chance(shape.oddity) { 0.625 } else { 0.0 };
    Node {
        name: String::new(),
        group: 0,
        unknown: varied && random.chance(shape.oddity / 4),
        role: if varied && random.chance(shape.oddity / 2 + shape.offline) { 'Y' } else { 'N' },
        drained: varied && random.chance(shape.oddity / 4),
        total_memory: f64::from(memory) + fraction,
        system_memory: random.weighted(&[(60, 1024), (30, 512), (10, 0)]),
        free_memory: 0,
        total_disk: f64::from(random.weighted(&[(50, 1_000_000), (30, 400_000), (20, 2_000_000)])) + fraction,
        free_disk: 0,
        cpus: f64::from(random.weighted(&[(50, 16), (20, 8), (20, 32), (10, 4)])),
        system_cpus: random.weighted(&[(80, 1), (10, 0), (10, 2)]),
        cpu_speed: if varied { random.weighted(&[(80, 1.0), (10, 1.2), (10, 0.75)]) } else { 1.0 },
        spindles: if random.chance(shape.oddity / 6) { 0 } else { random.between(1, 10) },
        free_spindles: 0,
        exclusive: false,
        tags: Vec::new(),
    }
}

fn draw_instance(random: &mut Random, shape: &Shape) -> Instance {
    let mut draw = new_instance(random, shape);
    if random.chance(shape.oddity) {
        draw.status = random.pick(&STATUSES);
    }
    draw.auto_balance = !random.chance(shape.oddity / 2);
    draw.forthcoming = random.chance(shape.oddity / 3 + shape.forthcoming);
    draw
}

/// An instance that isn't placed yet.
pub fn new_instance(random: &mut Random, shape: &Shape) -> Instance {
    let template =
        if random.chance(shape.other_templates) { random.pick(&TEMPLATES) } else { shape.template };
    let per_node = (shape.instances as i64 / shape.nodes.max(1) as i64).max(1);
    let typical = (32768 * shape.fill / 100 / per_node).clamp(256, 8192);
    let memory = (typical / 2 + random.between(0, typical)) / 64 * 64;
    let disk = random.weighted(&[(40, 10_240), (30, 20_480), (15, 51_201), (10, 5000), (5, 120_000)]);
    Instance {
        name: String::new(),
        memory: memory.max(128),
        disk: if template == "diskless" { 0 } else { disk },
        vcpus: random.weighted(&[(50, 1), (30, 2), (20, 4)]),
        status: "running",
        auto_balance: true,
        primary: 0,
        secondary: None,
        template,
        tags: Vec::new(),
        spindle_use: random.weighted(&[(80, 1), (15, 2), (5, 0)]),
        spindles: if random.chance(if shape.exclusive > 0 { 85 } else { 20 }) {
            Some(random.between(1, 3))
        } else {
            None
        },
        forthcoming: false,
        networks: if random.chance(12) {
            vec![if random.chance(70) { Some((random.pick(&NETWORKS)).to_owned()) } else { None }]
        } else {
            Vec::new()
        },
    }
}

/// Chooses nodes. The primary is the less loaded of two, so that clusters are unbalanced but seldom absurd.
fn place(random: &mut Random, shape: &Shape, cluster: &Cluster, instance: &mut Instance) {
    let load = |node: usize| cluster.instances.iter().filter(|i| i.primary == node).count();
    let nodes = cluster.nodes.len();
    let candidates = [random.below(nodes), random.below(nodes)];
    let odd = shape.oddity > 0;
    instance.primary = if shape.symmetric {
        cluster.instances.len() % nodes
    } else if load(candidates[0]) <= load(candidates[1]) {
        candidates[0]
    } else {
        candidates[1]
    };
    let group = cluster.nodes[instance.primary].group;
    let others: Vec<usize> = (0..nodes)
        .filter(|n| *n != instance.primary)
        // split instances: primary and secondary in different groups
        .filter(|n| cluster.nodes[*n].group == group || (odd && shape.instances % 4 == 1 && n % 7 == 3))
        .collect();
    let wants = (instance.template == "drbd") != (odd && random.below(1000) < 3);
    if wants && !others.is_empty() {
        let next = cluster.instances.len() / nodes;
        instance.secondary =
            Some(if shape.symmetric { others[next % others.len()] } else { random.pick(&others) });
    } else if wants && !random.chance(2) {
        instance.template = "plain";
    }
}

/// Sets the figures that nodes report, given their instances. Some clusters have errors in them.
fn settle_nodes(random: &mut Random, shape: &Shape, cluster: &mut Cluster) {
    for (index, node) in cluster.nodes.iter_mut().enumerate() {
        let primaries = cluster.instances.iter().filter(|i| i.primary == index && !i.forthcoming);
        let used: i64 = primaries.filter(|i| i.uses_memory()).map(|i| i.memory).sum();
        let local = cluster.instances.iter().filter(|i| {
            !i.forthcoming
                && ((i.primary == index && ["drbd", "plain", "file"].contains(&i.template))
                    || i.secondary == Some(index))
        });
        let (mut disk, mut spindles) = (0, 0);
        for instance in local {
            disk += instance.disk;
            spindles += instance.spindles.unwrap_or(0);
        }
        let odd = |random: &mut Random, small: i64, large: i64| {
            if random.chance(shape.oddity) {
                random.between(-small, large)
            } else if shape.symmetric || shape.oddity == 0 {
                0
            } else {
                random.between(0, small)
            }
        };
        let missing = odd(random, 200, 2000);
        node.free_memory = (node.total_memory as i64 - node.system_memory - used - missing).max(0);
        node.free_disk = (node.total_disk as i64 - disk - odd(random, 500, 3000)).max(0);
        if node.exclusive || random.chance(20) {
            node.free_spindles = (node.spindles - spindles).max(0);
        }
    }
}
