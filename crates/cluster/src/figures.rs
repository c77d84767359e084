//! A node's running figures and the four operations on them (HT-model).
//!
//! Every operation maps figures to new figures, so a candidate placement is judged without changing the
//! cluster. Lists, peers and tag counts live in [`crate::NodeState`] and are passed to operations as numbers.

use thiserror::Error;

use crate::node::Node;

/// A node's reason for refusing an instance. Statistics and tie-breaks use this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
pub enum FailMode {
    /// Not enough memory, or the node's redundancy reserve would be used up.
    #[error("FailMem")]
    Memory,
    /// Not enough disk, too many spindles used, or a disk template that does not fit.
    #[error("FailDisk")]
    Disk,
    #[error("FailCPU")]
    Cpu,
    /// The cluster could not survive the loss of a node.
    #[error("FailN1")]
    N1,
    /// Another instance on the node has the same exclusion tag.
    #[error("FailTags")]
    Tags,
    /// Migration tags forbid it.
    #[error("FailMig")]
    Migration,
    /// The number of disks is outside the policy's bounds.
    #[error("FailDiskCount")]
    DiskCount,
    /// Not enough spindles, or the number of spindles is outside the policy's bounds.
    #[error("FailSpindles")]
    Spindles,
    /// A bug in the program.
    #[error("FailInternal")]
    Internal,
}

impl FailMode {
    pub const ALL: [Self; 9] = [
        Self::Memory,
        Self::Disk,
        Self::Cpu,
        Self::N1,
        Self::Tags,
        Self::Migration,
        Self::DiskCount,
        Self::Spindles,
        Self::Internal,
    ];
}

/// Resources that an instance needs from a node, as plain numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// MiB.
    pub memory: i64,
    /// MiB on each of the instance's nodes.
    pub disk: i64,
    /// 0 if the instance is administratively offline.
    pub vcpus: i64,
    /// Weight of its disk activity, in spindles.
    pub spindle_use: f64,
    /// Total spindles of the disks; `None` if any disk's number is unknown.
    pub spindles: Option<i64>,
    /// Dimensionless, in the order CPU, memory, disk, network.
    pub utilisation: [f64; 4],
    /// Memory in use on the primary, MiB; 0 while the instance is stopped.
    pub used_memory: i64,
    /// Memory reserved on the secondary, MiB.
    pub reserved_memory: i64,
    /// Whether the instance uses the node's own disk and spindles.
    pub local_storage: bool,
    /// Whether the disk template is DRBD: no other template has a secondary.
    pub drbd: bool,
    /// Planned but not created yet. It changes only the `booked_` figures.
    pub forthcoming: bool,
}

/// Effect of a placement on the exclusion tags of a node's primaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TagEffect {
    /// The node already has a primary with one of the instance's tags.
    pub present: bool,
    /// Change in the number of instances beyond the first per tag: added by a placement, freed by a removal.
    pub conflicts: i64,
}

/// A node's running figures.
///
/// `booked_` figures include forthcoming instances; except for `tag_conflicts`, the other figures don't.
/// Ratios are derived from these figures and the [`Node`], so they are not stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Memory in use by primaries, MiB. Stopped instances use none.
    pub instance_memory: i64,
    /// Reserve for failovers, MiB: the maximum, over the other nodes, of the memory reserved for that node's
    /// instances.
    pub reserved_memory: i64,
    /// MiB.
    pub free_disk: i64,
    pub free_spindles: i64,
    /// Virtual CPUs in use, including the node's own system.
    pub used_vcpus: i64,
    /// Spindles that instances use; always a whole number.
    pub instance_spindles: f64,
    /// Sum of utilizations, in the order CPU, memory, disk, network.
    pub load: [f64; 4],
    pub primaries: i64,
    pub secondaries: i64,
    /// Sum over primaries: location tags shared with the secondary, plus unmet desired locations.
    pub location_score: i64,
    /// Primaries beyond the first per exclusion tag, including forthcoming instances.
    pub tag_conflicts: i64,
    /// Whether the node lacks the memory to take over the instances of some other node.
    pub fails_n1: bool,
    /// Reported free memory minus bookings since the report, MiB.
    pub booked_free_memory: i64,
    /// MiB.
    pub booked_free_disk: i64,
    pub booked_free_spindles: i64,
    pub booked_used_vcpus: i64,
    pub booked_instance_spindles: f64,
}

impl Figures {
    /// Figures of a node without instances.
    pub fn empty(node: &Node) -> Self {
        Self {
            instance_memory: 0,
            reserved_memory: 0,
            free_disk: node.reported_free_disk,
            free_spindles: node.reported_free_spindles,
            used_vcpus: node.node_cpus,
            instance_spindles: 0.0,
            load: [0.0; 4],
            primaries: 0,
            secondaries: 0,
            location_score: 0,
            tag_conflicts: 0,
            fails_n1: false,
            booked_free_memory: node.reported_free_memory,
            booked_free_disk: node.reported_free_disk,
            booked_free_spindles: node.reported_free_spindles,
            booked_used_vcpus: node.node_cpus,
            booked_instance_spindles: 0.0,
        }
    }

    /// Memory not used by the system or by instances, MiB. Computed from recorded sizes, and reduced by the
    /// node's missing memory: the reported free memory can be too high.
    #[inline]
    pub fn unallocated_memory(&self, node: &Node) -> i64 {
        node.total_memory_mib() - node.node_memory - self.instance_memory - node.missing_memory.max(0)
    }

    /// Memory available to new instances, MiB: unallocated minus the reserve, at least 0.
    pub fn available_memory(&self, node: &Node) -> i64 {
        (self.unallocated_memory(node) - self.reserved_memory).max(0)
    }

    /// Disk available to new instances, MiB: free minus the minimum to keep, at least 0.
    pub fn available_disk(&self, node: &Node) -> i64 {
        self.free_disk.saturating_sub(node.min_free_disk).max(0)
    }

    /// Unallocated memory over total memory.
    #[inline]
    pub fn free_memory_ratio(&self, node: &Node) -> f64 {
        self.unallocated_memory(node) as f64 / node.total_memory
    }

    /// Free disk over total disk, or free spindles over total spindles with exclusive storage; 1 if the total
    /// is 0.
    #[inline]
    pub fn free_disk_ratio(&self, node: &Node) -> f64 {
        disk_ratio(node, self.free_spindles, self.free_disk)
    }

    /// Reserved memory over total memory.
    #[inline]
    pub fn reserved_memory_ratio(&self, node: &Node) -> f64 {
        self.reserved_memory as f64 / node.total_memory
    }

    /// Virtual CPUs per physical CPU.
    #[inline]
    pub fn vcpu_ratio(&self, node: &Node) -> f64 {
        self.used_vcpus as f64 / node.total_cpus
    }

    /// Virtual CPUs per physical CPU, including forthcoming instances.
    #[inline]
    pub fn booked_vcpu_ratio(&self, node: &Node) -> f64 {
        self.booked_used_vcpus as f64 / node.total_cpus
    }

    /// Reported free memory minus bookings since the report, over total memory.
    #[inline]
    pub fn booked_free_memory_ratio(&self, node: &Node) -> f64 {
        self.booked_free_memory as f64 / node.total_memory
    }

    /// [`Self::free_disk_ratio`] including forthcoming instances.
    #[inline]
    pub fn booked_free_disk_ratio(&self, node: &Node) -> f64 {
        disk_ratio(node, self.booked_free_spindles, self.booked_free_disk)
    }

    fn recheck_n1(&mut self, node: &Node) {
        self.fails_n1 = self.unallocated_memory(node) <= self.reserved_memory;
    }

    /// Places an instance on the node as its primary.
    ///
    /// `location` is the instance's location score on this node. With `force`, only physical limits refuse.
    #[inline]
    pub fn add_primary(
        &self,
        node: &Node,
        demand: &Demand,
        tags: TagEffect,
        location: i64,
        force: bool,
    ) -> Result<Self, FailMode> {
        let strict = !force;
        let mut new = *self;
        new.book_primary(node, demand, tags);
        if !demand.forthcoming {
            new.instance_memory += demand.used_memory;
            let free = new.unallocated_memory(node);
            let fails_n1 = free <= new.reserved_memory;
            new.take_storage(node, demand);
            new.used_vcpus += demand.vcpus;
            refuse(free <= 0, FailMode::Memory)?;
            if demand.local_storage {
                refuse(new.free_disk <= 0, FailMode::Disk)?;
                refuse(strict && new.free_disk < node.min_free_disk, FailMode::Disk)?;
                refuse(node.exclusive_storage && new.free_spindles < 0, FailMode::Spindles)?;
                refuse(strict && new.instance_spindles > node.max_spindles, FailMode::Disk)?;
            }
            if strict {
                refuse(fails_n1 && !self.fails_n1, FailMode::Memory)?;
                refuse(
                    node.max_vcpu_ratio >= 0.0 && node.max_vcpu_ratio < new.vcpu_ratio(node),
                    FailMode::Cpu,
                )?;
                refuse(tags.present, FailMode::Tags)?;
            }
            for (load, use_) in new.load.iter_mut().zip(demand.utilisation) {
                *load += use_;
            }
            new.fails_n1 = fails_n1;
            new.primaries += 1;
            new.location_score += location;
        }
        if strict {
            refuse(new.booked_free_memory <= 0, FailMode::Memory)?;
            if demand.local_storage {
                new.check_booked_storage(node)?;
            }
            refuse(
                node.max_vcpu_ratio >= 0.0 && node.max_vcpu_ratio < new.booked_vcpu_ratio(node),
                FailMode::Cpu,
            )?;
        }
        Ok(new)
    }

    /// Removes a primary: the inverse of [`Self::add_primary`]. Never refused.
    #[inline]
    #[must_use]
    pub fn remove_primary(&self, node: &Node, demand: &Demand, conflicts: i64, location: i64) -> Self {
        let mut new = *self;
        if !demand.forthcoming {
            new.instance_memory -= demand.used_memory;
            new.give_storage(node, demand);
            new.used_vcpus -= demand.vcpus;
            for (load, use_) in new.load.iter_mut().zip(demand.utilisation) {
                *load -= use_;
            }
            new.primaries -= 1;
            new.location_score -= location;
            new.recheck_n1(node);
        }
        new.booked_free_memory += demand.memory;
        new.booked_used_vcpus -= demand.vcpus;
        new.tag_conflicts -= conflicts;
        new.give_booked_storage(node, demand);
        new
    }

    /// Places an instance on the node as its secondary.
    ///
    /// `peer_reserved` is the memory that the node already reserves for instances of the same primary, MiB.
    #[inline]
    pub fn add_secondary(
        &self,
        node: &Node,
        demand: &Demand,
        peer_reserved: i64,
        force: bool,
        ignore_disk: bool,
    ) -> Result<Self, FailMode> {
        let strict = !force;
        let mut new = *self;
        let unallocated = self.unallocated_memory(node);
        new.book_secondary(node, demand);
        if !demand.forthcoming {
            new.reserved_memory = new.reserved_memory.max(peer_reserved + demand.reserved_memory);
            let fails_n1 = unallocated <= new.reserved_memory;
            new.take_mirror_storage(node, demand);
            refuse(!demand.drbd, FailMode::Disk)?;
            refuse(!ignore_disk && new.free_disk <= 0, FailMode::Disk)?;
            refuse(strict && new.free_disk < node.min_free_disk, FailMode::Disk)?;
            refuse(node.exclusive_storage && new.free_spindles < 0, FailMode::Spindles)?;
            if strict {
                refuse(new.instance_spindles > node.max_spindles, FailMode::Disk)?;
                refuse(demand.reserved_memory >= unallocated, FailMode::Memory)?;
                refuse(fails_n1 && !self.fails_n1, FailMode::Memory)?;
            }
            new.load[2] += demand.utilisation[2];
            new.fails_n1 = fails_n1;
            new.secondaries += 1;
        }
        if strict {
            refuse(!demand.drbd, FailMode::Disk)?;
            new.check_booked_storage(node)?;
            refuse(demand.reserved_memory >= new.booked_free_memory, FailMode::Memory)?;
        }
        Ok(new)
    }

    /// Removes a secondary. `reserved_memory` is the node's reserve without it, as computed by
    /// [`crate::NodeState::reserve_without`]. Never refused.
    #[inline]
    #[must_use]
    pub fn remove_secondary(&self, node: &Node, demand: &Demand, reserved_memory: i64) -> Self {
        let mut new = *self;
        if !demand.forthcoming {
            new.give_storage(node, demand);
            new.reserved_memory = reserved_memory;
            new.recheck_n1(node);
            new.load[2] -= demand.utilisation[2];
            new.secondaries -= 1;
        }
        new.give_booked_storage(node, demand);
        new
    }

    /// Counts a primary found on the node at load. The node's reported figures already include it.
    pub(crate) fn load_primary(&mut self, node: &Node, demand: &Demand, tags: TagEffect, location: i64) {
        if demand.forthcoming {
            if demand.local_storage {
                self.booked_free_disk -= demand.disk;
            }
            self.booked_free_spindles = taken_spindles(node, self.booked_free_spindles, demand);
        } else {
            self.used_vcpus += demand.vcpus;
            for (load, use_) in self.load.iter_mut().zip(demand.utilisation) {
                *load += use_;
            }
            self.instance_spindles = added_use(node, self.instance_spindles, demand, 1.0);
            self.instance_memory += demand.used_memory;
            self.primaries += 1;
            self.location_score += location;
        }
        // A running instance is already missing from the reported free memory.
        if demand.used_memory == 0 || demand.forthcoming {
            self.booked_free_memory -= demand.memory;
        }
        self.booked_used_vcpus += demand.vcpus;
        self.tag_conflicts += tags.conflicts;
        self.booked_instance_spindles = added_use(node, self.booked_instance_spindles, demand, 1.0);
    }

    /// Counts a secondary found on the node at load.
    pub(crate) fn load_secondary(&mut self, node: &Node, demand: &Demand) {
        if demand.forthcoming {
            if demand.local_storage {
                self.booked_free_disk -= demand.disk;
            }
            self.booked_free_spindles = taken_spindles(node, self.booked_free_spindles, demand);
        } else {
            self.load[2] += demand.utilisation[2];
            self.instance_spindles = added_use(node, self.instance_spindles, demand, 1.0);
            self.secondaries += 1;
        }
        self.booked_instance_spindles = added_use(node, self.booked_instance_spindles, demand, 1.0);
    }

    fn book_primary(&mut self, node: &Node, demand: &Demand, tags: TagEffect) {
        self.booked_free_memory -= demand.memory;
        self.booked_used_vcpus += demand.vcpus;
        self.tag_conflicts += tags.conflicts;
        if demand.local_storage {
            self.booked_free_disk -= demand.disk;
        }
        self.booked_free_spindles = taken_spindles(node, self.booked_free_spindles, demand);
        self.booked_instance_spindles = added_use(node, self.booked_instance_spindles, demand, 1.0);
    }

    fn book_secondary(&mut self, node: &Node, demand: &Demand) {
        self.booked_free_disk -= demand.disk;
        self.booked_free_spindles = taken_spindles(node, self.booked_free_spindles, demand);
        self.booked_instance_spindles = added_use(node, self.booked_instance_spindles, demand, 1.0);
    }

    fn take_storage(&mut self, node: &Node, demand: &Demand) {
        if demand.local_storage {
            self.free_disk -= demand.disk;
        }
        self.free_spindles = taken_spindles(node, self.free_spindles, demand);
        self.instance_spindles = added_use(node, self.instance_spindles, demand, 1.0);
    }

    /// A secondary always uses disk, even if its template doesn't use local storage.
    fn take_mirror_storage(&mut self, node: &Node, demand: &Demand) {
        self.free_disk -= demand.disk;
        self.free_spindles = taken_spindles(node, self.free_spindles, demand);
        self.instance_spindles = added_use(node, self.instance_spindles, demand, 1.0);
    }

    fn give_storage(&mut self, node: &Node, demand: &Demand) {
        if demand.local_storage {
            self.free_disk += demand.disk;
        }
        self.free_spindles = given_spindles(node, self.free_spindles, demand);
        self.instance_spindles = added_use(node, self.instance_spindles, demand, -1.0);
    }

    fn give_booked_storage(&mut self, node: &Node, demand: &Demand) {
        if demand.local_storage {
            self.booked_free_disk += demand.disk;
        }
        self.booked_free_spindles = given_spindles(node, self.booked_free_spindles, demand);
        self.booked_instance_spindles = added_use(node, self.booked_instance_spindles, demand, -1.0);
    }

    fn check_booked_storage(&self, node: &Node) -> Result<(), FailMode> {
        refuse(self.booked_free_disk <= 0, FailMode::Disk)?;
        refuse(self.booked_free_disk < node.min_free_disk, FailMode::Disk)?;
        refuse(node.exclusive_storage && self.booked_free_spindles < 0, FailMode::Spindles)?;
        refuse(self.booked_instance_spindles > node.max_spindles, FailMode::Disk)
    }
}

#[inline]
fn refuse(bad: bool, mode: FailMode) -> Result<(), FailMode> {
    if bad { Err(mode) } else { Ok(()) }
}

#[inline]
fn disk_ratio(node: &Node, free_spindles: i64, free_disk: i64) -> f64 {
    if node.exclusive_storage {
        if node.total_spindles == 0 { 1.0 } else { free_spindles as f64 / node.total_spindles as f64 }
    } else if node.total_disk == 0.0 {
        1.0
    } else {
        free_disk as f64 / node.total_disk
    }
}

/// Free spindles after a placement. -1, which is refused, if the node has exclusive storage and the
/// instance's number of spindles is unknown.
#[inline]
fn taken_spindles(node: &Node, free: i64, demand: &Demand) -> i64 {
    match (node.exclusive_storage, demand.spindles) {
        (false, _) => 0,
        (true, None) => -1,
        (true, Some(spindles)) => free - spindles,
    }
}

#[inline]
fn given_spindles(node: &Node, free: i64, demand: &Demand) -> i64 {
    match (node.exclusive_storage, demand.spindles) {
        (false, _) => 0,
        (true, None) => free,
        (true, Some(spindles)) => free + spindles,
    }
}

#[inline]
fn added_use(node: &Node, used: f64, demand: &Demand, sign: f64) -> f64 {
    if node.exclusive_storage {
        0.0
    } else if demand.local_storage {
        used + sign * demand.spindle_use
    } else {
        used
    }
}
