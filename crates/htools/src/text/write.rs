//! Writing the text format.

use std::fmt::{self, Write};

use cluster::{Cluster, Group, ISpec, InstanceIdx, NodeIdx, Policy};

use crate::number::{fixed, plain, show};

/// Writes the given nodes and instances. Groups, tags and policies are always complete.
///
/// As in the reference, free memory is the value reported at load: a saved file reflects moves in free disk,
/// placements and offline flags, but not in free memory.
pub fn serialize(cluster: &Cluster, nodes: &[NodeIdx], instances: &[InstanceIdx]) -> String {
    let mut out = String::with_capacity(512 + 128 * (nodes.len() + instances.len()));
    // Writing to a string cannot fail.
    let _ = write_all(&mut out, cluster, nodes, instances);
    out
}

fn write_all(
    out: &mut String,
    cluster: &Cluster,
    nodes: &[NodeIdx],
    instances: &[InstanceIdx],
) -> fmt::Result {
    for group in &cluster.groups {
        write_group(out, group)?;
    }
    out.push('\n');
    for &node in nodes {
        write_node(out, cluster, node)?;
    }
    out.push('\n');
    for &instance in instances {
        write_instance(out, cluster, instance)?;
    }
    out.push('\n');
    for tag in &cluster.tags {
        writeln!(out, "{tag}")?;
    }
    out.push('\n');
    write_policy(out, "", &cluster.policy)?;
    for group in &cluster.groups {
        write_policy(out, &group.name, &group.policy)?;
    }
    Ok(())
}

fn flag(value: bool) -> char {
    if value { 'Y' } else { 'N' }
}

fn join<T: fmt::Display>(
    out: &mut String,
    items: impl IntoIterator<Item = T>,
    separator: char,
) -> fmt::Result {
    for (position, item) in items.into_iter().enumerate() {
        if position > 0 {
            out.push(separator);
        }
        write!(out, "{item}")?;
    }
    Ok(())
}

fn write_group(out: &mut String, group: &Group) -> fmt::Result {
    write!(out, "{}|{}|{}|", group.name, group.uuid, group.alloc_policy.name())?;
    join(out, &group.tags, ',')?;
    out.push('|');
    join(out, &group.networks, ',')?;
    out.push('\n');
    Ok(())
}

fn write_node(out: &mut String, cluster: &Cluster, index: NodeIdx) -> fmt::Result {
    let (node, figures) = (cluster.node(index), &cluster.state(index).figures);
    let role = match (node.offline, node.master) {
        (true, _) => 'Y',
        (false, true) => 'M',
        (false, false) => 'N',
    };
    write!(
        out,
        "{}|{}|{}|{}|{}|{}|{}|{role}|{}|{}|",
        node.name,
        fixed(node.total_memory, 0),
        node.node_memory,
        node.reported_free_memory,
        fixed(node.total_disk, 0),
        figures.free_disk,
        fixed(node.total_cpus, 0),
        cluster.group(node.group).uuid,
        node.total_spindles,
    )?;
    join(out, &node.tags, ',')?;
    writeln!(
        out,
        "|{}|{}|{}|{}",
        flag(node.exclusive_storage),
        figures.free_spindles,
        node.node_cpus,
        plain(node.cpu_speed),
    )
}

fn write_instance(out: &mut String, cluster: &Cluster, index: InstanceIdx) -> fmt::Result {
    let instance = cluster.instance(index);
    write!(
        out,
        "{}|{}|{}|{}|{}|{}|{}|{}|{}|",
        instance.name,
        instance.memory,
        instance.disk,
        instance.vcpus,
        instance.status.name(),
        flag(instance.auto_balance),
        cluster.node(instance.primary).name,
        instance.secondary.map_or("", |s| cluster.node(s).name.as_str()),
        instance.template.name(),
    )?;
    join(out, &instance.tags, ',')?;
    write!(out, "|{}|", instance.spindle_use)?;
    match instance.total_spindles() {
        Some(spindles) => write!(out, "{spindles}")?,
        None => out.push('-'),
    }
    writeln!(out, "|{}", flag(instance.forthcoming))
}

fn write_policy(out: &mut String, owner: &str, policy: &Policy) -> fmt::Result {
    write!(out, "{owner}|")?;
    write_spec(out, &policy.std)?;
    out.push('|');
    for (position, pair) in policy.minmax.iter().enumerate() {
        if position > 0 {
            out.push(';');
        }
        write_spec(out, &pair.min)?;
        out.push(';');
        write_spec(out, &pair.max)?;
    }
    out.push('|');
    join(out, policy.disk_templates.iter().map(|t| t.name()), ',')?;
    writeln!(out, "|{}|{}", show(policy.vcpu_ratio), show(policy.spindle_ratio))
}

fn write_spec(out: &mut String, spec: &ISpec) -> fmt::Result {
    write!(
        out,
        "{},{},{},{},{},{}",
        spec.memory_size, spec.cpu_count, spec.disk_size, spec.disk_count, spec.nic_count, spec.spindle_use
    )
}
