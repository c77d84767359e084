//! Changes that make room for more instances.

use cluster::{DiskTemplate, GroupIdx, Node};

use crate::balance::Step;

/// A change, and the number of instances it makes room for.
#[derive(Clone, Debug)]
pub struct Remedy {
    pub action: Action,
    /// Number of additional instances that fit after the change, at most [`MOST_COUNTED`].
    pub more: usize,
}

/// A way to make room.
#[derive(Clone, Debug)]
pub enum Action {
    /// Move instances, in this order.
    Moves(Vec<Step>),
    /// Change a policy bound.
    Policy(PolicyChange),
    /// Let an unallocable group take new instances again.
    AllocPolicy(GroupIdx),
    /// Add a node like most nodes of its group.
    AddNode(Box<Node>),
    /// Skip the capacity check and give up redundancy. The instances then go to these groups.
    NoCapacityCheck(Vec<GroupIdx>),
}

/// Maximum of [`Remedy::more`].
pub const MOST_COUNTED: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Virtual CPUs per physical CPU.
    VcpuRatio,
    /// Instance spindles per node spindle.
    SpindleRatio,
    /// Minimum or maximum, MiB.
    Memory,
    /// Minimum or maximum, MiB.
    Disk,
    /// Minimum or maximum.
    Vcpus,
    /// Minimum or maximum.
    SpindleUse,
    /// Minimum or maximum number of disks.
    Disks,
    /// Allowed disk templates.
    Template,
}

/// A change to one policy bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolicyChange {
    /// Group whose policy changes.
    pub group: GroupIdx,
    pub bound: Bound,
    /// Current value; `None` for [`Bound::Template`].
    pub from: Option<f64>,
    /// Required value; `None` for [`Bound::Template`].
    pub to: Option<f64>,
    /// Template to allow, for [`Bound::Template`].
    pub template: Option<DiskTemplate>,
}
