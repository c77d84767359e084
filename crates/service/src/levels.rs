//! Levels of fair queuing: accumulated costs of the projects, or of the users of one project.

use std::collections::HashMap;
use std::hash::Hash;

use crate::cost;

/// Distance of a newcomer's level below the last admitted request: the work of ten ordinary requests with 1,000 hosts.
/// A more expensive decision uses it up before its commit waits for the write lock.
pub(crate) const LEAD: u64 = 1_000_000;
/// Number of levels at which levels not above the floor are dropped.
pub(crate) const MANY_LEVELS: usize = 1024;

/// Units of work by client. A client that isn't listed, or is listed below the floor without waiting, is at the floor.
#[derive(Debug)]
pub(crate) struct Levels<K> {
    by_key: HashMap<K, u64>,
    /// Number of waiting requests of each client with waiting requests. The floor doesn't lift these clients.
    /// Otherwise a client with requests that cost more than [`LEAD`] would wait as long as cheaper requests
    /// arrive.
    waiting: HashMap<K, usize>,
    /// Highest level of an admitted request.
    reached: u64,
    /// Number of levels at which [`Self::forget`] drops some.
    most: usize,
}

impl<K> Default for Levels<K> {
    fn default() -> Self {
        Self { by_key: HashMap::new(), waiting: HashMap::new(), reached: 0, most: MANY_LEVELS }
    }
}

impl<K: Clone + Eq + Hash> Levels<K> {
    /// Lowest level that a client can have.
    pub fn floor(&self) -> u64 {
        self.reached.saturating_sub(LEAD)
    }

    pub fn of(&self, key: &K) -> u64 {
        let level = self.by_key.get(key).copied().unwrap_or_default();
        if self.waiting.contains_key(key) { level } else { level.max(self.floor()) }
    }

    /// A request of the client begins to wait.
    pub fn begin_wait(&mut self, key: &K) {
        self.by_key.insert(key.clone(), self.of(key));
        *self.waiting.entry(key.clone()).or_default() += 1;
    }

    /// A request of the client no longer waits.
    pub fn end_wait(&mut self, key: &K) {
        if let Some(count) = self.waiting.get_mut(key) {
            *count -= 1;
            if *count == 0 {
                self.waiting.remove(key);
            }
        }
    }

    pub fn is_known(&self, key: &K) -> bool {
        self.by_key.contains_key(key)
    }

    /// Charges the flat cost of a place, and raises the floor if this client's level is the highest so far.
    pub fn let_in(&mut self, key: &K) {
        self.reached = self.reached.max(self.of(key));
        self.charge(key, cost::FLAT);
    }

    pub fn charge(&mut self, key: &K, cost: u64) {
        let level = self.of(key).saturating_add(cost);
        self.by_key.insert(key.clone(), level);
    }

    /// Drops the levels of clients that don't wait and aren't above the floor, if there are many levels. Returns whether it
    /// did.
    pub fn forget(&mut self) -> bool {
        if self.by_key.len() < self.most {
            return false;
        }
        let floor = self.floor();
        let waiting = &self.waiting;
        self.by_key.retain(|key, level| *level > floor || waiting.contains_key(key));
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

    #[test]
    fn the_floor_does_not_lift_a_client_that_waits() {
        let mut levels = Levels::default();
        levels.charge(&"busy", 5 * LEAD);
        levels.let_in(&"busy");
        levels.begin_wait(&"patient");
        levels.charge(&"busy", 5 * LEAD);
        levels.let_in(&"busy");
        assert_eq!(levels.of(&"patient"), 4 * LEAD, "the floor when it arrived");
        levels.charge(&"patient", 1);
        assert_eq!(levels.of(&"patient"), 4 * LEAD + 1);
        levels.end_wait(&"patient");
        assert_eq!(levels.of(&"patient"), levels.floor(), "it keeps no credit");
    }
}
