//! A small Keystone: tokens for passwords, as far as the stock clients need it to log in (spec §2.1).
//!
//! Tokens are random, kept in memory by their hashes, and gone after a while or with the process; clients then
//! log in again by themselves.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use ambient::{Clock, Ids};
use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use super::hash::digest;
use super::passwords::Passwords;
use super::{Authenticator, Credentials, Identity};

/// How many tokens are kept; after that the one that ends first goes.
const MOST_TOKENS: usize = 100_000;

/// Issues tokens and knows them again.
#[derive(Debug)]
pub(crate) struct Keystone {
    passwords: Arc<Passwords>,
    ids: Arc<dyn Ids>,
    /// The time by which clients look at a token's end, whatever clock leases go by.
    clock: Arc<dyn Clock>,
    lifetime: SignedDuration,
    issued: Mutex<HashMap<[u8; 32], Issued>>,
}

/// What a token stands for.
#[derive(Clone, Debug)]
pub(crate) struct Issued {
    /// Who.
    pub identity: Identity,
    /// The user's name.
    pub user_name: String,
    /// Since when.
    pub since: Timestamp,
    /// Until when.
    pub until: Timestamp,
}

/// Why there is no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoginError {
    /// Wrong name, password, project or domain; which one is not said.
    Unauthorized,
    /// The method is none that is offered.
    Method,
}

/// The body of `POST /auth/tokens`. What is not named here is of no interest.
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

/// `{"project": ...}`; clients that want no scope send the word `unscoped`.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Scope {
    Named {
        #[serde(default)]
        project: Option<Project>,
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

impl Domain {
    /// There is one domain.
    fn is_default(&self) -> bool {
        let id = self.id.as_deref().is_none_or(|id| id.eq_ignore_ascii_case("default"));
        id && self.name.as_deref().is_none_or(|name| name.eq_ignore_ascii_case("default"))
    }
}

impl Keystone {
    /// For these users.
    pub fn new(
        passwords: Arc<Passwords>,
        ids: Arc<dyn Ids>,
        clock: Arc<dyn Clock>,
        lifetime_seconds: u32,
    ) -> Self {
        let lifetime = SignedDuration::from_secs(lifetime_seconds.into());
        Self { passwords, ids, clock, lifetime, issued: Mutex::new(HashMap::new()) }
    }

    /// A token for a password.
    pub async fn log_in(&self, request: &LoginRequest) -> Result<(SecretString, Issued), LoginError> {
        let identity = &request.auth.identity;
        let password = match &identity.password {
            Some(password) if identity.methods == ["password"] => &password.user,
            _ => return Err(LoginError::Method),
        };
        let user = self.passwords.check(password.name.as_deref(), password.id.as_deref(), &password.password);
        let user = user.await.ok_or(LoginError::Unauthorized)?;
        let project = match &request.auth.scope {
            Some(Scope::Named { project: Some(project) }) => Some(project),
            _ => None,
        };
        let domains = [password.domain.as_ref(), project.and_then(|project| project.domain.as_ref())];
        if !domains.into_iter().flatten().all(Domain::is_default) {
            return Err(LoginError::Unauthorized);
        }
        // A project's name is its identifier.
        let project = project.and_then(|project| project.id.as_deref().or(project.name.as_deref()));
        let identity = user.identity(project).ok_or(LoginError::Unauthorized)?;
        let now = self.clock.now();
        let until = now.checked_add(self.lifetime).unwrap_or(Timestamp::MAX);
        let issued = Issued { identity, user_name: user.name.clone(), since: now, until };
        Ok((self.keep(issued.clone()), issued))
    }

    fn keep(&self, new: Issued) -> SecretString {
        let token = SecretString::from(format!("{:032x}{:032x}", self.ids.uuid(), self.ids.uuid()));
        let mut issued = self.lock();
        issued.retain(|_, token| token.until > new.since);
        if issued.len() >= MOST_TOKENS {
            let first = issued.iter().min_by_key(|(hash, token)| (token.until, **hash));
            if let Some(first) = first.map(|(hash, _)| *hash) {
                issued.remove(&first);
            }
        }
        issued.insert(digest(token.expose_secret().as_bytes()), new);
        token
    }

    /// What a token stands for, if it is valid.
    pub fn find(&self, token: &SecretString) -> Option<Issued> {
        let now = self.clock.now();
        let issued = self.lock();
        issued.get(&digest(token.expose_secret().as_bytes())).filter(|token| token.until > now).cloned()
    }

    /// Makes a token invalid.
    pub fn revoke(&self, token: &SecretString) {
        self.lock().remove(&digest(token.expose_secret().as_bytes()));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<[u8; 32], Issued>> {
        self.issued.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Authenticator for Keystone {
    async fn authenticate(&self, credentials: &Credentials) -> Option<Identity> {
        self.find(credentials.token.as_ref()?).map(|issued| issued.identity)
    }
}
