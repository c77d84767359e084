//! A generated case as plain values, which are drawn, shrunk and written to files elsewhere.
//!
//! This module uses no random numbers and no files.

use std::fmt;

use crate::json::Json;

/// Program of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// Allocates instances.
    Hail,
    /// Balances a cluster.
    Hbal,
    /// Checks whether balancing is needed.
    Hcheck,
    /// Describes a cluster.
    Hinfo,
    /// Groups nodes for reboots.
    Hroller,
    /// Counts the instances that fit.
    Hspace,
    /// Finds nodes to switch off.
    Hsqueeze,
    /// Saves the state of clusters.
    Hscan,
}

/// Source of a program's cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file in the text format; for hail, the request.
    File,
    /// Documents of the remote API, in the directory.
    Rapi,
    /// A master daemon, on a socket in the directory.
    Luxi,
}

impl Program {
    pub const ALL: [Self; 8] = [
        Self::Hail,
        Self::Hbal,
        Self::Hcheck,
        Self::Hinfo,
        Self::Hroller,
        Self::Hspace,
        Self::Hsqueeze,
        Self::Hscan,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Hail => "hail",
            Self::Hbal => "hbal",
            Self::Hcheck => "hcheck",
            Self::Hinfo => "hinfo",
            Self::Hroller => "hroller",
            Self::Hspace => "hspace",
            Self::Hsqueeze => "hsqueeze",
            Self::Hscan => "hscan",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|program| program.name() == name)
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A cluster, a command line, and for hail a request.
#[derive(Clone, Debug)]
pub struct Case {
    pub program: Program,
    pub cluster: Cluster,
    pub source: Source,
    /// The `request` member (hail).
    pub request: Option<Json>,
    /// Deliberate damage to a member of the message, or of a live source's answer: number of the member, and
    /// its new value.
    pub damage: Option<(usize, Json)>,
    /// Lines of the utilization file (`-U`).
    pub utilisation: Vec<String>,
    /// Measured loads (`--mond-data`).
    pub mond: Option<Json>,
    /// Options, each with its argument, so that shrinking can drop one without breaking the rest.
    pub options: Vec<Vec<String>>,
}

/// A generated cluster.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    pub groups: Vec<Group>,
    pub nodes: Vec<Node>,
    pub instances: Vec<Instance>,
    pub tags: Vec<String>,
    /// The cluster's policy; not part of iallocator messages.
    pub policy: Option<Policy>,
    /// `enabled_hypervisors`; JSON only.
    pub hypervisors: Vec<String>,
}

/// A node group.
#[derive(Clone, Debug)]
pub struct Group {
    pub name: String,
    pub uuid: String,
    /// `preferred`, `last_resort` or `unallocable`.
    pub alloc_policy: &'static str,
    pub tags: Vec<String>,
    /// UUIDs of networks.
    pub networks: Vec<String>,
    /// Instance policy. `None` is the built-in one.
    pub policy: Option<Policy>,
}

/// Memory, virtual CPUs, disk, disk count, NIC count and spindle use, in the text format's order.
pub type Spec = [i64; 6];

/// An instance policy.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Standard sizes.
    pub standard: Spec,
    /// Pairs of lower and upper bounds.
    pub bounds: Vec<(Spec, Spec)>,
    /// Allowed disk templates.
    pub templates: Vec<&'static str>,
    /// Virtual CPUs per physical CPU.
    pub vcpu_ratio: f64,
    /// Spindles of instances per spindle.
    pub spindle_ratio: f64,
}

/// A node. Sizes are in MiB.
#[derive(Clone, Debug)]
pub struct Node {
    pub name: String,
    /// Position of the group.
    pub group: usize,
    /// The node's resources are unknown (`?`).
    pub unknown: bool,
    /// `Y`, `M` or `N`.
    pub role: char,
    /// JSON only.
    pub drained: bool,
    /// Total memory, possibly with a fraction.
    pub total_memory: f64,
    /// Memory of the node's own system.
    pub system_memory: i64,
    /// Free memory as reported.
    pub free_memory: i64,
    pub total_disk: f64,
    pub free_disk: i64,
    /// Physical CPUs.
    pub cpus: f64,
    /// Virtual CPUs of the node's own system.
    pub system_cpus: i64,
    /// Relative speed; not part of iallocator messages.
    pub cpu_speed: f64,
    pub spindles: i64,
    pub free_spindles: i64,
    /// Exclusive storage.
    pub exclusive: bool,
    pub tags: Vec<String>,
}

/// An instance. Sizes are in MiB.
#[derive(Clone, Debug)]
pub struct Instance {
    pub name: String,
    pub memory: i64,
    pub disk: i64,
    /// Virtual CPUs.
    pub vcpus: i64,
    /// Status word of the text format.
    pub status: &'static str,
    /// Whether the balancer may move it.
    pub auto_balance: bool,
    /// Position of the primary node.
    pub primary: usize,
    /// Position of the secondary node.
    pub secondary: Option<usize>,
    /// Disk template.
    pub template: &'static str,
    pub tags: Vec<String>,
    /// Weight on spindles.
    pub spindle_use: i64,
    /// Spindles, if known.
    pub spindles: Option<i64>,
    /// Reserved, but not created yet.
    pub forthcoming: bool,
    /// UUIDs of the networks of its NICs.
    pub networks: Vec<Option<String>>,
}

impl Instance {
    /// Whether the instance counts in its node's used memory.
    pub fn uses_memory(&self) -> bool {
        !self.forthcoming
            && matches!(
                self.status,
                "running" | "ERROR_up" | "ERROR_nodedown" | "ERROR_nodeoffline" | "ERROR_wrongnode"
            )
    }
}

impl Cluster {
    /// Removes a node and the instances on it, also those with their secondary there.
    pub fn remove_node(&mut self, node: usize) {
        self.instances.retain(|i| i.primary != node && i.secondary != Some(node));
        self.nodes.remove(node);
        for instance in &mut self.instances {
            instance.primary -= usize::from(instance.primary > node);
            if let Some(secondary) = &mut instance.secondary {
                *secondary -= usize::from(*secondary > node);
            }
        }
    }

    /// Removes a group with its nodes and their instances.
    pub fn remove_group(&mut self, group: usize) {
        for node in (0..self.nodes.len()).rev() {
            if self.nodes[node].group == group {
                self.remove_node(node);
            }
        }
        self.groups.remove(group);
        for node in &mut self.nodes {
            node.group -= usize::from(node.group > group);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::generate;

    use super::*;

    #[test]
    fn removing_a_node_keeps_the_rest_in_place() {
        for seed in 0..50 {
            let mut cluster = generate::case(seed, Program::Hbal).cluster;
            if cluster.nodes.len() < 2 {
                continue;
            }
            let names = |c: &Cluster| -> Vec<(String, String)> {
                c.instances.iter().map(|i| (i.name.clone(), c.nodes[i.primary].name.clone())).collect()
            };
            let mut expected = names(&cluster);
            let keep: Vec<bool> =
                cluster.instances.iter().map(|i| i.primary != 0 && i.secondary != Some(0)).collect();
            let mut position = 0;
            expected.retain(|_| {
                position += 1;
                keep[position - 1]
            });
            cluster.remove_node(0);
            assert_eq!(names(&cluster), expected);
        }
    }
}
