//! Signing keys and revocations of tokens. They are kept in the store, so a token is valid at every service
//! that shares the store, and after a restart.
//!
//! The first key is created on demand and replaced every [`KEY_LIFETIME`]. An old key is accepted as long as
//! a token with its signature can be valid. State from the store is at most [`MAX_AGE`] old when a token is
//! checked, so a revocation reaches all services within that time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ambient::{Clock, Ids, Stopwatch};
use jiff::{SignedDuration, Timestamp};
use leases::project::UserId;
use service::{Service, ServiceError};
use store::{Revocation, TokenKey, TokenState};

use super::hash::digest;

/// Maximum age of cached state.
const MAX_AGE: Duration = Duration::from_secs(2);

/// Maximum age of cached state when a token names an unknown key. Also limits how often forged tokens cause
/// reads of the store.
const MAX_AGE_OF_KEYS: Duration = Duration::from_millis(200);

/// Maximum time that the check of a token waits for the store. After that, cached state is used.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Duration for which a key signs new tokens.
const KEY_LIFETIME: SignedDuration = SignedDuration::from_hours(30 * 24);

/// Maximum number of individual revocations of a user. One more revokes all tokens issued to the user so far.
const MOST_OF_USER: usize = 32;

/// Maximum number of individual revocations in total. Beyond it, a revocation covers all tokens of its user.
const MOST_REVOCATIONS: usize = 10_000;

/// Signing keys and revocations, cached from the store.
#[derive(Debug)]
pub(crate) struct Keyring {
    service: Arc<Service>,
    ids: Arc<dyn Ids>,
    /// The clock by which clients judge a token's expiry, which can differ from the clock of leases.
    clock: Arc<dyn Clock>,
    /// Lifetime of tokens.
    lifetime: SignedDuration,
    /// Longest lifetime of anything signed with a key: tokens and sessions.
    longest: SignedDuration,
    known: Mutex<Known>,
    /// Held while reading the store.
    reading: tokio::sync::Mutex<()>,
}

#[derive(Clone, Debug, Default)]
struct Known {
    state: Arc<TokenState>,
    /// Age of the state. `None` before the first read.
    since: Option<Stopwatch>,
}

impl Known {
    fn is_newer_than(&self, age: Duration) -> bool {
        self.since.is_some_and(|since| since.elapsed() < age)
    }
}

impl Keyring {
    /// `lifetime` is that of tokens, and `longest` the maximum for tokens and sessions.
    pub fn new(
        service: Arc<Service>,
        ids: Arc<dyn Ids>,
        clock: Arc<dyn Clock>,
        lifetime: SignedDuration,
        longest: SignedDuration,
    ) -> Self {
        let longest = longest.max(lifetime);
        Self {
            service,
            ids,
            clock,
            lifetime,
            longest,
            known: Mutex::default(),
            reading: tokio::sync::Mutex::default(),
        }
    }

    /// Current time by the clock of tokens.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Expiry of a token issued at `since`.
    pub fn end(&self, since: Timestamp) -> Timestamp {
        since.checked_add(self.lifetime).unwrap_or(Timestamp::MAX)
    }

    pub fn new_id(&self) -> u128 {
        self.ids.uuid()
    }

    /// The newest key. A new one is created if there is none or it is older than [`KEY_LIFETIME`].
    pub async fn signing_key(&self) -> Result<TokenKey, ServiceError> {
        let state = self.current().await;
        let now = self.now();
        let newest = state.keys.last();
        if let Some(key) = newest.filter(|key| now.duration_since(key.at) < KEY_LIFETIME) {
            return Ok(key.clone());
        }
        // The cached state can be outdated or empty.
        let state = self.read().await?;
        let newest = state.keys.last();
        if let Some(key) = newest.filter(|key| now.duration_since(key.at) < KEY_LIFETIME) {
            return Ok(key.clone());
        }
        let random = [self.ids.uuid(), self.ids.uuid(), self.ids.uuid()].map(u128::to_be_bytes).concat();
        let number = newest.map_or(1, |key| key.number.saturating_add(1));
        let key = TokenKey { number, secret: digest(&random).to_vec(), at: now };
        self.service.tokens().add_key(&key, self.oldest_needed(&state.keys, now)).await?;
        // Another service may have added a key first.
        let state = self.read().await?;
        Ok(state.keys.last().cloned().unwrap_or(key))
    }

    /// Number of the oldest key that can have signed a token that is still valid.
    fn oldest_needed(&self, keys: &[TokenKey], now: Timestamp) -> u32 {
        let replaced_long_ago = |next: &TokenKey| now.duration_since(next.at) > self.longest;
        let needed = keys.iter().zip(keys.iter().skip(1)).find(|(_, next)| !replaced_long_ago(next));
        needed.map(|(key, _)| key).or(keys.last()).map_or(1, |key| key.number)
    }

    /// The key with this number, if it exists.
    pub async fn key(&self, number: u32) -> Option<TokenKey> {
        let find = |state: &TokenState| state.keys.iter().find(|key| key.number == number).cloned();
        let known = self.known();
        let found = find(&known.state);
        if found.is_some() {
            return found;
        }
        if known.is_newer_than(MAX_AGE_OF_KEYS) {
            // Another service may have created the key just now.
            tokio::time::sleep(MAX_AGE_OF_KEYS).await;
        }
        find(&*self.not_older_than(MAX_AGE_OF_KEYS).await)
    }

    /// Whether a token issued at `since` was revoked.
    pub async fn is_revoked(&self, user: &UserId, token: u128, since: Timestamp) -> bool {
        let state = self.current().await;
        let of_user = of_user(&state, user);
        of_user.iter().any(|revocation| match revocation.token {
            None => since <= revocation.at,
            Some(id) => id == token,
        })
    }

    /// Revokes a token until it expires. `None` revokes all tokens and sessions of the user.
    pub async fn revoke(
        &self,
        user: &UserId,
        token: Option<u128>,
        until: Timestamp,
    ) -> Result<(), ServiceError> {
        let state = self.current().await;
        let of_user = of_user(&state, user);
        let at = self.now();
        let many = of_user.len() >= MOST_OF_USER || state.revoked.len() >= MOST_REVOCATIONS;
        let revocation = if many || token.is_none() {
            let last = of_user.iter().map(|revocation| revocation.until).max().unwrap_or(until);
            let end = at.checked_add(self.longest).unwrap_or(Timestamp::MAX);
            Revocation { user: user.clone(), token: None, at, until: last.max(until).max(end) }
        } else {
            Revocation { user: user.clone(), token, at, until }
        };
        self.service.tokens().revoke(&revocation).await?;
        let since = Stopwatch::start();
        let state = self.service.tokens().all_for_client().await?;
        self.learn(state, since);
        Ok(())
    }

    /// Cached state, at most [`MAX_AGE`] old unless the store is unavailable.
    async fn current(&self) -> Arc<TokenState> {
        self.not_older_than(MAX_AGE).await
    }

    async fn not_older_than(&self, age: Duration) -> Arc<TokenState> {
        let known = self.known();
        if known.is_newer_than(age) {
            return known.state;
        }
        let read = async {
            let _reading = self.reading.lock().await;
            let known = self.known();
            if known.is_newer_than(age) {
                return known.state;
            }
            match tokio::time::timeout(LONGEST_WAIT, self.read()).await {
                Ok(Ok(state)) => state,
                failed => {
                    let error = failed.map_or_else(
                        |_| "no answer in time".to_owned(),
                        |read| read.err().map(|error| error.to_string()).unwrap_or_default(),
                    );
                    tracing::warn!(error, "revoked tokens unknown");
                    // Treat the cached state as new, so that other requests don't wait for the store as well.
                    let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
                    known.since = Some(Stopwatch::start());
                    Arc::clone(&known.state)
                }
            }
        };
        read.await
    }

    /// Reads the store and updates the cache.
    async fn read(&self) -> Result<Arc<TokenState>, ServiceError> {
        let since = Stopwatch::start();
        let state = self.service.tokens().all().await?;
        Ok(self.learn(state, since))
    }

    /// Caches a state. `since` was started when the read began.
    fn learn(&self, state: TokenState, since: Stopwatch) -> Arc<TokenState> {
        let state = Arc::new(state);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // Reads can finish out of order.
        if known.since.is_none_or(|other| other.elapsed() >= since.elapsed()) {
            *known = Known { state: Arc::clone(&state), since: Some(since) };
        }
        state
    }

    fn known(&self) -> Known {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Revocations of one user. The list is sorted by user.
fn of_user<'a>(state: &'a TokenState, user: &UserId) -> &'a [Revocation] {
    let first = state.revoked.partition_point(|revocation| revocation.user < *user);
    let of_user = &state.revoked[first..];
    &of_user[..of_user.partition_point(|revocation| revocation.user == *user)]
}
