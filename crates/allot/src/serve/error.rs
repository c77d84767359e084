//! Why the service does not run.

use std::io;
use std::path::{Path, PathBuf};

use fleet::StateError;
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
    /// What it holds.
    #[error(transparent)]
    Service(#[from] OpenError),
    /// The simulated fleet's file.
    #[error(transparent)]
    Simulated(#[from] StateError),
    /// The cloud.
    #[error("openstack: {0}")]
    Cloud(#[from] openstack::SetupError),
    /// A file that a setting names.
    #[error("{setting}: cannot read {path}: {error}")]
    Unreadable {
        /// Key of the setting.
        setting: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file that a setting names.
    #[error("{path}, {reason}")]
    Form {
        /// The file.
        path: PathBuf,
        /// The line, and what is wrong there.
        reason: String,
    },
    /// Settings that are missing or contradict each other. Each mistake begins with the key of one of them.
    #[error("{}", .0.join("\n"))]
    Settings(Vec<String>),
    /// Settings of the server.
    #[error(transparent)]
    Server(#[from] server::ConfigError),
}

impl AssemblyError {
    /// Fails if there are mistakes in settings.
    pub(super) fn check(mistakes: Vec<String>) -> Result<(), Self> {
        if mistakes.is_empty() { Ok(()) } else { Err(Self::Settings(mistakes)) }
    }
}

/// A file that a setting names.
pub(super) fn read(setting: &'static str, path: &Path) -> Result<String, AssemblyError> {
    std::fs::read_to_string(path).map_err(|error| AssemblyError::Unreadable {
        setting,
        path: path.to_owned(),
        error,
    })
}
