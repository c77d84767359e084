//! Description of a requested placement, and the strategy for comparing placements.

use cluster::{AllocPolicy, Cluster, GroupIdx, Instance};
use placement::allocate::AllocOptions;

use crate::options::Options;

/// A requested placement.
pub(super) struct Wanted<'a> {
    pub instance: &'a Instance,
    /// Number of nodes that the instance needs.
    pub nodes: i64,
    /// Names of allowed nodes; `None` for all.
    pub allowed: Option<&'a Vec<String>>,
}

/// Rule for comparing placements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strategy {
    /// By cluster score.
    Balance,
    /// By allocations that later instances lose.
    Dedicated,
}

impl Strategy {
    /// Dedicated if all candidate nodes have exclusive storage. Groups are compared by *name* only: a group
    /// given by UUID matches no node, so the result is dedicated.
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

/// Allocation options that follow from the command line.
pub(super) fn alloc_options(options: &Options) -> AllocOptions {
    AllocOptions {
        ignore_soft_errors: options.ignore_soft_errors,
        capacity_checks: !options.no_capacity_checks,
    }
}
