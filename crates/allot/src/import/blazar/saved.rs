//! The file with the responses of Blazar's API.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::client::{ClientError, Connection};

/// Longer files are rejected: 100,000 leases take about 200 MB.
const MOST_BYTES: u64 = 1 << 30;

/// Maximum number of attempts to read leases that are the same before and after everything else.
const ATTEMPTS: u32 = 5;

/// First field of the file, which identifies its format.
const FORMAT: &str = "allot import blazar 1";

/// Everything that Blazar's API returns, unchanged except that trusts are removed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Saved {
    format: String,
    /// Time of reading, by the clock of this machine.
    pub read_at: Timestamp,
    /// Blazar's URL, without `/v1`.
    pub url: String,
    pub hosts: Vec<Value>,
    pub properties: Vec<Value>,
    pub allocations: Vec<Value>,
    pub floating_ips: Vec<Value>,
    pub leases: Vec<Value>,
}

/// Failure to read from Blazar, or to write or read the file.
#[derive(Debug, Error)]
pub(in crate::import) enum SavedError {
    #[error(transparent)]
    Blazar(#[from] ClientError),
    #[error("{url} isn't a Blazar: its leases have a field of Allot")]
    Ours { url: String },
    #[error(
        "Blazar at {url} cannot answer ({message}); start blazar-manager, since its API asks the manager for everything, \
         and read again"
    )]
    WithoutManager { url: String, message: String },
    #[error("Blazar's answer to {path} has no list of {key}")]
    NoList { path: &'static str, key: &'static str },
    #[error(
        "leases were changed each time while they were read; close Blazar's API to others, and try again"
    )]
    Restless,
    #[error("{path} already exists; remove it, or name another file")]
    Exists { path: PathBuf },
    #[error("cannot write {path}: {error}")]
    Unwritable { path: PathBuf, error: io::Error },
    #[error("cannot read {path}: {error}")]
    Unreadable { path: PathBuf, error: io::Error },
    #[error("{path} has more than {} GiB", MOST_BYTES >> 30)]
    Long { path: PathBuf },
    #[error("{path} was not written by `allot import blazar --read`: {reason}")]
    Foreign { path: PathBuf, reason: String },
}

impl SavedError {
    /// Adds the likely cause if Blazar's API can't reach its manager.
    fn explained(self, url: &str) -> Self {
        match self {
            Self::Blazar(ClientError::Refused { status: 500.., message, .. }) => {
                Self::WithoutManager { url: url.to_owned(), message }
            }
            error => error,
        }
    }
}

impl Saved {
    /// Reads everything from Blazar, in a state between two changes of its leases.
    pub(super) async fn ask(blazar: &Connection, now: impl Fn() -> Timestamp) -> Result<Self, SavedError> {
        Self::asked(blazar, now).await.map_err(|error| error.explained(blazar.url()))
    }

    async fn asked(blazar: &Connection, now: impl Fn() -> Timestamp) -> Result<Self, SavedError> {
        let mut before = leases(blazar).await?;
        for _ in 0..ATTEMPTS {
            let read_at = now();
            let hosts = list(blazar, "/v1/os-hosts", "hosts").await?;
            let path = "/v1/os-hosts/properties?detail=True&all=True";
            let properties = if_served(list(blazar, path, "resource_properties").await)?;
            let allocations = list(blazar, "/v1/os-hosts/allocations", "allocations").await?;
            let floating_ips = if_served(list(blazar, "/v1/floatingips", "floatingips").await)?;
            let leases = leases(blazar).await?;
            if leases == before {
                let (format, url) = (FORMAT.to_owned(), blazar.url().to_owned());
                return Ok(Self {
                    format,
                    read_at,
                    url,
                    hosts,
                    properties,
                    allocations,
                    floating_ips,
                    leases,
                });
            }
            before = leases;
        }
        Err(SavedError::Restless)
    }

    /// Writes a new file that only its owner can read, because it has the names of users and projects.
    pub(super) fn write(&self, path: &Path) -> Result<(), SavedError> {
        let unwritable = |error: io::Error| match error.kind() {
            io::ErrorKind::AlreadyExists => SavedError::Exists { path: path.to_owned() },
            _ => SavedError::Unwritable { path: path.to_owned(), error },
        };
        let mut text = serde_json::to_vec_pretty(self).map_err(|error| unwritable(error.into()))?;
        text.push(b'\n');
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(unwritable)?;
        file.write_all(&text).and_then(|()| file.sync_all()).map_err(unwritable)
    }

    pub(super) fn read(path: &Path) -> Result<Self, SavedError> {
        let unreadable = |error| SavedError::Unreadable { path: path.to_owned(), error };
        let mut text = Vec::new();
        File::open(path)
            .map_err(unreadable)?
            .take(MOST_BYTES + 1)
            .read_to_end(&mut text)
            .map_err(unreadable)?;
        if text.len() as u64 > MOST_BYTES {
            return Err(SavedError::Long { path: path.to_owned() });
        }
        let foreign = |reason: String| SavedError::Foreign { path: path.to_owned(), reason };
        let saved: Self = serde_json::from_slice(&text).map_err(|error| foreign(error.to_string()))?;
        if saved.format != FORMAT {
            return Err(foreign(format!("its format is not {FORMAT}")));
        }
        Ok(saved)
    }
}

async fn list(blazar: &Connection, path: &'static str, key: &'static str) -> Result<Vec<Value>, SavedError> {
    let mut answer = blazar.get(path, &[]).await?;
    let Value::Array(mut entries) = answer[key].take() else {
        return Err(SavedError::NoList { path, key });
    };
    for entry in &mut entries {
        if let Value::Object(fields) = entry {
            // Blazar acts as the user by this trust. We have no use for it.
            fields.remove("trust_id");
        }
    }
    Ok(entries)
}

/// An empty list if Blazar doesn't serve it: operators choose plugins, and older versions have fewer lists.
fn if_served(answer: Result<Vec<Value>, SavedError>) -> Result<Vec<Value>, SavedError> {
    match answer {
        Err(SavedError::Blazar(ClientError::Refused { status: 404, .. })) => Ok(Vec::new()),
        answer => answer,
    }
}

/// Leases of all projects, sorted so that two readings can be compared.
async fn leases(blazar: &Connection) -> Result<Vec<Value>, SavedError> {
    let mut leases = list(blazar, "/v1/leases", "leases").await?;
    if leases.iter().any(|lease| lease.get("lease_state").is_some()) {
        return Err(SavedError::Ours { url: blazar.url().to_owned() });
    }
    leases.sort_by(|one, other| one["id"].as_str().cmp(&other["id"].as_str()));
    for lease in &mut leases {
        for list in ["events", "reservations"] {
            if let Value::Array(parts) = &mut lease[list] {
                parts.sort_by(|one, other| one["id"].as_str().cmp(&other["id"].as_str()));
            }
        }
    }
    Ok(leases)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blazar_without_addresses_has_none_of_them() {
        let refused = |status| {
            Err(SavedError::Blazar(ClientError::Refused { status, message: String::new(), hint: None }))
        };
        assert_eq!(if_served(refused(404)).expect("nothing"), [Value::Null; 0]);
        assert!(if_served(refused(403)).is_err());
    }

    #[test]
    fn a_blazar_without_its_manager_says_that_the_manager_is_missing() {
        let refused = |status| {
            let message = "Internal Server Error".to_owned();
            SavedError::Blazar(ClientError::Refused { status, message, hint: None })
        };
        let error = refused(500).explained("http://blazar:1234").to_string();
        assert!(error.contains("http://blazar:1234") && error.contains("start blazar-manager"), "{error}");
        assert!(matches!(refused(403).explained("http://blazar:1234"), SavedError::Blazar(_)));
    }

    #[test]
    fn the_file_is_private_never_overwritten_and_only_its_own_kind_is_read() {
        use std::os::unix::fs::PermissionsExt as _;

        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("blazar.json");
        let saved: Saved = serde_json::from_str(include_str!("records/blazar-18.json")).expect("a Blazar");
        saved.write(&path).expect("written");
        assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        assert_eq!(Saved::read(&path).expect("read"), saved);
        assert!(matches!(saved.write(&path), Err(SavedError::Exists { .. })));
        for other in
            ["", "{}", "[1]", &serde_json::to_string(&Saved { format: "2".into(), ..saved }).expect("JSON")]
        {
            std::fs::write(&path, other).expect("written");
            assert!(matches!(Saved::read(&path), Err(SavedError::Foreign { .. })), "{other:.40}");
        }
    }
}
