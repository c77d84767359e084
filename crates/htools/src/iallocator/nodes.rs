//! Nodes in a message.

use std::borrow::Cow;

use cluster::{GroupIdx, Node};

use super::dialect::Dialect;
use super::legacy;
use crate::json::{Complaint, Flaw, json_record};

json_record!(
    /// A node as written in a message.
    RawNode<'t>, Complaint::NotObject, {
        "group" => group: Cow<'t, str>,
        "offline" => offline: bool,
        "drained" => drained: bool,
        "vm_capable" => vm_capable: bool,
        "ndparams" => ndparams: RawParameters,
        "tags" => tags: Vec<String>,
        "total_memory" => total_memory: f64,
        "reserved_memory" => reserved_memory: i64,
        "free_memory" => free_memory: i64,
        "total_disk" => total_disk: f64,
        "free_disk" => free_disk: i64,
        "total_cpus" => total_cpus: f64,
        "reserved_cpus" => reserved_cpus: i64,
        "total_spindles" => total_spindles: i64,
        "free_spindles" => free_spindles: i64,
    }
);

json_record!(
    /// A node's parameters as written in a message.
    RawParameters, Complaint::NotObject, {
        "exclusive_storage" => exclusive_storage: bool,
        "spindle_count" => spindle_count: i64,
    }
);

/// Attributes a complaint about a parameter to `ndparams`.
fn within_ndparams(flaw: Flaw) -> Flaw {
    Complaint::field("ndparams", flaw.complaint).into()
}

/// Values that are read before the node's group is looked up.
#[derive(Debug)]
pub(super) struct Flags<'t> {
    offline: bool,
    drained: bool,
    vm_capable: bool,
    /// The group's UUID; `None` for the implied group.
    pub(super) group: Option<Cow<'t, str>>,
}

impl<'t> RawNode<'t> {
    /// Whether the node lacks all keys that are newer than version 2.
    pub(super) fn is_of_version2(&self) -> bool {
        self.ndparams.is_absent()
    }

    /// Reads flags and group. The group is optional if it's `implied`.
    pub(super) fn flags(&mut self, dialect: Dialect, implied: bool) -> Result<Flags<'t>, Flaw> {
        let (offline, drained) = match dialect {
            Dialect::Current => (self.offline.required("offline")?, self.drained.required("drained")?),
            Dialect::Version2 => (
                self.offline.optional("offline")?.unwrap_or(false),
                self.drained.optional("drained")?.unwrap_or(false),
            ),
        };
        let group = if implied { None } else { Some(self.group.required("group")?) };
        let vm_capable = self.vm_capable.optional("vm_capable")?.unwrap_or(true);
        Ok(Flags { offline, drained, vm_capable, group })
    }

    /// Builds the node with this name, in a group that was already looked up.
    pub(super) fn finish(
        &mut self,
        name: String,
        group: GroupIdx,
        flags: &Flags<'_>,
        dialect: Dialect,
    ) -> Result<Node, Flaw> {
        match dialect {
            Dialect::Current => self.finish_current(name, group, flags),
            Dialect::Version2 => self.finish_version2(name, group, flags),
        }
    }

    fn finish_current(&mut self, name: String, group: GroupIdx, flags: &Flags<'_>) -> Result<Node, Flaw> {
        let mut node = Node::new(name, group);
        let Flags { offline, drained, vm_capable, .. } = *flags;
        let mut parameters = self.ndparams.required("ndparams")?;
        node.tags = self.tags.optional("tags").map_err(Flaw::unnamed)?.unwrap_or_default();
        node.exclusive_storage =
            parameters.exclusive_storage.required("exclusive_storage").map_err(within_ndparams)?;
        let live = !offline && vm_capable;
        // Drained nodes keep their figures: Ganeti sends them, and the nodes still have instances.
        node.set_flags(offline, drained, vm_capable);
        node.node_cpus = 0;
        node.total_spindles = match (node.exclusive_storage, live) {
            (false, _) => parameters.spindle_count.required("spindle_count").map_err(within_ndparams)?,
            (true, true) => self.total_spindles.required("total_spindles")?,
            (true, false) => 0,
        };
        if live {
            node.reported_free_spindles = self.free_spindles.required("free_spindles")?;
            node.total_memory = self.total_memory.required("total_memory")?;
            node.node_memory = self.reserved_memory.required("reserved_memory")?;
            node.reported_free_memory = self.free_memory.required("free_memory")?;
            node.total_disk = self.total_disk.required("total_disk")?;
            node.reported_free_disk = self.free_disk.required("free_disk")?;
            node.total_cpus = self.total_cpus.required("total_cpus")?;
            node.node_cpus = self.reserved_cpus.required("reserved_cpus")?;
        }
        Ok(node)
    }

    /// Everything but the name can be missing. A node without memory or disk figures is one that cannot run
    /// instances, according to a footnote of the protocol.
    fn finish_version2(&mut self, name: String, group: GroupIdx, flags: &Flags<'_>) -> Result<Node, Flaw> {
        let mut node = Node::new(name, group);
        let Flags { offline, drained, vm_capable, .. } = *flags;
        let mut parameters = self.ndparams.optional("ndparams")?.unwrap_or_default();
        node.exclusive_storage = parameters
            .exclusive_storage
            .optional("exclusive_storage")
            .map_err(within_ndparams)?
            .unwrap_or(false);
        node.tags = self.tags.optional("tags").map_err(Flaw::unnamed)?.unwrap_or_default();
        let total_memory = self.total_memory.optional("total_memory")?;
        let free_memory = self.free_memory.optional("free_memory")?;
        let total_disk = self.total_disk.optional("total_disk")?;
        let free_disk = self.free_disk.optional("free_disk")?;
        node.node_cpus = 0;
        let figures = (total_memory, free_memory, total_disk, free_disk);
        let (Some(total_memory), Some(free_memory), Some(total_disk), Some(free_disk)) = figures else {
            return Ok(legacy::dead(node));
        };
        if offline || !vm_capable {
            return Ok(legacy::dead(node));
        }
        node.set_flags(offline, drained, vm_capable);
        node.total_memory = total_memory;
        node.reported_free_memory = free_memory;
        node.total_disk = total_disk;
        node.reported_free_disk = free_disk;
        node.node_memory = self.reserved_memory.optional("reserved_memory")?.unwrap_or(0);
        node.total_cpus = self.total_cpus.optional("total_cpus")?.unwrap_or(legacy::UNKNOWN_CPUS);
        node.node_cpus = self.reserved_cpus.optional("reserved_cpus")?.unwrap_or(0);
        node.reported_free_spindles = self.free_spindles.optional("free_spindles")?.unwrap_or(0);
        let count = parameters.spindle_count.optional("spindle_count").map_err(within_ndparams)?;
        let total = self.total_spindles.optional("total_spindles")?;
        node.total_spindles = if node.exclusive_storage { total.unwrap_or(0) } else { count.unwrap_or(1) };
        Ok(node)
    }
}
