//! A generated case as plain values: what is drawn, what is shrunk and what is written to files.
//!
//! Nothing here draws at random and nothing here touches a file.

use std::fmt;

use crate::json::Json;

/// Which program a case is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// The instance allocator.
    Hail,
    /// The balancer.
    Hbal,
    /// Says whether balancing is needed.
    Hcheck,
    /// Describes a cluster.
    Hinfo,
    /// Groups nodes for reboots.
    Hroller,
    /// Counts what fits.
    Hspace,
    /// Finds nodes to switch off.
    Hsqueeze,
    /// Saves the state of clusters.
    Hscan,
}

/// Where a program gets its cluster from.
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
    /// All of them.
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

    /// The program's name.
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

    /// The program of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|program| program.name() == name)
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A whole case: a cluster, perhaps a request, and a command line.
#[derive(Clone, Debug)]
pub struct Case {
    /// Which program to run.
    pub program: Program,
    /// The cluster.
    pub cluster: Cluster,
    /// Where the program gets it from.
    pub source: Source,
    /// The `request` member (hail).
    pub request: Option<Json>,
    /// A member of the message, or of what a live source says, that is damaged on purpose: which one of all, and
    /// what it becomes.
    pub damage: Option<(usize, Json)>,
    /// Lines of the utilisation file (hbal).
    pub utilisation: Vec<String>,
    /// The measured loads (hbal).
    pub mond: Option<Json>,
    /// Options, each with its argument, so that one can be dropped without breaking the others.
    pub options: Vec<Vec<String>>,
}

/// A cluster.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    /// Node groups.
    pub groups: Vec<Group>,
    /// Nodes.
    pub nodes: Vec<Node>,
    /// Instances.
    pub instances: Vec<Instance>,
    /// Cluster tags.
    pub tags: Vec<String>,
    /// The cluster's policy; text only.
    pub policy: Option<Policy>,
    /// `enabled_hypervisors`; JSON only.
    pub hypervisors: Vec<String>,
}

/// A node group.
#[derive(Clone, Debug)]
pub struct Group {
    /// Name.
    pub name: String,
    /// UUID.
    pub uuid: String,
    /// `preferred`, `last_resort` or `unallocable`.
    pub alloc_policy: &'static str,
    /// Tags.
    pub tags: Vec<String>,
    /// UUIDs of networks.
    pub networks: Vec<String>,
    /// Instance policy; none: the built-in one.
    pub policy: Option<Policy>,
}

/// Memory, virtual CPUs, disk, disk count, NIC count, spindle use: the text format's order.
pub type Spec = [i64; 6];

/// An instance policy.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Standard sizes.
    pub standard: Spec,
    /// Pairs of lower and upper bounds.
    pub bounds: Vec<(Spec, Spec)>,
    /// Disk templates.
    pub templates: Vec<&'static str>,
    /// Virtual CPUs per physical one.
    pub vcpu_ratio: f64,
    /// Instances' spindles per spindle.
    pub spindle_ratio: f64,
}

/// A node. Sizes are MiB.
#[derive(Clone, Debug)]
pub struct Node {
    /// Name.
    pub name: String,
    /// Group, a position.
    pub group: usize,
    /// Nothing is known of it (`?`).
    pub unknown: bool,
    /// `Y`, `M` or `N`.
    pub role: char,
    /// Drained; JSON only.
    pub drained: bool,
    /// Total memory; fractions happen.
    pub total_memory: f64,
    /// Memory of the node's own system.
    pub system_memory: i64,
    /// Memory reported free.
    pub free_memory: i64,
    /// Total disk.
    pub total_disk: f64,
    /// Free disk.
    pub free_disk: i64,
    /// Physical CPUs.
    pub cpus: f64,
    /// Virtual CPUs of the node's own system.
    pub system_cpus: i64,
    /// Relative speed; text only.
    pub cpu_speed: f64,
    /// Spindles.
    pub spindles: i64,
    /// Free spindles.
    pub free_spindles: i64,
    /// Exclusive storage.
    pub exclusive: bool,
    /// Tags.
    pub tags: Vec<String>,
}

/// An instance. Sizes are MiB.
#[derive(Clone, Debug)]
pub struct Instance {
    /// Name.
    pub name: String,
    /// Memory.
    pub memory: i64,
    /// Disk.
    pub disk: i64,
    /// Virtual CPUs.
    pub vcpus: i64,
    /// Status word of the text format.
    pub status: &'static str,
    /// Whether the balancer may move it.
    pub auto_balance: bool,
    /// Primary node, a position.
    pub primary: usize,
    /// Secondary node, a position.
    pub secondary: Option<usize>,
    /// Disk template.
    pub template: &'static str,
    /// Tags.
    pub tags: Vec<String>,
    /// Weight on spindles.
    pub spindle_use: i64,
    /// Spindles, if known.
    pub spindles: Option<i64>,
    /// Reserved, not created yet.
    pub forthcoming: bool,
    /// UUIDs of the networks of its NICs.
    pub networks: Vec<Option<String>>,
}

impl Instance {
    /// Whether the instance counts in its node's memory.
    pub fn uses_memory(&self) -> bool {
        !self.forthcoming
            && matches!(
                self.status,
                "running" | "ERROR_up" | "ERROR_nodedown" | "ERROR_nodeoffline" | "ERROR_wrongnode"
            )
    }
}

impl Cluster {
    /// Removes a node and what lives on it.
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

    /// Removes a group with its nodes.
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
