//! Password checks.
//!
//! A proper password hash takes tens of milliseconds and about 20 MB. So only a few are computed
//! concurrently, on blocking threads and in reused memory. A correct password is remembered for a while under
//! a fast hash with a key that only this process has.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ambient::{Ids, Stopwatch};
use secrecy::{ExposeSecret, SecretString};
use subtle::ConstantTimeEq;
use tokio::sync::Semaphore;

use super::credentials::Credentials;
use super::failures::Failures;
use super::file::AuthFileError;
use super::hash::{Memory, digest, hash_password, verify_password};
use super::identity::Denial;
use super::users::{User, Users};

/// Maximum number of concurrent hash computations.
const AT_ONCE: usize = 2;

/// How long a correct password is remembered.
const REMEMBERED: Duration = Duration::from_mins(5);

/// Computes password hashes. Independent of the users, so that a reload of their file keeps it.
#[derive(Debug)]
pub(crate) struct Hashing {
    /// Hash for passwords of unknown users, so that checking them takes as long.
    nobody: String,
    key: [u8; 32],
    turns: Arc<Semaphore>,
    /// Memory that isn't in use. At most one per concurrent computation is allocated.
    memory: Mutex<Vec<Memory>>,
    failures: Arc<Failures>,
}

impl Hashing {
    pub fn new(ids: &dyn Ids, failures: Arc<Failures>) -> Result<Self, AuthFileError> {
        let random = || SecretString::from(format!("{:x}", ids.uuid()));
        Ok(Self {
            nobody: hash_password(&random(), ids)?,
            key: digest(format!("{}{}", random().expose_secret(), random().expose_secret()).as_bytes()),
            turns: Arc::new(Semaphore::new(AT_ONCE)),
            memory: Mutex::default(),
            failures,
        })
    }

    /// Checks a password against a hash, once fewer than [`AT_ONCE`] others are being checked.
    async fn verify(self: &Arc<Self>, password: &SecretString, hash: &str) -> bool {
        let Ok(turn) = Arc::clone(&self.turns).acquire_owned().await else { return false };
        let (this, password, hash) = (Arc::clone(self), password.clone(), hash.to_owned());
        let right = tokio::task::spawn_blocking(move || {
            let mut memory = this.memory().pop().unwrap_or_default();
            let right = verify_password(&password, &hash, &mut memory);
            this.memory().push(memory);
            drop(turn);
            right
        });
        right.await.unwrap_or(false)
    }

    fn memory(&self) -> std::sync::MutexGuard<'_, Vec<Memory>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Users, with the correct passwords seen recently.
#[derive(Debug)]
pub(crate) struct Passwords {
    users: Users,
    hashing: Arc<Hashing>,
    seen: Mutex<HashMap<String, ([u8; 32], Stopwatch)>>,
}

impl Passwords {
    pub fn new(users: Users, hashing: Arc<Hashing>) -> Self {
        Self { users, hashing, seen: Mutex::default() }
    }

    pub fn users(&self) -> &Users {
        &self.users
    }

    /// Finds a user by identifier or name, and checks the password.
    pub async fn check(
        &self,
        name: Option<&str>,
        id: Option<&str>,
        password: &SecretString,
        peer: Option<IpAddr>,
    ) -> Result<&User, Denial> {
        let user = self.users.find(name, id);
        let fast = self.fast_hash(user.map_or("", User::id), password);
        if let Some(user) = user.filter(|user| self.was_seen(user, &fast)) {
            return Ok(user);
        }
        let failures = &self.hashing.failures;
        failures.begin(peer, user.map(User::id)).map_err(Denial::TooMany)?;
        let hash = user.map_or(&self.hashing.nobody, |user| &user.password_hash);
        let right = self.hashing.verify(password, hash).await;
        let user = user.ok_or(Denial::Wrong("unknown user"))?;
        if !right {
            return Err(Denial::Wrong("wrong password"));
        }
        failures.succeeded(peer, Some(user.id()));
        self.lock().insert(user.id().to_owned(), (fast, Stopwatch::start()));
        Ok(user)
    }

    /// Like [`Self::check`], for HTTP basic authentication.
    pub async fn check_request(&self, credentials: &Credentials) -> Result<&User, Denial> {
        let (name, password) = credentials.password.as_ref().ok_or(Denial::Absent)?;
        self.check(Some(name), None, password, credentials.peer).await
    }

    fn was_seen(&self, user: &User, fast: &[u8; 32]) -> bool {
        self.lock().get(user.id()).is_some_and(|(seen, since)| {
            bool::from(seen.as_slice().ct_eq(fast)) && since.elapsed() < REMEMBERED
        })
    }

    fn fast_hash(&self, user: &str, password: &SecretString) -> [u8; 32] {
        let key = &self.hashing.key;
        let inner = digest(&[key, user.as_bytes(), b"\0", password.expose_secret().as_bytes()].concat());
        digest(&[*key, inner].concat())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, ([u8; 32], Stopwatch)>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
