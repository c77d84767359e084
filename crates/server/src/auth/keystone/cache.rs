//! Cache of valid and rejected tokens. It has no clock and makes no requests: callers pass the time and the
//! results.
//!
//! Tokens are identified by a hash. Valid and rejected tokens have separate limits, so invalid tokens can't
//! evict valid ones.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use openstack::AccessRule;

use crate::auth::Identity;

/// Keyed hash of a token. Only this process has the key.
pub(super) type Key = [u8; 32];

/// How long a token unknown to Keystone is rejected without asking again. Short, because Keystone's servers
/// receive each other's keys with a delay, so it can become valid.
const REFUSED_FOR: Duration = Duration::from_secs(10);

/// The time on two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// Monotonic clock, for ages.
    pub steady: Duration,
    /// Wall clock, for expiry of tokens.
    pub wall: Timestamp,
}

/// A token that Keystone has accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub identity: Identity,
    pub expires_at: Timestamp,
    /// Requests that the token allows. `None` allows all.
    pub access_rules: Option<Vec<AccessRule>>,
}

/// Result of a lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// Valid, and recently confirmed.
    Fresh(Arc<Known>),
    /// Valid at the last check, which must be repeated. Usable if Keystone is unavailable.
    Stale(Arc<Known>),
    /// Rejected a short time ago.
    Refused(Refusal),
    /// Keystone must be asked.
    Unknown,
}

/// Reason to reject a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Keystone doesn't accept it: never issued, expired or revoked.
    Unknown,
    /// The token has no project.
    Unscoped,
}

/// Lifetimes and size of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CacheRules {
    /// How long a valid token is used without asking again. A revoked token remains usable for the same time.
    pub fresh: Duration,
    /// Additional time for which it is usable while Keystone is unavailable.
    pub stale: Duration,
    /// Maximum number of valid tokens, and also of rejected ones.
    pub most: usize,
}

/// Cached results of validations.
#[derive(Debug)]
pub(super) struct Cache {
    rules: CacheRules,
    valid: Shelf<Arc<Known>>,
    refused: Shelf<Refusal>,
}

impl Cache {
    pub(super) fn new(rules: CacheRules) -> Self {
        let most = rules.most;
        Self { rules, valid: Shelf::new(most), refused: Shelf::new(most) }
    }

    pub(super) fn look(&self, key: &Key, now: Moment) -> Look {
        let age = |at: Duration| now.steady.saturating_sub(at);
        if let Some((at, refusal)) = self.refused.get(key)
            && age(at) < REFUSED_FOR
        {
            return Look::Refused(*refusal);
        }
        match self.valid.get(key) {
            // Keystone decides whether the token has expired, because our clock can be wrong.
            Some((_, known)) if known.expires_at <= now.wall => Look::Unknown,
            Some((at, known)) if age(at) < self.rules.fresh => Look::Fresh(Arc::clone(known)),
            Some((at, known)) if age(at) < self.rules.fresh.saturating_add(self.rules.stale) => {
                Look::Stale(Arc::clone(known))
            }
            _ => Look::Unknown,
        }
    }

    /// Caches a token that Keystone accepts.
    pub(super) fn accept(&mut self, key: Key, known: Arc<Known>, now: Moment) {
        self.refused.remove(&key);
        self.valid.drop_older(now.steady, self.rules.fresh.saturating_add(self.rules.stale));
        self.valid.put(key, now.steady, known);
    }

    /// Caches a rejected token.
    pub(super) fn refuse(&mut self, key: Key, refusal: Refusal, now: Moment) {
        self.valid.remove(&key);
        self.refused.drop_older(now.steady, REFUSED_FOR);
        self.refused.put(key, now.steady, refusal);
    }
}

/// A map of limited size that evicts its oldest entry when it is full.
#[derive(Debug)]
struct Shelf<V> {
    most: usize,
    next: u64,
    values: HashMap<Key, (u64, Duration, V)>,
    order: BTreeMap<u64, Key>,
}

impl<V> Shelf<V> {
    fn new(most: usize) -> Self {
        Self { most, next: 0, values: HashMap::new(), order: BTreeMap::new() }
    }

    fn get(&self, key: &Key) -> Option<(Duration, &V)> {
        self.values.get(key).map(|(_, at, value)| (*at, value))
    }

    fn remove(&mut self, key: &Key) {
        if let Some((number, ..)) = self.values.remove(key) {
            self.order.remove(&number);
        }
    }

    fn drop_first(&mut self) {
        if let Some((_, key)) = self.order.pop_first() {
            self.values.remove(&key);
        }
    }

    fn drop_older(&mut self, now: Duration, than: Duration) {
        while let Some((at, _)) = self.order.first_key_value().and_then(|(_, key)| self.get(key))
            && now.saturating_sub(at) >= than
        {
            self.drop_first();
        }
    }

    fn put(&mut self, key: Key, at: Duration, value: V) {
        self.remove(&key);
        if self.most == 0 {
            return;
        }
        if self.values.len() >= self.most {
            self.drop_first();
        }
        self.order.insert(self.next, key);
        self.values.insert(key, (self.next, at, value));
        self.next += 1;
    }
}

#[cfg(test)]
mod tests {
    use leases::project::{ProjectId, UserId};

    use super::*;
    use crate::auth::{Names, Roles};

    const RULES: CacheRules =
        CacheRules { fresh: Duration::from_mins(1), stale: Duration::from_mins(5), most: 3 };

    fn key(number: u8) -> Key {
        [number; 32]
    }

    fn at(seconds: u64) -> Moment {
        let wall = Timestamp::from_second(1_800_000_000 + seconds as i64).expect("a time");
        Moment { steady: Duration::from_secs(seconds), wall }
    }

    fn known(expires: u64) -> Arc<Known> {
        Arc::new(Known {
            identity: Identity {
                user: UserId("u".into()),
                project: ProjectId("p".into()),
                roles: Roles::exactly(["member"]),
                names: Names::default(),
            },
            expires_at: at(expires).wall,
            access_rules: None,
        })
    }

    #[test]
    fn a_valid_token_is_fresh_then_stale_then_unknown() {
        let mut cache = Cache::new(RULES);
        assert_eq!(cache.look(&key(1), at(0)), Look::Unknown);
        cache.accept(key(1), known(3600), at(0));
        assert_eq!(cache.look(&key(1), at(59)), Look::Fresh(known(3600)));
        assert_eq!(cache.look(&key(1), at(60)), Look::Stale(known(3600)));
        assert_eq!(cache.look(&key(1), at(359)), Look::Stale(known(3600)));
        assert_eq!(cache.look(&key(1), at(360)), Look::Unknown);
        cache.accept(key(1), known(3600), at(100));
        assert_eq!(cache.look(&key(1), at(159)), Look::Fresh(known(3600)));
    }

    #[test]
    fn a_token_that_has_expired_is_neither_fresh_nor_stale() {
        let mut cache = Cache::new(RULES);
        cache.accept(key(1), known(30), at(0));
        assert_eq!(cache.look(&key(1), at(29)), Look::Fresh(known(30)));
        assert_eq!(cache.look(&key(1), at(30)), Look::Unknown);
    }

    #[test]
    fn a_token_that_is_revoked_is_refused_and_asked_about_again_after_a_while() {
        let mut cache = Cache::new(RULES);
        cache.accept(key(1), known(3600), at(0));
        cache.refuse(key(1), Refusal::Unknown, at(70));
        assert_eq!(cache.look(&key(1), at(79)), Look::Refused(Refusal::Unknown));
        assert_eq!(
            cache.look(&key(1), at(80)),
            Look::Unknown,
            "it was valid once, and that does not count any more"
        );
        cache.refuse(key(2), Refusal::Unscoped, at(80));
        assert_eq!(cache.look(&key(2), at(80)), Look::Refused(Refusal::Unscoped));
        cache.accept(key(2), known(3600), at(81));
        assert_eq!(cache.look(&key(2), at(81)), Look::Fresh(known(3600)));
    }

    #[test]
    fn wrong_tokens_are_bounded_and_displace_no_valid_one() {
        let mut cache = Cache::new(RULES);
        cache.accept(key(0), known(3600), at(0));
        for number in 1..=200 {
            cache.refuse(key(number), Refusal::Unknown, at(1));
        }
        assert_eq!(cache.refused.values.len(), 3);
        assert_eq!(cache.refused.order.len(), 3);
        assert_eq!(cache.look(&key(0), at(1)), Look::Fresh(known(3600)));
        for number in 1..=3 {
            cache.accept(key(number), known(3600), at(2));
        }
        assert_eq!(cache.look(&key(0), at(2)), Look::Unknown, "the one that was asked about first goes");
        for _ in 0..100 {
            cache.accept(key(3), known(3600), at(3));
        }
        assert_eq!((cache.valid.values.len(), cache.valid.order.len()), (3, 3));
        cache.accept(key(9), known(3600), at(3600));
        assert_eq!(cache.valid.values.len(), 1, "what is of no use any more is dropped");
    }

    #[test]
    fn nothing_is_kept_where_nothing_is_to_be() {
        let mut cache = Cache::new(CacheRules { most: 0, ..RULES });
        cache.accept(key(1), known(3600), at(0));
        cache.refuse(key(2), Refusal::Unknown, at(0));
        assert_eq!((cache.look(&key(1), at(0)), cache.look(&key(2), at(0))), (Look::Unknown, Look::Unknown));
        let mut cache = Cache::new(CacheRules { fresh: Duration::ZERO, stale: Duration::ZERO, ..RULES });
        cache.accept(key(1), known(3600), at(0));
        assert_eq!(cache.look(&key(1), at(0)), Look::Unknown, "every request is asked about");
    }
}
