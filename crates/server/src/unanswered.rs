//! How many requests of one client are under way at once. Each holds its body and a place among those who wait to
//! change something; a client that does not wait for answers fills its own share, and no more.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::rate::Client;

/// What each client has asked for and not been answered.
#[derive(Debug)]
pub(crate) struct Unanswered {
    most: usize,
    by_client: Mutex<HashMap<Client, usize>>,
}

/// A request that is under way, until it is dropped.
#[derive(Debug)]
pub(crate) struct Asked {
    all: Arc<Unanswered>,
    client: Client,
}

impl Unanswered {
    /// So many of each.
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, by_client: Mutex::default() })
    }

    /// Notes a request of that client, unless there are too many.
    pub fn ask(self: &Arc<Self>, client: Client) -> Option<Arc<Asked>> {
        let mut by_client = self.by_client.lock().unwrap_or_else(PoisonError::into_inner);
        let own = by_client.get(&client).copied().unwrap_or(0);
        if own >= self.most {
            return None;
        }
        by_client.insert(client.clone(), own + 1);
        Some(Arc::new(Asked { all: Arc::clone(self), client }))
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let mut by_client = self.all.by_client.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = by_client.get_mut(&self.client) {
            *own -= 1;
            if *own == 0 {
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
    fn a_client_has_so_many_requests_under_way_and_others_have_theirs() {
        let unanswered = Unanswered::new(2);
        let own: Vec<_> = (0..5).filter_map(|_| unanswered.ask(client(1))).collect();
        assert_eq!(own.len(), 2);
        assert!(unanswered.ask(client(2)).is_some());
        drop(own);
        assert!(unanswered.ask(client(1)).is_some());
        assert!(unanswered.by_client.lock().expect("no panic").is_empty(), "nobody is remembered");
    }
}
