//! Limits the bytes of requests and responses in memory, for each client and in total. So a client that
//! doesn't read its responses, or doesn't finish its requests, fills only its own share.
//!
//! Only responses of known length count. Responses of unknown length are written while they are sent, one
//! piece at a time.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use http_body::{Frame, SizeHint};

use crate::rate::Client;

/// Limit for one client, in bytes. A single request or response may be larger.
const CLIENT_BYTES: u64 = 16 << 20;
/// Limit for all clients, in bytes.
const ALL_BYTES: u64 = 96 << 20;
/// Bytes that each client may hold even when the limit for all clients is reached. Clients with short requests, such as
/// Nova's filter, need no more.
const RESERVED_BYTES: u64 = 1 << 20;
/// Size of the pieces in which a response is passed to its connection, which buffers about one of them.
const PIECE_BYTES: usize = 1 << 16;

/// The bytes in memory, by client.
#[derive(Debug, Default)]
pub(crate) struct Held(Mutex<Sums>);

#[derive(Debug, Default)]
struct Sums {
    all: u64,
    by_client: HashMap<Client, u64>,
}

/// The bytes of a request or of a response. They count until this is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    held: Arc<Held>,
    client: Client,
    bytes: AtomicU64,
    refused: AtomicBool,
}

impl Held {
    pub fn share(self: &Arc<Self>, client: Client) -> Share {
        Share { held: Arc::clone(self), client, bytes: AtomicU64::new(0), refused: AtomicBool::new(false) }
    }

    fn sums(&self) -> MutexGuard<'_, Sums> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share {
    /// Adds bytes within the limits, and returns whether they fit. They always fit if the client holds no other bytes.
    pub fn add(&self, bytes: u64) -> bool {
        let mut sums = self.held.sums();
        let of_client = sums.by_client.get(&self.client).copied().unwrap_or_default();
        let after = of_client + bytes;
        let fits = after <= RESERVED_BYTES || (after <= CLIENT_BYTES && sums.all + bytes <= ALL_BYTES);
        if fits || of_client == self.bytes.load(Ordering::Relaxed) {
            self.count(&mut sums, bytes);
            return true;
        }
        self.refused.store(true, Ordering::Relaxed);
        false
    }

    /// Adds bytes regardless of the limits.
    pub fn add_anyway(&self, bytes: u64) {
        self.count(&mut self.held.sums(), bytes);
    }

    /// Whether [`Self::add`] has rejected bytes.
    pub fn was_refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed)
    }

    fn count(&self, sums: &mut Sums, bytes: u64) {
        if bytes > 0 {
            sums.all += bytes;
            *sums.by_client.entry(self.client.clone()).or_default() += bytes;
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let bytes = *self.bytes.get_mut();
        let mut sums = self.held.sums();
        sums.all -= bytes;
        if let Some(of_client) = sums.by_client.get_mut(&self.client) {
            *of_client -= bytes;
            if *of_client == 0 {
                sums.by_client.remove(&self.client);
            }
        }
    }
}

/// A request body that counts its bytes as they are received. Reading fails at the limit.
pub(crate) struct Received {
    pub body: Body,
    pub share: Arc<Share>,
}

impl HttpBody for Received {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        let length = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref()).map_or(0, Bytes::len);
        if length == 0 || self.share.add(length as u64) {
            return Poll::Ready(frame);
        }
        Poll::Ready(Some(Err(axum::Error::new(std::io::Error::other("too many bytes in memory")))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A response body that is passed on in pieces. Its bytes count until all pieces are sent or dropped.
pub(crate) struct Sent {
    body: Body,
    /// Part of the last frame that isn't passed on yet.
    rest: Bytes,
    share: Arc<Share>,
}

impl Sent {
    pub fn new(body: Body, share: Share) -> Self {
        Self { body, rest: Bytes::new(), share: Arc::new(share) }
    }
}

impl HttpBody for Sent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                end => return Poll::Ready(end),
            }
        }
        let length = self.rest.len().min(PIECE_BYTES);
        let piece = Piece { bytes: self.rest.split_to(length), _share: Arc::clone(&self.share) };
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_owner(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let hint = self.body.size_hint();
        hint.exact().map_or(hint, |length| SizeHint::with_exact(length + self.rest.len() as u64))
    }
}

/// A piece of a response. A connection may keep it after it has dropped the body.
struct Piece {
    bytes: Bytes,
    _share: Arc<Share>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;

    use super::*;

    fn client(number: u8) -> Client {
        Client::Address([192, 0, 2, number].into())
    }

    #[test]
    fn a_client_holds_its_share_or_one_response_of_any_size() {
        let held = Arc::new(Held::default());
        let large = held.share(client(1));
        assert!(large.add(CLIENT_BYTES) && large.add(1), "a single one");
        let next = held.share(client(1));
        assert!(!next.add(0) && !next.add(1) && next.was_refused());
        assert!(held.share(client(2)).add(CLIENT_BYTES), "another client");
        drop(large);
        assert!(next.add(CLIENT_BYTES));
        assert!(held.share(client(1)).add(0) && !held.share(client(1)).add(1));
        drop(next);
        let sums = held.sums();
        assert!(sums.all == 0 && sums.by_client.is_empty(), "{sums:?}");
    }

    #[test]
    fn all_clients_together_have_a_limit_and_each_may_hold_one() {
        let held = Arc::new(Held::default());
        let full: Vec<_> = (0..8).map(|number| held.share(client(number))).collect();
        assert!(full.iter().all(|share| share.add(CLIENT_BYTES)));
        let first = held.share(client(100));
        assert!(first.add(RESERVED_BYTES));
        assert!(!held.share(client(100)).add(1));
        drop(full);
        assert!(held.share(client(100)).add(1));
    }

    #[test]
    fn bytes_that_are_added_anyway_count() {
        let held = Arc::new(Held::default());
        let (first, second) = (held.share(client(1)), held.share(client(1)));
        assert!(first.add(CLIENT_BYTES));
        second.add_anyway(1);
        drop(first);
        let third = held.share(client(1));
        assert!(third.add(CLIENT_BYTES - 1) && !third.add(1));
    }

    #[tokio::test]
    async fn a_response_counts_until_its_last_piece_is_dropped() {
        let held = Arc::new(Held::default());
        let share = held.share(client(1));
        let content = "x".repeat(3 * PIECE_BYTES + 1);
        share.add_anyway(content.len() as u64);
        let body = Sent::new(Body::from(content.clone()), share);
        assert_eq!(body.size_hint().exact(), Some(content.len() as u64));
        let pieces: Vec<_> = Body::new(body).into_data_stream().collect().await;
        let mut pieces: Vec<Bytes> = pieces.into_iter().map(|piece| piece.expect("a piece")).collect();
        assert_eq!(pieces.len(), 4);
        assert_eq!(pieces.concat(), content.into_bytes());
        pieces.truncate(1);
        assert!(held.sums().all > 0, "a connection has a piece");
        drop(pieces);
        assert_eq!(held.sums().all, 0);
    }
}
