//! Why the service does not run.

use std::io;
use std::path::{Path, PathBuf};

use fleet::StateError;
use fleet::hooks::HooksError;
use service::OpenError;
use thiserror::Error;

use crate::config::ConfigError;

/// Why the service does not run.
#[derive(Debug, Error)]
pub(crate) enum ServeError {
    /// A setting.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A part does not work.
    #[error(transparent)]
    Assembly(#[from] AssemblyError),
    /// The log.
    #[error("--log-level {level:?}: {reason}")]
    Log {
        /// What was asked for.
        level: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The sockets.
    #[error(transparent)]
    Server(#[from] server::ServeError),
    /// The operating system.
    #[error("cannot run: {0}")]
    System(#[from] io::Error),
    /// A task that the service depends on.
    #[error("a task of the service has ended unexpectedly; the log says where")]
    TaskLost,
}

/// Why a part does not work.
#[derive(Debug, Error)]
pub(crate) enum AssemblyError {
    /// The database.
    #[error(transparent)]
    Database(#[from] store_sqlite::OpenError),
    /// The same in PostgreSQL.
    #[error(transparent)]
    Postgres(#[from] store_postgres::OpenError),
    /// Addresses of the external service without its own.
    #[error("enforcement.check_create_url, check_update_url and on_end_url need enforcement.url")]
    NoEnforcementUrl,
    /// What it holds.
    #[error(transparent)]
    Service(#[from] OpenError),
    /// The simulated fleet's file.
    #[error(transparent)]
    Simulated(#[from] StateError),
    /// The hooks.
    #[error("fleet: {0} (docs/machines.md has a file of hooks that works)")]
    Hooks(#[from] HooksError),
    /// The cloud.
    #[error("openstack: {0}")]
    Cloud(#[from] openstack::SetupError),
    /// A file that a setting names.
    #[error("cannot read {path}: {error}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file that a setting names.
    #[error("{path}: {reason}")]
    Form {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Settings that belong together and are not all there.
    #[error("{0}")]
    Missing(String),
    /// Settings that contradict each other.
    #[error("{0}")]
    Contradiction(&'static str),
    /// Settings of the server.
    #[error(transparent)]
    Server(#[from] server::ConfigError),
}

/// A file that a setting names.
pub(super) fn read(path: &Path) -> Result<String, AssemblyError> {
    std::fs::read_to_string(path).map_err(|error| AssemblyError::Unreadable { path: path.to_owned(), error })
}
