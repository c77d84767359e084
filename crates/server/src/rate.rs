//! Rate limits, as a token bucket for each client.
//!
//! After authentication, a client is a user, whatever the project; before, it is an address. For an address, only
//! failures and logins count. So users behind a proxy don't share a limit, but guessing passwords is limited.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ambient::Stopwatch;
use leases::project::{ProjectId, UserId};

use crate::auth::Identity;
use crate::config::RateLimit;

/// Maximum number of remembered clients. A forgotten client starts with a full bucket, so those with the
/// fullest buckets are forgotten first.
const MOST_CLIENTS: usize = 50_000;

/// Factor for the default limits of users with the role `admin` or `service`: they send requests on behalf of others.
const PRIVILEGE: u32 = 10;

/// Limits by kind of client; `None` is unlimited.
#[derive(Debug)]
pub(crate) struct Limiters {
    users: Option<Limiter<UserId>>,
    /// For users with the role `admin` or `service`.
    privileged: Option<Limiter<UserId>>,
    addresses: Option<Limiter<IpAddr>>,
}

impl Limiters {
    /// A configured rate applies to all clients. Without one, users have default limits and addresses are unlimited. If
    /// `open` is set, authentication is off and users have no default limits either.
    pub fn new(limit: RateLimit, open: bool) -> Self {
        let set = || limit.per_second.map(|per_second| (per_second, limit.burst));
        let usual = (!open).then_some((RateLimit::USUAL, limit.burst));
        let more = usual.map(|(rate, burst)| (rate * PRIVILEGE, burst.saturating_mul(PRIVILEGE)));
        Self {
            users: set().or(usual).and_then(Limiter::new),
            privileged: set().or(more).and_then(Limiter::new),
            addresses: set().and_then(Limiter::new),
        }
    }

    /// Takes a token of the user. Without one, returns the time until the next.
    pub fn take(&self, identity: &Identity) -> Result<(), Duration> {
        let limiter = if is_privileged(identity) { &self.privileged } else { &self.users };
        limiter.as_ref().map_or(Ok(()), |limiter| limiter.take(identity.user.clone()))
    }

    /// Takes a token of the address. Without one, returns the time until the next.
    pub fn take_of(&self, address: IpAddr) -> Result<(), Duration> {
        self.addresses.as_ref().map_or(Ok(()), |limiter| limiter.take(address))
    }

    /// Like [`Self::take_of`], but leaves the token.
    pub fn check(&self, address: IpAddr) -> Result<(), Duration> {
        self.addresses.as_ref().map_or(Ok(()), |limiter| limiter.check(address))
    }
}

/// Whether the user acts for many others.
pub(crate) fn is_privileged(identity: &Identity) -> bool {
    ["admin", "service"].iter().any(|role| identity.roles.has(role))
}

/// A client with limits of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Client {
    /// An authenticated user in a project.
    User(UserId, ProjectId),
    /// Any client at the address.
    Address(IpAddr),
}

/// Token buckets by client.
#[derive(Debug)]
pub(crate) struct Limiter<K> {
    limit: Limit,
    since: Stopwatch,
    buckets: Mutex<HashMap<K, Bucket>>,
}

/// Refill rate and capacity of buckets, in tokens.
#[derive(Clone, Copy, Debug)]
struct Limit {
    per_second: f64,
    burst: f64,
}

/// Tokens of a client at an instant.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: f64,
    at: Duration,
}

impl Bucket {
    fn full(limit: Limit, at: Duration) -> Self {
        Self { tokens: limit.burst, at }
    }

    /// Adds the tokens since then, up to the burst.
    fn refilled(self, limit: Limit, now: Duration) -> Self {
        let come = now.saturating_sub(self.at).as_secs_f64() * limit.per_second;
        Self { tokens: (self.tokens + come).min(limit.burst), at: now }
    }

    /// Time until the next token. `None` if there is one now.
    fn wait(self, limit: Limit) -> Option<Duration> {
        let missing = 1.0 - self.tokens;
        (missing > 0.0).then(|| Duration::from_secs_f64(missing / limit.per_second))
    }
}

impl<K: Clone + Eq + Hash> Limiter<K> {
    /// A limiter with tokens per second and a burst; `None` for a rate of 0, which is unlimited.
    fn new((per_second, burst): (u32, u32)) -> Option<Self> {
        (per_second > 0).then(|| Self::of(per_second.into(), burst.max(1).into()))
    }

    /// A limiter with a rate in tokens per second, above 0, and a burst of at least 1 token.
    pub fn of(per_second: f64, burst: f64) -> Self {
        let limit = Limit { per_second, burst };
        Self { limit, since: Stopwatch::start(), buckets: Mutex::default() }
    }

    /// Takes a token. Without one, returns the time until the next.
    pub fn take(&self, client: K) -> Result<(), Duration> {
        self.look(client, self.since.elapsed(), true)
    }

    /// Like [`Self::take`], and returns whether the bucket was full before.
    pub fn take_with(&self, client: K) -> Result<bool, Duration> {
        let now = self.since.elapsed();
        let buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = buckets.get(&client).map(|bucket| bucket.refilled(self.limit, now));
        drop(buckets);
        self.look(client, now, true)?;
        Ok(bucket.is_none_or(|bucket| bucket.tokens >= self.limit.burst))
    }

    /// Returns a token that was taken.
    pub fn give_back(&self, client: &K) {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bucket) = buckets.get_mut(client) {
            bucket.tokens = (bucket.tokens + 1.0).min(self.limit.burst);
            if bucket.tokens >= self.limit.burst {
                buckets.remove(client);
            }
        }
    }

    /// Like [`Self::take`], but leaves the token.
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

/// Forgets clients with full buckets. If no bucket is full, forgets the half with the most tokens.
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
    use crate::auth::{Names, Roles};

    fn limiter(per_second: u32, burst: u32) -> Limiter<Client> {
        Limiter::new((per_second, burst)).expect("a limit")
    }

    fn identity(user: &str, project: &str, role: &str) -> Identity {
        Identity {
            user: UserId(user.to_owned()),
            project: ProjectId(project.to_owned()),
            roles: Roles::new([role]),
            names: Names::default(),
        }
    }

    /// Number of requests that a user can send at once.
    fn at_once(limiters: &Limiters, role: &str) -> usize {
        let asks = |_: &usize| limiters.take(&identity(role, "p", role)).is_ok();
        (0..3000).take_while(asks).count()
    }

    #[test]
    fn users_have_a_limit_by_default_and_those_who_act_for_many_ten_times_that() {
        let limiters = Limiters::new(RateLimit::default(), false);
        // The bucket refills during the test, so a slow run allows a few more.
        assert!((100..1000).contains(&at_once(&limiters, "member")));
        for role in ["admin", "service"] {
            assert!(at_once(&limiters, role) >= 1000, "{role}");
        }
        let address = [192, 0, 2, 1].into();
        assert!((0..1000).all(|_| limiters.take_of(address).is_ok()), "only users are limited");
    }

    #[test]
    fn a_limit_that_is_set_is_that_of_all_and_zero_is_none() {
        let limiters = Limiters::new(RateLimit { per_second: Some(1), burst: 2 }, false);
        assert!(at_once(&limiters, "admin") < 100 && at_once(&limiters, "member") < 100);
        let limiters = Limiters::new(RateLimit { per_second: Some(0), burst: 2 }, false);
        assert_eq!((at_once(&limiters, "admin"), at_once(&limiters, "member")), (3000, 3000));
    }

    #[test]
    fn where_everybody_is_let_in_there_is_no_limit_by_default() {
        assert_eq!(at_once(&Limiters::new(RateLimit::default(), true), "member"), 3000);
    }

    #[test]
    fn a_user_has_one_limit_in_all_projects() {
        let limiters = Limiters::new(RateLimit { per_second: Some(1), burst: 2 }, false);
        let served =
            (0..1000).filter(|number| limiters.take(&identity("u", &number.to_string(), "member")).is_ok());
        assert!(served.count() < 100);
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
        // After any pause, a client has at most a burst.
        assert_eq!([ask(60_000), ask(60_000), ask(60_000)], [Ok(()); 3]);
        assert!(ask(60_000).is_err());
    }

    #[test]
    fn clients_do_not_share_a_bucket() {
        let limiter = limiter(1, 1);
        assert_eq!(limiter.look(address(1), at(0), true), Ok(()));
        assert_eq!(limiter.look(address(2), at(0), true), Ok(()));
        assert!(limiter.look(address(1), at(0), true).is_err());
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
