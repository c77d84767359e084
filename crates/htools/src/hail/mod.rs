//! `hail`: answers one placement request (formats spec §2).

mod allocate;
mod decide;
mod explain;
mod sentence;

use std::fs;
use std::io::Read as _;

use cluster::{Cluster, InstanceIdx, LoadError, NodeIdx};
use thiserror::Error;

use crate::data::ClusterData;
use crate::iallocator::{self, Message, ProtocolError};
use crate::io::{FAILURE, Io, SUCCESS};
use crate::options::{self, Options, Program};
use crate::source::load_options;
use crate::{simulate, tables, text};

/// Why a request cannot be answered at all.
#[derive(Debug, Error)]
enum HailError {
    #[error("hail: {path}: {source}")]
    Unreadable { path: String, source: std::io::Error },
    #[error("{path}: {source}")]
    Unwritable { path: String, source: std::io::Error },
    #[error("{0}")]
    Protocol(#[from] ProtocolError),
    #[error("failed to load data, aborting: {0}")]
    Malformed(String),
    #[error("failed to load data, aborting: {0}")]
    Load(#[from] LoadError),
    #[error("the request refers to an instance, a node or a group that the replacement cluster data lack")]
    OutOfRange,
    #[error("This program needs an input file.")]
    NoInput,
    #[error("Only one argument is accepted (the input file)")]
    SeveralInputs,
}

/// Runs the program; returns its exit status.
pub fn run(args: &[String], io: &mut Io<'_>) -> u8 {
    let options = match options::parse(Program::Hail, args) {
        Ok(options) => options,
        Err(stop) => return stop.print(io),
    };
    match answer(&options, io) {
        Ok(line) => match io.out.write_all(line.as_bytes()) {
            Ok(()) => SUCCESS,
            Err(_) => FAILURE,
        },
        Err(error) => {
            let _ = writeln!(io.err, "Error: {error}");
            FAILURE
        }
    }
}

/// The answer, one line.
fn answer(options: &Options, io: &mut Io<'_>) -> Result<String, HailError> {
    let input = read_input(options, io)?;
    let Message { data, request, .. } = iallocator::parse(&input)?;
    drop(input);
    let replaced = replacement(options)?;
    let mut load_options = load_options(options);
    // A request's instances carry no utilisation that could be ignored: the reference leaves them alone.
    load_options.ignore_utilisation &= replaced.is_some();
    let (mut cluster, warnings) = replaced.unwrap_or(data).load(&load_options)?;
    let _ = io.err.write_all(tables::inconsistency_warnings(&cluster, &warnings).as_bytes());
    if !decide::in_range(&cluster, &request) {
        return Err(HailError::OutOfRange);
    }
    if let Some(prefix) = &options.save {
        save(&cluster, prefix, "pre-ialloc", "before", io)?;
    }
    print_nodes(&cluster, options, "Initial", io);
    let response = decide::decide(&mut cluster, &request, options, io);
    if let Some(prefix) = &options.save {
        save(&cluster, prefix, "post-ialloc", "after", io)?;
    }
    print_nodes(&cluster, options, "Final", io);
    Ok(response.to_line())
}

fn read_input(options: &Options, io: &mut Io<'_>) -> Result<Vec<u8>, HailError> {
    let path = match options.positional.as_slice() {
        [] => return Err(HailError::NoInput),
        [path] => path,
        _ => return Err(HailError::SeveralInputs),
    };
    let unreadable = |source| HailError::Unreadable { path: path.clone(), source };
    if path == "-" {
        let mut input = Vec::new();
        io.stdin.read_to_end(&mut input).map_err(unreadable)?;
        Ok(input)
    } else {
        fs::read(path).map_err(unreadable)
    }
}

/// Cluster data given by options instead of the request's.
fn replacement(options: &Options) -> Result<Option<ClusterData>, HailError> {
    if !options.simulate.is_empty() {
        let data = simulate::parse(&options.simulate).map_err(|e| HailError::Malformed(e.to_string()))?;
        return Ok(Some(data));
    }
    let Some(path) = &options.text_data else { return Ok(None) };
    let contents =
        fs::read_to_string(path).map_err(|source| HailError::Unreadable { path: path.clone(), source })?;
    let data = text::parse(&contents).map_err(|e| HailError::Malformed(e.to_string()))?;
    Ok(Some(data))
}

fn save(cluster: &Cluster, prefix: &str, suffix: &str, when: &str, io: &mut Io<'_>) -> Result<(), HailError> {
    let path = format!("{prefix}.{suffix}");
    let nodes: Vec<NodeIdx> = cluster.node_indices().collect();
    let instances: Vec<InstanceIdx> = cluster.instance_indices().collect();
    fs::write(&path, text::serialize(cluster, &nodes, &instances))
        .map_err(|source| HailError::Unwritable { path: path.clone(), source })?;
    let _ = writeln!(io.err, "The cluster state {when} iallocator run has been written to file '{path}'");
    Ok(())
}

fn print_nodes(cluster: &Cluster, options: &Options, when: &str, io: &mut Io<'_>) {
    if let Some(fields) = &options.print_nodes {
        let nodes: Vec<NodeIdx> = cluster.node_indices().collect();
        let table = tables::node_table(cluster, &nodes, fields);
        let _ = write!(io.err, "\n{when} cluster status:\n{table}\n");
    }
}
