//! Tokens from a file.

use std::path::Path;

use async_trait::async_trait;
use leases::project::{ProjectId, UserId};
use secrecy::ExposeSecret;
use serde::Deserialize;
use subtle::ConstantTimeEq;

use super::file::{self, AuthFileError};
use super::hash::{digest, read_digest};
use super::{Authenticator, Credentials, Identity, Roles};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    tokens: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// SHA-256 of the token, in hexadecimal digits.
    sha256: String,
    /// Whose it is.
    user: String,
    /// For which project.
    project: String,
    /// With which roles.
    roles: Vec<String>,
}

/// Tokens, by their hashes, and whose they are.
#[derive(Debug)]
pub(crate) struct Tokens(Vec<([u8; 32], Identity)>);

impl Tokens {
    /// Reads them from a file.
    pub fn read(path: &Path) -> Result<Self, AuthFileError> {
        let file: File = file::read(path)?;
        let read = |entry: Entry| {
            let digest = read_digest(&entry.sha256).ok_or_else(|| AuthFileError::Entry {
                path: path.to_owned(),
                entry: format!("token of {}", entry.user),
                message: "sha256 must be 64 hexadecimal digits".to_owned(),
            })?;
            let identity = Identity {
                user: UserId(entry.user),
                project: ProjectId(entry.project),
                roles: Roles::new(entry.roles),
            };
            Ok::<_, AuthFileError>((digest, identity))
        };
        Ok(Self(file.tokens.into_iter().map(read).collect::<Result<_, _>>()?))
    }
}

#[async_trait]
impl Authenticator for Tokens {
    async fn authenticate(&self, credentials: &Credentials) -> Option<Identity> {
        let digest = digest(credentials.token.as_ref()?.expose_secret().as_bytes());
        // All are looked at, each in constant time, so that how long it takes says nothing about any of them.
        let mut found = None;
        for (known, identity) in &self.0 {
            if bool::from(known.as_slice().ct_eq(&digest)) {
                found = Some(identity);
            }
        }
        found.cloned()
    }
}
