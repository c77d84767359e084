//! Files of tokens and users: TOML or YAML, by their names.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use thiserror::Error;

use super::hash::HashError;

/// Why such a file is of no use.
#[derive(Debug, Error)]
pub enum AuthFileError {
    /// It cannot be read.
    #[error("cannot read {path}: {error}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// It is not of its form.
    #[error("{path}: {message}")]
    Form {
        /// The file.
        path: PathBuf,
        /// Where and what.
        message: String,
    },
    /// What it says cannot be.
    #[error("{path}: {entry}: {message}")]
    Entry {
        /// The file.
        path: PathBuf,
        /// Whose.
        entry: String,
        /// What.
        message: String,
    },
    /// No hash can be made.
    #[error(transparent)]
    Hash(#[from] HashError),
}

/// Reads a file: YAML if its name ends so, otherwise TOML.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<T, AuthFileError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| AuthFileError::Unreadable { path: path.to_owned(), error })?;
    let yaml = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
    let read = if yaml {
        serde_yaml_ng::from_str(&text).map_err(|error| error.to_string())
    } else {
        toml::from_str(&text).map_err(|error| error.to_string())
    };
    read.map_err(|message| AuthFileError::Form { path: path.to_owned(), message })
}
