//! `hail`: answers one placement request (HT-iallocator).

mod allocate;
mod decide;
mod dump;
mod explain;
mod sentence;
mod wanted;

use std::fs;

use cluster::{Cluster, Inconsistency, InstanceIdx, LoadError, LoadOptions, NodeIdx, TagRules};
use thiserror::Error;

use self::dump::Rest;
use crate::data::ClusterData;
use crate::frame;
use crate::iallocator::{self, Dialect, Message, ProtocolError, Request};
use crate::io::{Io, SUCCESS};
use crate::options::{Options, Program};
use crate::saving::{self, SaveError, save};
use crate::source::{SourceError, load_options};
use crate::{simulate, source, tables, text};

/// Error that leaves a request without a response.
#[derive(Debug, Error)]
enum HailError {
    #[error("hail: {path}: {source}")]
    Unreadable { path: String, source: std::io::Error },
    #[error(transparent)]
    Save(#[from] SaveError),
    #[error("{0}")]
    Protocol(#[from] ProtocolError),
    #[error("failed to load data, aborting: {0}")]
    Malformed(String),
    #[error("failed to load data, aborting: {0}")]
    Load(#[from] LoadError),
    #[error(transparent)]
    Monitoring(Box<SourceError>),
    #[error("the request refers to an instance, a node or a group that the replacement cluster data lack")]
    OutOfRange,
    #[error("This program needs an input file.")]
    NoInput,
    #[error("Only one argument is accepted (the input file)")]
    SeveralInputs,
    #[error("cannot write the results: {0}")]
    Output(#[from] std::io::Error),
}

/// Runs the program and returns its exit status.
pub fn run(args: &[String], io: &mut Io<'_>) -> u8 {
    frame::run(Program::Hail, args, io, answer, |error| matches!(error, HailError::Output(_)))
}

fn answer(options: &Options, io: &mut Io<'_>) -> Result<u8, HailError> {
    let line = response(options, io)?;
    io.out.write_all(line.as_bytes())?;
    Ok(SUCCESS)
}

/// The response, as one line.
fn response(options: &Options, io: &mut Io<'_>) -> Result<String, HailError> {
    let input = read_input(options, io)?;
    let Message { data, request, dialect } = iallocator::parse(&input)?;
    let rest = if options.verbosity > 1 { Rest::of(&input, &data.tags) } else { Rest::default() };
    drop(input);
    // Version 2 of the protocol has no capacity checks, and its messages can omit nodes in use.
    let no_capacity_checks = options.no_capacity_checks || dialect == Dialect::Version2;
    let options = &Options { no_capacity_checks, ..options.clone() };
    let rules = TagRules::from_cluster_tags(&data.tags, &[]);
    let replaced = replacement(options)?;
    let mut load_options = load_options(options);
    if let Some(replaced) = replaced {
        // Errors in the request's own records are reported even though the records are not used.
        load_cluster(data, &LoadOptions { ignore_utilisation: false, ..load_options.clone() }, io)?;
        let rest = rest.of_other_cluster(&replaced.tags);
        let (mut cluster, warnings) = replaced.load(&load_options)?;
        monitor(options, &mut cluster, io)?;
        warn(&cluster, &warnings, io);
        return decide_on(cluster, &request, &rules, &rest, options, io);
    }
    // Instances in a request have no utilization, so there is none to ignore: the reference leaves them
    // alone.
    load_options.ignore_utilisation = false;
    let mut cluster = load_cluster(data, &load_options, io)?;
    monitor(options, &mut cluster, io)?;
    decide_on(cluster, &request, &rules, &rest, options, io)
}

fn load_cluster(data: ClusterData, options: &LoadOptions, io: &mut Io<'_>) -> Result<Cluster, HailError> {
    let (cluster, warnings) = data.load(options)?;
    warn(&cluster, &warnings, io);
    Ok(cluster)
}

fn monitor(options: &Options, cluster: &mut Cluster, io: &mut Io<'_>) -> Result<(), HailError> {
    source::apply_monitoring(options, cluster, io).map_err(|error| HailError::Monitoring(Box::new(error)))
}

fn warn(cluster: &Cluster, warnings: &[Inconsistency], io: &mut Io<'_>) {
    let _ = io.err.write_all(tables::inconsistency_warnings(cluster, warnings).as_bytes());
}

fn decide_on(
    mut cluster: Cluster,
    request: &Request,
    rules: &TagRules,
    rest: &Rest,
    options: &Options,
    io: &mut Io<'_>,
) -> Result<String, HailError> {
    if !decide::in_range(&cluster, request) {
        return Err(HailError::OutOfRange);
    }
    if options.verbosity > 1 {
        let _ = io.err.write_all(dump::request(&mut cluster, request, rules, rest).as_bytes());
    }
    if options.verbosity > 2 {
        let _ = io.err.write_all(dump::data(&cluster, rest).as_bytes());
    }
    if options.verbosity > 1 && decide::is_dedicated(&cluster, request) {
        let _ = io.err.write_all(b"Allocation on a dedicated cluster; using lost-allocations metrics.\n");
    }
    let all: Vec<NodeIdx> = cluster.node_indices().collect();
    let fields = options.print_nodes.as_ref();
    print_nodes("Initial", fields.map(|fields| tables::node_table(&cluster, &all, fields)), io);
    if let Some(prefix) = &options.save {
        save(&saving::whole(&cluster), prefix, "pre-ialloc", "before iallocator run", io)?;
    }
    let decided = decide::decide(&mut cluster, request, rules, options, io);
    let new = cluster.instance_indices().next_back().filter(|_| decided.newest_first);
    let table = fields.map(|fields| tables::node_table_with(&cluster, &decided.nodes, fields, new));
    print_nodes("Final", table, io);
    if let Some(prefix) = &options.save {
        let mut instances: Vec<InstanceIdx> = cluster.instance_indices().collect();
        instances.rotate_right(usize::from(decided.newest_first));
        let text = text::serialize(&cluster, &all, &instances);
        save(&text, prefix, "post-ialloc", "after iallocator run", io)?;
    }
    Ok(decided.response.to_line())
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

/// Cluster data from options, which replaces the request's.
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

fn print_nodes(title: &str, table: Option<String>, io: &mut Io<'_>) {
    if let Some(table) = table {
        let _ = write!(io.err, "\n{title} cluster status:\n{table}\n");
    }
}
