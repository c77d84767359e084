//! Console sessions. A browser sends a session cookie, which no script can read, instead of a token or a
//! password.
//!
//! The cookie contains the user, the credentials of the login and the expiry. It is encrypted and
//! authenticated (AES-256-GCM) with a key derived from the signing key of tokens. So the server keeps no
//! record of sessions: logins of other users can't evict one, a session is valid at every service that shares
//! the store and after a restart, and a token in the cookie is useless elsewhere. Each request checks the
//! credentials of the login again. Ended sessions are revoked like tokens.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use leases::project::{ProjectId, UserId};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use service::ServiceError;
use thiserror::Error;

use super::hash::digest;
use super::identity::Identity;
use super::key_file::FileKey;
use super::keyring::Keyring;

/// Prefix of cookies. Its number changes with their format.
const PREFIX: &str = "allot1c.";

/// Maximum length of a cookie's value in bytes. Browsers accept cookies of 4096 bytes, including name and
/// attributes.
const LONGEST: usize = 3800;

/// Purpose in the derivation of the cookie key, so that it differs from the signing key of tokens.
const PURPOSE: &[u8] = b"allot session cookie";

/// Creates and opens sessions.
#[derive(Debug)]
pub(crate) struct Sessions {
    keyring: Arc<Keyring>,
    /// Operator's keys. If there are any, they replace the store's keys.
    file_keys: Vec<FileKey>,
    lifetime: SignedDuration,
}

/// Credentials that began a session.
#[derive(Clone, Debug)]
pub(crate) enum Login {
    Token(SecretString),
    /// With a password.
    Password {
        /// Hash of the file's entry of the user and the project at login.
        entry: String,
    },
}

impl Login {
    /// `token` or `password`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Token(_) => "token",
            Self::Password { .. } => "password",
        }
    }
}

/// A valid session.
#[derive(Clone, Debug)]
pub(crate) struct Opened {
    pub id: u128,
    pub user: UserId,
    pub project: ProjectId,
    pub login: Login,
    pub until: Timestamp,
}

/// Reason that a session can't begin.
#[derive(Debug, Error)]
pub(crate) enum SessionError {
    /// Browsers would drop the cookie.
    #[error("The token is too long for a session: {0} bytes, and a cookie may have {LONGEST}")]
    TooLong(usize),
    /// The key can't be read from the store, or created there.
    #[error(transparent)]
    NoKey(#[from] ServiceError),
    #[error("A session cannot be encrypted")]
    Sealing,
}

/// Content of a cookie. It doesn't implement `Debug`, because it can contain a token.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    /// Identifier of the session, in hexadecimal.
    i: String,
    /// User.
    u: String,
    /// Project.
    p: String,
    /// Begin and end, in microseconds.
    f: i64,
    t: i64,
    /// Token of the login (`k`), or hash of the entry in the users' file (`e`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    k: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    e: Option<String>,
}

impl Sessions {
    /// If `file_keys` is empty, the store's keys are used.
    pub fn new(keyring: Arc<Keyring>, file_keys: Vec<FileKey>, lifetime: SignedDuration) -> Self {
        Self { keyring, file_keys, lifetime }
    }

    /// Duration of a session.
    pub fn lifetime(&self) -> SignedDuration {
        self.lifetime
    }

    /// Begins a session. Returns the cookie's value and the end of the session.
    pub async fn begin(
        &self,
        identity: &Identity,
        login: &Login,
    ) -> Result<(SecretString, Timestamp), SessionError> {
        let since = self.keyring.now();
        // Cookies have a precision of microseconds.
        let since = Timestamp::from_microsecond(since.as_microsecond()).unwrap_or(since);
        let until = since.checked_add(self.lifetime).unwrap_or(Timestamp::MAX);
        let (token, entry) = match login {
            Login::Token(token) => (Some(token.expose_secret().to_owned()), None),
            Login::Password { entry } => (None, Some(entry.clone())),
        };
        let content = Content {
            i: format!("{:032x}", self.keyring.new_id()),
            u: identity.user.0.clone(),
            p: identity.project.0.clone(),
            f: since.as_microsecond(),
            t: until.as_microsecond(),
            k: token,
            e: entry,
        };
        let (name, key) = if let Some(key) = self.file_keys.first() {
            (format!("f{}", key.name), of_cookies(&key.key))
        } else {
            let key = self.keyring.signing_key().await?;
            (format!("s{}", key.number), of_cookies(&hmac::Key::new(hmac::HMAC_SHA256, &key.secret)))
        };
        let head = format!("{PREFIX}{name}.");
        let mut sealed = serde_json::to_vec(&content).map_err(|_| SessionError::Sealing)?;
        let random = [self.keyring.new_id(), self.keyring.new_id()].map(u128::to_be_bytes).concat();
        let mut nonce = [0; NONCE_LEN];
        nonce.copy_from_slice(&digest(&random)[..NONCE_LEN]);
        let key = key.ok_or(SessionError::Sealing)?;
        key.seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(head.as_bytes()),
            &mut sealed,
        )
        .map_err(|_| SessionError::Sealing)?;
        let value = format!("{head}{}", URL_SAFE_NO_PAD.encode([&nonce[..], &sealed].concat()));
        if value.len() > LONGEST {
            return Err(SessionError::TooLong(value.len()));
        }
        Ok((SecretString::from(value), until))
    }

    /// Decrypts a cookie. `None` if it is invalid, expired or revoked.
    pub async fn open(&self, cookie: &SecretString) -> Option<Opened> {
        let cookie = cookie.expose_secret();
        if cookie.len() > LONGEST {
            return None;
        }
        let (name, encoded) = cookie.strip_prefix(PREFIX)?.split_once('.')?;
        let mut bytes = URL_SAFE_NO_PAD.decode(encoded).ok()?;
        let key = self.key(name).await?;
        let (nonce, sealed) = bytes.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let head = &cookie[..cookie.len() - encoded.len()];
        let content = key.open_in_place(nonce, Aad::from(head.as_bytes()), sealed).ok()?;
        let content: Content = serde_json::from_slice(content).ok()?;
        let login = match (content.k, content.e) {
            (Some(token), None) => Login::Token(SecretString::from(token)),
            (None, Some(entry)) => Login::Password { entry },
            _ => return None,
        };
        let time = |us| Timestamp::from_microsecond(us).ok();
        let (since, until) = (time(content.f)?, time(content.t)?);
        let (id, user) = (u128::from_str_radix(&content.i, 16).ok()?, UserId(content.u));
        if until <= self.keyring.now() || self.keyring.is_revoked(&user, id, since).await {
            return None;
        }
        Some(Opened { id, user, project: ProjectId(content.p), login, until })
    }

    /// Finds a key by name: `f` and the name of a key in the file, or `s` and the number of a key in the
    /// store. The store's keys are rejected if the file has any.
    async fn key(&self, name: &str) -> Option<LessSafeKey> {
        if let Some(name) = name.strip_prefix('f') {
            return of_cookies(&self.file_keys.iter().find(|key| key.name == name)?.key);
        }
        if !self.file_keys.is_empty() {
            return None;
        }
        let key = self.keyring.key(name.strip_prefix('s')?.parse().ok()?).await?;
        of_cookies(&hmac::Key::new(hmac::HMAC_SHA256, &key.secret))
    }

    /// Revokes sessions of one user at all services that share the store. For several sessions, one
    /// revocation covers everything the user has logged in to so far.
    pub async fn end(&self, sessions: &[Opened]) -> Result<(), ServiceError> {
        let Some(first) = sessions.first() else { return Ok(()) };
        let only = (sessions.len() == 1).then_some(first.id);
        let until = sessions.iter().map(|session| session.until).max().unwrap_or(first.until);
        self.keyring.revoke(&first.user, only, until).await
    }
}

/// Derives the cookie key from a signing key of tokens.
fn of_cookies(key: &hmac::Key) -> Option<LessSafeKey> {
    let secret = hmac::sign(key, PURPOSE);
    UnboundKey::new(&AES_256_GCM, secret.as_ref()).ok().map(LessSafeKey::new)
}
