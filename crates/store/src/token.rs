//! Keys that sign tokens, and revoked tokens. Services that share a store share both, so a token from one is
//! valid at all.

use std::fmt;

use jiff::Timestamp;
use leases::project::UserId;

/// A key that signs tokens. Never shown in logs, metrics or responses.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenKey {
    /// Counts keys from 1. The highest number signs.
    pub number: u32,
    pub secret: Vec<u8>,
    pub at: Timestamp,
}

impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, at, .. } = self;
        f.debug_struct("TokenKey").field("number", number).field("at", at).finish_non_exhaustive()
    }
}

/// Invalidates a token, or all tokens of a user so far, before their end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revocation {
    pub user: UserId,
    /// The token; `None` for all tokens issued at `at` or before.
    pub token: Option<u128>,
    /// Time of the revocation.
    pub at: Timestamp,
    /// Time at which the tokens expire anyway.
    pub until: Timestamp,
}

/// Everything that a service needs to check tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenState {
    /// By number.
    pub keys: Vec<TokenKey>,
    /// By user and token. A revocation of all tokens comes first.
    pub revoked: Vec<Revocation>,
}

impl TokenState {
    /// Adds a key, unless its number exists, and deletes keys with numbers below `oldest`.
    pub(crate) fn add_key(&mut self, key: &TokenKey, oldest: u32) {
        if self.keys.iter().all(|known| known.number != key.number) {
            self.keys.push(key.clone());
            self.keys.sort_by_key(|key| key.number);
        }
        self.keys.retain(|key| key.number >= oldest);
    }

    /// Adds a revocation. Deletes ended revocations, and the ones that it covers.
    pub(crate) fn revoke(&mut self, new: &Revocation) {
        self.revoked.retain(|old| {
            let replaced = old.user == new.user && (new.token.is_none() || old.token == new.token);
            old.until > new.at && !replaced
        });
        self.revoked.push(new.clone());
        self.revoked.sort_by(|a, b| (&a.user, a.token).cmp(&(&b.user, b.token)));
    }
}
