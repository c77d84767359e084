//! Explains which check refuses a placement, with the figures it compared.
//!
//! The checks themselves are in [`cluster::Figures`]. This module repeats them in the same order until one
//! refuses. A property test compares the two.

use cluster::{Cluster, FailMode, Figures, Instance, Node, NodeIdx};
use thiserror::Error;

use crate::objection::Objection;

/// Reason as a phrase that the caller continues with a place or a count.
pub fn words(mode: FailMode) -> &'static str {
    match mode {
        FailMode::Memory => "too little memory beside the N+1 reserve",
        FailMode::Disk => "too little disk or too many spindles in use",
        FailMode::Cpu => "too many virtual CPUs",
        FailMode::N1 => "not everything could be restarted after the loss of a node",
        FailMode::Tags => "an instance with the same exclusion tag is there",
        FailMode::Migration => "migration tags forbid it",
        FailMode::DiskCount => "a number of disks outside the policy",
        FailMode::Spindles => "too few spindles",
        FailMode::Internal => "a defect",
    }
}

/// Formats the wanted amount. If it equals the available amount, the text says "more than": a node never
/// gives its last MiB.
fn more(wanted: i64, there: i64) -> String {
    if wanted == there { format!("more than {wanted} MiB") } else { format!("{wanted} MiB") }
}

/// Check that refused an instance on a node.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Check {
    #[error("{} of memory wanted, {free} MiB are not allocated", more(*.wanted, *.free))]
    Memory {
        /// In MiB.
        wanted: i64,
        /// Unallocated memory, MiB.
        free: i64,
    },
    /// The node would no longer have the memory for the failovers it must be able to take.
    #[error("{left} MiB of memory would be left, but {} must stay free for failovers (N+1)", more(*.reserve, *.left))]
    Reserve {
        /// Memory left after placement, MiB.
        left: i64,
        /// Memory reserved for failovers, MiB.
        reserve: i64,
    },
    #[error("{wanted} MiB of disk wanted, {free} MiB are free, {} MiB of which must stay free", (*.keep).max(1))]
    Disk {
        /// In MiB.
        wanted: i64,
        /// In MiB.
        free: i64,
        /// Must stay free, MiB.
        keep: i64,
    },
    /// Too few spindles, or the instance's number of spindles is unknown.
    #[error("{} spindles wanted, {free} are free", .wanted.map_or("an unknown number of".to_owned(), |n| n.to_string()))]
    Spindles {
        /// `None` if unknown.
        wanted: Option<i64>,
        free: i64,
    },
    /// The policy's limit on instance spindles would be exceeded.
    #[error("{used} instance spindles would be in use, the policy allows {limit}")]
    SpindleRatio {
        /// After placement.
        used: f64,
        limit: f64,
    },
    /// The policy's limit on virtual CPUs would be exceeded.
    #[error("{} virtual CPUs per physical one would be in use, the policy allows {limit}", (.ratio * 1000.0).ceil() / 1000.0)]
    CpuRatio {
        /// Virtual CPUs per physical CPU after placement.
        ratio: f64,
        limit: f64,
    },
    /// An instance on the node has the same exclusion tag.
    #[error("an instance with one of its exclusion tags is there already")]
    Tags,
    /// The group's policy rejects instances of this size or template.
    #[error("{0}")]
    Policy(Objection),
    /// The node has capacity now, but not with the changes planned for it.
    #[error("no room beside what is planned for the node ({0})")]
    Planned(FailMode),
    /// The disk template has no secondary.
    #[error("its disk template has no secondary")]
    NotMirrored,
}

/// Finds the check by which `node` refuses `instance` as its primary, or `None` if it accepts it.
pub fn refused_primary(cluster: &Cluster, instance: &Instance, index: NodeIdx, force: bool) -> Option<Check> {
    let node = cluster.node(index);
    let policy = &cluster.group(node.group).policy;
    if let Some(objection) = Objection::find(policy, instance, node.exclusive_storage) {
        return Some(Check::Policy(objection));
    }
    refused_arrival(cluster, instance, index, force)
}

/// Like [`refused_primary`], for an existing instance, to which policies don't apply.
pub fn refused_arrival(cluster: &Cluster, instance: &Instance, index: NodeIdx, force: bool) -> Option<Check> {
    let (node, state) = (cluster.node(index), cluster.state(index));
    let demand = instance.demand();
    let tags = state.tag_effect(&instance.exclusion_tags);
    let mode = state.figures.add_primary(node, &demand, tags, 0, force).err()?;
    // With `force`, an instance only has to be physically possible. The figures after that show which limit
    // it breaks.
    let Ok(after) = state.figures.add_primary(node, &demand, tags, 0, true) else {
        return Some(physical(node, &state.figures, instance));
    };
    let left = after.unallocated_memory(node);
    let policy_checks = storage_limits(node, &state.figures, &after, instance);
    Some(match mode {
        FailMode::Disk if policy_checks.is_some() && instance.template.local_storage() => policy_checks?,
        FailMode::Memory if left <= after.reserved_memory && !state.figures.fails_n1 => {
            Check::Reserve { left, reserve: after.reserved_memory }
        }
        FailMode::Cpu if node.max_vcpu_ratio < after.vcpu_ratio(node) => {
            Check::CpuRatio { ratio: after.vcpu_ratio(node), limit: node.max_vcpu_ratio }
        }
        FailMode::Tags => Check::Tags,
        mode => Check::Planned(mode),
    })
}

/// Finds the check by which `node` refuses `instance` as its secondary if `primary` is its primary, or `None`
/// if it accepts it.
pub fn refused_secondary(
    cluster: &Cluster,
    instance: &Instance,
    index: NodeIdx,
    primary: NodeIdx,
) -> Option<Check> {
    let (node, state) = (cluster.node(index), cluster.state(index));
    let demand = instance.demand();
    let reserved = state.reserved_for(primary);
    let mode = state.figures.add_secondary(node, &demand, reserved, false, false).err()?;
    if !demand.drbd {
        return Some(Check::NotMirrored);
    }
    let Ok(after) = state.figures.add_secondary(node, &demand, reserved, true, false) else {
        return Some(physical(node, &state.figures, instance));
    };
    let free = state.figures.unallocated_memory(node);
    let policy_checks = storage_limits(node, &state.figures, &after, instance);
    Some(match mode {
        FailMode::Disk if policy_checks.is_some() => policy_checks?,
        FailMode::Memory if demand.reserved_memory >= free => {
            Check::Memory { wanted: demand.reserved_memory, free }
        }
        FailMode::Memory if free <= after.reserved_memory && !state.figures.fails_n1 => {
            Check::Reserve { left: free, reserve: after.reserved_memory }
        }
        mode => Check::Planned(mode),
    })
}

/// Shortage that makes a placement impossible even with `force`.
fn physical(node: &Node, figures: &Figures, instance: &Instance) -> Check {
    let wanted = if instance.uses_memory() { instance.memory } else { 0 };
    let free = figures.unallocated_memory(node);
    if instance.forthcoming {
        Check::Planned(FailMode::Internal)
    } else if free - wanted <= 0 {
        Check::Memory { wanted, free }
    } else if figures.free_disk - instance.disk <= 0 {
        Check::Disk { wanted: instance.disk, free: figures.free_disk, keep: node.min_free_disk }
    } else {
        Check::Spindles { wanted: instance.total_spindles(), free: figures.free_spindles }
    }
}

/// Storage limit, from the policy or the options, that the placement exceeds.
fn storage_limits(node: &Node, before: &Figures, after: &Figures, instance: &Instance) -> Option<Check> {
    if after.free_disk < node.min_free_disk {
        let (wanted, free, keep) = (instance.disk, before.free_disk, node.min_free_disk);
        Some(Check::Disk { wanted, free, keep })
    } else if after.instance_spindles > node.max_spindles {
        Some(Check::SpindleRatio { used: after.instance_spindles, limit: node.max_spindles })
    } else {
        None
    }
}
