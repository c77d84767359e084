//! Decides a request and builds the response.

use cluster::{Cluster, DiskTemplate, GroupIdx, Instance, InstanceIdx, MirrorClass, Move, NodeIdx, TagRules};
use placement::allocate::{Allocator, PairTargets, Scope, Targets};
use placement::change_group::{self, ChangeGroupError};
use placement::evacuate::{self, Destination, EvacuateMode};

use super::wanted::{Strategy, alloc_options};
use super::{allocate, explain, sentence};
use crate::iallocator::{self, Evacuation, Moved, Request, Response, ResultValue, failure, success};
use crate::io::Io;
use crate::opcode;
use crate::options::Options;
use crate::report;

/// Whether all indices in a request are valid in `cluster`, which options can have replaced.
pub(super) fn in_range(cluster: &Cluster, request: &Request) -> bool {
    let instance = |i: &InstanceIdx| i.at() < cluster.instances.len();
    let node = |n: &NodeIdx| n.at() < cluster.nodes.len();
    let group = |g: &GroupIdx| g.at() < cluster.groups.len();
    match request {
        Request::Allocate(_) | Request::MultiAllocate { .. } => true,
        // Relocation only replaces one node. Other requests are refused without reading the rest.
        Request::Relocate { instance: i, relocate_from, required_nodes } => {
            *required_nodes != 1 || (instance(i) && relocate_from.iter().all(node))
        }
        Request::NodeEvacuate { instances, .. } => instances.iter().all(instance),
        Request::ChangeGroup { instances, target_groups } => {
            instances.iter().all(instance) && target_groups.iter().all(group)
        }
        Request::AllocateSecondary { instance: i } => instance(i),
        Request::MultiEvacuate { nodes } => nodes.iter().all(node),
    }
}

/// Response to a request, and options for showing the cluster after it.
pub(super) struct Decided {
    pub response: Response,
    /// Nodes to show. Only those of the requested or chosen group, if an instance was placed in it.
    pub nodes: Vec<NodeIdx>,
    /// Whether to list the last instance first: the reference gives a single new instance the index -1.
    pub newest_first: bool,
}

/// Decides a request and applies the response to the cluster.
pub(super) fn decide(
    cluster: &mut Cluster,
    request: &Request,
    rules: &TagRules,
    options: &Options,
    io: &mut Io<'_>,
) -> Decided {
    let count = cluster.instances.len();
    let response = respond(cluster, request, rules, options, io);
    let placed = cluster.instances.len() > count;
    // The reference keeps only a part of the cluster: the requested group or, on a dedicated cluster, the
    // chosen group.
    let narrowed = group_name(request).is_some() || Strategy::of(cluster, None) == Strategy::Dedicated;
    let group =
        cluster.instances.last().filter(|_| placed && narrowed).map(|i| cluster.node(i.primary).group);
    let nodes = match group {
        Some(group) => cluster.nodes_of(group),
        None => cluster.node_indices().collect(),
    };
    let newest_first = placed && matches!(request, Request::Allocate(_));
    Decided { response, nodes, newest_first }
}

/// Whether the request places new instances by lost allocations, and not by score.
pub(super) fn is_dedicated(cluster: &Cluster, request: &Request) -> bool {
    let allocates = matches!(request, Request::Allocate(_) | Request::MultiAllocate { .. });
    allocates && Strategy::of(cluster, group_name(request)) == Strategy::Dedicated
}

/// The group that the request requires, if any.
fn group_name(request: &Request) -> Option<&str> {
    match request {
        Request::Allocate(wanted) => wanted.group_name.as_deref(),
        Request::MultiAllocate { group_name, .. } => group_name.as_deref(),
        _ => None,
    }
}

fn respond(
    cluster: &mut Cluster,
    request: &Request,
    rules: &TagRules,
    options: &Options,
    io: &mut Io<'_>,
) -> Response {
    match request {
        Request::Allocate(wanted) => allocate::one(cluster, wanted, rules, options, io),
        Request::MultiAllocate { instances, group_name } => {
            allocate::several(cluster, instances, group_name.as_deref(), rules, options, io)
        }
        Request::Relocate { instance, required_nodes, relocate_from } => {
            relocate(cluster, *instance, *required_nodes, relocate_from, options, io)
        }
        Request::NodeEvacuate { instances, mode } => {
            node_evacuate(cluster, instances, mode_of(*mode), options, io)
        }
        Request::ChangeGroup { instances, target_groups } => {
            change_groups(cluster, instances, target_groups, options, io)
        }
        Request::AllocateSecondary { instance } => allocate_secondary(cluster, *instance, options, io),
        Request::MultiEvacuate { nodes } => multi_evacuate(cluster, nodes, options, io),
    }
}

fn mode_of(mode: iallocator::EvacuateMode) -> EvacuateMode {
    match mode {
        iallocator::EvacuateMode::PrimaryOnly => EvacuateMode::PrimaryOnly,
        iallocator::EvacuateMode::SecondaryOnly => EvacuateMode::SecondaryOnly,
        iallocator::EvacuateMode::All => EvacuateMode::All,
    }
}

fn node_name(cluster: &Cluster, node: NodeIdx) -> String {
    cluster.node(node).name.clone()
}

/// Names of an instance's nodes in a response, which includes the secondary only for DRBD.
fn nodes_of(cluster: &Cluster, instance: &Instance) -> Vec<String> {
    instance.involved_nodes().map(|n| node_name(cluster, n)).collect()
}

fn relocate(
    cluster: &mut Cluster,
    index: InstanceIdx,
    required_nodes: i64,
    from: &[NodeIdx],
    options: &Options,
    io: &mut Io<'_>,
) -> Response {
    if required_nodes != 1 {
        if options.explain {
            let _ = writeln!(io.err, "Only one node of an instance can be exchanged, not {required_nodes}");
        }
        return failure(&format!("Exchange {required_nodes} nodes mode is not implemented"));
    }
    let instance = cluster.instance(index);
    let (mode, leaving, word) = match instance.template.mirror() {
        MirrorClass::None => {
            if options.explain {
                explain::stays(cluster, index, explain::NOT_MIRRORED, io);
            }
            return failure("Can't relocate non-mirrored instances");
        }
        MirrorClass::Internal => (EvacuateMode::SecondaryOnly, instance.secondary, "secondary"),
        MirrorClass::External => (EvacuateMode::PrimaryOnly, Some(instance.primary), "primary"),
    };
    if leaving.is_none() || from != leaving.as_slice() {
        if options.explain {
            let reason = leaving.map_or_else(
                || format!("it has no {word} node"),
                |node| format!("only its {word} node can be exchanged, {}", node_name(cluster, node)),
            );
            explain::stays(cluster, index, &reason, io);
        }
        let number = leaving.map_or("-1".to_owned(), |n| n.0.to_string());
        let from: Vec<String> = from.iter().map(|n| n.0.to_string()).collect();
        return failure(&format!(
            "Unsupported request: excluded nodes not equal to instance's {word}({number} versus [{}])",
            from.join(",")
        ));
    }
    let excluded = evacuate::nodes_to_leave(cluster, &[index], mode);
    let to = Destination::in_group(cluster, index, &excluded);
    if options.explain {
        explain::evacuation(cluster, index, mode, &to, options, io);
    }
    match evacuate::evacuate(cluster, index, mode, &to, options.ignore_soft_errors) {
        Ok(_) => {
            let instance = cluster.instance(index);
            let new = if mode == EvacuateMode::SecondaryOnly { instance.secondary } else { None };
            let node = node_name(cluster, new.unwrap_or(instance.primary));
            success("success", ResultValue::Nodes(vec![node]))
        }
        Err(error) => failure(&error.to_string()),
    }
}

fn node_evacuate(
    cluster: &mut Cluster,
    instances: &[InstanceIdx],
    mode: EvacuateMode,
    options: &Options,
    io: &mut Io<'_>,
) -> Response {
    let excluded = evacuate::nodes_to_leave(cluster, instances, mode);
    let mut moves = Evacuation::default();
    for &index in instances {
        let to = Destination::in_group(cluster, index, &excluded);
        if options.explain {
            explain::evacuation(cluster, index, mode, &to, options, io);
        }
        match evacuate::evacuate(cluster, index, mode, &to, options.ignore_soft_errors) {
            Ok(done) => {
                let group = cluster.group_of(index);
                record(cluster, index, group, &done, &mut moves);
            }
            Err(error) => moves.failed.push((cluster.instance(index).name.clone(), error.to_string())),
        }
    }
    evacuated(moves)
}

fn change_groups(
    cluster: &mut Cluster,
    instances: &[InstanceIdx],
    wanted: &[GroupIdx],
    options: &Options,
    io: &mut Io<'_>,
) -> Response {
    let groups = change_group::target_groups(cluster, instances, wanted);
    let mut moves = Evacuation::default();
    for &index in instances {
        let allowed = options.restrict_allocation_to.as_deref();
        if options.explain {
            explain::change_group(cluster, index, &groups, options, io);
        }
        match change_group::change_group(cluster, index, &groups, allowed, alloc_options(options)) {
            Ok((group, done)) => record(cluster, index, group, &done, &mut moves),
            Err(error) => {
                let name = cluster.instance(index).name.clone();
                let reason = match error {
                    ChangeGroupError::NoRoom(choice) => {
                        sentence::choice(cluster, &(*choice).map(sentence::Metric::Score), &name)
                    }
                    ChangeGroupError::NoGroups => {
                        format!(
                            "no groups for evacuation: allowed groups was Just {groups:?}, all groups: {}",
                            report::groups(cluster)
                        )
                    }
                    ChangeGroupError::Stuck(error) => error.to_string(),
                };
                moves.failed.push((name, reason));
            }
        }
    }
    evacuated(moves)
}

/// Records an instance's new nodes and the operations that move it there.
fn record(cluster: &Cluster, index: InstanceIdx, group: GroupIdx, done: &[Move], moves: &mut Evacuation) {
    let instance = cluster.instance(index);
    moves.moved.push(Moved {
        instance: instance.name.clone(),
        group: cluster.group(group).name.clone(),
        nodes: nodes_of(cluster, instance),
    });
    moves.jobs.push(done.iter().flat_map(|mov| opcode::of_move(cluster, instance, *mov)).collect());
}

fn evacuated(moves: Evacuation) -> Response {
    let detail = format!(
        "{} instances failed to move and {} were moved successfully",
        moves.failed.len(),
        moves.moved.len()
    );
    success(&detail, ResultValue::Evacuation(moves))
}

/// Chooses the secondary for converting a plain instance to DRBD (HT-convert).
fn allocate_secondary(
    cluster: &mut Cluster,
    index: InstanceIdx,
    options: &Options,
    io: &mut Io<'_>,
) -> Response {
    if let Some(secondary) = cluster.instance(index).secondary {
        if options.explain {
            let reason = format!("it has a secondary node, {}", node_name(cluster, secondary));
            explain::stays(cluster, index, &reason, io);
        }
        return failure("Instance already has a secondary");
    }
    let primary = cluster.instance(index).primary;
    let detached = cluster.detach(index);
    let converted = Instance { template: DiskTemplate::Drbd, ..cluster.instance(index).clone() };
    let group = cluster.node(primary).group;
    // Includes offline nodes: the reference doesn't check.
    let others: Vec<NodeIdx> = cluster.nodes_of(group).into_iter().filter(|n| *n != primary).collect();
    let allocator =
        Allocator::new(cluster, &Scope::cluster(cluster), alloc_options(options)).of_existing(index);
    let targets =
        Targets::Pairs(PairTargets { partners: vec![others.clone()], primaries: vec![(primary, 0)] });
    if options.explain {
        explain::secondary(cluster, &converted, primary, &others, options, io);
    }
    let trials = allocator.try_all(cluster, &converted, &targets).map(sentence::Metric::Score);
    let detail = sentence::trials(cluster, &trials);
    let chosen = trials.best.and_then(|best| Some((best.outcome.secondary?, best.outcome)));
    if let Some((secondary, outcome)) = chosen {
        cluster.reattach(index, converted, &outcome);
        success(&detail, ResultValue::Node(node_name(cluster, secondary)))
    } else {
        cluster.undo(detached);
        failure(&detail)
    }
}

/// Protocol version 2: chooses a new secondary for every DRBD instance with its secondary on one of the
/// nodes.
fn multi_evacuate(cluster: &mut Cluster, nodes: &[NodeIdx], options: &Options, io: &mut Io<'_>) -> Response {
    let victims: Vec<InstanceIdx> = cluster
        .instance_indices()
        .filter(|i| {
            let instance = cluster.instance(*i);
            instance.template == DiskTemplate::Drbd && instance.secondary.is_some_and(|s| nodes.contains(&s))
        })
        .collect();
    if options.explain && victims.is_empty() {
        let _ = writeln!(io.err, "No instance has its secondary on the nodes of the request");
    }
    let mut moved = Vec::with_capacity(victims.len());
    for index in victims {
        let to = Destination::in_group(cluster, index, nodes);
        let mode = EvacuateMode::SecondaryOnly;
        if options.explain {
            explain::evacuation(cluster, index, mode, &to, options, io);
        }
        if let Err(error) = evacuate::evacuate(cluster, index, mode, &to, options.ignore_soft_errors) {
            let name = &cluster.instance(index).name;
            let none = if to.available.is_empty() { "no other node is online" } else { "" };
            return failure(&format!("Can't evacuate instance {name}: {error}{none}"));
        }
        let instance = cluster.instance(index);
        if let Some(secondary) = instance.secondary {
            moved.push((instance.name.clone(), node_name(cluster, secondary)));
        }
    }
    let detail = match moved.len() {
        1 => "1 instance was given a new secondary".to_owned(),
        count => format!("{count} instances were given a new secondary"),
    };
    success(&detail, ResultValue::NewSecondaries(moved))
}
