//! `hscan`: saves the state of clusters, and prints one row of figures for each (HT-hscan).

#[cfg(test)]
mod tests;

use std::io;
use std::path::Path;

use cluster::{Cluster, LoadError, NodeIdx};
use placement::board::Board;
use placement::health::{bad_nodes, instances_on};
use thiserror::Error;

use crate::data::ClusterData;
use crate::frame;
use crate::io::{Io, SUCCESS, USAGE};
use crate::luxi::{self, LuxiError, QueryError};
use crate::number::fixed;
use crate::options::{LuxiSocket, Options, Program};
use crate::rapi::{self, RapiError};
use crate::saving::{self, SaveError};
use crate::source::{load_options, luxi_path};
use crate::tables;

/// Name of the cluster of the local master daemon.
const LOCAL: &str = "LOCAL";

/// Exit status if some clusters could not be read.
const INCOMPLETE: u8 = USAGE;

#[derive(Debug, Error)]
enum HscanError {
    /// No cluster was given, and no local master daemon answers.
    #[error(transparent)]
    NoDaemon(LuxiError),
    #[error(transparent)]
    Save(#[from] SaveError),
    #[error("cannot write the results: {0}")]
    Output(#[from] io::Error),
}

/// Error in one cluster. The run continues with the next one.
#[derive(Debug, Error)]
enum ScanError {
    #[error(transparent)]
    Rapi(Box<RapiError>),
    #[error(transparent)]
    Luxi(Box<QueryError>),
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// Runs the program and returns its exit status.
pub fn run(args: &[String], io: &mut Io<'_>) -> u8 {
    frame::run(Program::Hscan, args, io, scan, |error| matches!(error, HscanError::Output(_)))
}

fn scan(options: &Options, io: &mut Io<'_>) -> Result<u8, HscanError> {
    // Passwords in addresses must not appear on screen or in file names.
    let names: Vec<String> = match options.positional.as_slice() {
        [] => vec![LOCAL.to_owned()],
        addresses => addresses.iter().map(|address| rapi::without_password(address)).collect(),
    };
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or_default();
    if !options.no_headers {
        let columns = ["Nodes", "Inst", "BNode", "BInst", "t_mem", "f_mem", "t_disk", "f_disk", "     Score"];
        print_row(io, width, "Name", &columns.map(str::to_owned))?;
    }
    let mut complete = true;
    for (at, name) in names.iter().enumerate() {
        let data = match options.positional.get(at) {
            None => local(options)?.map_err(|error| ScanError::Luxi(Box::new(error))),
            Some(address) => {
                let authorities = options.rapi_ca.as_deref().map(Path::new);
                rapi::load(address, authorities).map_err(|error| ScanError::Rapi(Box::new(error)))
            }
        };
        match data.and_then(|data| Ok(data.load(&load_options(options))?)) {
            Ok((cluster, _)) => show(&cluster, name, width, options, io)?,
            Err(error) => {
                complete = false;
                writeln!(io.out, "\nError for {name}: failed to load data. Details:\n{error}")?;
            }
        }
    }
    Ok(if complete { SUCCESS } else { INCOMPLETE })
}

/// Cluster of the local master daemon. A missing daemon ends the run; other errors belong to the cluster.
fn local(options: &Options) -> Result<Result<ClusterData, QueryError>, HscanError> {
    let socket = options.luxi.as_ref().unwrap_or(&LuxiSocket::Default);
    match luxi::load(&luxi_path(socket)) {
        Err(QueryError::Luxi(error @ LuxiError::Connect { .. })) => Err(HscanError::NoDaemon(error)),
        read => Ok(read),
    }
}

/// Prints a cluster's row and saves the cluster.
///
/// The file has the node memory of KVM nodes as counted here (like Ganeti's own since 3.1.0). The file
/// doesn't name the hypervisor, so a reader couldn't correct the value later.
fn show(
    cluster: &Cluster,
    name: &str,
    width: usize,
    options: &Options,
    io: &mut Io<'_>,
) -> Result<(), HscanError> {
    let nodes: Vec<NodeIdx> = cluster.node_indices().collect();
    print_row(io, width, name, &figures(cluster, &nodes))?;
    if let Some(fields) = &options.print_nodes {
        write!(io.out, "{}", tables::node_table(cluster, &nodes, fields))?;
    }
    let file = format!("{}.data", name.replace('/', "_"));
    let path = Path::new(&options.output_dir).join(file);
    Ok(saving::write(path, &saving::whole(cluster))?)
}

fn print_row(io: &mut Io<'_>, width: usize, name: &str, columns: &[String; 9]) -> io::Result<()> {
    let [nodes, instances, bad_nodes, bad_instances, memory, free_memory, disk, free_disk, score] = columns;
    writeln!(
        io.out,
        "{name:<width$} {nodes:>5} {instances:>5} {bad_nodes:>5} {bad_instances:>5} {memory:>6} \
         {free_memory:>6} {disk:>6} {free_disk:>6} {score}"
    )
}

/// Figures of a cluster's row. Disk sizes are in GiB, memory in MiB.
fn figures(cluster: &Cluster, nodes: &[NodeIdx]) -> [String; 9] {
    let bad = bad_nodes(cluster, nodes);
    let total = |figure: fn(&cluster::Node) -> f64| cluster.nodes.iter().map(figure).sum::<f64>();
    let free_memory: i64 = cluster.nodes.iter().map(|node| node.reported_free_memory).sum();
    let free_disk: i64 = nodes.iter().map(|node| cluster.figures(*node).free_disk).sum();
    [
        nodes.len().to_string(),
        cluster.instances.len().to_string(),
        bad.len().to_string(),
        instances_on(cluster, &bad).len().to_string(),
        fixed(total(|node| node.total_memory), 0),
        free_memory.to_string(),
        fixed(total(|node| node.total_disk) / 1024.0, 0),
        free_disk.div_euclid(1024).to_string(),
        fixed(Board::new(cluster, nodes).score(), 8),
    ]
}
