//! What can be wrong with settings of the server.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::auth::file::AuthFileError;
use crate::policy::PolicyError;

/// Why a server cannot be made from its settings.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// Everybody would be the administrator.
    #[error(
        "listen: {0} can be reached from other machines, and `auth` is none, so everybody is the administrator: \
         listen on a loopback address or choose other methods"
    )]
    OpenToTheWorld(SocketAddr),
    /// A method beside `none`.
    #[error("auth: none cannot be combined with other methods: leave it out")]
    NoneAmongOthers,
    /// Nobody could come in.
    #[error("auth: name at least one of none, tokens, basic, local-keystone, keystone")]
    NoMethod,
    /// The method `keystone` without Keystone.
    #[error("auth: keystone needs the section keystone of the settings: keystone.auth_url and others")]
    KeystoneNotNamed,
    /// Tokens of a cloud and those that the service issues.
    #[error(
        "auth: keystone and local-keystone cannot be combined, because their logins can't be told apart: choose one of them"
    )]
    TwoKeystones,
    /// What is said of Keystone cannot be.
    #[error("keystone: {0}")]
    Keystone(String),
    /// A method needs a file that is not named.
    #[error("auth: {method} needs auth.{setting}")]
    FileNotNamed {
        /// The method.
        method: &'static str,
        /// The setting.
        setting: &'static str,
    },
    /// A file of tokens or users.
    #[error(transparent)]
    AuthFile(#[from] AuthFileError),
    /// A file that a setting names cannot be read.
    #[error("{setting}: cannot read {path}: {error}")]
    Unreadable {
        /// Key of the setting.
        setting: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// Rules of the policy file, each with its line, counted from 1, unless the error says so itself.
    #[error("{}", rules(.path, .errors))]
    Policy {
        /// The file.
        path: PathBuf,
        /// At least one.
        errors: Vec<(Option<usize>, PolicyError)>,
    },
    /// A setting, or the content of the file that it names.
    #[error("{setting}: {reason}")]
    Setting {
        /// Key of the setting, or its section.
        setting: &'static str,
        /// What is wrong.
        reason: String,
    },
}

impl ConfigError {
    /// A mistake in a setting, or in the file that it names.
    pub(crate) fn for_setting(setting: &'static str, reason: impl Into<String>) -> Self {
        Self::Setting { setting, reason: reason.into() }
    }

    /// A mistake in the file that a setting names. The setting is named only if the file can't be read.
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
