//! What would make room for more instances.

use cluster::{DiskTemplate, GroupIdx, Node};

use crate::balance::Step;

/// A change that makes room.
#[derive(Clone, Debug)]
pub struct Remedy {
    /// What to do.
    pub action: Action,
    /// How many more instances fit then; at most [`MOST_COUNTED`].
    pub more: usize,
}

/// One way to make room.
#[derive(Clone, Debug)]
pub enum Action {
    /// Some instances are moved, in this order.
    Moves(Vec<Step>),
    /// A bound of a policy is changed.
    Policy(PolicyChange),
    /// An unallocable group takes new instances again.
    AllocPolicy(GroupIdx),
    /// A node like most of its group joins.
    AddNode(Box<Node>),
    /// Nodes need not stay redundant: the request is made without the capacity check, and goes to these groups.
    NoCapacityCheck(Vec<GroupIdx>),
}

/// No more are counted after a remedy.
pub const MOST_COUNTED: usize = 100;

/// A bound of a group's policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Virtual CPUs per physical one.
    VcpuRatio,
    /// Instance spindles per node spindle.
    SpindleRatio,
    /// Least or largest memory, MiB.
    Memory,
    /// Least or largest disk, MiB.
    Disk,
    /// Least or largest number of virtual CPUs.
    Vcpus,
    /// Least or largest use of spindles.
    SpindleUse,
    /// Least or largest number of disks.
    Disks,
    /// The allowed disk templates.
    Template,
}

/// A bound that is changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolicyChange {
    /// Whose policy.
    pub group: GroupIdx,
    /// Which bound.
    pub bound: Bound,
    /// What it is; none for [`Bound::Template`].
    pub from: Option<f64>,
    /// What it must be; none for [`Bound::Template`].
    pub to: Option<f64>,
    /// The template to be allowed, for [`Bound::Template`].
    pub template: Option<DiskTemplate>,
}
