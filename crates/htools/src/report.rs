//! Sentences and dumps that several programs print.

use std::fmt::Write;

use cluster::{AllocPolicy, Cluster, DiskTemplate, Group, ISpec, NodeIdx, Policy};
use placement::board::Board;
use placement::score::{COMPONENTS, Values};

use crate::number;
use crate::tables;

/// Name of a disk template in dumps.
pub fn constructor(template: DiskTemplate) -> &'static str {
    match template {
        DiskTemplate::Diskless => "DTDiskless",
        DiskTemplate::File => "DTFile",
        DiskTemplate::SharedFile => "DTSharedFile",
        DiskTemplate::Plain => "DTPlain",
        DiskTemplate::Block => "DTBlock",
        DiskTemplate::Drbd => "DTDrbd8",
        DiskTemplate::Rbd => "DTRbd",
        DiskTemplate::Ext => "DTExt",
        DiskTemplate::Gluster => "DTGluster",
    }
}

fn spec(spec: &ISpec) -> String {
    format!(
        "ISpec {{iSpecMemorySize = {}, iSpecCpuCount = {}, iSpecDiskSize = {}, iSpecDiskCount = {}, \
         iSpecNicCount = {}, iSpecSpindleUse = {}}}",
        spec.memory_size, spec.cpu_count, spec.disk_size, spec.disk_count, spec.nic_count, spec.spindle_use
    )
}

/// The policy on one line, in the reference's notation, which scripts expect.
pub fn policy(policy: &Policy) -> String {
    let pairs: Vec<String> = policy
        .minmax
        .iter()
        .map(|pair| {
            format!(
                "MinMaxISpecs {{minMaxISpecsMinSpec = {}, minMaxISpecsMaxSpec = {}}}",
                spec(&pair.min),
                spec(&pair.max)
            )
        })
        .collect();
    let templates: Vec<&str> = policy.disk_templates.iter().map(|t| constructor(*t)).collect();
    format!(
        "IPolicy {{iPolicyMinMaxISpecs = [{}], iPolicyStdSpec = {}, iPolicyDiskTemplates = [{}], \
         iPolicyVcpuRatio = {}, iPolicySpindleRatio = {}}}",
        pairs.join(","),
        spec(&policy.std),
        templates.join(","),
        number::show(policy.vcpu_ratio),
        number::show(policy.spindle_ratio)
    )
}

/// All groups on one line, in the notation of [`policy`].
pub fn groups(cluster: &Cluster) -> String {
    let groups: Vec<String> =
        cluster.groups.iter().enumerate().map(|(index, record)| group(index, record)).collect();
    format!("[{}]", groups.join(","))
}

/// A group on one line, in the notation of [`policy`].
pub fn group(index: usize, group: &Group) -> String {
    let quoted = |items: &[String]| {
        let items: Vec<String> = items.iter().map(|item| shown(item)).collect();
        format!("[{}]", items.join(","))
    };
    let alloc_policy = match group.alloc_policy {
        AllocPolicy::Preferred => "AllocPreferred",
        AllocPolicy::LastResort => "AllocLastResort",
        AllocPolicy::Unallocable => "AllocUnallocable",
    };
    format!(
        "Group {{name = {}, uuid = {}, idx = {index}, allocPolicy = {alloc_policy}, networks = {}, iPolicy = {}, \
         allTags = {}}}",
        shown(&group.name),
        shown(&group.uuid),
        quoted(&group.networks),
        policy(&group.policy),
        quoted(&group.tags)
    )
}

/// Quotes a string. Characters other than printable ASCII are escaped as their decimal code.
pub fn shown(text: &str) -> String {
    let mut out = String::from("\"");
    let mut after_code = false;
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            // Keeps the digit separate from the preceding code.
            '0'..='9' if after_code => {
                out.push_str("\\&");
                out.push(c);
            }
            ' '..='~' => out.push(c),
            _ => {
                let _ = write!(out, "\\{}", u32::from(c));
            }
        }
        after_code = !(' '..='~').contains(&c);
    }
    out.push('"');
    out
}

/// Table of score components. Only its header, if no node is online.
pub fn metrics(board: &Board) -> String {
    let values = board.values().in_order();
    let rows: Vec<(&'static str, f64, f64)> = if board.online() == 0 {
        Vec::new()
    } else {
        COMPONENTS.iter().zip(values).map(|(c, value)| (c.name, value, c.weight)).collect()
    };
    tables::metric_table(&rows)
}

/// Names of nodes in the reference's notation of a list.
pub fn name_list(cluster: &Cluster, nodes: &[NodeIdx]) -> String {
    let mut list = String::from("[");
    for (position, node) in nodes.iter().enumerate() {
        let separator = if position == 0 { "" } else { "," };
        let _ = write!(list, "{separator}{}", shown(&cluster.node(*node).name));
    }
    list.push(']');
    list
}

/// Components that change, largest change first: name, value before, value after, weighted change.
pub fn component_changes(before: &Values, after: &Values) -> Vec<(&'static str, f64, f64, f64)> {
    let mut changes: Vec<_> = COMPONENTS
        .iter()
        .zip(before.in_order().into_iter().zip(after.in_order()))
        .map(|(c, (old, new))| (c.name, old, new, c.weight * (new - old)))
        .filter(|(_, old, new, _)| old != new)
        .collect();
    changes.sort_by(|a, b| b.3.abs().total_cmp(&a.3.abs()));
    changes
}
