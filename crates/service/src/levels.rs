//! Levels of fair queuing: what each project, or each user of a project, has used.

use std::collections::HashMap;
use std::hash::Hash;

use crate::cost;

/// How far below the request that was let in last a client begins: the work of ten ordinary requests among 1,000 hosts.
/// A decision that costs more has used it up before its commit waits for the write lock.
pub(crate) const LEAD: u64 = 1_000_000;
/// From so many levels on, those are forgotten that do not matter any more.
pub(crate) const MANY_LEVELS: usize = 1024;

/// Units of work by client. A client without a level, or with a lower one, is at the floor.
#[derive(Debug)]
pub(crate) struct Levels<K> {
    by_key: HashMap<K, u64>,
    /// The highest level of a request that was let in.
    reached: u64,
    /// When so many levels are known, it is time to forget some.
    most: usize,
}

impl<K> Default for Levels<K> {
    fn default() -> Self {
        Self { by_key: HashMap::new(), reached: 0, most: MANY_LEVELS }
    }
}

impl<K: Clone + Eq + Hash> Levels<K> {
    /// The lowest possible level.
    pub fn floor(&self) -> u64 {
        self.reached.saturating_sub(LEAD)
    }

    pub fn of(&self, key: &K) -> u64 {
        self.by_key.get(key).copied().unwrap_or_default().max(self.floor())
    }

    pub fn is_known(&self, key: &K) -> bool {
        self.by_key.contains_key(key)
    }

    /// Charges the flat price of a place, and has newcomers begin where this client was.
    pub fn let_in(&mut self, key: &K) {
        self.reached = self.reached.max(self.of(key));
        self.charge(key, cost::FLAT);
    }

    pub fn charge(&mut self, key: &K, cost: u64) {
        let level = self.of(key).saturating_add(cost);
        self.by_key.insert(key.clone(), level);
    }

    /// Forgets levels that do not matter, if there are many. Says whether it did.
    pub fn forget(&mut self) -> bool {
        if self.by_key.len() < self.most {
            return false;
        }
        let floor = self.floor();
        self.by_key.retain(|_, level| *level > floor);
        self.most = MANY_LEVELS.max(2 * self.by_key.len());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_that_do_not_matter_are_forgotten() {
        let mut levels = Levels::default();
        for number in 0..100_000 {
            levels.charge(&number, 10);
            levels.let_in(&u32::MAX);
            levels.forget();
        }
        assert!(levels.by_key.len() <= 2 * MANY_LEVELS);
    }

    #[test]
    fn a_newcomer_begins_below_what_was_let_in_by_no_more_than_the_lead() {
        let mut levels = Levels::default();
        levels.charge(&"busy", 5 * LEAD);
        assert_eq!(levels.of(&"new"), 0, "nobody else has waited");
        levels.let_in(&"busy");
        assert_eq!(levels.of(&"new"), 4 * LEAD);
    }
}
