//! Ganeti's remote API as a source (HT-rapi): four documents, fetched over HTTP or read from a directory.

mod address;
mod documents;
#[cfg(test)]
pub(crate) mod tests;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;

pub use address::without_password;
pub use documents::{DocumentError, Documents, Owner};

use crate::data::ClusterData;
use crate::http::{Http, HttpError, Limits, SetupError, Trust};
use address::Address;

/// Limits of a request. Answers of the largest clusters have a tenth of the maximum size.
const LIMITS: Limits =
    Limits { connect: Duration::from_secs(15), total: Duration::from_mins(1), most_bytes: 1 << 30 };

/// Error while reading a cluster.
#[derive(Debug, Error)]
pub enum RapiError {
    /// A document could not be fetched. The error hides the password.
    #[error("Curl error for '{}', error {error}", without_password(.url))]
    Http { url: String, error: HttpError },
    #[error("{}: {source}", .path.display())]
    File { path: PathBuf, source: io::Error },
    /// A certificate must be verified, but the connection isn't encrypted.
    #[error("--rapi-ca wants https://, but '{}' is not encrypted: write https://[USER:PASSWORD@]HOST[:PORT]", without_password(.0))]
    NotEncrypted(String),
    /// The HTTP client could not be set up.
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error(transparent)]
    Document(#[from] DocumentError),
}

/// Reads the cluster at an address as given to `-m`. Verifies certificates if there is a file of
/// `authorities`.
pub fn load(address: &str, authorities: Option<&Path>) -> Result<ClusterData, RapiError> {
    load_within(address, authorities, LIMITS)
}

fn load_within(address: &str, authorities: Option<&Path>, limits: Limits) -> Result<ClusterData, RapiError> {
    let parsed = Address::parse(address);
    if authorities.is_some() && !parsed.has_tls() {
        return Err(RapiError::NotEncrypted(address.to_owned()));
    }
    let documents = match parsed {
        Address::Directory(directory) => read(&directory)?,
        Address::Server(server) => {
            let trust = authorities.map_or(Trust::Anybody, Trust::Authorities);
            get(&server, &Http::new(limits, trust)?)?
        }
    };
    Ok(documents.load()?)
}

fn read(directory: &Path) -> Result<Documents, RapiError> {
    let read = |name: &str| {
        let path = directory.join(name);
        fs::read(&path).map_err(|source| RapiError::File { path, source })
    };
    Ok(Documents {
        groups: read("groups.json")?,
        nodes: read("nodes.json")?,
        instances: read("instances.json")?,
        info: read("info.json")?,
    })
}

fn get(server: &str, http: &Http) -> Result<Documents, RapiError> {
    let get = |path: &str| {
        let url = format!("{server}{path}");
        let scheme = if url.contains("://") { "" } else { "http://" };
        http.get(&format!("{scheme}{url}")).map_err(|error| RapiError::Http { url, error })
    };
    Ok(Documents {
        groups: get("/2/groups?bulk=1")?,
        nodes: get("/2/nodes?bulk=1")?,
        instances: get("/2/instances?bulk=1")?,
        info: get("/2/info")?,
    })
}
