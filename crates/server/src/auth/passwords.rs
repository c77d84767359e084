//! Whether a password is a user's.
//!
//! A proper hash of a password takes tens of milliseconds and some 20 MB. So few are computed at once, away from
//! the threads that serve requests, and what was right is remembered for a while under a fast hash with a key
//! that only this process has.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ambient::{Ids, Stopwatch};
use secrecy::{ExposeSecret, SecretString};
use subtle::ConstantTimeEq;
use tokio::sync::Semaphore;

use super::file::AuthFileError;
use super::hash::{digest, hash_password, verify_password};
use super::users::{User, Users};

/// How many passwords are hashed at once.
const AT_ONCE: usize = 2;

/// How long a password that was right is remembered.
const REMEMBERED: Duration = Duration::from_mins(5);

/// Users, and which passwords of theirs were seen.
#[derive(Debug)]
pub(crate) struct Passwords {
    users: Users,
    /// What the password of a user that there is not is compared with, so that it takes as long.
    nobody: String,
    key: [u8; 32],
    seen: Mutex<HashMap<String, ([u8; 32], Stopwatch)>>,
    turns: Arc<Semaphore>,
}

impl Passwords {
    /// Of these users.
    pub fn new(users: Users, ids: &dyn Ids) -> Result<Self, AuthFileError> {
        let random = || SecretString::from(format!("{:x}", ids.uuid()));
        Ok(Self {
            users,
            nobody: hash_password(&random(), ids)?,
            key: digest(format!("{}{}", random().expose_secret(), random().expose_secret()).as_bytes()),
            seen: Mutex::new(HashMap::new()),
            turns: Arc::new(Semaphore::new(AT_ONCE)),
        })
    }

    /// The user of that name or identifier, if the password is right.
    pub async fn check(
        &self,
        name: Option<&str>,
        id: Option<&str>,
        password: &SecretString,
    ) -> Option<&User> {
        let user = self.users.find(name, id);
        let fast = self.fast_hash(user.map_or("", User::id), password);
        if let Some(user) = user.filter(|user| self.was_seen(user, &fast)) {
            return Some(user);
        }
        let hash = user.map_or(&self.nobody, |user| &user.password_hash).clone();
        let password = password.clone();
        let turn = Arc::clone(&self.turns).acquire_owned().await.ok()?;
        let right = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            verify_password(&password, &hash)
        });
        if !right.await.unwrap_or(false) {
            return None;
        }
        let user = user?;
        self.lock().insert(user.id().to_owned(), (fast, Stopwatch::start()));
        Some(user)
    }

    fn was_seen(&self, user: &User, fast: &[u8; 32]) -> bool {
        self.lock().get(user.id()).is_some_and(|(seen, since)| {
            bool::from(seen.as_slice().ct_eq(fast)) && since.elapsed() < REMEMBERED
        })
    }

    fn fast_hash(&self, user: &str, password: &SecretString) -> [u8; 32] {
        let inner =
            digest(&[&self.key, user.as_bytes(), b"\0", password.expose_secret().as_bytes()].concat());
        digest(&[self.key, inner].concat())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, ([u8; 32], Stopwatch)>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
