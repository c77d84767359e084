//! How often a client may ask: a token bucket for each.
//!
//! A client is a user, once it is known who asks; before that, an address. What is counted of an address is only
//! what failed, and logins, so that the users behind a proxy do not share a limit, and whoever guesses
//! passwords has one.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ambient::Stopwatch;
use leases::project::{ProjectId, UserId};

use crate::config::RateLimit;

/// So many clients are remembered. One that is forgotten begins again, so those with the fullest buckets go first.
const MOST_CLIENTS: usize = 50_000;

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Client {
    /// Somebody whose credentials are valid, for a project.
    User(UserId, ProjectId),
    /// Whoever is at that address.
    Address(IpAddr),
}

/// All buckets.
#[derive(Debug)]
pub(crate) struct Limiter<K = Client> {
    limit: Limit,
    since: Stopwatch,
    buckets: Mutex<HashMap<K, Bucket>>,
}

/// How often, in tokens.
#[derive(Clone, Copy, Debug)]
struct Limit {
    per_second: f64,
    burst: f64,
}

/// Tokens that a client has, as of some instant.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: f64,
    at: Duration,
}

impl Bucket {
    fn full(limit: Limit, at: Duration) -> Self {
        Self { tokens: limit.burst, at }
    }

    /// As it is at that instant: tokens have come since, up to the burst.
    fn refilled(self, limit: Limit, now: Duration) -> Self {
        let come = now.saturating_sub(self.at).as_secs_f64() * limit.per_second;
        Self { tokens: (self.tokens + come).min(limit.burst), at: now }
    }

    /// How long until there is a token.
    fn wait(self, limit: Limit) -> Option<Duration> {
        let missing = 1.0 - self.tokens;
        (missing > 0.0).then(|| Duration::from_secs_f64(missing / limit.per_second))
    }
}

impl Limiter {
    /// Of that limit; none if it is none.
    pub fn new(limit: RateLimit) -> Option<Self> {
        let (per_second, burst) = (f64::from(limit.per_second), f64::from(limit.burst.max(1)));
        (limit.per_second > 0).then(|| Self::of(per_second, burst))
    }
}

impl<K: Clone + Eq + Hash> Limiter<K> {
    /// Of so many tokens per second, more than 0, and so many at once, at least 1.
    pub fn of(per_second: f64, burst: f64) -> Self {
        let limit = Limit { per_second, burst };
        Self { limit, since: Stopwatch::start(), buckets: Mutex::default() }
    }

    /// Takes a token, or says how long until there is one.
    pub fn take(&self, client: K) -> Result<(), Duration> {
        self.look(client, self.since.elapsed(), true)
    }

    /// The same; says whether the bucket was full before.
    pub fn take_with(&self, client: K) -> Result<bool, Duration> {
        let now = self.since.elapsed();
        let buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = buckets.get(&client).map(|bucket| bucket.refilled(self.limit, now));
        drop(buckets);
        self.look(client, now, true)?;
        Ok(bucket.is_none_or(|bucket| bucket.tokens >= self.limit.burst))
    }

    /// Gives back a token that was taken.
    pub fn give_back(&self, client: &K) {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bucket) = buckets.get_mut(client) {
            bucket.tokens = (bucket.tokens + 1.0).min(self.limit.burst);
            if bucket.tokens >= self.limit.burst {
                buckets.remove(client);
            }
        }
    }

    /// Says how long until there is a token, if there is none.
    pub fn check(&self, client: K) -> Result<(), Duration> {
        self.look(client, self.since.elapsed(), false)
    }

    fn look(&self, client: K, now: Duration, take: bool) -> Result<(), Duration> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = buckets.get(&client).copied().unwrap_or_else(|| Bucket::full(self.limit, now));
        let mut bucket = bucket.refilled(self.limit, now);
        if let Some(wait) = bucket.wait(self.limit) {
            return Err(wait);
        }
        if take {
            bucket.tokens -= 1.0;
            if buckets.len() >= MOST_CLIENTS && !buckets.contains_key(&client) {
                forget(&mut buckets, self.limit, now);
            }
            buckets.insert(client, bucket);
        }
        Ok(())
    }
}

/// Forgets whose buckets are full again; if that is nobody, half of all, those with the most tokens.
fn forget<K: Eq + Hash>(buckets: &mut HashMap<K, Bucket>, limit: Limit, now: Duration) {
    let full = limit.burst;
    buckets.retain(|_, bucket| bucket.refilled(limit, now).tokens < full);
    if buckets.len() < MOST_CLIENTS {
        return;
    }
    let mut tokens: Vec<f64> = buckets.values().map(|bucket| bucket.refilled(limit, now).tokens).collect();
    tokens.sort_by(f64::total_cmp);
    let middle = tokens[tokens.len() / 2];
    buckets.retain(|_, bucket| bucket.refilled(limit, now).tokens < middle);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limiter(per_second: u32, burst: u32) -> Limiter {
        Limiter::new(RateLimit { per_second, burst }).expect("a limit")
    }

    fn address(last: u8) -> Client {
        Client::Address([192, 0, 2, last].into())
    }

    fn at(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn a_client_may_ask_a_burst_at_once_and_then_at_the_rate() {
        let limiter = limiter(2, 3);
        let ask = |now| limiter.look(address(1), at(now), true);
        assert_eq!([ask(0), ask(0), ask(0)], [Ok(()); 3]);
        assert_eq!(ask(0), Err(at(500)));
        assert_eq!(ask(400), Err(at(100)));
        assert_eq!(ask(500), Ok(()));
        assert_eq!(ask(500), Err(at(500)));
        // However long it was silent, it has no more than a burst.
        assert_eq!([ask(60_000), ask(60_000), ask(60_000)], [Ok(()); 3]);
        assert!(ask(60_000).is_err());
    }

    #[test]
    fn clients_do_not_share_a_bucket() {
        let limiter = limiter(1, 1);
        assert_eq!(limiter.look(address(1), at(0), true), Ok(()));
        assert_eq!(limiter.look(address(2), at(0), true), Ok(()));
        assert!(limiter.look(address(1), at(0), true).is_err());
        let user = |project: &str| Client::User(UserId("u".to_owned()), ProjectId(project.to_owned()));
        assert_eq!(limiter.look(user("p"), at(0), true), Ok(()));
        assert_eq!(limiter.look(user("q"), at(0), true), Ok(()));
    }

    #[test]
    fn looking_takes_nothing() {
        let limiter = limiter(1, 1);
        for _ in 0..3 {
            assert_eq!(limiter.look(address(1), at(0), false), Ok(()));
        }
        assert_eq!(limiter.look(address(1), at(0), true), Ok(()));
        assert_eq!(limiter.look(address(1), at(0), false), Err(at(1000)));
    }

    #[test]
    fn no_rate_is_no_limit() {
        assert!(Limiter::new(RateLimit { per_second: 0, burst: 10 }).is_none());
    }

    #[test]
    fn the_clients_that_are_remembered_are_limited_in_number_and_the_busiest_stay() {
        let limiter = limiter(1, 10);
        let user = |number: usize| Client::User(UserId(number.to_string()), ProjectId(String::new()));
        for _ in 0..10 {
            assert_eq!(limiter.look(user(0), at(0), true), Ok(()));
        }
        for number in 1..=MOST_CLIENTS + 10 {
            assert_eq!(limiter.look(user(number), at(0), true), Ok(()));
        }
        assert!(limiter.buckets.lock().expect("no panic").len() <= MOST_CLIENTS);
        assert!(limiter.look(user(0), at(0), true).is_err(), "it still has to wait");
    }
}
