//! What is to be placed, and how placements are compared.

use cluster::{AllocPolicy, Cluster, GroupIdx, Instance};
use placement::allocate::AllocOptions;

use crate::options::Options;

/// What is to be placed.
pub(super) struct Wanted<'a> {
    pub instance: &'a Instance,
    /// On how many nodes.
    pub nodes: i64,
    /// The names of the only nodes that may be used.
    pub allowed: Option<&'a Vec<String>>,
}

/// How placements are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strategy {
    /// By the cluster's score.
    Balance,
    /// By what is lost for later instances.
    Dedicated,
}

impl Strategy {
    /// Dedicated if all nodes that could be chosen have exclusive storage. Groups are compared by *name* only,
    /// so a group given by UUID selects none, and then nothing speaks against it.
    pub(super) fn of(cluster: &Cluster, group_name: Option<&str>) -> Self {
        let relevant = |group: GroupIdx| {
            let group = cluster.group(group);
            match group_name {
                Some(name) => group.name == name,
                None => group.alloc_policy != AllocPolicy::Unallocable,
            }
        };
        let dedicated = cluster.nodes.iter().all(|node| node.exclusive_storage || !relevant(node.group));
        if dedicated { Self::Dedicated } else { Self::Balance }
    }
}

/// How an instance is placed, as the options say.
pub(super) fn alloc_options(options: &Options) -> AllocOptions {
    AllocOptions {
        ignore_soft_errors: options.ignore_soft_errors,
        capacity_checks: !options.no_capacity_checks,
    }
}
