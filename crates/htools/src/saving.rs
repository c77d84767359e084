//! Saving a cluster's state to files (`-S`, HT-save).

use std::io;
use std::path::PathBuf;

use cluster::{Cluster, InstanceIdx, NodeIdx};
use thiserror::Error;

use crate::io::Io;
use crate::text;

/// A state or script could not be written.
#[derive(Debug, Error)]
pub enum SaveError {
    #[error("{}: {source}", .path.display())]
    Write { path: PathBuf, source: io::Error },
    /// Standard output or standard error cannot be written.
    #[error("cannot write the results: {0}")]
    Output(#[from] io::Error),
}

/// The whole cluster in the text format.
pub fn whole(cluster: &Cluster) -> String {
    let nodes: Vec<NodeIdx> = cluster.node_indices().collect();
    let instances: Vec<InstanceIdx> = cluster.instance_indices().collect();
    text::serialize(cluster, &nodes, &instances)
}

pub fn write(path: impl Into<PathBuf>, text: &str) -> Result<(), SaveError> {
    let path = path.into();
    std::fs::write(&path, text).map_err(|source| SaveError::Write { path, source })
}

/// Writes a state to `PREFIX.SUFFIX` and prints a message. `when` describes the state, for example `before
/// balancing`.
pub(crate) fn save(
    text: &str,
    prefix: &str,
    suffix: &str,
    when: &str,
    io: &mut Io<'_>,
) -> Result<(), SaveError> {
    let path = format!("{prefix}.{suffix}");
    write(&path, text)?;
    writeln!(io.err, "The cluster state {when} has been written to file '{path}'")?;
    Ok(())
}
