//! Questions to Keystone that are under way: one for a token however many requests have it, so many at once, and so many
//! that wait.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OnceCell, Semaphore};

use super::cache::Key;

/// Most tokens that are asked about or wait for that.
const MOST_WAITING: usize = 1024;

/// All questions that are under way.
#[derive(Debug)]
pub(super) struct Asking<T> {
    places: Semaphore,
    cells: Mutex<HashMap<Key, Arc<OnceCell<T>>>>,
}

/// A request's part in a question. The last one that goes takes the question along, answered or not.
struct Part<'a, T> {
    all: &'a Asking<T>,
    key: Key,
    cell: Arc<OnceCell<T>>,
}

impl<T> Drop for Part<'_, T> {
    fn drop(&mut self) {
        let mut cells = self.all.lock();
        // The map's, and this one: clones are made under the lock.
        if Arc::strong_count(&self.cell) <= 2 {
            cells.remove(&self.key);
        }
    }
}

impl<T: Clone> Asking<T> {
    /// So many questions at once.
    pub(super) fn new(at_once: usize) -> Self {
        Self { places: Semaphore::new(at_once.max(1)), cells: Mutex::default() }
    }

    /// Asks, or waits for the answer of who asks already. If that request is broken off, another one that waits asks. None if
    /// too many tokens are being asked about.
    pub(super) async fn ask(&self, key: Key, ask: impl Future<Output = T>) -> Option<T> {
        let part = self.part(key)?;
        let answer = part.cell.get_or_init(async || {
            // Nobody closes it.
            let _place = self.places.acquire().await;
            ask.await
        });
        Some(answer.await.clone())
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

    #[tokio::test]
    async fn a_token_is_asked_about_once_however_many_requests_have_it() {
        let asking = Asking::new(2);
        let asked = AtomicUsize::new(0);
        let ask = async || {
            tokio::task::yield_now().await;
            asked.fetch_add(1, Ordering::Relaxed)
        };
        let answers = join_all((0..100).map(|_| asking.ask([1; 32], ask()))).await;
        assert!(answers.iter().all(|answer| *answer == Some(0)));
        assert_eq!(asking.ask([1; 32], ask()).await, Some(1), "an answer is for those who waited for it");
        assert!(asking.lock().is_empty());
    }

    #[tokio::test]
    async fn whoever_waits_asks_if_the_one_who_asked_goes_away() {
        let asking = Asking::new(1);
        let gone = Box::pin(asking.ask([1; 32], std::future::pending::<u8>()));
        let waiting = asking.ask([1; 32], async { 7 });
        // The first is polled once, and dropped.
        let first = futures::future::select(gone, Box::pin(async {})).await;
        drop(first);
        assert_eq!(waiting.await, Some(7));
        assert!(asking.lock().is_empty(), "a question that nobody waits for is not kept");
    }

    #[tokio::test]
    async fn so_many_are_asked_at_once_and_so_many_wait() {
        let asking = Asking::new(3);
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let go = Notify::new();
        let ask = async || {
            most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            go.notified().await;
            now.fetch_sub(1, Ordering::Relaxed);
        };
        let key = |number: usize| {
            let mut key = [0; 32];
            key[..8].copy_from_slice(&number.to_be_bytes());
            key
        };
        let all = join_all((0..MOST_WAITING + 5).map(|number| asking.ask(key(number), ask())));
        let release = async {
            loop {
                go.notify_waiters();
                tokio::task::yield_now().await;
            }
        };
        let answers = tokio::select! {
            answers = all => answers,
            () = release => unreachable!("it never ends"),
        };
        assert_eq!(answers.iter().filter(|answer| answer.is_none()).count(), 5);
        assert_eq!(most.into_inner(), 3);
    }
}
