//! LUXI, Ganeti's local protocol: JSON messages over a Unix socket, each ended by one byte (HT-luxi).
//!
//! [`Client`] is a connection, and [`load`] queries a whole cluster over one. Other modules have their own
//! calls.

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

/// Path of the master daemon's socket, relative to the root of a virtual cluster.
const SOCKET: &str = "/var/run/ganeti/socket/ganeti-query";

/// Path of the socket. The default is the socket of this machine's cluster or, with `ganeti_root`, of a
/// virtual cluster.
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

/// Reads the cluster from the master daemon at `path`.
pub fn load(path: &Path) -> Result<ClusterData, QueryError> {
    query::load(&mut Client::connect(path)?)
}
