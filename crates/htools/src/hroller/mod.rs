//! `hroller`: groups nodes that can be rebooted together (HT-hroller).

mod json;
mod show;

use std::io;

use cluster::{Cluster, GroupIdx, NodeIdx, PINNED, did_you_mean};
use placement::reboot::{self, Choice, Colouring, ConflictGraph, Evacuation, Heuristic, RebootError};
use thiserror::Error;

use crate::frame;
use crate::io::{Io, SUCCESS};
use crate::options::{Options, Program};
use crate::progress::Progress;
use crate::report;
use crate::saving::{self, SaveError};
use crate::source::{self, SourceError};

#[derive(Debug, Error)]
enum HrollerError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Save(#[from] SaveError),
    #[error("{NO_MASTER}")]
    NoMaster,
    /// List of node names.
    #[error("Found more than one master node: {0}")]
    SeveralMasters(String),
    #[error("Cannot find target group {name}{meant}")]
    Group {
        name: String,
        /// Question about similar names.
        meant: String,
    },
    #[error("Cannot create node graph")]
    NoNodes,
    #[error(transparent)]
    Reboot(#[from] RebootError),
    #[error("cannot write the results: {0}")]
    Output(#[from] io::Error),
}

const NO_MASTER: &str = "No master node found (maybe not supported by backend).";

/// Runs the program and returns its exit status.
pub fn run(args: &[String], io: &mut Io<'_>) -> u8 {
    frame::run(Program::Hroller, args, io, schedule, |error| matches!(error, HrollerError::Output(_)))
}

fn schedule(options: &Options, io: &mut Io<'_>) -> Result<u8, HrollerError> {
    let mut cluster = source::load(options, io)?;
    let master = find_master(&cluster, options.force, io)?;
    // The saved original is the cluster as it was read.
    let as_read = options.save.as_ref().map(|_| saving::whole(&cluster));
    source::apply_overrides(options, &mut cluster)?;
    if let (Some(prefix), Some(text)) = (&options.save, as_read) {
        saving::save(&text, prefix, "original", "before hroller run", io)?;
    }
    let choice = Choice {
        group: options.group.as_deref().map(|name| find_group(&cluster, name)).transpose()?,
        tags: options.node_tags.as_deref(),
        redundant_only: options.skip_non_redundant,
    };
    let evacuation =
        Evacuation { non_redundant: !options.ignore_non_redundant, secondaries: options.full_evacuation };
    let mut nodes = choice.nodes(&cluster);
    // Stopped instances can stay on a node during a reboot.
    if options.offline_maintenance {
        name_pinned(&cluster, &nodes, evacuation, io)?;
    } else {
        leave_out_pinned(&cluster, &mut nodes, evacuation, io)?;
    }
    let graph =
        ConflictGraph::new(&cluster, &nodes, options.offline_maintenance).ok_or(HrollerError::NoNodes)?;
    let level = if options.json { 0 } else { options.verbosity };
    if level > 2 {
        show::graph(&graph, io)?;
    }
    let colourings = Heuristic::ALL.map(|heuristic| Colouring::greedy(&graph, heuristic));
    let progress = Progress::start("Searching");
    let groups = reboot::plan(&cluster, &graph, &colourings, evacuation, master, options.search);
    drop(progress);
    let groups = groups?;
    if level > 1 {
        show::colourings(&colourings, io)?;
    }
    let groups = if options.one_step_only { groups.get(..1).unwrap_or_default() } else { &groups };
    if options.json {
        io.out.write_all(json::document(&cluster, groups)?.as_bytes())?;
    } else {
        show::groups(&cluster, groups, options, io)?;
    }
    Ok(SUCCESS)
}

fn find_group(cluster: &Cluster, name: &str) -> Result<GroupIdx, HrollerError> {
    cluster.find_group(name).map_err(|_| HrollerError::Group {
        name: name.to_owned(),
        meant: did_you_mean(&[name], cluster.groups.iter().map(|group| group.name.as_str())),
    })
}

/// Leaves out nodes that pinned instances prevent from being rebooted, and names them.
fn leave_out_pinned(
    cluster: &Cluster,
    nodes: &mut Vec<NodeIdx>,
    evacuation: Evacuation,
    io: &mut Io<'_>,
) -> io::Result<()> {
    for node in std::mem::take(nodes) {
        let Some(index) = reboot::pinned_to(cluster, node, evacuation) else {
            nodes.push(node);
            continue;
        };
        let (name, instance) = (&cluster.node(node).name, &cluster.instance(index).name);
        writeln!(
            io.err,
            "Warning: node {} is left out, instance {} is pinned by the tag {PINNED} (gnt-instance remove-tags takes it \
             away)",
            cluster.alias(name),
            cluster.alias(instance)
        )?;
    }
    Ok(())
}

/// Names pinned instances that stay on the nodes although the plan moves others like them.
fn name_pinned(
    cluster: &Cluster,
    nodes: &[NodeIdx],
    evacuation: Evacuation,
    io: &mut Io<'_>,
) -> io::Result<()> {
    for node in nodes {
        for index in reboot::pinned_on(cluster, *node, evacuation) {
            writeln!(
                io.err,
                "Warning: instance {} stays on node {}, it is pinned by the tag {PINNED}",
                cluster.alias(&cluster.instance(index).name),
                cluster.alias(&cluster.node(*node).name)
            )?;
        }
    }
    Ok(())
}

/// The master node, which must be rebooted last. `force` allows a cluster without one; several are always an
/// error.
fn find_master(cluster: &Cluster, force: bool, io: &mut Io<'_>) -> Result<Option<NodeIdx>, HrollerError> {
    let masters: Vec<NodeIdx> = cluster.node_indices().filter(|n| cluster.node(*n).master).collect();
    match masters.as_slice() {
        [] if force => {
            writeln!(io.err, "Warning: {NO_MASTER}")?;
            Ok(None)
        }
        [] => Err(HrollerError::NoMaster),
        [master] => Ok(Some(*master)),
        several => Err(HrollerError::SeveralMasters(report::name_list(cluster, several))),
    }
}
