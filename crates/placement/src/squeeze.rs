//! Finds nodes that can be switched off or must be switched on (HT-hsqueeze).

use cluster::{Cluster, DiskTemplate, Instance, InstanceIdx, NodeIdx, TagEffect};

use crate::balance::{BalanceOptions, Balancer, Step};

/// Prefix of tags on nodes that were switched off to save power.
pub const STANDBY_PREFIX: &str = "htools:standby:";

/// Spare capacity that a cluster must have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SqueezeOptions {
    /// Minimum spare capacity of every node, in standard instances. With less, nodes are switched on.
    pub minimal_resources: f64,
    /// Spare capacity of every node that must remain when nodes are switched off, in standard instances.
    pub target_resources: f64,
    /// Whether offline nodes must have spare capacity as well, as in the reference.
    pub count_offline: bool,
}

/// Decision of [`squeeze`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Capacity is short: switch nodes on, then move instances.
    SwitchOn {
        /// Whether the switched-on nodes provide sufficient capacity.
        sufficient: bool,
    },
    /// Capacity is more than sufficient: move instances, then switch nodes off.
    SwitchOff,
    /// Change nothing.
    Nothing,
}

/// The decision and its details. [`squeeze`] has already applied it to the cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub action: Action,
    /// Nodes to switch.
    pub nodes: Vec<NodeIdx>,
    /// Moves to make.
    pub steps: Vec<Step>,
}

/// Online nodes that can be switched off because no instance depends on their disks, most primaries first.
/// The master node is excluded.
pub fn offline_candidates(cluster: &Cluster) -> Vec<NodeIdx> {
    let free = |index: &NodeIdx| {
        let (node, state) = (cluster.node(*index), cluster.state(*index));
        let bound = |i: &InstanceIdx| cluster.instance(*i).template.local_storage();
        node.online() && !node.master && state.secondaries.is_empty() && !state.primaries.iter().any(bound)
    };
    let mut candidates: Vec<NodeIdx> = cluster.node_indices().filter(free).collect();
    candidates.sort_by_key(|n| std::cmp::Reverse(cluster.state(*n).primaries.len()));
    candidates
}

/// Offline nodes that were switched off to save power.
pub fn online_candidates(cluster: &Cluster) -> Vec<NodeIdx> {
    let standby = |index: &NodeIdx| {
        let node = cluster.node(*index);
        node.offline && node.tags.iter().any(|tag| tag.starts_with(STANDBY_PREFIX))
    };
    cluster.node_indices().filter(standby).collect()
}

/// Makes the decision and applies it to `cluster`.
pub fn squeeze(cluster: &mut Cluster, options: &SqueezeOptions) -> Plan {
    let minimal = Room::new(cluster, options.minimal_resources, options.count_offline);
    if minimal.is_everywhere(cluster) {
        let target = Room::new(cluster, options.target_resources, options.count_offline);
        switch_off(cluster, &target)
    } else {
        switch_on(cluster, &minimal)
    }
}

/// Switches on the shortest sufficient prefix of the candidates, or every candidate if even that isn't
/// sufficient.
fn switch_on(cluster: &mut Cluster, wanted: &Room) -> Plan {
    let candidates = online_candidates(cluster);
    let mut last = None;
    for count in 0..=candidates.len() {
        let nodes = &candidates[..count];
        if count < candidates.len() && !wanted.may_be_everywhere(cluster, nodes, false) {
            continue;
        }
        let mut trial = cluster.clone();
        let steps = switch(&mut trial, nodes, false);
        let sufficient = settled(&trial) && wanted.is_everywhere(&trial);
        last = Some((trial, Plan { action: Action::SwitchOn { sufficient }, nodes: nodes.to_vec(), steps }));
        if sufficient {
            break;
        }
    }
    // The last iteration never continues early, so a plan exists.
    let Some((trial, plan)) = last else { return nothing() };
    *cluster = trial;
    plan
}

/// Goes through the candidates from the least used one on and takes each that the rest of the cluster can do
/// without.
fn switch_off(cluster: &mut Cluster, wanted: &Room) -> Plan {
    let mut best: Option<(Cluster, Plan)> = None;
    let mut chosen: Vec<NodeIdx> = Vec::new();
    for candidate in offline_candidates(cluster).into_iter().rev() {
        chosen.insert(0, candidate);
        let attempt = can_leave(cluster, candidate)
            .then(|| wanted.may_be_everywhere(cluster, &chosen, true))
            .filter(|possible| *possible)
            .and_then(|_| {
                let mut trial = cluster.clone();
                let steps = switch(&mut trial, &chosen, true);
                (settled(&trial) && wanted.is_everywhere(&trial)).then_some((trial, steps))
            });
        match attempt {
            Some((trial, steps)) => {
                let plan = Plan { action: Action::SwitchOff, nodes: chosen.clone(), steps };
                best = Some((trial, plan));
            }
            None => {
                chosen.remove(0);
            }
        }
    }
    let Some((trial, plan)) = best else { return nothing() };
    *cluster = trial;
    plan
}

fn nothing() -> Plan {
    Plan { action: Action::Nothing, nodes: Vec::new(), steps: Vec::new() }
}

/// Whether balancing could move everything off a node. If not, there is no need to try.
fn can_leave(cluster: &Cluster, node: NodeIdx) -> bool {
    let moves = |i: &InstanceIdx| {
        let instance = cluster.instance(*i);
        instance.movable && instance.auto_balance
    };
    cluster.state(node).primaries.iter().all(moves)
}

/// Sets nodes offline or online and balances the whole cluster, across groups as the reference does.
fn switch(cluster: &mut Cluster, nodes: &[NodeIdx], offline: bool) -> Vec<Step> {
    for node in nodes {
        cluster.nodes[node.at()].offline = offline;
    }
    let all: Vec<NodeIdx> = cluster.node_indices().collect();
    let instances: Vec<InstanceIdx> = cluster.instance_indices().collect();
    // Accept any gain, and never stop at a good enough score.
    let options = BalanceOptions {
        min_gain: 0.0,
        min_gain_limit: 0.0,
        min_score: f64::NEG_INFINITY,
        ..BalanceOptions::default()
    };
    let mut run = Balancer::new(cluster, &all, &instances, options);
    std::iter::from_fn(|| run.step()).collect()
}

/// Whether no instance has its primary on an offline node. The reference ignores secondaries.
fn settled(cluster: &Cluster) -> bool {
    cluster.instances.iter().all(|i| cluster.node(i.primary).online())
}

/// Largest requested amount, in MiB or any other unit; see [`Room::new`].
const LARGEST: f64 = (1_i64 << 40) as f64;

/// An instance that must fit on every node.
struct Room {
    instance: Instance,
    count_offline: bool,
}

impl Room {
    /// Capacity for `factor` times the cluster's standard instance on shared storage.
    fn new(cluster: &Cluster, factor: f64, count_offline: bool) -> Self {
        let standard = &cluster.policy.std;
        // No node has that much capacity, and sums with the limit don't overflow.
        let times = |amount: i64| (factor * amount as f64).floor().clamp(-LARGEST, LARGEST) as i64;
        let mut instance = Instance::new("room", DiskTemplate::Ext, NodeIdx::from_usize(0));
        instance.memory = times(standard.memory_size);
        instance.vcpus = times(standard.cpu_count);
        instance.spindle_use = times(standard.spindle_use);
        Self { instance, count_offline }
    }

    fn counts(&self, cluster: &Cluster, node: NodeIdx) -> bool {
        self.count_offline || cluster.node(node).online()
    }

    /// Whether the instance fits on every node that counts.
    fn is_everywhere(&self, cluster: &Cluster) -> bool {
        let demand = self.instance.demand();
        let fits = |n: &NodeIdx| {
            let node = cluster.node(*n);
            cluster.figures(*n).add_primary(node, &demand, TagEffect::default(), 0, false).is_ok()
        };
        cluster.node_indices().filter(|n| self.counts(cluster, *n)).all(|n| fits(&n))
    }

    /// Whether the online nodes together would have the memory for the instance on each, after nodes are
    /// `switched`. If not, no balancing helps.
    fn may_be_everywhere(&self, cluster: &Cluster, switched: &[NodeIdx], offline: bool) -> bool {
        let mut spare = 0_i64;
        for index in cluster.node_indices() {
            let (node, figures) = (cluster.node(index), cluster.figures(index));
            let stays_online = if switched.contains(&index) { !offline } else { node.online() };
            if stays_online {
                spare += figures.unallocated_memory(node) - self.instance.memory - 1;
            } else {
                // Instances on this node must run elsewhere in the end.
                spare -= figures.instance_memory;
            }
        }
        spare >= 0
    }
}
