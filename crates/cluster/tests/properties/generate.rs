//! Random small clusters for property tests, here and in `placement`, which includes this file.
//!
//! A [`Recipe`] is a list of choices that proptest can shrink. [`Recipe::parts`] turns it into consistent
//! plain values, and [`Recipe::build`] loads them.

// Some crates that include this file use only a part of it.
#![allow(dead_code)]

use cluster::{
    AllocPolicy, Cluster, Disk, DiskTemplate, Group, GroupIdx, InitialN1, Instance, InstanceIdx,
    InstanceStatus, LoadOptions, MirrorClass, Move, Node, NodeIdx, Policy,
};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Configuration for `cases` cases. The seed is fixed unless `PROPTEST_RNG_SEED` is set.
pub fn cases(cases: u32) -> ProptestConfig {
    let mut config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases) };
    if config.rng_seed == RngSeed::Random {
        config.rng_seed = RngSeed::Fixed(1);
    }
    config
}

/// Choices that apply to all nodes and instances of a cluster.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// All nodes are alike, and all instances: every decision is a tie.
    pub uniform: bool,
    /// Nodes and instances have tags of all kinds.
    pub tagged: bool,
    /// Some nodes have exclusive storage.
    pub exclusive: bool,
    /// Nodes have little capacity.
    pub tight: bool,
    /// Utilizations are decimal fractions, so their sums are rounded. Else they are binary fractions.
    pub decimal: bool,
    /// One group instead of two.
    pub one_group: bool,
    /// Load with [`InitialN1::Recorded`].
    pub recorded_n1: bool,
}

/// Choices for a node.
#[derive(Clone, Copy, Debug)]
pub struct NodeRecipe {
    group: u32,
    size: i64,
    missing: i64,
    offline: bool,
    exclusive: bool,
    locations: u8,
    migration: u8,
    speed: usize,
}

/// Choices for an instance.
#[derive(Clone, Copy, Debug)]
pub struct InstanceRecipe {
    template: usize,
    status: usize,
    nodes: (usize, usize),
    size: (i64, i64, i64),
    spindles: (i64, i64),
    tags: u8,
    rare: u8,
    utilisation: [u8; 4],
}

/// Choices for a cluster.
#[derive(Clone, Debug)]
pub struct Recipe {
    pub style: Style,
    nodes: Vec<NodeRecipe>,
    instances: Vec<InstanceRecipe>,
}

/// Plain values, ready to load.
#[derive(Clone, Debug)]
pub struct Parts {
    pub groups: Vec<Group>,
    pub nodes: Vec<Node>,
    pub instances: Vec<Instance>,
}

const CLUSTER_TAGS: [&str; 5] = [
    "htools:iextags:svc",
    "htools:nlocation:l",
    "htools:desiredlocation:l",
    "htools:migration:v",
    "htools:allowmigration:v:1::v:2",
];

fn styles() -> impl Strategy<Value = Style> {
    let odds = |p| prop::bool::weighted(p);
    (odds(0.2), odds(0.6), odds(0.25), odds(0.4), odds(0.3), odds(0.6), odds(0.5)).prop_map(
        |(uniform, tagged, exclusive, tight, decimal, one_group, recorded_n1)| Style {
            uniform,
            tagged,
            exclusive,
            tight,
            decimal,
            one_group,
            recorded_n1,
        },
    )
}

fn nodes() -> impl Strategy<Value = NodeRecipe> {
    let flags = (prop::bool::weighted(0.15), prop::bool::weighted(0.7));
    (0..2_u32, 0..3_i64, -1..3_i64, flags, 0..4_u8, 0..8_u8, 0..6_usize).prop_map(
        |(group, size, missing, (offline, exclusive), locations, migration, speed)| NodeRecipe {
            group,
            size,
            missing,
            offline,
            exclusive,
            locations,
            migration,
            speed,
        },
    )
}

fn instances() -> impl Strategy<Value = InstanceRecipe> {
    let size = (1..12_i64, 1..8_i64, 1..5_i64);
    let places = (0..64_usize, 0..64_usize);
    let utilisation = prop::array::uniform4(0..8_u8);
    (0..16_usize, 0..20_usize, places, size, (0..3_i64, 0..3_i64), 0..32_u8, 0..64_u8, utilisation).prop_map(
        |(template, status, nodes, size, spindles, tags, rare, utilisation)| InstanceRecipe {
            template,
            status,
            nodes,
            size,
            spindles,
            tags,
            rare,
            utilisation,
        },
    )
}

/// Clusters of 2 to `most_nodes` nodes and 1 to `most_instances` instances.
pub fn recipes_of(most_nodes: usize, most_instances: usize) -> impl Strategy<Value = Recipe> {
    let nodes = prop::collection::vec(nodes(), 2..=most_nodes);
    let instances = prop::collection::vec(instances(), 1..=most_instances);
    (styles(), nodes, instances).prop_map(|(style, nodes, instances)| Recipe { style, nodes, instances })
}

/// Clusters of at most 7 nodes and 14 instances.
pub fn recipes() -> impl Strategy<Value = Recipe> {
    recipes_of(7, 14)
}

/// Tags selected by a bit set.
fn chosen(bits: u8, tags: &[&str]) -> Vec<String> {
    tags.iter().enumerate().filter(|(n, _)| bits >> n & 1 == 1).map(|(_, tag)| (*tag).to_owned()).collect()
}

impl Recipe {
    fn node(&self, position: usize) -> Node {
        let style = self.style;
        let recipe = if style.uniform { self.nodes[0] } else { self.nodes[position] };
        let group = if style.one_group || style.uniform { 0 } else { recipe.group };
        let mut node = Node::new(format!("n{position}.x"), GroupIdx(group));
        let scale = if style.tight { 1 } else { 4 };
        node.total_memory = (4096 * scale + 1024 * recipe.size) as f64;
        node.node_memory = 512;
        node.total_disk = (20_000 * scale + 5_000 * recipe.size) as f64;
        node.total_cpus = (2 * scale + recipe.size) as f64;
        node.cpu_speed = if recipe.speed < 4 { 1.0 } else { 0.3 * recipe.speed as f64 };
        node.offline = recipe.offline && !style.uniform;
        node.exclusive_storage = style.exclusive && recipe.exclusive;
        node.total_spindles = if node.exclusive_storage { 6 * scale } else { 1 + recipe.size };
        if style.tagged {
            node.tags = chosen(recipe.locations, &["l:a", "l:b"]);
            // Most nodes have no migration tags: with more of them, few moves would be left.
            node.tags.extend(chosen(recipe.migration.saturating_sub(4), &["v:1", "v:2"]));
        }
        node
    }

    fn instance(&self, position: usize, nodes: &[Node]) -> Instance {
        let (style, own) = (self.style, self.instances[position]);
        let recipe = if style.uniform { self.instances[0] } else { own };
        let template = *DiskTemplate::ALL.get(recipe.template).unwrap_or(&DiskTemplate::Drbd);
        let primary = NodeIdx::from_usize(own.nodes.0 % nodes.len());
        let mut instance = Instance::new(format!("i{position}.x"), template, primary);
        if template == DiskTemplate::Drbd {
            // Rarely in another group. `None` if there is no other node.
            let anywhere = own.rare == 1;
            let others: Vec<usize> = (0..nodes.len())
                .filter(|n| *n != primary.at() && (anywhere || nodes[*n].group == nodes[primary.at()].group))
                .collect();
            instance.secondary =
                others.get(own.nodes.1 % others.len().max(1)).copied().map(NodeIdx::from_usize);
        }
        instance.memory = 128 * recipe.size.0;
        instance.disk = 1024 * recipe.size.1;
        instance.vcpus = recipe.size.2;
        instance.status = *InstanceStatus::ALL.get(recipe.status).unwrap_or(&InstanceStatus::Running);
        instance.auto_balance = !(4..8).contains(&recipe.rare);
        instance.forthcoming = (8..12).contains(&recipe.rare);
        instance.spindle_use = recipe.spindles.0;
        let spindles = if recipe.rare == 3 { None } else { Some(recipe.spindles.1) };
        instance.disks = vec![Disk { size: instance.disk, spindles }];
        if style.tagged {
            instance.tags = chosen(recipe.tags, &["svc:a", "svc:b", "l:a", "l:b"]);
            if recipe.tags & 0x11 == 0x11 {
                // A duplicate tag.
                instance.tags.push("svc:a".to_owned());
            }
        }
        let unit = if style.decimal { 0.1 } else { 0.25 };
        // Mostly 1, the value for unknown utilization.
        let utilisation = |choice: u8| if choice < 4 { 1.0 } else { f64::from(choice - 4) * unit };
        instance.utilisation = recipe.utilisation.map(utilisation);
        instance
    }

    /// Plain values with reported figures that match the instances, except for some missing memory.
    pub fn parts(&self) -> Parts {
        let group = |number: usize| Group {
            name: format!("g{number}"),
            uuid: format!("uuid-{number}"),
            alloc_policy: AllocPolicy::Preferred,
            tags: Vec::new(),
            networks: Vec::new(),
            policy: Policy::default(),
        };
        let mut nodes: Vec<Node> = (0..self.nodes.len()).map(|n| self.node(n)).collect();
        let instances: Vec<Instance> = (0..self.instances.len()).map(|i| self.instance(i, &nodes)).collect();
        for (position, node) in nodes.iter_mut().enumerate() {
            let used = Used::on(NodeIdx::from_usize(position), &instances);
            let missing = if self.style.uniform { 0 } else { 100 * self.nodes[position].missing };
            node.reported_free_memory = node.total_memory_mib() - node.node_memory - used.memory - missing;
            node.reported_free_disk = node.total_disk as i64 - used.disk;
            if node.exclusive_storage {
                node.reported_free_spindles = node.total_spindles - used.spindles;
            }
        }
        Parts { groups: vec![group(0), group(1)], nodes, instances }
    }

    /// The recipe with [`InitialN1::Recorded`], the N+1 rule of all steps after loading.
    pub fn recorded(&self) -> Self {
        Self { style: Style { recorded_n1: true, ..self.style }, ..self.clone() }
    }

    /// The recipe with all nodes alike, and all instances.
    pub fn alike(&self) -> Self {
        Self { style: Style { uniform: true, ..self.style }, ..self.clone() }
    }

    /// The recipe with all nodes online.
    pub fn online(&self) -> Self {
        let nodes = self.nodes.iter().map(|node| NodeRecipe { offline: false, ..*node }).collect();
        Self { nodes, ..self.clone() }
    }

    pub fn build(&self) -> Cluster {
        load(self.parts(), self.style.recorded_n1)
    }
}

/// Loads plain values with the cluster tags that recipes use.
pub fn load(parts: Parts, recorded_n1: bool) -> Cluster {
    let initial_n1 = if recorded_n1 { InitialN1::Recorded } else { InitialN1::Reported };
    let options = LoadOptions { initial_n1, ..LoadOptions::default() };
    let tags = CLUSTER_TAGS.map(str::to_owned).to_vec();
    let loaded = Cluster::load(parts.groups, parts.nodes, parts.instances, tags, Policy::default(), &options);
    loaded.expect("the options select nothing").0
}

/// Resources that existing instances use on a node, as the node would report them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Memory in use by primaries, MiB.
    pub memory: i64,
    /// MiB.
    pub disk: i64,
    pub spindles: i64,
}

impl Used {
    pub fn on(node: NodeIdx, instances: &[Instance]) -> Self {
        let mut used = Self::default();
        for instance in instances.iter().filter(|i| !i.forthcoming) {
            if instance.primary == node && instance.uses_memory() {
                used.memory += instance.memory;
            }
            if instance.primary == node || instance.secondary == Some(node) {
                used.disk += if instance.template.local_storage() { instance.disk } else { 0 };
                used.spindles += instance.total_spindles().unwrap_or(0);
            }
        }
        used
    }
}

/// All moves that fit the instance's disk template, to every node that it doesn't use.
pub fn moves(cluster: &Cluster, index: InstanceIdx) -> Vec<Move> {
    let instance = cluster.instance(index);
    let targets =
        || cluster.node_indices().filter(|n| *n != instance.primary && Some(*n) != instance.secondary);
    match (instance.template.mirror(), instance.secondary) {
        (MirrorClass::External, _) => targets().map(Move::FailoverTo).collect(),
        (MirrorClass::Internal, Some(_)) => {
            let kinds: [fn(NodeIdx) -> Move; 4] = [
                Move::ReplaceSecondary,
                Move::ReplaceAndFailover,
                Move::ReplacePrimary,
                Move::FailoverAndReplace,
            ];
            let to = targets().flat_map(|t| kinds.map(|kind| kind(t)));
            std::iter::once(Move::Failover).chain(to).collect()
        }
        _ => Vec::new(),
    }
}
