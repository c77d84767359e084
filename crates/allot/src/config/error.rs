//! Errors in settings, with the origin of the value.

use std::fmt;
use std::path::PathBuf;

use leases::text::lines;
use thiserror::Error;

/// Origin of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Command-line flag, without the leading hyphens.
    Flag(String),
    /// Environment variable.
    Variable(String),
    /// Line of the configuration file.
    File { path: PathBuf, line: usize, key: String },
}

impl Origin {
    /// Name of the origin in responses.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Flag(_) => "flag",
            Self::Variable(_) => "environment",
            Self::File { .. } => "file",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => write!(f, "--{flag}"),
            Self::Variable(name) => write!(f, "environment variable {name}"),
            Self::File { path, line, key } => write!(f, "{}, line {line}, {key}", path.display()),
        }
    }
}

/// Reason that there is no configuration.
#[derive(Debug, Error)]
pub(crate) enum ConfigError {
    /// At least one mistake. Each is on lines of its own.
    #[error("{}", lines(.0))]
    Mistakes(Vec<Mistake>),
}

/// A mistake in the configuration.
#[derive(Clone, Debug, Error)]
pub(crate) enum Mistake {
    #[error("cannot read the configuration {path}: {error}")]
    Unreadable { path: PathBuf, error: String },
    #[error("{path}, line {line}: {reason}")]
    Syntax { path: PathBuf, line: usize, reason: String },
    #[error("{path}, line {line}: there is no setting {key}{}", meant(*.nearest))]
    Unknown { path: PathBuf, line: usize, key: String, nearest: Option<&'static str> },
    #[error("{path}, line {line}, {key}: {reason}")]
    Kind { path: PathBuf, line: usize, key: String, reason: &'static str },
    #[error("{origin}: invalid value {value:?}: {reason}")]
    Value { key: &'static str, origin: Origin, value: String, reason: String },
    #[error("environment variable {variable} is not text")]
    NotText { key: &'static str, variable: String },
}

impl Mistake {
    /// Whether the mistake leaves the value of a setting unknown. `name` is the setting's key, or a section
    /// for any setting in it.
    pub(crate) fn affects(&self, name: &str) -> bool {
        let overlaps = |key: &str| is_within(key, name) || is_within(name, key);
        match self {
            // No values are read from such a file.
            Self::Unreadable { .. } | Self::Syntax { .. } => true,
            Self::Unknown { nearest, .. } => nearest.is_some_and(overlaps),
            Self::Kind { key, .. } => overlaps(key),
            Self::Value { key, .. } | Self::NotText { key, .. } => overlaps(key),
        }
    }
}

fn is_within(key: &str, section: &str) -> bool {
    key.strip_prefix(section).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn meant(nearest: Option<&'static str>) -> String {
    nearest.map(|name| format!("; did you mean {name}?")).unwrap_or_default()
}
