//! Errors that keep the service from running.

use std::io;
use std::path::{Path, PathBuf};

use fleet::StateError;
use service::OpenError;
use thiserror::Error;

use crate::config::ConfigError;

/// Reason why the service doesn't run.
#[derive(Debug, Error)]
pub(crate) enum ServeError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Assembly(#[from] AssemblyError),
    #[error("--log-level {level:?}: {reason}")]
    Log { level: String, reason: String },
    #[error(transparent)]
    Server(#[from] server::ServeError),
    #[error("cannot run: {0}")]
    System(#[from] io::Error),
    /// A task that the service depends on has ended.
    #[error("a task of the service has ended unexpectedly; the log says where")]
    TaskLost,
}

/// Reason why a part of the service doesn't work.
#[derive(Debug, Error)]
pub(crate) enum AssemblyError {
    #[error(transparent)]
    Database(#[from] store_sqlite::OpenError),
    #[error(transparent)]
    Postgres(#[from] store_postgres::OpenError),
    #[error(transparent)]
    Service(#[from] OpenError),
    /// State file of the simulated fleet.
    #[error(transparent)]
    Simulated(#[from] StateError),
    #[error("openstack: {0}")]
    Cloud(#[from] openstack::SetupError),
    /// A file that a setting names can't be read.
    #[error("{setting}: cannot read {path}: {error}")]
    Unreadable {
        /// Key of the setting.
        setting: &'static str,
        path: PathBuf,
        error: io::Error,
    },
    /// A file that a setting names has a mistake.
    #[error("{path}, {reason}")]
    Form {
        path: PathBuf,
        /// Line and description of the mistake.
        reason: String,
    },
    /// Missing or contradictory settings. Each mistake begins with the key of a setting.
    #[error("{}", .0.join("\n"))]
    Settings(Vec<String>),
    #[error(transparent)]
    Server(#[from] server::ConfigError),
}

impl AssemblyError {
    /// Fails if there are mistakes in settings.
    pub(super) fn check(mistakes: Vec<String>) -> Result<(), Self> {
        if mistakes.is_empty() { Ok(()) } else { Err(Self::Settings(mistakes)) }
    }
}

/// Reads a file that a setting names.
pub(super) fn read(setting: &'static str, path: &Path) -> Result<String, AssemblyError> {
    std::fs::read_to_string(path).map_err(|error| AssemblyError::Unreadable {
        setting,
        path: path.to_owned(),
        error,
    })
}
