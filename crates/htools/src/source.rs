//! Loads a cluster from the source that the options name.

use std::path::{Path, PathBuf};
use std::{env, fs};

use cluster::{Cluster, LoadError, LoadOptions, did_you_mean};
use thiserror::Error;

use crate::data::ClusterData;
use crate::http::SetupError;
use crate::io::Io;
use crate::luxi::QueryError;
use crate::mond::Collector;
use crate::options::{LuxiSocket, Options};
use crate::rapi::RapiError;
use crate::{dynu, iallocator, luxi, mond, rapi, simulate, tables, text};

/// Error while loading a cluster.
#[derive(Debug, Error)]
pub enum SourceError {
    /// No source was given.
    #[error("no cluster given; use one of -t, -L, -m, -I and --simulate (--help lists them)")]
    NoSource,
    /// Two or more of remote API, master daemon and text file were given.
    #[error("several clusters given; use only one of -t, -L and -m")]
    SeveralSources,
    /// Reading from the remote API failed.
    #[error("failed to load data, aborting: {0}")]
    Rapi(Box<RapiError>),
    /// Reading from the master daemon failed.
    #[error("failed to load data, aborting: {0}")]
    Luxi(Box<QueryError>),
    /// Monitoring daemons cannot be queried.
    #[error(transparent)]
    Network(#[from] SetupError),
    /// The cluster's file cannot be read.
    #[error("failed to load data, aborting: {path}: {source}")]
    Unreadable { path: String, source: std::io::Error },
    /// A file of utilization or monitoring data cannot be read.
    #[error("{path}: {source}")]
    UnreadableOption { path: String, source: std::io::Error },
    #[error("failed to load data, aborting: {0}")]
    Malformed(String),
    /// The request file used as a source is invalid.
    #[error("{0}")]
    MalformedRequest(String),
    #[error("can't parse utilisation data: {0}")]
    Utilisation(String),
    #[error("can't parse MonD data: {0}")]
    Monitoring(String),
    /// Monitoring data is incomplete, and options require it.
    #[error("Not all required data available")]
    MonitoringIncomplete,
    /// Selection options name unknown instances, or the loaded records are invalid.
    #[error("failed to load data, aborting: {0}")]
    Selection(#[from] LoadError),
    /// `-O` names unknown nodes.
    #[error("wrong node name(s) set as offline: {}{meant}\n", .names.join(","))]
    UnknownOffline {
        names: Vec<String>,
        /// Question about similar names.
        meant: String,
    },
}

// Boxed, because these errors are large and every result has room for one.
impl From<RapiError> for SourceError {
    fn from(error: RapiError) -> Self {
        Self::Rapi(Box::new(error))
    }
}

impl From<QueryError> for SourceError {
    fn from(error: QueryError) -> Self {
        Self::Luxi(Box::new(error))
    }
}

fn read(path: &str) -> Result<String, std::io::Error> {
    fs::read_to_string(path)
}

/// Load options that follow from the command line, without the utilization file.
pub fn load_options(options: &Options) -> LoadOptions {
    LoadOptions {
        ignore_utilisation: options.ignore_dynu,
        utilisation: Vec::new(),
        exclusion_tags: options.exclusion_tags.clone(),
        select_instances: options.select_instances.clone(),
        exclude_instances: options.exclude_instances.clone(),
        static_kvm_node_memory: options.static_kvm_node_memory,
        initial_n1: options.n1_initial,
    }
}

/// Path of the master daemon's socket, below `GANETI_ROOTDIR` if that is set.
pub fn luxi_path(socket: &LuxiSocket) -> PathBuf {
    luxi::socket_path(socket, env::var_os("GANETI_ROOTDIR").as_deref())
}

/// Reads the cluster's description from the source that the options name.
///
/// Precedence is the reference's: remote API, master daemon, simulation, text file, request.
fn cluster_data(options: &Options) -> Result<ClusterData, SourceError> {
    let exclusive = [options.master.is_some(), options.luxi.is_some(), options.text_data.is_some()];
    if exclusive.iter().filter(|given| **given).count() > 1 {
        return Err(SourceError::SeveralSources);
    }
    if let Some(address) = &options.master {
        return Ok(rapi::load(address, options.rapi_ca.as_deref().map(Path::new))?);
    }
    if let Some(socket) = &options.luxi {
        return Ok(luxi::load(&luxi_path(socket))?);
    }
    if !options.simulate.is_empty() {
        return simulate::parse(&options.simulate).map_err(|e| SourceError::Malformed(e.to_string()));
    }
    let contents = |path: &String| {
        fs::read(path).map_err(|source| SourceError::Unreadable { path: path.clone(), source })
    };
    if let Some(path) = &options.text_data {
        let text = String::from_utf8(contents(path)?)
            .map_err(|_| SourceError::Malformed(format!("{path}: not UTF-8 text")))?;
        return text::parse(&text).map_err(|e| SourceError::Malformed(e.to_string()));
    }
    if let Some(path) = &options.ialloc_src {
        let message =
            iallocator::parse(&contents(path)?).map_err(|e| SourceError::MalformedRequest(e.to_string()))?;
        return Ok(message.data);
    }
    Err(SourceError::NoSource)
}

/// Loads the cluster that the options describe, and prints warnings about inconsistent records.
pub fn load(options: &Options, io: &mut Io<'_>) -> Result<Cluster, SourceError> {
    let mut load_options = load_options(options);
    if let Some(path) = &options.dynu_file {
        let text =
            read(path).map_err(|source| SourceError::UnreadableOption { path: path.clone(), source })?;
        load_options.utilisation = dynu::parse(&text).map_err(|e| SourceError::Utilisation(e.to_string()))?;
    }
    let data = cluster_data(options)?;
    let (mut cluster, warnings) = data.load(&load_options)?;
    apply_monitoring(options, &mut cluster, io)?;
    if options.verbosity != 0 {
        let _ = io.err.write_all(tables::inconsistency_warnings(&cluster, &warnings).as_bytes());
    }
    Ok(cluster)
}

/// Applies the options `-O`, `--min-disk` and `--max-cpu` to the cluster.
pub fn apply_overrides(options: &Options, cluster: &mut Cluster) -> Result<(), SourceError> {
    let unknown = cluster.set_offline(&options.offline);
    if !unknown.is_empty() {
        let names: Vec<&str> = unknown.iter().map(String::as_str).collect();
        let meant = did_you_mean(&names, cluster.nodes.iter().map(|node| node.name.as_str()));
        return Err(SourceError::UnknownOffline { names: unknown, meant });
    }
    cluster.set_min_disk_ratio(options.min_disk);
    if let Some(ratio) = options.max_cpu {
        cluster.set_max_vcpu_ratio(ratio);
    }
    Ok(())
}

/// Applies measured CPU loads if the options request them.
pub fn apply_monitoring(
    options: &Options,
    cluster: &mut Cluster,
    io: &mut Io<'_>,
) -> Result<(), SourceError> {
    if !options.mond || options.ignore_dynu {
        return Ok(());
    }
    let collector = if options.mond_xen { Collector::XenCpu } else { Collector::Cpu };
    let answers = if let Some(path) = &options.mond_data {
        let text =
            read(path).map_err(|source| SourceError::UnreadableOption { path: path.clone(), source })?;
        mond::parse(&text).map_err(|e| SourceError::Monitoring(e.to_string()))?
    } else {
        let answers = mond::ask(cluster, collector, options.mond_port)?;
        for node in &answers.silent {
            let _ = writeln!(io.err, "Failed to contact node's {node} MonD for DC {}", collector.name());
        }
        answers.reports
    };
    if let Err(missing) = mond::apply(cluster, &answers, collector) {
        let _ = writeln!(io.err, "{missing}");
        if options.exit_on_missing_mond_data {
            return Err(SourceError::MonitoringIncomplete);
        }
    }
    Ok(())
}
