//! Sessions of the console: what a browser sends instead of a token or a password, in a cookie that no script can read.
//!
//! The cookie says who has logged in, with what, and until when; it is encrypted and authenticated (AES-256-GCM) with a
//! key that follows from the one that signs tokens. So nothing is kept of sessions: none can be displaced by others'
//! logins, each is good at every service on the store and after a restart, and a token in it is of no use elsewhere.
//! What it was begun with is checked again with each request, and those that were ended are revoked as tokens are.

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

/// What cookies begin with. Another form of them has another number.
const PREFIX: &str = "allot1c.";

/// Browsers take cookies of 4096 bytes, name and attributes included.
const LONGEST: usize = 3800;

/// What the key of cookies is made for, so that it is another than the one that signs tokens.
const PURPOSE: &[u8] = b"allot session cookie";

/// Begins sessions and knows them again.
#[derive(Debug)]
pub(crate) struct Sessions {
    keyring: Arc<Keyring>,
    /// Keys of the operator's, which take the place of the store's.
    file_keys: Vec<FileKey>,
    lifetime: SignedDuration,
}

/// How somebody has logged in.
#[derive(Clone, Debug)]
pub(crate) enum Login {
    /// With this token.
    Token(SecretString),
    /// With a password: a hash of what the users' file said of the user and the project then.
    Password {
        /// The hash.
        entry: String,
    },
}

impl Login {
    /// What it was: `token` or `password`.
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
    /// Whose it is.
    pub user: UserId,
    /// For which project.
    pub project: ProjectId,
    /// How it was begun.
    pub login: Login,
    /// When it ends.
    pub until: Timestamp,
}

/// Why there is no session.
#[derive(Debug, Error)]
pub(crate) enum SessionError {
    /// No browser would keep the cookie.
    #[error("The token is too long for a session: {0} bytes, and a cookie may have {LONGEST}")]
    TooLong(usize),
    /// There is no key to encrypt with.
    #[error(transparent)]
    NoKey(#[from] ServiceError),
    /// Encryption failed.
    #[error("A session cannot be encrypted")]
    Sealing,
}

/// What is in a cookie. It has no `Debug`, since there may be a token in it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    /// The session's identifier.
    i: String,
    /// The user.
    u: String,
    /// The project.
    p: String,
    /// Since when and until when, microseconds.
    f: i64,
    t: i64,
    /// The token, or what the users' file said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    k: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    e: Option<String>,
}

impl Sessions {
    /// With the store's keys, or those of a file if there are any.
    pub fn new(keyring: Arc<Keyring>, file_keys: Vec<FileKey>, lifetime: SignedDuration) -> Self {
        Self { keyring, file_keys, lifetime }
    }

    /// How long a session lasts.
    pub fn lifetime(&self) -> SignedDuration {
        self.lifetime
    }

    /// The cookie's value for a new session, and when that ends.
    pub async fn begin(
        &self,
        identity: &Identity,
        login: &Login,
    ) -> Result<(SecretString, Timestamp), SessionError> {
        let since = self.keyring.now();
        // To the microsecond, as it is in the cookie.
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

    /// The session of a cookie, unless it is over, revoked, or none.
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

    /// The key of that name, if there is one: of a file as long as that has any, of the store otherwise.
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

    /// Ends the session of a user before its time, at all services on the store. Several sessions are ended by one
    /// revocation, together with everything else that the user logged in to before.
    pub async fn end(&self, sessions: &[Opened]) -> Result<(), ServiceError> {
        let Some(first) = sessions.first() else { return Ok(()) };
        let only = (sessions.len() == 1).then_some(first.id);
        let until = sessions.iter().map(|session| session.until).max().unwrap_or(first.until);
        self.keyring.revoke(&first.user, only, until).await
    }
}

/// The key of cookies that follows from one of tokens.
fn of_cookies(key: &hmac::Key) -> Option<LessSafeKey> {
    let secret = hmac::sign(key, PURPOSE);
    UnboundKey::new(&AES_256_GCM, secret.as_ref()).ok().map(LessSafeKey::new)
}
