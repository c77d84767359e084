//! Hypothetical changes to a cluster, and summaries of the cluster before and after.
//!
//! Changes to nodes, instances and sizes are made to the plain values, with the nodes' reports adjusted, and
//! the cluster is loaded again. The remaining steps use the same modules as the programs: lost nodes are
//! drained, new instances are placed, and groups are balanced.

use std::collections::HashSet;

use cluster::{
    AllocPolicy, Cluster, DiskTemplate, FailMode, GroupIdx, Instance, InstanceIdx, LoadError, LoadOptions,
    Node, NodeIdx,
};
use rayon::prelude::*;

use crate::allocate::{Failures, NoTargets};
use crate::balance::{BalanceOptions, Balancer, Step};
use crate::board::Board;
use crate::capacity::{self, CapacityOptions, Ground, Placement, Shape};
use crate::drain::{self, DrainOptions, Purpose, Role};
use crate::groups;
use crate::score::Values;
use crate::watch::Health;

/// New sizes of an instance; `None` keeps the current size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Resize {
    pub memory_mib: Option<i64>,
    pub vcpus: Option<i64>,
    /// Disk space on each of its nodes, MiB.
    pub disk_mib: Option<i64>,
}

/// Identical empty nodes to add.
#[derive(Clone, Debug, PartialEq)]
pub struct NewNodes {
    pub count: usize,
    /// Template for the nodes. Its name is ignored.
    pub like: Node,
}

impl NewNodes {
    /// The most common kind of node in a group: the first such node, without instances. `None` if the group
    /// has no nodes.
    pub fn typical(cluster: &Cluster, group: GroupIdx) -> Option<Node> {
        let look = |n: &Node| {
            (n.total_memory.to_bits(), n.total_disk.to_bits(), n.total_cpus.to_bits(), n.total_spindles)
        };
        let of_group = || cluster.nodes.iter().filter(|n| n.group == group);
        let alike = |node: &Node| of_group().filter(|n| look(n) == look(node)).count();
        // Ties go to the first node, hence `rev`: `max_by_key` returns the last maximum.
        let node = of_group().rev().max_by_key(|n| alike(n))?;
        Some(Node {
            reported_free_memory: node.total_memory_mib() - node.node_memory,
            reported_free_disk: node.total_disk as i64,
            reported_free_spindles: node.total_spindles,
            offline: false,
            master: false,
            missing_memory: 0,
            ..node.clone()
        })
    }
}

/// Changes, in the order in which they are made.
#[derive(Clone, Debug, PartialEq)]
pub struct Changes {
    /// Instances to remove.
    pub remove: Vec<InstanceIdx>,
    /// Instances to resize in place.
    pub resize: Vec<(InstanceIdx, Resize)>,
    pub add_nodes: Vec<NewNodes>,
    /// Nodes that die, ascending.
    pub lose: Vec<NodeIdx>,
    /// Numbers and shapes of instances to create.
    pub add_instances: Vec<(usize, Shape)>,
    /// Whether to balance the groups at the end.
    pub rebalance: bool,
    /// Redundancy to preserve when instances are created. [`CapacityOptions::limit`] is ignored.
    pub rules: CapacityOptions,
}

impl Default for Changes {
    fn default() -> Self {
        Self {
            remove: Vec::new(),
            resize: Vec::new(),
            add_nodes: Vec::new(),
            lose: Vec::new(),
            add_instances: Vec::new(),
            rebalance: false,
            rules: CapacityOptions::HAIL,
        }
    }
}

/// Result of creating instances of one shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Added {
    /// Requested number.
    pub wanted: usize,
    pub shape: Shape,
    pub placed: Vec<Placement>,
    /// Refusal of the first instance that didn't fit. `None` if all were placed, or if placing stopped at the
    /// limit for instances without memory.
    pub refused: Option<Refusal>,
}

/// Reason why no more instances fit.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// There are no nodes, or no pairs of nodes.
    NoTargets(NoTargets),
    /// All targets refuse, with the number of refusals by reason.
    Full(Failures),
}

/// Result of [`Changes::enact`].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Enacted {
    /// Rescue of the lost nodes' instances; `None` if no nodes are lost.
    pub rescue: Option<drain::Plan>,
    pub added: Vec<Added>,
    /// Moves that balance the groups.
    pub moves: Vec<Step>,
}

impl Enacted {
    /// Running and stopped instances whose data is out of reach until a node is back.
    fn lost(&self) -> impl Iterator<Item = InstanceIdx> + '_ {
        let stays = self.rescue.iter().flat_map(|plan| &plan.stays);
        stays.filter(|stay| stay.role == Role::Primary).map(|stay| stay.instance)
    }

    /// Whether balancing moves the instance.
    pub fn balances(&self, index: InstanceIdx) -> bool {
        self.moves.iter().any(|step| step.instance == index)
    }
}

impl Changes {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        *self == Self { rules: self.rules, ..Self::default() }
    }

    /// Loads the cluster with changed nodes and instances. Nodes keep their indices. Limits that options put
    /// on nodes must be set again.
    pub fn reshape(&self, cluster: &Cluster, options: &LoadOptions) -> Result<Cluster, LoadError> {
        let mut parts = cluster.clone();
        parts.settle_reports();
        for (index, size) in &self.resize {
            account(&mut parts, *index, -1);
            resize(&mut parts.instances[index.at()], *size);
            account(&mut parts, *index, 1);
        }
        for index in &self.remove {
            account(&mut parts, *index, -1);
        }
        let kept = parts.instances.iter().enumerate();
        let kept = kept.filter(|(position, _)| !self.remove.contains(&InstanceIdx::from_usize(*position)));
        let instances = kept.map(|(_, instance)| instance.clone()).collect();
        let mut nodes = parts.nodes;
        let mut names = FreeNames::new("new-node", &cluster.suffix, cluster.nodes.iter().map(|n| &n.name));
        for new in &self.add_nodes {
            nodes.extend((0..new.count).map(|_| Node { name: names.next(), ..new.like.clone() }));
        }
        let loaded = Cluster::load(parts.groups, nodes, instances, parts.tags, parts.policy, options);
        loaded.map(|(cluster, _)| cluster)
    }

    /// Makes the remaining changes on the cluster that [`Self::reshape`] returned.
    pub fn enact(&self, cluster: &mut Cluster) -> Enacted {
        let mut enacted = Enacted::default();
        if !self.lose.is_empty() {
            for node in &self.lose {
                cluster.nodes[node.at()].lose();
            }
            let options =
                DrainOptions { purpose: Purpose::Lost, ignore_soft_errors: false, disk_moves: true };
            enacted.rescue = Some(drain::drain(cluster, &self.lose, options));
        }
        for (wanted, shape) in &self.add_instances {
            enacted.added.push(add(cluster, *wanted, shape, self.rules));
        }
        if self.rebalance {
            let lost: Vec<InstanceIdx> = enacted.lost().collect();
            for group in groups::inhabited(cluster) {
                let (nodes, mut instances) = (cluster.nodes_of(group), cluster.instances_of(group));
                // Lost instances can't move until a node is back.
                instances.retain(|i| !lost.contains(i));
                let options = BalanceOptions { readable_only: true, ..BalanceOptions::default() };
                let mut run = Balancer::new(cluster, &nodes, &instances, options);
                enacted.moves.extend(std::iter::from_fn(|| run.step()));
            }
        }
        enacted
    }
}

fn resize(instance: &mut Instance, size: Resize) {
    instance.memory = size.memory_mib.unwrap_or(instance.memory);
    instance.vcpus = size.vcpus.unwrap_or(instance.vcpus);
    if let Some(disk) = size.disk_mib {
        // The last disk takes the difference, but never becomes smaller than 0.
        if let Some(last) = instance.disks.last_mut() {
            last.size = (last.size + disk - instance.disk).max(0);
        }
        instance.disk = disk;
    }
}

/// Adds an instance to its nodes' reports, or removes it if `sign` is -1.
fn account(cluster: &mut Cluster, index: InstanceIdx, sign: i64) {
    let instance = &cluster.instances[index.at()];
    let demand = instance.demand();
    if demand.forthcoming {
        return;
    }
    let mirror = instance.secondary.filter(|_| instance.template == DiskTemplate::Drbd);
    cluster.nodes[instance.primary.at()].reported_free_memory -= sign * demand.used_memory;
    for node in std::iter::once(instance.primary).chain(mirror) {
        let node = &mut cluster.nodes[node.at()];
        if demand.local_storage {
            node.reported_free_disk -= sign * demand.disk;
        }
        if node.exclusive_storage {
            node.reported_free_spindles -= sign * demand.spindles.unwrap_or(0);
        }
    }
}

/// Generates unused names: `STEM-1SUFFIX`, `STEM-2SUFFIX`, ...
struct FreeNames {
    stem: &'static str,
    suffix: String,
    taken: HashSet<String>,
    last: usize,
}

impl FreeNames {
    fn new<'a>(stem: &'static str, suffix: &str, taken: impl Iterator<Item = &'a String>) -> Self {
        Self { stem, suffix: suffix.to_owned(), taken: taken.cloned().collect(), last: 0 }
    }

    fn next(&mut self) -> String {
        loop {
            self.last += 1;
            let name = format!("{}-{}{}", self.stem, self.last, self.suffix);
            if !self.taken.contains(&name) {
                return name;
            }
        }
    }
}

/// Creates up to `wanted` instances of a shape and gives them unused names.
fn add(cluster: &mut Cluster, wanted: usize, shape: &Shape, rules: CapacityOptions) -> Added {
    let names = cluster.instances.iter().map(|i| &i.name);
    let mut names = FreeNames::new("new", &cluster.suffix, names);
    let added = place(cluster, wanted, shape, rules);
    for placement in &added.placed {
        cluster.instances[placement.instance.at()].name = names.next();
    }
    added
}

/// Like [`add`], without renaming the instances.
///
/// As with `hail`, groups of last resort are used only if no preferred group has capacity.
pub(crate) fn place(cluster: &mut Cluster, wanted: usize, shape: &Shape, rules: CapacityOptions) -> Added {
    let mut added = Added { wanted, shape: *shape, placed: Vec::new(), refused: None };
    let policies: Vec<AllocPolicy> = cluster.groups.iter().map(|group| group.alloc_policy).collect();
    let several = policies.contains(&AllocPolicy::Preferred) && policies.contains(&AllocPolicy::LastResort);
    if several && rules.group().is_none() {
        for group in cluster.groups.iter_mut().filter(|g| g.alloc_policy == AllocPolicy::LastResort) {
            group.alloc_policy = AllocPolicy::Unallocable;
        }
        fill(cluster, &mut added, rules);
        for (group, policy) in cluster.groups.iter_mut().zip(policies) {
            group.alloc_policy = policy;
        }
        if added.placed.len() == wanted {
            return added;
        }
    }
    fill(cluster, &mut added, rules);
    added
}

/// Places the remaining instances and records why no more fit.
fn fill(cluster: &mut Cluster, added: &mut Added, rules: CapacityOptions) {
    let left = added.wanted - added.placed.len();
    let options = CapacityOptions { limit: Some(left), ..rules };
    let ground = Ground::survey(cluster, added.shape.template, &options);
    added.refused = None;
    match capacity::fill(cluster, &ground, &added.shape, &options) {
        Err(error) => added.refused = Some(Refusal::NoTargets(error)),
        Ok(filled) => {
            let is_enough = filled.placed.len() >= left;
            // A node that refuses an instance gives a reason. Without any reason, placing stopped at the
            // limit for instances without memory.
            let is_refused = |failures: &Failures| filled.placed.is_empty() || failures.total() > 0;
            added.refused =
                filled.failures.filter(|failures| !is_enough && is_refused(failures)).map(Refusal::Full);
            added.placed.extend(filled.placed);
        }
    }
}

/// A rule that the cluster breaks.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Violation {
    /// Instances use more memory than the node has.
    #[error("{short_mib} MiB more memory is in use than there is")]
    Memory {
        /// Missing memory, MiB.
        short_mib: i64,
    },
    /// Less disk is free than the required minimum.
    #[error("{short_mib} MiB of disk are lacking")]
    Disk {
        /// Missing disk, MiB.
        short_mib: i64,
    },
    /// More virtual CPUs are in use than allowed.
    #[error("{ratio:.2} virtual CPUs per physical one, {limit} allowed")]
    Vcpus {
        /// Virtual CPUs in use per physical CPU.
        ratio: f64,
        limit: f64,
    },
    /// More instance spindles are in use than allowed.
    #[error("{used} instance spindles, {limit} allowed")]
    Spindles { used: f64, limit: f64 },
    /// Several instances on the node have the same exclusion tag.
    #[error("{conflicts} instances too many with the same exclusion tag")]
    Tags {
        /// Number of instances beyond the first of each tag.
        conflicts: i64,
    },
    /// An instance's size is outside its group's policy.
    #[error("its {} is outside the group's policy", policy_item(*.0))]
    Policy(FailMode),
}

/// Name of the instance property that a policy check rejects.
pub fn policy_item(mode: FailMode) -> &'static str {
    match mode {
        FailMode::Memory => "memory",
        FailMode::Disk => "disk size or disk template",
        FailMode::Cpu => "number of virtual CPUs",
        FailMode::DiskCount => "number of disks",
        FailMode::Spindles => "use of spindles",
        _ => "shape",
    }
}

/// Node or instance that breaks a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offender {
    /// An online node.
    Node(NodeIdx),
    Instance(InstanceIdx),
}

/// All violations: first of online nodes, then of instances.
pub fn violations(cluster: &Cluster) -> Vec<(Offender, Violation)> {
    let mut found = Vec::new();
    for index in cluster.node_indices().filter(|n| cluster.node(*n).online()) {
        let of_node = node_violations(cluster, index);
        found.extend(of_node.into_iter().map(|violation| (Offender::Node(index), violation)));
    }
    for index in cluster.instance_indices() {
        let instance = cluster.instance(index);
        let node = cluster.node(instance.primary);
        let policy = &cluster.group(node.group).policy;
        if let Err(mode) = policy.check(instance, node.exclusive_storage) {
            found.push((Offender::Instance(index), Violation::Policy(mode)));
        }
    }
    found
}

fn node_violations(cluster: &Cluster, index: NodeIdx) -> Vec<Violation> {
    let (node, figures) = (cluster.node(index), cluster.figures(index));
    let mut found = Vec::new();
    let memory = figures.unallocated_memory(node);
    if memory < 0 {
        found.push(Violation::Memory { short_mib: -memory });
    }
    let disk = figures.free_disk - node.min_free_disk;
    if disk < 0 {
        found.push(Violation::Disk { short_mib: -disk });
    }
    let (ratio, limit) = (figures.vcpu_ratio(node), node.max_vcpu_ratio);
    if limit >= 0.0 && limit < ratio {
        found.push(Violation::Vcpus { ratio, limit });
    }
    let (used, limit) = (figures.instance_spindles, node.max_spindles);
    if used > limit {
        found.push(Violation::Spindles { used, limit });
    }
    if figures.tag_conflicts > 0 {
        found.push(Violation::Tags { conflicts: figures.tag_conflicts });
    }
    found
}

/// Number of instances of a shape that fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Room {
    pub shape: Shape,
    /// At most the requested limit.
    pub count: usize,
    /// Refusal of one more instance. `None` if the requested limit, or the limit for instances without
    /// memory, was reached.
    pub refused: Option<Refusal>,
}

/// Counts how many instances of a shape fit, up to `limit`, without changing the cluster.
pub fn room(cluster: &Cluster, shape: &Shape, limit: usize, rules: CapacityOptions) -> Room {
    let added = place(&mut cluster.clone(), limit, shape, rules);
    Room { shape: *shape, count: added.placed.len(), refused: added.refused }
}

/// Capacity and health of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    pub online_nodes: usize,
    /// Instances on online nodes, including planned ones.
    pub instances: usize,
    /// Components of the score of all nodes.
    pub values: Values,
    /// Health of all nodes.
    pub health: Health,
    /// Memory still available to instances on online nodes, MiB.
    pub free_memory_mib: i64,
    /// Disk still available to instances on online nodes, MiB.
    pub free_disk_mib: i64,
    /// Virtual CPUs still available on online nodes; `None` if a node has no limit.
    pub free_vcpus: Option<i64>,
    /// Capacity for each of the requested shapes.
    pub rooms: Vec<Room>,
    /// Rules that the cluster breaks.
    pub violations: Vec<(Offender, Violation)>,
}

impl Summary {
    /// Summarizes the cluster, which is unchanged on return. At most `limit` instances are counted per shape.
    pub fn of(cluster: &mut Cluster, shapes: &[Shape], limit: usize, rules: CapacityOptions) -> Self {
        let all: Vec<NodeIdx> = cluster.node_indices().collect();
        let health = Health::of(cluster, &all);
        let cluster = &*cluster;
        let online: Vec<NodeIdx> = all.iter().copied().filter(|n| cluster.node(*n).online()).collect();
        let sum = |figure: fn(&Cluster, NodeIdx) -> i64| online.iter().map(|n| figure(cluster, *n)).sum();
        let limited = online.iter().all(|n| cluster.node(*n).max_vcpu_ratio >= 0.0);
        let free_vcpus = sum(|c, n| (c.node(n).max_vcpus - c.figures(n).booked_used_vcpus).max(0));
        Self {
            online_nodes: online.len(),
            instances: cluster.instances.iter().filter(|i| cluster.node(i.primary).online()).count(),
            values: *Board::new(cluster, &all).values(),
            health,
            free_memory_mib: sum(|c, n| c.figures(n).available_memory(c.node(n))),
            free_disk_mib: sum(|c, n| c.figures(n).available_disk(c.node(n))),
            free_vcpus: limited.then_some(free_vcpus),
            rooms: shapes.par_iter().map(|shape| room(cluster, shape, limit, rules)).collect(),
            violations: violations(cluster),
        }
    }
}
