//! Errors in the settings of the server.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::auth::file::AuthFileError;
use crate::policy::PolicyError;

/// Error in the settings, or in a file that they name.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// Without authentication, every client would be the administrator.
    #[error(
        "listen: {0} can be reached from other machines, and `auth` is none, so everybody is the administrator: \
         listen on a loopback address or choose other methods"
    )]
    OpenToTheWorld(SocketAddr),
    #[error("auth: none cannot be combined with other methods: leave it out")]
    NoneAmongOthers,
    /// No method is enabled, so every request would be rejected.
    #[error("auth: name at least one of none, tokens, basic, local-keystone, keystone")]
    NoMethod,
    #[error("auth: keystone needs the settings of the section keystone, such as keystone.auth_url")]
    KeystoneNotNamed,
    #[error(
        "auth: keystone and local-keystone cannot be combined, because their logins can't be told apart: choose one of them"
    )]
    TwoKeystones,
    /// Invalid setting of Keystone.
    #[error("keystone: {0}")]
    Keystone(String),
    #[error("auth: {method} needs auth.{setting}")]
    FileNotNamed { method: &'static str, setting: &'static str },
    /// Error in a file of tokens, users or keys.
    #[error(transparent)]
    AuthFile(#[from] AuthFileError),
    #[error("{setting}: cannot read {path}: {error}")]
    Unreadable { setting: &'static str, path: PathBuf, error: std::io::Error },
    /// Errors in rules of the policy file. Each has a line, counted from 1, unless the error's text already
    /// contains it.
    #[error("{}", rules(.path, .errors))]
    Policy {
        path: PathBuf,
        /// Never empty.
        errors: Vec<(Option<usize>, PolicyError)>,
    },
    /// Invalid setting, or invalid content of a file that it names.
    #[error("{setting}: {reason}")]
    Setting {
        /// Key of the setting, or its section.
        setting: &'static str,
        reason: String,
    },
}

impl ConfigError {
    /// An error in a setting, or in a file that it names.
    pub(crate) fn for_setting(setting: &'static str, reason: impl Into<String>) -> Self {
        Self::Setting { setting, reason: reason.into() }
    }

    /// An error in a file. It names the setting only if the file can't be read.
    pub(crate) fn for_file(setting: &'static str, error: AuthFileError) -> Self {
        match error {
            AuthFileError::Unreadable { path, error } => Self::Unreadable { setting, path, error },
            error => Self::AuthFile(error),
        }
    }
}

fn rules(path: &Path, errors: &[(Option<usize>, PolicyError)]) -> String {
    let rules = errors.iter().map(|(line, error)| {
        let line = line.map(|line| format!(", line {line}")).unwrap_or_default();
        format!("{}{line}: {error}", path.display())
    });
    rules.collect::<Vec<_>>().join("\n")
}
