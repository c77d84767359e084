//! From plain values to a cluster with every derived figure (HT-tags, in its order).

use std::collections::HashMap;

use thiserror::Error;

use crate::group::Group;
use crate::ids::{InstanceIdx, NodeIdx};
use crate::instance::{DiskTemplate, Instance, MirrorClass, Utilisation};
use crate::node::Node;
use crate::policy::Policy;
use crate::state::Cluster;
use crate::tags::TagRules;

/// Which nodes count as failing N+1 before anything moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum InitialN1 {
    /// Reported free memory below the reserve: the rule of Ganeti up to 3.1.0~rc2.
    #[default]
    Reported,
    /// Unallocated memory not above the reserve: the rule of Ganeti since 3.1.0, and of every later step.
    Recorded,
}

/// Options that shape the loaded cluster.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// Assume no utilisation at all, whatever is given.
    pub ignore_utilisation: bool,
    /// Utilisation by full instance name; later entries win, unknown names are ignored.
    pub utilisation: Vec<(String, Utilisation)>,
    /// Prefixes of exclusion tags, without the colon, beside those that cluster tags define.
    pub exclusion_tags: Vec<String>,
    /// If not empty, only these instances may be moved by balancing.
    pub select_instances: Vec<String>,
    /// These instances may not be moved by balancing.
    pub exclude_instances: Vec<String>,
    /// Memory that the system of a KVM node is taken to use, MiB; not applied unless positive.
    pub static_kvm_node_memory: i64,
    /// Which nodes count as failing N+1 at first.
    pub initial_n1: InitialN1,
}

/// What is wrong with the options.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LoadError {
    /// Names in the selection options that denote no instance, or several.
    #[error("Unknown instance(s): [{}]", quoted(.0))]
    UnknownInstances(Vec<String>),
    /// A DRBD instance whose mirror is where it runs.
    #[error("Instance {instance} has same primary and secondary node - {node}")]
    SameNodes {
        /// The instance.
        instance: String,
        /// The node.
        node: String,
    },
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|n| format!("{n:?}")).collect::<Vec<_>>().join(",")
}

/// A node whose records do not add up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inconsistency {
    /// Which node.
    pub node: NodeIdx,
    /// Memory that is neither used, nor free, MiB.
    pub missing_memory: i64,
    /// Disk that is neither used, nor free, MiB.
    pub missing_disk: i64,
}

/// More missing memory than this is worth a warning, MiB.
const TOLERATED_MISSING_MEMORY: i64 = 512;
/// More missing disk than this is worth a warning, MiB.
const TOLERATED_MISSING_DISK: i64 = 1024;

impl Cluster {
    /// Builds a cluster from its parts. Group, node and instance indices in the parts are positions.
    ///
    /// Also returns the nodes whose records do not add up, last node first.
    pub fn load(
        groups: Vec<Group>,
        nodes: Vec<Node>,
        instances: Vec<Instance>,
        tags: Vec<String>,
        policy: Policy,
        options: &LoadOptions,
    ) -> Result<(Self, Vec<Inconsistency>), LoadError> {
        let mut cluster = Self::assemble(groups, nodes, instances, tags, policy);
        cluster.check_mirrors()?;
        cluster.set_utilisation(options);
        cluster.rules = TagRules::from_cluster_tags(&cluster.tags, &options.exclusion_tags);
        cluster.derive_all_tags();
        cluster.select(options)?;
        for index in cluster.instance_indices() {
            let instance = cluster.instance(index);
            if let Some(secondary) = instance.secondary {
                let shared = cluster.shared_locations(instance.primary, secondary);
                cluster.instances[index.at()].location_score = shared;
            }
        }
        for index in cluster.instance_indices() {
            cluster.load_instance(index);
        }
        for index in cluster.split_instances() {
            cluster.instances[index.at()].movable = false;
        }
        let warnings = cluster.settle_nodes(options);
        Ok((cluster, warnings))
    }

    /// A mirror must be elsewhere: moves take an instance's two nodes for different ones.
    fn check_mirrors(&self) -> Result<(), LoadError> {
        let same = |i: &&Instance| i.template == DiskTemplate::Drbd && i.secondary == Some(i.primary);
        match self.instances.iter().find(same) {
            Some(instance) => Err(LoadError::SameNodes {
                instance: instance.name.clone(),
                node: self.node(instance.primary).name.clone(),
            }),
            None => Ok(()),
        }
    }

    /// Instances whose primary and secondary are in different groups; they are never moved.
    pub fn split_instances(&self) -> Vec<InstanceIdx> {
        let split = |i: &InstanceIdx| {
            let instance = self.instance(*i);
            instance.secondary.is_some_and(|s| self.node(s).group != self.node(instance.primary).group)
        };
        self.instance_indices().filter(split).collect()
    }

    fn set_utilisation(&mut self, options: &LoadOptions) {
        if options.ignore_utilisation {
            for instance in &mut self.instances {
                instance.utilisation = [0.0; 4];
            }
        } else if !options.utilisation.is_empty() {
            let given: HashMap<&str, Utilisation> =
                options.utilisation.iter().map(|(name, u)| (name.as_str(), *u)).collect();
            for instance in &mut self.instances {
                if let Some(utilisation) = given.get(instance.name.as_str()) {
                    instance.utilisation = *utilisation;
                }
            }
        }
    }

    fn derive_all_tags(&mut self) {
        for instance in &mut self.instances {
            instance.exclusion_tags = self.rules.exclusion_tags(&instance.tags, &mut self.table);
            instance.desired_locations = self.rules.desired_locations(&instance.tags, &mut self.table);
        }
        for node in &mut self.nodes {
            node.locations = self.rules.locations(&node.tags, &mut self.table);
            node.migration = self.rules.migration(&node.tags, &mut self.table);
        }
    }

    fn select(&mut self, options: &LoadOptions) -> Result<(), LoadError> {
        let mut unknown = Vec::new();
        let mut find = |names: &[String]| -> Vec<InstanceIdx> {
            let mut found = Vec::new();
            for name in names {
                match find_by_components(self.instances.iter().map(|i| i.name.as_str()), name) {
                    Some(position) => found.push(InstanceIdx::from_usize(position)),
                    None => unknown.push(name.clone()),
                }
            }
            found
        };
        let selected = find(&options.select_instances);
        let excluded = find(&options.exclude_instances);
        if !unknown.is_empty() {
            return Err(LoadError::UnknownInstances(unknown));
        }
        for (position, instance) in self.instances.iter_mut().enumerate() {
            let index = InstanceIdx::from_usize(position);
            instance.movable = instance.template.movable()
                && !instance.is_pinned()
                && !excluded.contains(&index)
                && (selected.is_empty() || selected.contains(&index));
        }
        Ok(())
    }

    fn settle_nodes(&mut self, options: &LoadOptions) -> Vec<Inconsistency> {
        let mut warnings = Vec::new();
        for (position, (node, state)) in self.nodes.iter_mut().zip(&mut self.states).enumerate() {
            let policy = &self.groups[node.group.at()].policy;
            node.limit_vcpus(policy.vcpu_ratio);
            node.max_spindles = policy.spindle_ratio * node.total_spindles as f64;
            if node.kvm && options.static_kvm_node_memory > 0 {
                node.node_memory = options.static_kvm_node_memory;
            }
            let figures = &mut state.figures;
            figures.reserved_memory = state.peers.iter().map(|(_, memory)| *memory).max().unwrap_or(0);
            node.missing_memory = node.total_memory_mib()
                - node.node_memory
                - figures.instance_memory
                - node.reported_free_memory;
            figures.fails_n1 = match options.initial_n1 {
                InitialN1::Reported => node.reported_free_memory < figures.reserved_memory,
                InitialN1::Recorded => figures.unallocated_memory(node) <= figures.reserved_memory,
            };
            let on_node = state.primaries.iter().chain(&state.secondaries);
            let used_disk: i64 = on_node.map(|i| self.instances[i.at()].disk).sum();
            let missing_disk = node.total_disk as i64 - figures.free_disk - used_disk;
            if node.missing_memory > TOLERATED_MISSING_MEMORY || missing_disk > TOLERATED_MISSING_DISK {
                let node_index = NodeIdx::from_usize(position);
                let missing_memory = node.missing_memory;
                warnings.push(Inconsistency { node: node_index, missing_memory, missing_disk });
            }
        }
        warnings.reverse();
        warnings
    }

    /// The node of that full name, or else the only one whose name begins with these components.
    pub fn find_node(&self, name: &str) -> Option<NodeIdx> {
        find_by_components(self.nodes.iter().map(|n| n.name.as_str()), name).map(NodeIdx::from_usize)
    }

    /// The instance of that name; as [`Self::find_node`].
    pub fn find_instance(&self, name: &str) -> Option<InstanceIdx> {
        find_by_components(self.instances.iter().map(|i| i.name.as_str()), name).map(InstanceIdx::from_usize)
    }

    /// Whether nothing can read the data of an instance: it is on nodes that are offline, not only drained.
    pub fn unreadable(&self, index: InstanceIdx) -> bool {
        let instance = self.instance(index);
        match instance.template.mirror() {
            MirrorClass::External => false,
            MirrorClass::None => !self.node(instance.primary).readable(),
            MirrorClass::Internal => instance.involved_nodes().all(|n| !self.node(n).readable()),
        }
    }

    /// Makes what the nodes report agree with what is on them now, so that the cluster loads as it stands.
    ///
    /// What is missing at load stays missing.
    pub fn settle_reports(&mut self) {
        for (node, state) in self.nodes.iter_mut().zip(&self.states) {
            let figures = &state.figures;
            node.reported_free_memory =
                node.total_memory_mib() - node.node_memory - figures.instance_memory - node.missing_memory;
            node.reported_free_disk = figures.free_disk;
            if node.exclusive_storage {
                node.reported_free_spindles = figures.free_spindles;
            }
        }
    }

    /// Marks nodes offline (`-O`); names as in the selection options. Returns the names that denote no node.
    pub fn set_offline(&mut self, names: &[String]) -> Vec<String> {
        let mut unknown = Vec::new();
        for name in names {
            match find_by_components(self.nodes.iter().map(|n| n.name.as_str()), name) {
                Some(position) => self.nodes[position].lose(),
                None => unknown.push(name.clone()),
            }
        }
        unknown
    }

    /// Overrides the ratio of virtual to physical CPUs on all nodes (`--max-cpu`).
    pub fn set_max_vcpu_ratio(&mut self, ratio: f64) {
        for node in &mut self.nodes {
            node.limit_vcpus(ratio);
        }
    }

    /// Sets the share of each node's disk to keep free (`--min-disk`).
    pub fn set_min_disk_ratio(&mut self, ratio: f64) {
        for node in &mut self.nodes {
            node.keep_free_disk(ratio);
        }
    }

    /// Replaces the assumed CPU utilisation by loads measured on the nodes, one per node.
    ///
    /// Each primary gets a share by its virtual CPUs (HT-loads).
    pub fn set_node_cpu_load(&mut self, loads: &[f64]) {
        for instance in &mut self.instances {
            let node = instance.primary.at();
            let share = loads[node] / self.states[node].figures.used_vcpus as f64;
            instance.utilisation[0] = share * instance.vcpus as f64;
        }
        for (state, load) in self.states.iter_mut().zip(loads) {
            state.figures.load[0] = *load;
        }
    }

    /// Replaces the assumed CPU utilisation by figures measured per instance, one per instance.
    pub fn set_instance_cpu_load(&mut self, loads: &[f64]) {
        for (instance, load) in self.instances.iter_mut().zip(loads) {
            instance.utilisation[0] = *load;
        }
        for state in &mut self.states {
            let primaries = state.primaries.iter().rev();
            state.figures.load[0] = primaries.fold(0.0, |sum, i| sum + self.instances[i.at()].utilisation[0]);
        }
    }
}

/// The only name that equals `wanted`, or else the only one of which `wanted` is a leading part up to a dot.
fn find_by_components<'a>(names: impl Iterator<Item = &'a str>, wanted: &str) -> Option<usize> {
    let mut partial = None;
    let mut ambiguous = false;
    for (position, name) in names.enumerate() {
        if name == wanted {
            return Some(position);
        }
        if name.strip_prefix(wanted).is_some_and(|rest| rest.starts_with('.')) {
            ambiguous |= partial.is_some();
            partial = Some(position);
        }
    }
    if ambiguous { None } else { partial }
}
