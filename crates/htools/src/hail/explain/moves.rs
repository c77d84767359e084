//! Explanations for existing instances: why they move to a node, or stay.

use std::io;

use cluster::{Cluster, FailMode, GroupIdx, InstanceIdx, MirrorClass, Move, NodeIdx, PINNED, Probe};
use placement::evacuate::{self, Destination, EvacuateMode};
use placement::explain::{refused_arrival, refused_secondary, words};

use super::explanation::Explanation;
use crate::hail::sentence::listed;
use crate::hail::wanted::{Strategy, Wanted};
use crate::io::Io;
use crate::options::Options;

/// Reason why an instance stays that has neither a secondary nor shared storage.
pub(in crate::hail) const NOT_MIRRORED: &str =
    "its data is on one node only (gnt-instance modify -t drbd makes a mirror)";

/// Explains where an instance can go when it leaves its primary, its secondary or both.
pub(in crate::hail) fn evacuation(
    cluster: &mut Cluster,
    index: InstanceIdx,
    mode: EvacuateMode,
    to: &Destination,
    options: &Options,
    io: &mut Io<'_>,
) {
    let _ = explain(cluster, index, mode, to, options, io);
}

/// Explains why no move is tried for an instance.
pub(in crate::hail) fn stays(cluster: &Cluster, index: InstanceIdx, reason: &str, io: &mut Io<'_>) {
    let _ = heading(cluster, index, io).and_then(|()| writeln!(io.err, "  stays: {reason}"));
}

/// Explains which groups accept an instance that leaves its own.
pub(in crate::hail) fn change_group(
    cluster: &mut Cluster,
    index: InstanceIdx,
    groups: &[GroupIdx],
    options: &Options,
    io: &mut Io<'_>,
) {
    let instance = cluster.instance(index).clone();
    if instance.is_pinned() {
        return stays(cluster, index, &pinned(), io);
    }
    let nodes = if instance.template.mirror() == MirrorClass::Internal { 2 } else { 1 };
    let allowed = options.restrict_allocation_to.as_ref();
    let wanted = Wanted { instance: &instance, nodes, allowed };
    let inhabited = placement::groups::inhabited(cluster);
    if groups.is_empty() {
        return stays(
            cluster,
            index,
            "there is no group to go to but those of the instances of the request",
            io,
        );
    }
    let groups: Vec<GroupIdx> = groups.iter().copied().filter(|group| inhabited.contains(group)).collect();
    if groups.is_empty() {
        return stays(cluster, index, "no group that it may go to has nodes", io);
    }
    let _ = Explanation::new(cluster, &wanted, None, Strategy::Balance, options).groups(cluster, &groups, io);
}

fn pinned() -> String {
    format!("it is pinned by the tag {PINNED} (gnt-instance remove-tags takes it away)")
}

fn explain(
    cluster: &mut Cluster,
    index: InstanceIdx,
    mode: EvacuateMode,
    to: &Destination,
    options: &Options,
    io: &mut Io<'_>,
) -> io::Result<()> {
    let instance = cluster.instance(index).clone();
    heading(cluster, index, io)?;
    let force = options.ignore_soft_errors;
    match (instance.template.mirror(), mode) {
        (MirrorClass::None, _) => writeln!(io.err, "  stays: {NOT_MIRRORED}"),
        (MirrorClass::External, EvacuateMode::SecondaryOnly) => {
            writeln!(io.err, "  stays: it has no secondary node")
        }
        _ if instance.is_pinned() => writeln!(io.err, "  stays: {}", pinned()),
        (MirrorClass::Internal, EvacuateMode::PrimaryOnly) => {
            let Some(secondary) = instance.secondary else {
                return writeln!(io.err, "  stays: it has no secondary node");
            };
            let name = cluster.node(secondary).name.clone();
            match refused(cluster, index, Move::Failover, secondary, force) {
                None => writeln!(io.err, "  {name}: takes it over"),
                Some(reason) => writeln!(io.err, "  {name}: refused: {reason}"),
            }
        }
        (MirrorClass::Internal, EvacuateMode::All) => {
            left_out(cluster, index, to, io)?;
            if to.available.len() < 2 {
                return writeln!(io.err, "  stays: two other nodes are needed");
            }
            for &first in &to.available {
                let name = cluster.node(first).name.clone();
                match evacuate::pairs_with(cluster, index, first, to, force) {
                    Err(error) => writeln!(io.err, "  {name}: refused as primary: {error}")?,
                    Ok((possible, failures)) => {
                        let names: Vec<&str> =
                            possible.iter().map(|n| cluster.node(*n).name.as_str()).collect();
                        let reasons: Vec<String> =
                            failures.reasons().map(|(mode, n)| format!("{} on {n}", words(mode))).collect();
                        let others = if reasons.is_empty() {
                            String::new()
                        } else {
                            format!("; refused as secondary: {}", reasons.join(", "))
                        };
                        let with = if names.is_empty() { "no node".to_owned() } else { listed(&names) };
                        writeln!(io.err, "  {name}: possible as primary, with {with} as secondary{others}")?;
                    }
                }
            }
            Ok(())
        }
        (mirror, _) => {
            let kind =
                if mirror == MirrorClass::External { Move::FailoverTo } else { Move::ReplaceSecondary };
            left_out(cluster, index, to, io)?;
            if to.available.is_empty() {
                writeln!(io.err, "  stays: there is no other node to go to")?;
            }
            for &target in &to.available {
                let name = cluster.node(target).name.clone();
                match refused(cluster, index, kind(target), target, force) {
                    None => writeln!(io.err, "  {name}: possible")?,
                    Some(reason) => writeln!(io.err, "  {name}: refused: {reason}")?,
                }
            }
            Ok(())
        }
    }
}

fn heading(cluster: &Cluster, index: InstanceIdx, io: &mut Io<'_>) -> io::Result<()> {
    let instance = cluster.instance(index);
    let nodes: Vec<&str> = instance.involved_nodes().map(|n| cluster.node(n).name.as_str()).collect();
    writeln!(io.err, "Instance {} ({}, {}):", instance.name, instance.template.name(), nodes.join(":"))
}

/// Lists the group's nodes that are not tried, with reasons.
fn left_out(cluster: &Cluster, index: InstanceIdx, to: &Destination, io: &mut Io<'_>) -> io::Result<()> {
    let instance = cluster.instance(index);
    let reason = |n: &NodeIdx| {
        let node = cluster.node(*n);
        if !node.online() {
            Some(format!("{} {}", node.name, node.outage.words()))
        } else if *n == instance.primary {
            Some(format!("{} is its primary node", node.name))
        } else if to.available.contains(n) {
            None
        } else {
            Some(format!("{} is being evacuated", node.name))
        }
    };
    let reasons: Vec<String> = to.group.iter().filter_map(reason).collect();
    if reasons.is_empty() { Ok(()) } else { writeln!(io.err, "  {}", reasons.join(", ")) }
}

/// Explains a refused move, with the target's figures if the target refuses. `None` if the move is possible.
fn refused(cluster: &Cluster, index: InstanceIdx, mov: Move, target: NodeIdx, force: bool) -> Option<String> {
    let mode: FailMode = Probe::new(cluster, index).judge(mov, force).err()?;
    let instance = cluster.instance(index);
    let check = match mov {
        Move::ReplaceSecondary(_) => refused_secondary(cluster, instance, target, instance.primary),
        Move::FailoverTo(_) => refused_arrival(cluster, instance, target, force),
        _ => None,
    };
    // Migration tags don't depend on the target's figures.
    let check = check.filter(|_| mode != FailMode::Migration);
    Some(match check {
        Some(check) => format!("{check} ({mode})"),
        // The target accepts the instance, but its primary refuses to keep it.
        None if matches!(mov, Move::ReplaceSecondary(_)) && mode != FailMode::Migration => {
            format!("{} on {}, its primary node ({mode})", words(mode), cluster.node(instance.primary).name)
        }
        None => format!("{} ({mode})", words(mode)),
    })
}
