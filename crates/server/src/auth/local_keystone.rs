//! The local Keystone: issues tokens for passwords of the users' file, with as much of Keystone's API as
//! stock clients need to log in. It is a login helper for services without a cloud, and doesn't know the
//! tokens of a cloud's Keystone.
//!
//! A token contains its user, project and validity, and is signed. So no record of it is kept, and every
//! service with the key can verify it. The signature also covers the file's entry of the user and the
//! project, which isn't in the token: a change of the entry invalidates the token.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use leases::project::UserId;
use ring::hmac;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use service::ServiceError;

use super::credentials::{Attempt, Credentials};
use super::identity::{Authenticator, Denial, Identity};
use super::key_file::FileKey;
use super::keyring::Keyring;
use super::passwords::Passwords;

/// Prefix of tokens. Its number changes with their format.
const PREFIX: &str = "allot1.";

/// Maximum length of a token in bytes.
const LONGEST: usize = 8192;

/// Issues and verifies tokens.
#[derive(Debug)]
pub(crate) struct LocalKeystone {
    passwords: Arc<Passwords>,
    keyring: Arc<Keyring>,
    /// Operator's keys. If there are any, they replace the store's keys.
    file_keys: Vec<FileKey>,
}

/// Content of a token.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Claims {
    /// Key of the signature.
    k: KeyName,
    /// Identifier of the token, in hexadecimal.
    i: String,
    /// User.
    u: String,
    /// Project.
    p: String,
    /// Issued at and valid until, in microseconds.
    f: i64,
    t: i64,
}

/// Reference to a signing key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum KeyName {
    /// Number of a key in the store.
    Stored(u32),
    /// Name of a key in the operator's file, derived from the key.
    OfFile(String),
}

/// An issued token.
#[derive(Clone, Debug)]
pub(crate) struct Issued {
    id: u128,
    pub identity: Identity,
    pub user_name: String,
    pub since: Timestamp,
    pub until: Timestamp,
}

/// Reason for a failed login.
#[derive(Debug)]
pub(crate) enum LoginError {
    /// Wrong name, password, project or domain, which the client can't tell apart, or too many failures.
    Denied(Denial),
    /// Unsupported authentication method.
    Method,
    /// The signing key can't be read from the store, or created there.
    NoKey(ServiceError),
}

/// Body of `POST /auth/tokens`. Other fields are ignored.
#[derive(Debug, Deserialize)]
pub(crate) struct LoginRequest {
    auth: LoginAuth,
}

#[derive(Debug, Deserialize)]
struct LoginAuth {
    identity: LoginIdentity,
    #[serde(default)]
    scope: Option<Scope>,
}

#[derive(Debug, Deserialize)]
struct LoginIdentity {
    methods: Vec<String>,
    #[serde(default)]
    password: Option<LoginPassword>,
    #[serde(default)]
    token: Option<LoginToken>,
}

#[derive(Debug, Deserialize)]
struct LoginToken {
    id: SecretString,
}

#[derive(Debug, Deserialize)]
struct LoginPassword {
    user: LoginUser,
}

#[derive(Debug, Deserialize)]
struct LoginUser {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    domain: Option<Domain>,
    password: SecretString,
}

/// `{"project": ...}`, or the string `unscoped` from clients that want no scope.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Scope {
    Named {
        #[serde(default)]
        project: Option<Project>,
        /// Scopes other than projects: the system, a domain, a trust. No user has a role there.
        #[serde(flatten)]
        others: BTreeMap<String, serde_json::Value>,
    },
    Word(#[expect(dead_code, reason = "any word is no project")] String),
}

#[derive(Debug, Deserialize)]
struct Project {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    domain: Option<Domain>,
}

#[derive(Debug, Deserialize)]
struct Domain {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    name: Option<String>,
}

impl LoginRequest {
    /// User name or identifier, as sent by the client.
    pub fn user(&self) -> Option<&str> {
        let user = &self.auth.identity.password.as_ref()?.user;
        user.id.as_deref().or(user.name.as_deref())
    }

    /// Extracts the login. Fails for domains other than the default one and scopes other than projects,
    /// because users have roles only in projects of the default domain.
    pub fn attempt(&self) -> Result<Attempt, LoginError> {
        let wrong = |reason| LoginError::Denied(Denial::Wrong(reason));
        let LoginIdentity { methods, password, token } = &self.auth.identity;
        let methods: Vec<&str> = methods.iter().map(String::as_str).collect();
        let user = match (&methods[..], password, token) {
            (["password"], Some(password), _) => &password.user,
            (["token"], _, Some(token)) => return Ok(Attempt::Token(token.id.clone())),
            _ => return Err(LoginError::Method),
        };
        let project = match &self.auth.scope {
            Some(Scope::Named { others, .. }) if !others.is_empty() => {
                return Err(wrong("scope that is no project"));
            }
            Some(Scope::Named { project: Some(project), .. }) => Some(project),
            _ => None,
        };
        let domains = [user.domain.as_ref(), project.and_then(|project| project.domain.as_ref())];
        if !domains.into_iter().flatten().all(Domain::is_default) {
            return Err(wrong("unknown domain"));
        }
        // A project's name is also its identifier.
        let project = project.and_then(|project| project.id.clone().or_else(|| project.name.clone()));
        let (name, id, password) = (user.name.clone(), user.id.clone(), user.password.clone());
        Ok(Attempt::Password { name, id, password, project })
    }
}

impl Domain {
    /// The default domain is the only one.
    fn is_default(&self) -> bool {
        let id = self.id.as_deref().is_none_or(|id| id.eq_ignore_ascii_case("default"));
        id && self.name.as_deref().is_none_or(|name| name.eq_ignore_ascii_case("default"))
    }
}

impl LocalKeystone {
    /// If `file_keys` is empty, the store's keys are used.
    pub fn new(passwords: Arc<Passwords>, keyring: Arc<Keyring>, file_keys: Vec<FileKey>) -> Self {
        Self { passwords, keyring, file_keys }
    }

    /// Issues a token for a password.
    pub async fn log_in(
        &self,
        request: &LoginRequest,
        peer: Option<IpAddr>,
    ) -> Result<(SecretString, Issued), LoginError> {
        let Attempt::Password { name, id, password, project } = request.attempt()? else {
            return Err(LoginError::Method);
        };
        let wrong = |reason| LoginError::Denied(Denial::Wrong(reason));
        let user = self.passwords.check(name.as_deref(), id.as_deref(), &password, peer).await;
        let user = user.map_err(LoginError::Denied)?;
        let identity = user.identity(project.as_deref()).ok_or_else(|| wrong("no role in the project"))?;
        let since = self.keyring.now();
        // Tokens have a precision of microseconds.
        let since = Timestamp::from_microsecond(since.as_microsecond()).unwrap_or(since);
        let until = self.keyring.end(since);
        let (id, user_name) = (self.keyring.new_id(), user.name.clone());
        let entry = user.entry(&identity.project);
        let issued = Issued { id, identity, user_name, since, until };
        let token = self.sign(&issued, &entry).await.map_err(LoginError::NoKey)?;
        Ok((token, issued))
    }

    async fn sign(&self, issued: &Issued, entry: &str) -> Result<SecretString, ServiceError> {
        let (name, key) = if let Some(key) = self.file_keys.first() {
            (KeyName::OfFile(key.name.clone()), key.key.clone())
        } else {
            let key = self.keyring.signing_key().await?;
            (KeyName::Stored(key.number), hmac::Key::new(hmac::HMAC_SHA256, &key.secret))
        };
        let claims = Claims {
            k: name,
            i: format!("{:032x}", issued.id),
            u: issued.identity.user.0.clone(),
            p: issued.identity.project.0.clone(),
            f: issued.since.as_microsecond(),
            t: issued.until.as_microsecond(),
        };
        // Can't fail: the claims are strings and integers.
        let claims = URL_SAFE_NO_PAD.encode(serde_json::to_vec(&claims).unwrap_or_default());
        let signature = hmac::sign(&key, signed(&claims, entry).as_bytes());
        let signature = URL_SAFE_NO_PAD.encode(signature);
        Ok(SecretString::from(format!("{PREFIX}{claims}.{signature}")))
    }

    /// Verifies a token. `None` if it is invalid, expired or revoked.
    pub async fn find(&self, token: &SecretString) -> Option<Issued> {
        let token = token.expose_secret();
        if token.len() > LONGEST {
            return None;
        }
        let (encoded, signature) = token.strip_prefix(PREFIX)?.split_once('.')?;
        let claims: Claims = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(encoded).ok()?).ok()?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        let key = match &claims.k {
            KeyName::OfFile(name) => self.file_keys.iter().find(|key| key.name == *name)?.key.clone(),
            KeyName::Stored(_) if !self.file_keys.is_empty() => return None,
            KeyName::Stored(number) => {
                hmac::Key::new(hmac::HMAC_SHA256, &self.keyring.key(*number).await?.secret)
            }
        };
        let user = self.passwords.users().find(None, Some(&claims.u))?;
        let identity = user.identity(Some(&claims.p))?;
        let entry = user.entry(&identity.project);
        hmac::verify(&key, signed(encoded, &entry).as_bytes(), &signature).ok()?;
        let time = |us| Timestamp::from_microsecond(us).ok();
        let (since, until) = (time(claims.f)?, time(claims.t)?);
        let id = u128::from_str_radix(&claims.i, 16).ok()?;
        if until <= self.keyring.now() || self.keyring.is_revoked(&identity.user, id, since).await {
            return None;
        }
        Some(Issued { id, identity, user_name: user.name.clone(), since, until })
    }

    pub async fn revoke(&self, issued: &Issued) -> Result<(), ServiceError> {
        let user: &UserId = &issued.identity.user;
        self.keyring.revoke(user, Some(issued.id), issued.until).await
    }
}

/// The signed text: the content of the token, and a hash of the user's entry in the users' file.
fn signed(claims: &str, entry: &str) -> String {
    format!("{PREFIX}{claims}.{entry}")
}

#[async_trait]
impl Authenticator for LocalKeystone {
    async fn authenticate(&self, credentials: &Credentials) -> Result<Identity, Denial> {
        let token = credentials.token.as_ref().ok_or(Denial::Absent)?;
        let issued = self.find(token).await;
        issued
            .map(|issued| issued.identity)
            .ok_or(Denial::Wrong("unknown, changed, revoked or expired token"))
    }
}
