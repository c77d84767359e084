//! Validations of tokens that are under way at Keystone.
//!
//! Concurrent requests with the same token share one validation. Concurrent validations are limited, and so
//! are waiting tokens. New tokens of one network take at most half of the places, so slow validations don't
//! block other clients.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::{OnceCell, Semaphore};
use tracing::Instrument;

use super::cache::Key;

/// Maximum number of tokens that are being validated or waiting for a place.
const MOST_WAITING: usize = 1024;

/// A group of validations that takes at most half of the places. The tokens of a network form two groups:
/// previously valid ones, and all the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Sharer {
    /// `None` if the client's address isn't known.
    pub network: Option<IpAddr>,
    pub was_valid: bool,
}

/// All validations under way.
#[derive(Debug)]
pub(super) struct Asking<T> {
    at_once: usize,
    places: Arc<Semaphore>,
    shares: Mutex<HashMap<Sharer, Weak<Semaphore>>>,
    cells: Mutex<HashMap<Key, Arc<OnceCell<T>>>>,
}

/// A request's interest in a validation. Dropping the last one removes the entry, whether or not it has an
/// answer.
struct Part<'a, T> {
    all: &'a Asking<T>,
    key: Key,
    cell: Arc<OnceCell<T>>,
}

impl<T> Drop for Part<'_, T> {
    fn drop(&mut self) {
        let mut cells = self.all.lock();
        // One reference is in the map and one here. Clones are made under the lock, so no others can appear.
        if Arc::strong_count(&self.cell) <= 2 {
            cells.remove(&self.key);
        }
    }
}

impl<T: Clone + Send + 'static> Asking<T> {
    /// Allows `at_once` concurrent validations, at least one.
    pub(super) fn new(at_once: usize) -> Self {
        let at_once = at_once.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            at_once,
            places: Arc::new(Semaphore::new(at_once)),
            shares: Mutex::default(),
            cells: Mutex::default(),
        }
    }

    /// Validates a token, or waits for a validation of it that is under way. `None` if too many tokens are
    /// waiting.
    ///
    /// A validation runs to its end and keeps its place even if no request waits for it any more, because
    /// Keystone works on it regardless.
    pub(super) async fn ask(
        &self,
        key: Key,
        sharer: Sharer,
        ask: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let part = self.part(key)?;
        let answer = part.cell.get_or_try_init(async || {
            let own = self.share(sharer).acquire_owned().await.ok();
            let place = Arc::clone(&self.places).acquire_owned().await.ok();
            let asked = async move {
                let answer = ask.await;
                drop((own, place));
                answer
            };
            tokio::spawn(asked.in_current_span()).await
        });
        answer.await.ok().cloned()
    }

    fn share(&self, sharer: Sharer) -> Arc<Semaphore> {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = shares.get(&sharer).and_then(Weak::upgrade) {
            return share;
        }
        shares.retain(|_, share| share.strong_count() > 0);
        let share = Arc::new(Semaphore::new(self.at_once.div_ceil(2)));
        shares.insert(sharer, Arc::downgrade(&share));
        share
    }

    fn part(&self, key: Key) -> Option<Part<'_, T>> {
        let mut cells = self.lock();
        if cells.len() >= MOST_WAITING && !cells.contains_key(&key) {
            return None;
        }
        let cell = Arc::clone(cells.entry(key).or_default());
        Some(Part { all: self, key, cell })
    }
}

impl<T> Asking<T> {
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Arc<OnceCell<T>>>> {
        self.cells.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future::join_all;
    use tokio::sync::Notify;

    use super::*;

    const SHARER: Sharer = Sharer { network: None, was_valid: false };

    #[tokio::test]
    async fn a_token_is_asked_about_once_however_many_requests_have_it() {
        let asking = Asking::new(2);
        let asked = Arc::new(AtomicUsize::new(0));
        let ask = || {
            let asked = Arc::clone(&asked);
            async move {
                tokio::task::yield_now().await;
                asked.fetch_add(1, Ordering::Relaxed)
            }
        };
        let answers = join_all((0..100).map(|_| asking.ask([1; 32], SHARER, ask()))).await;
        assert!(answers.iter().all(|answer| *answer == Some(0)));
        assert_eq!(
            asking.ask([1; 32], SHARER, ask()).await,
            Some(1),
            "an answer is for those who waited for it"
        );
        assert!(asking.lock().is_empty());
    }

    #[tokio::test]
    async fn whoever_waits_asks_if_the_one_who_asked_goes_away_and_the_first_question_keeps_its_place() {
        let asking = Asking::new(4);
        let end = Arc::new(Notify::new());
        let ended = Arc::clone(&end);
        let gone = asking.ask([1; 32], SHARER, async move {
            ended.notified().await;
            1
        });
        let waiting = asking.ask([1; 32], SHARER, async { 2 });
        // Polls the first validation once, then drops it.
        tokio::select! {
            biased;
            _ = gone => unreachable!("it waits"),
            () = std::future::ready(()) => {}
        }
        assert_eq!(waiting.await, Some(2));
        assert!(asking.lock().is_empty(), "a question that nobody waits for is not kept");
        assert_eq!(asking.places.available_permits(), 3, "it is still being asked");
        end.notify_one();
        while asking.places.available_permits() < 4 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn so_many_are_asked_at_once_and_so_many_wait() {
        let asking = Asking::new(3);
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let ask = || {
            let (now, most) = (Arc::clone(&now), Arc::clone(&most));
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                for _ in 0..10 {
                    tokio::task::yield_now().await;
                }
                now.fetch_sub(1, Ordering::Relaxed);
            }
        };
        let key = |number: usize| {
            let mut key = [0; 32];
            key[..8].copy_from_slice(&number.to_be_bytes());
            key
        };
        let answers =
            join_all((0..MOST_WAITING + 5).map(|number| asking.ask(key(number), SHARER, ask()))).await;
        assert_eq!(answers.iter().filter(|answer| answer.is_none()).count(), 5);
        assert_eq!(most.load(Ordering::Relaxed), 2, "of one address: half of them, rounded up");
    }

    #[tokio::test]
    async fn slow_tokens_of_one_address_leave_places_to_others_and_to_tokens_that_were_valid() {
        let asking = Asking::new(4);
        let slow = [1, 2, 3].map(|number| asking.ask([number; 32], SHARER, std::future::pending::<u8>()));
        let mut slow = std::pin::pin!(join_all(slow));
        // Polling starts as many validations as there are places for the group.
        assert!(futures::poll!(&mut slow).is_pending());
        assert_eq!(asking.places.available_permits(), 2);
        let other = Sharer { network: Some([192, 0, 2, 1].into()), ..SHARER };
        assert_eq!(asking.ask([4; 32], other, async { 4 }).await, Some(4));
        let known = Sharer { was_valid: true, ..SHARER };
        assert_eq!(asking.ask([5; 32], known, async { 5 }).await, Some(5));
        assert_eq!(asking.shares.lock().expect("no panic").len(), 2, "addresses are not remembered");
    }
}
