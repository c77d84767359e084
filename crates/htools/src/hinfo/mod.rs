//! `hinfo`: describes a cluster (HT-hinfo).

use std::io;

use cluster::{Cluster, InstanceIdx, NodeIdx};
use placement::board::Board;
use placement::groups::inhabited;
use placement::health::{bad_nodes, instances_on};
use thiserror::Error;

use crate::frame;
use crate::io::{Io, SUCCESS};
use crate::number::fixed;
use crate::options::{Options, Program};
use crate::report;
use crate::source::{self, SourceError};
use crate::table::format_table;
use crate::tables;

#[derive(Debug, Error)]
enum HinfoError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error("cannot write the results: {0}")]
    Output(#[from] io::Error),
}

/// Runs the program and returns its exit status.
pub fn run(args: &[String], io: &mut Io<'_>) -> u8 {
    frame::run(Program::Hinfo, args, io, describe, |error| matches!(error, HinfoError::Output(_)))
}

fn describe(options: &Options, io: &mut Io<'_>) -> Result<u8, HinfoError> {
    let level = options.verbosity;
    let mut cluster = source::load(options, io)?;
    writeln!(io.out, "Loaded cluster tags: {}", cluster.tags.join(","))?;
    if level > 2 {
        writeln!(io.out, "Loaded cluster ipolicy: {}", report::policy(&cluster.policy))?;
    }
    source::apply_overrides(options, &mut cluster)?;
    size(&cluster, level, io)?;
    split_instances(&cluster, level, io)?;
    if level > 1 {
        write!(io.out, "Node group information:\n{}", group_table(&cluster))?;
    }
    let nodes: Vec<NodeIdx> = cluster.node_indices().collect();
    let happy = bad_nodes(&cluster, &nodes).is_empty();
    writeln!(io.out, "Cluster is N+1 {}", if happy { "happy" } else { "unhappy" })?;
    print_tables(&cluster, &nodes, options, io)?;
    let board = Board::new(&cluster, &nodes);
    write!(io.out, "Cluster coefficients:\n{}", report::metrics(&board))?;
    writeln!(io.out, "Cluster score: {}", fixed(board.score(), 8))?;
    Ok(SUCCESS)
}

fn size(cluster: &Cluster, level: i64, io: &mut Io<'_>) -> io::Result<()> {
    if level > 1 && cluster.instances.is_empty() {
        writeln!(io.out, "Cluster is empty.")?;
    }
    let count = |number: usize, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
    writeln!(
        io.out,
        "Loaded {}, {}, {}",
        count(cluster.nodes.len(), "node"),
        count(cluster.instances.len(), "instance"),
        count(cluster.groups.len(), "node group")
    )?;
    if level > 2 && !cluster.suffix.is_empty() {
        writeln!(io.out, "Note: Stripping common suffix of '{}' from names", cluster.suffix)?;
    }
    Ok(())
}

/// Prints the names to standard error but their heading to standard output, like the reference.
fn split_instances(cluster: &Cluster, level: i64, io: &mut Io<'_>) -> io::Result<()> {
    let split = cluster.split_instances();
    if !split.is_empty() {
        writeln!(io.out, "Found instances belonging to multiple node groups:")?;
        for index in split {
            writeln!(io.err, "  {}", cluster.instance(index).name)?;
        }
    } else if level > 1 {
        writeln!(io.out, "No split instances found")?;
    }
    Ok(())
}

/// One row per group with nodes.
fn group_table(cluster: &Cluster) -> String {
    let headers = ["Group", "Nodes", "Instances", "Bad_Nodes", "Bad_Instances", "N+1", "Score"];
    let numeric = [false, true, true, true, true, false, true];
    let row = |group| {
        let nodes = cluster.nodes_of(group);
        let bad = bad_nodes(cluster, &nodes);
        vec![
            cluster.group(group).name.clone(),
            nodes.len().to_string(),
            cluster.instances_of(group).len().to_string(),
            bad.len().to_string(),
            instances_on(cluster, &bad).len().to_string(),
            if bad.is_empty() { "True" } else { "False" }.to_owned(),
            fixed(Board::new(cluster, &nodes).score(), 8),
        ]
    };
    let rows: Vec<Vec<String>> = inhabited(cluster).into_iter().map(row).collect();
    format_table(Some(&headers), &rows, &numeric, 2)
}

fn print_tables(cluster: &Cluster, nodes: &[NodeIdx], options: &Options, io: &mut Io<'_>) -> io::Result<()> {
    if options.print_instances {
        let instances: Vec<InstanceIdx> = cluster.instance_indices().collect();
        write!(io.err, "\nInstances instance map:\n{}", tables::instance_table(cluster, &instances))?;
    }
    if let Some(fields) = &options.print_nodes {
        write!(io.err, "\nCluster status:\n{}\n", tables::node_table(cluster, nodes, fields))?;
    }
    Ok(())
}
