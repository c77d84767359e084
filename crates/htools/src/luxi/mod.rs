//! Ganeti's local protocol: JSON messages over a Unix socket, each ended by one byte (HT-luxi).
//!
//! [`Client`] is one connection, [`load`] asks for a whole cluster over one. What else is asked over it is in
//! the modules of those who ask.

mod client;
mod query;
#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

pub use client::{Client, LuxiError};
pub use query::{QueryError, cluster_from};

use crate::data::ClusterData;
use crate::options::LuxiSocket;

/// Where the master daemon listens, below the root of a virtual cluster.
const SOCKET: &str = "/var/run/ganeti/socket/ganeti-query";

/// The socket's path. Without one given, it is that of this machine's cluster, or of the virtual cluster whose
/// root is given.
pub fn socket_path(socket: &LuxiSocket, ganeti_root: Option<&OsStr>) -> PathBuf {
    match socket {
        LuxiSocket::Path(path) => path.into(),
        LuxiSocket::Default => {
            let mut path = ganeti_root.unwrap_or_default().to_owned();
            path.push(SOCKET);
            path.into()
        }
    }
}

/// Reads the cluster whose master daemon listens at `path`.
pub fn load(path: &Path) -> Result<ClusterData, QueryError> {
    query::load(&mut Client::connect(path)?)
}
