//! What can be wrong with settings of the server.

use std::net::SocketAddr;
use std::path::PathBuf;

use thiserror::Error;

use crate::auth::file::AuthFileError;
use crate::policy::PolicyError;

/// Why a server cannot be made from its settings.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// Everybody would be the administrator.
    #[error(
        "`auth` is none, so everybody is the administrator: listen on a loopback address instead of {0}, \
         or choose other methods"
    )]
    OpenToTheWorld(SocketAddr),
    /// A method beside `none`.
    #[error("`auth` has none beside other methods: leave it out")]
    NoneAmongOthers,
    /// Nobody could come in.
    #[error("`auth` is empty: name at least one of none, tokens, basic, local-keystone, keystone")]
    NoMethod,
    /// The method `keystone` without Keystone.
    #[error(
        "`auth` has keystone, which needs the section keystone of the settings: keystone.auth_url and others"
    )]
    KeystoneNotNamed,
    /// Tokens of a cloud and those that the service issues.
    #[error(
        "`auth` has both keystone and local-keystone, whose logins would be taken for each other: choose one of them"
    )]
    TwoKeystones,
    /// What is said of Keystone cannot be.
    #[error("keystone: {0}")]
    Keystone(String),
    /// A method needs a file that is not named.
    #[error("`auth` has {method}, which needs auth.{setting}")]
    FileNotNamed {
        /// The method.
        method: &'static str,
        /// The setting.
        setting: &'static str,
    },
    /// A file of tokens or users.
    #[error(transparent)]
    AuthFile(#[from] AuthFileError),
    /// The policy file cannot be read.
    #[error("cannot read the policy file {path}: {error}")]
    PolicyFile {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The policy makes no sense.
    #[error("policy: {0}")]
    Policy(#[from] PolicyError),
    /// The policy file makes no sense.
    #[error("{path}{}: {error}", line.map(|line| format!(", line {line}")).unwrap_or_default())]
    PolicyIn {
        /// The file.
        path: PathBuf,
        /// Where, counted from 1; none if the error says so itself.
        line: Option<usize>,
        /// What.
        error: PolicyError,
    },
    /// The external service's address is none.
    #[error("enforcement.external_service: {0}")]
    ExternalService(String),
    /// The listener that notifications are pushed to.
    #[error("notifications: {0}")]
    Webhook(String),
    /// The program that is run for each notification.
    #[error("notifications.exec: {program}: {reason}")]
    Exec {
        /// The program, as configured.
        program: String,
        /// Why it can't be started.
        reason: &'static str,
    },
    /// The message bus that notifications are published on.
    #[error("message_bus: {0}")]
    MessageBus(String),
    /// Certificate or key.
    #[error("tls: {0}")]
    Tls(String),
}
