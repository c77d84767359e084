//! Limits the concurrent requests of each client. Each request holds its body and a place in a queue, so a client that
//! doesn't wait for responses fills only its own share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tokio::sync::{AcquireError, Semaphore, SemaphorePermit};

use crate::rate::Client;

/// The requests under way, by client.
#[derive(Debug)]
pub(crate) struct Unanswered {
    limit: usize,
    by_client: Mutex<HashMap<Client, Share>>,
    /// Half of the processors. The others serve short requests and the execution of leases.
    processors: Semaphore,
}

#[derive(Debug)]
struct Share {
    requests: usize,
    turn: Arc<Semaphore>,
}

impl Default for Share {
    fn default() -> Self {
        Self { requests: 0, turn: Arc::new(Semaphore::new(1)) }
    }
}

/// A request under way. It counts until it is dropped.
#[derive(Debug)]
pub(crate) struct Asked {
    all: Arc<Unanswered>,
    client: Client,
    turn: Arc<Semaphore>,
}

impl Unanswered {
    /// Allows `limit` concurrent requests of each client, at least one.
    pub fn new(limit: usize) -> Arc<Self> {
        let processors = thread::available_parallelism().map_or(1, |all| all.get().div_ceil(2));
        Arc::new(Self { limit, by_client: Mutex::default(), processors: Semaphore::new(processors) })
    }

    /// Counts a request of the client. `None` if it has too many.
    pub fn ask(self: &Arc<Self>, client: Client) -> Option<Arc<Asked>> {
        let mut by_client = self.by_client.lock().unwrap_or_else(PoisonError::into_inner);
        let share = by_client.entry(client.clone()).or_default();
        if share.requests >= self.limit {
            return None;
        }
        share.requests += 1;
        let turn = Arc::clone(&share.turn);
        Some(Arc::new(Asked { all: Arc::clone(self), client, turn }))
    }
}

/// The permission to write a piece of a long response.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    _of_client: SemaphorePermit<'a>,
    _processor: SemaphorePermit<'a>,
}

impl Asked {
    /// The client that sent the request.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Waits until no other request of the client has a turn, then for a processor. So clients that open many long
    /// responses take turns, however many each of them opens.
    pub async fn turn(&self) -> Result<Turn<'_>, AcquireError> {
        let of_client = self.turn.acquire().await?;
        Ok(Turn { _of_client: of_client, _processor: self.all.processors.acquire().await? })
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let mut by_client = self.all.by_client.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = by_client.get_mut(&self.client) {
            share.requests -= 1;
            if share.requests == 0 {
                by_client.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(last: u8) -> Client {
        Client::Address([192, 0, 2, last].into())
    }

    #[test]
    fn the_limit_applies_to_each_client() {
        let unanswered = Unanswered::new(2);
        let own: Vec<_> = (0..5).filter_map(|_| unanswered.ask(client(1))).collect();
        assert_eq!(own.len(), 2);
        assert!(unanswered.ask(client(2)).is_some());
        drop(own);
        assert!(unanswered.ask(client(1)).is_some());
        assert!(unanswered.by_client.lock().expect("no panic").is_empty(), "nobody is remembered");
    }

    #[tokio::test]
    async fn a_client_that_waits_for_its_own_request_takes_no_processor() {
        let unanswered = Unanswered::new(2);
        let [first, second] = [1, 1].map(|_| unanswered.ask(client(1)).expect("one of two"));
        let other = unanswered.ask(client(2)).expect("the only one");

        let of_client = first.turn.acquire().await.expect("a turn");
        let mut waiting = std::pin::pin!(second.turn());
        assert!(futures::poll!(waiting.as_mut()).is_pending());
        other.turn().await.expect("a turn");
        drop(of_client);
        waiting.await.expect("a turn");
    }
}
