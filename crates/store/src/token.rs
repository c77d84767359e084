//! Keys that tokens are signed with, and tokens that were revoked: what services on one store share, so that a
//! token of one is good at all of them.

use std::fmt;

use jiff::Timestamp;
use leases::project::UserId;

/// A key that tokens are signed with. Never shown in logs, metrics or answers.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenKey {
    /// Counts keys from 1; the highest signs.
    pub number: u32,
    /// The key itself.
    pub secret: Vec<u8>,
    /// When it was made.
    pub at: Timestamp,
}

impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, at, .. } = self;
        f.debug_struct("TokenKey").field("number", number).field("at", at).finish_non_exhaustive()
    }
}

/// A token, or all tokens of a user so far, that are invalid before their end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revocation {
    /// Whose.
    pub user: UserId,
    /// Which; if none, all that were issued at `at` or before.
    pub token: Option<u128>,
    /// When it was revoked.
    pub at: Timestamp,
    /// When it ends anyway.
    pub until: Timestamp,
}

/// All that a service needs to check tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenState {
    /// Keys, by number.
    pub keys: Vec<TokenKey>,
    /// Revocations, by user and token; that of all tokens first.
    pub revoked: Vec<Revocation>,
}

impl TokenState {
    /// Adds a key and forgets those with numbers below `oldest`. One of that number stays as it is.
    pub(crate) fn add_key(&mut self, key: &TokenKey, oldest: u32) {
        if self.keys.iter().all(|known| known.number != key.number) {
            self.keys.push(key.clone());
            self.keys.sort_by_key(|key| key.number);
        }
        self.keys.retain(|key| key.number >= oldest);
    }

    /// Adds a revocation and forgets those that are over, or of which it is a part.
    pub(crate) fn revoke(&mut self, new: &Revocation) {
        self.revoked.retain(|old| {
            let replaced = old.user == new.user && (new.token.is_none() || old.token == new.token);
            old.until > new.at && !replaced
        });
        self.revoked.push(new.clone());
        self.revoked.sort_by(|a, b| (&a.user, a.token).cmp(&(&b.user, b.token)));
    }
}
