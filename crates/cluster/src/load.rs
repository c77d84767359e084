//! Loading: derives every figure of a cluster from plain values (HT-tags, in its order).

use std::collections::HashMap;

use thiserror::Error;

use crate::group::Group;
use crate::ids::{InstanceIdx, NodeIdx};
use crate::instance::{DiskTemplate, Instance, MirrorClass, Utilisation};
use crate::nearest::did_you_mean;
use crate::node::Node;
use crate::policy::Policy;
use crate::state::Cluster;
use crate::tags::TagRules;

/// Rule that decides which nodes fail N+1 before anything moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum InitialN1 {
    /// Reported free memory is below the reserve: the rule of Ganeti up to 3.1.0~rc2.
    #[default]
    Reported,
    /// Unallocated memory is at or below the reserve: the rule of Ganeti since 3.1.0, and of all steps after
    /// loading.
    Recorded,
}

/// Options for [`Cluster::load`].
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// Set all utilization to 0, even if it is given.
    pub ignore_utilisation: bool,
    /// Utilization by full instance name. Later entries win; unknown names are ignored.
    pub utilisation: Vec<(String, Utilisation)>,
    /// Prefixes of exclusion tags, without the colon, in addition to those that cluster tags define.
    pub exclusion_tags: Vec<String>,
    /// Instances that balancing can move; empty for all.
    pub select_instances: Vec<String>,
    /// Instances that balancing must not move.
    pub exclude_instances: Vec<String>,
    /// System memory of KVM nodes, MiB. Values of 0 or less keep each node's own value.
    pub static_kvm_node_memory: i64,
    pub initial_n1: InitialN1,
}

/// Error in the options or in the loaded records.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LoadError {
    /// Names in the selection options that match no instance, or several.
    #[error("Unknown instance(s): [{}]{meant}", quoted(.names))]
    UnknownInstances {
        names: Vec<String>,
        /// Question about similar names, see [`did_you_mean`].
        meant: String,
    },
    /// A DRBD instance with the same primary and secondary.
    #[error("Instance {instance} has same primary and secondary node - {node}")]
    SameNodes { instance: String, node: String },
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|n| format!("{n:?}")).collect::<Vec<_>>().join(",")
}

/// A node with memory or disk that is neither used nor free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inconsistency {
    pub node: NodeIdx,
    /// Memory neither used nor free, MiB.
    pub missing_memory: i64,
    /// Disk neither used nor free, MiB.
    pub missing_disk: i64,
}

/// Missing memory above this limit is reported, MiB.
const TOLERATED_MISSING_MEMORY: i64 = 512;
/// Missing disk above this limit is reported, MiB.
const TOLERATED_MISSING_DISK: i64 = 1024;

impl Cluster {
    /// Builds a cluster from its parts. Indices in the parts are positions.
    ///
    /// Also returns the inconsistent nodes, last node first.
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

    /// Rejects DRBD instances with the same primary and secondary: moves assume two different nodes.
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

    /// Instances with primary and secondary in different groups. They are never moved.
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
            let names: Vec<&str> = unknown.iter().map(String::as_str).collect();
            let meant = did_you_mean(&names, self.instances.iter().map(|i| i.name.as_str()));
            return Err(LoadError::UnknownInstances { names: unknown, meant });
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

    /// The node with this full name, or else the only one whose name starts with these components.
    pub fn find_node(&self, name: &str) -> Option<NodeIdx> {
        find_by_components(self.nodes.iter().map(|n| n.name.as_str()), name).map(NodeIdx::from_usize)
    }

    /// The instance with this name, matched like in [`Self::find_node`].
    pub fn find_instance(&self, name: &str) -> Option<InstanceIdx> {
        find_by_components(self.instances.iter().map(|i| i.name.as_str()), name).map(InstanceIdx::from_usize)
    }

    /// Whether all copies of an instance's data are on offline nodes. Drained nodes can still be read.
    pub fn unreadable(&self, index: InstanceIdx) -> bool {
        let instance = self.instance(index);
        match instance.template.mirror() {
            MirrorClass::External => false,
            MirrorClass::None => !self.node(instance.primary).readable(),
            MirrorClass::Internal => instance.involved_nodes().all(|n| !self.node(n).readable()),
        }
    }

    /// Updates the nodes' reported figures to match their current instances, so that the cluster can be
    /// loaded again as it is now.
    ///
    /// Memory that was missing at load stays missing.
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

    /// Marks nodes offline (`-O`). Names match like in the selection options. Returns the names that match no
    /// node.
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

    /// Sets the limit of virtual CPUs per physical CPU on all nodes (`--max-cpu`).
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

    /// Replaces assumed CPU utilization with loads measured on nodes, given in node order.
    ///
    /// Each primary gets a share in proportion to its virtual CPUs (HT-loads).
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

    /// Replaces assumed CPU utilization with loads measured per instance, given in instance order.
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

/// Position of the name that equals `wanted`, or else of the only name that starts with `wanted` and a dot.
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
