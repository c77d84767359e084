//! Authentication with tokens from a file.

use std::collections::BTreeMap;
use std::path::Path;

use async_trait::async_trait;
use leases::project::{ProjectId, UserId};
use secrecy::ExposeSecret;
use serde::Deserialize;
use subtle::ConstantTimeEq;

use super::credentials::Credentials;
use super::failures::shown;
use super::file::{self, AuthFileError, Form, Warning};
use super::hash::{digest, read_digest};
use super::identity::{Authenticator, Denial, Identity, Names, Roles};

const FORM: Form = Form { list: "tokens", required: &["sha256", "user", "project", "roles"], optional: &[] };

#[derive(Debug, Deserialize)]
struct File {
    tokens: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
struct Entry {
    /// SHA-256 of the token in hexadecimal.
    sha256: String,
    user: String,
    project: String,
    roles: Vec<String>,
}

/// Identities by the SHA-256 of their tokens.
#[derive(Debug)]
pub(crate) struct Tokens {
    by_hash: BTreeMap<[u8; 32], Identity>,
    warnings: Vec<Warning>,
}

impl Tokens {
    pub fn all(&self) -> &BTreeMap<[u8; 32], Identity> {
        &self.by_hash
    }

    /// Warnings about entries.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    pub fn read(path: &Path) -> Result<Self, AuthFileError> {
        let mut file: file::Read<File> = file::read(path, &FORM)?;
        let mut mistakes = std::mem::take(&mut file.mistakes);
        let warnings = file.value.tokens.iter().enumerate().filter_map(|(position, token)| {
            let whose = format!("token of {}", shown(&token.user));
            file.unknown_roles(path, position, &whose, &token.roles)
        });
        let warnings = warnings.collect();
        let lines: Vec<Option<usize>> =
            (0..file.value.tokens.len()).map(|position| file.line_of_field(position, "sha256")).collect();
        let read = |(entry, line): (Entry, Option<usize>)| {
            let digest = read_digest(&entry.sha256).ok_or_else(|| AuthFileError::Entry {
                path: path.to_owned(),
                line,
                entry: format!("token of {}", entry.user),
                message: "sha256 must be 64 hexadecimal digits".to_owned(),
            })?;
            let identity = Identity {
                user: UserId(entry.user),
                project: ProjectId(entry.project),
                roles: Roles::new(entry.roles),
                names: Names::default(),
            };
            Ok::<_, AuthFileError>((digest, identity))
        };
        let mut by_hash = BTreeMap::new();
        for entry in file.value.tokens.into_iter().zip(lines) {
            match read(entry) {
                Ok((digest, identity)) => _ = by_hash.insert(digest, identity),
                Err(mistake) => mistakes.push(mistake),
            }
        }
        AuthFileError::all(mistakes)?;
        Ok(Self { by_hash, warnings })
    }
}

#[async_trait]
impl Authenticator for Tokens {
    async fn authenticate(&self, credentials: &Credentials) -> Result<Identity, Denial> {
        let token = credentials.token.as_ref().ok_or(Denial::Absent)?;
        let digest = digest(token.expose_secret().as_bytes());
        // Compare with all tokens in constant time, so that the duration reveals nothing about them.
        let mut found = None;
        for (known, identity) in &self.by_hash {
            if bool::from(known.as_slice().ct_eq(&digest)) {
                found = Some(identity);
            }
        }
        found.cloned().ok_or(Denial::Wrong("unknown token"))
    }
}
