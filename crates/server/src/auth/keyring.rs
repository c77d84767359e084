//! Keys that tokens are signed with, and which tokens were revoked, as the store has them: so that a token is good
//! at every service on the store, and after a restart.
//!
//! The first key is made when there is none, a new one every [`KEY_LIFETIME`]; old ones are accepted as long as a token
//! that they signed can be valid. What the store holds is read again at most every [`MAX_AGE`], when a token is
//! checked: a revocation is heeded by all services after that time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ambient::{Clock, Ids, Stopwatch};
use jiff::{SignedDuration, Timestamp};
use leases::project::UserId;
use service::{Service, ServiceError};
use store::{Revocation, TokenKey, TokenState};

use super::hash::digest;

/// How old what is known of the store may be.
const MAX_AGE: Duration = Duration::from_secs(2);

/// How old it may be where a token names a key that is not known. Whoever makes such tokens up causes no more than so
/// many questions.
const MAX_AGE_OF_KEYS: Duration = Duration::from_millis(200);

/// How long a token's check waits for the store. Then what is known counts.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// How long a key signs.
const KEY_LIFETIME: SignedDuration = SignedDuration::from_hours(30 * 24);

/// So many revoked tokens of a user are kept one by one; then all that the user has so far are revoked.
const MOST_OF_USER: usize = 32;

/// So many revocations are kept one by one in all; then each user's are kept as one.
const MOST_REVOCATIONS: usize = 10_000;

/// Keys and revocations.
#[derive(Debug)]
pub(crate) struct Keyring {
    service: Arc<Service>,
    ids: Arc<dyn Ids>,
    /// The time by which clients look at a token's end, whatever clock leases go by.
    clock: Arc<dyn Clock>,
    /// How long tokens are valid.
    lifetime: SignedDuration,
    /// How long anything is valid that a key vouches for: tokens and sessions.
    longest: SignedDuration,
    known: Mutex<Known>,
    /// Held by whoever reads the store.
    reading: tokio::sync::Mutex<()>,
}

#[derive(Clone, Debug, Default)]
struct Known {
    state: Arc<TokenState>,
    /// Since when; none before it was read.
    since: Option<Stopwatch>,
}

impl Known {
    fn is_newer_than(&self, age: Duration) -> bool {
        self.since.is_some_and(|since| since.elapsed() < age)
    }
}

impl Keyring {
    /// That of a service's store, for tokens of that lifetime, and for what is valid as long as `longest`.
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

    /// What time it is for tokens.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// When a token that is issued then ends.
    pub fn end(&self, since: Timestamp) -> Timestamp {
        since.checked_add(self.lifetime).unwrap_or(Timestamp::MAX)
    }

    /// A new token's identifier.
    pub fn new_id(&self) -> u128 {
        self.ids.uuid()
    }

    /// The key that signs: the newest, made now if there is none or it is too old.
    pub async fn signing_key(&self) -> Result<TokenKey, ServiceError> {
        let state = self.current().await;
        let now = self.now();
        let newest = state.keys.last();
        if let Some(key) = newest.filter(|key| now.duration_since(key.at) < KEY_LIFETIME) {
            return Ok(key.clone());
        }
        // What is known may be old, or nothing.
        let state = self.read().await?;
        let newest = state.keys.last();
        if let Some(key) = newest.filter(|key| now.duration_since(key.at) < KEY_LIFETIME) {
            return Ok(key.clone());
        }
        let random = [self.ids.uuid(), self.ids.uuid(), self.ids.uuid()].map(u128::to_be_bytes).concat();
        let number = newest.map_or(1, |key| key.number.saturating_add(1));
        let key = TokenKey { number, secret: digest(&random).to_vec(), at: now };
        self.service.tokens().add_key(&key, self.oldest_needed(&state.keys, now)).await?;
        // Another service may have been faster.
        let state = self.read().await?;
        Ok(state.keys.last().cloned().unwrap_or(key))
    }

    /// The number of the first key that a valid token can be signed with.
    fn oldest_needed(&self, keys: &[TokenKey], now: Timestamp) -> u32 {
        let replaced_long_ago = |next: &TokenKey| now.duration_since(next.at) > self.longest;
        let needed = keys.iter().zip(keys.iter().skip(1)).find(|(_, next)| !replaced_long_ago(next));
        needed.map(|(key, _)| key).or(keys.last()).map_or(1, |key| key.number)
    }

    /// The key of that number, if there is one.
    pub async fn key(&self, number: u32) -> Option<TokenKey> {
        let find = |state: &TokenState| state.keys.iter().find(|key| key.number == number).cloned();
        let known = self.known();
        let found = find(&known.state);
        if found.is_some() {
            return found;
        }
        if known.is_newer_than(MAX_AGE_OF_KEYS) {
            // Another service may have made it just now.
            tokio::time::sleep(MAX_AGE_OF_KEYS).await;
        }
        find(&*self.not_older_than(MAX_AGE_OF_KEYS).await)
    }

    /// Whether a token was revoked.
    pub async fn is_revoked(&self, user: &UserId, token: u128, since: Timestamp) -> bool {
        let state = self.current().await;
        let of_user = of_user(&state, user);
        of_user.iter().any(|revocation| match revocation.token {
            None => since <= revocation.at,
            Some(id) => id == token,
        })
    }

    /// Revokes a token until it ends anyway; `None` revokes all tokens and sessions of the user.
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

    /// What is known, not too old unless the store cannot be reached.
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
                    // Not every request is to wait; what was known counts.
                    let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
                    known.since = Some(Stopwatch::start());
                    Arc::clone(&known.state)
                }
            }
        };
        read.await
    }

    /// Reads the store.
    async fn read(&self) -> Result<Arc<TokenState>, ServiceError> {
        let since = Stopwatch::start();
        let state = self.service.tokens().all().await?;
        Ok(self.learn(state, since))
    }

    /// Remembers a state that was requested from the store at that time.
    fn learn(&self, state: TokenState, since: Stopwatch) -> Arc<TokenState> {
        let state = Arc::new(state);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // What was asked for earlier may come later.
        if known.since.is_none_or(|other| other.elapsed() >= since.elapsed()) {
            *known = Known { state: Arc::clone(&state), since: Some(since) };
        }
        state
    }

    fn known(&self) -> Known {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The revocations of a user.
fn of_user<'a>(state: &'a TokenState, user: &UserId) -> &'a [Revocation] {
    let first = state.revoked.partition_point(|revocation| revocation.user < *user);
    let of_user = &state.revoked[first..];
    &of_user[..of_user.partition_point(|revocation| revocation.user == *user)]
}
