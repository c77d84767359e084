//! Responses with long lists, which are read and written while they are sent. A client that reads nothing
//! holds one chunk in memory, and its request counts as under way until the client reads the rest or
//! disconnects.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures::{StreamExt, stream};
use serde::Serialize;

use crate::app::Session;
use crate::error::ApiError;
use crate::unanswered::Asked;

/// Size of the pieces in which a list is written.
const PIECE_BYTES: usize = 1 << 16;

/// Number of records read at once. A list of at most this length is a snapshot. A longer list contains every record that
/// exists all the time exactly once.
pub(crate) const CHUNK: usize = 1000;

/// Reads the next chunk; `None` at the end.
type More<T> = Box<dyn FnMut() -> Option<Vec<T>> + Send>;

/// A response `{"FIELD": [...]}`.
pub(crate) struct Listing<T, W> {
    items: std::vec::IntoIter<T>,
    /// Source of further items.
    more: Option<More<T>>,
    show: Box<dyn Fn(&T) -> W + Send>,
    /// JSON after the last item.
    end: String,
    /// Bytes written but not sent.
    written: Vec<u8>,
    any: bool,
    done: bool,
    /// Counts the client's request as under way until everything is sent.
    asked: Arc<Asked>,
}

impl<T, W: Serialize> Listing<T, W> {
    /// `show` converts an item for the response.
    pub fn new(
        session: &Session,
        field: &str,
        items: Vec<T>,
        show: impl Fn(&T) -> W + Send + 'static,
    ) -> Self {
        Self::of(Arc::clone(&session.asked), field, items, show)
    }

    fn of(asked: Arc<Asked>, field: &str, items: Vec<T>, show: impl Fn(&T) -> W + Send + 'static) -> Self {
        Self {
            items: items.into_iter(),
            more: None,
            show: Box::new(show),
            end: "]".to_owned(),
            written: format!("{{\"{field}\":[").into_bytes(),
            any: false,
            done: false,
            asked,
        }
    }

    /// Appends chunks, which can be empty, until `more` returns `None`.
    pub fn then(self, more: impl FnMut() -> Option<Vec<T>> + Send + 'static) -> Self {
        Self { more: Some(Box::new(more)), ..self }
    }

    /// Adds a field after the list.
    pub fn with(self, field: &str, value: &impl Serialize) -> Result<Self, ApiError> {
        let value = serde_json::to_string(value).map_err(|error| unwritten(&error))?;
        let end = format!("{},\"{field}\":{value}", self.end);
        Ok(Self { end, ..self })
    }

    /// Nests all fields in a field.
    pub fn within(mut self, field: &str) -> Self {
        self.written = [format!("{{\"{field}\":").into_bytes(), self.written].concat();
        self.end.push('}');
        self
    }

    async fn piece_in_turn(&mut self) -> Result<Option<Bytes>, serde_json::Error> {
        let asked = Arc::clone(&self.asked);
        let _turn = asked.turn().await;
        self.piece()
    }

    /// Writes the next piece. `None` at the end.
    fn piece(&mut self) -> Result<Option<Bytes>, serde_json::Error> {
        if self.done {
            return Ok(None);
        }
        while self.written.len() < PIECE_BYTES {
            let Some(item) = self.items.next() else {
                if let Some(items) = self.more.as_mut().and_then(|more| more()) {
                    self.items = items.into_iter();
                    // End the piece after each chunk, even a small one, so that other requests get their
                    // turn.
                    break;
                }
                self.written.extend_from_slice(self.end.as_bytes());
                self.written.push(b'}');
                self.done = true;
                break;
            };
            if std::mem::replace(&mut self.any, true) {
                self.written.push(b',');
            }
            serde_json::to_writer(&mut self.written, &(self.show)(&item))?;
        }
        Ok(Some(std::mem::take(&mut self.written).into()))
    }
}

fn unwritten(error: &serde_json::Error) -> ApiError {
    tracing::error!(%error, "answer not written");
    ApiError::internal()
}

impl<T: Send + 'static, W: Serialize + 'static> Listing<T, W> {
    /// Sends the list. The response has a length if it fits into one piece.
    pub async fn respond(mut self) -> Response {
        let first = match self.piece_in_turn().await {
            Ok(first) => first.unwrap_or_default(),
            Err(error) => return unwritten(&error).into_response(),
        };
        let body = if self.done { Body::from(first) } else { Body::from_stream(pieces(first, self)) };
        ([(CONTENT_TYPE, "application/json")], body).into_response()
    }
}

fn pieces<T, W: Serialize>(
    first: Bytes,
    listing: Listing<T, W>,
) -> impl stream::Stream<Item = Result<Bytes, serde_json::Error>> {
    let pieces = stream::unfold((Some(first), listing), async |(first, mut listing)| {
        let mut piece = Ok(first);
        // A chunk without any item for the list gives an empty piece, which isn't sent.
        while matches!(&piece, Ok(piece) if piece.as_ref().is_none_or(Bytes::is_empty)) && !listing.done {
            // Yield, so that a fast reader doesn't keep a worker to itself.
            tokio::task::yield_now().await;
            piece = listing.piece_in_turn().await;
        }
        piece.transpose().map(|piece| (piece, (None, listing)))
    });
    // The compression layer polls once more after the end.
    pieces.fuse()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::rate::Client;
    use crate::unanswered::Unanswered;

    fn asked() -> Arc<Asked> {
        let client = Client::Address([192, 0, 2, 1].into());
        Unanswered::new(1).ask(client).expect("the only one")
    }

    async fn answered(items: Vec<u32>) -> Value {
        let listing = Listing::of(
            asked(),
            "numbers",
            items.clone(),
            |number| json!({"n": number, "text": "x".repeat(100)}),
        );
        let listing = listing.with("links", &["a"]).and_then(|listing| listing.with("total", &items.len()));
        let response = listing.expect("JSON").respond().await;
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.expect("a body");
        serde_json::from_slice(&body).expect("JSON")
    }

    #[tokio::test]
    async fn a_list_has_everything_in_its_order_however_long_it_is() {
        for count in [0, 1, 2, 599, 600, 601, 5000] {
            let body = answered((0..count).collect()).await;
            let numbers: Vec<u64> = body["numbers"]
                .as_array()
                .expect("a list")
                .iter()
                .map(|item| item["n"].as_u64().expect("a number"))
                .collect();
            assert_eq!(numbers, (0..count.into()).collect::<Vec<u64>>());
            assert_eq!((&body["links"], &body["total"]), (&json!(["a"]), &json!(count)));
        }
    }

    #[tokio::test]
    async fn a_list_may_be_within_another_field() {
        let listing = Listing::of(asked(), "numbers", vec![1, 2], |number| *number);
        let listing = listing.with("total", &2).expect("JSON").within("all");
        let body = axum::body::to_bytes(listing.respond().await.into_body(), 1000).await.expect("a body");
        assert_eq!(body, "{\"all\":{\"numbers\":[1,2],\"total\":2}}");
    }

    #[test]
    fn a_long_list_is_written_piece_by_piece() {
        let mut listing = Listing::of(asked(), "numbers", (0..100_000).collect(), |number: &u32| *number);
        let mut pieces = 0;
        while let Some(piece) = listing.piece().expect("JSON") {
            assert!(piece.len() < PIECE_BYTES + 20);
            pieces += 1;
        }
        assert!(pieces > 5, "{pieces}");
    }

    fn chunks(lengths: Vec<u32>) -> impl FnMut() -> Option<Vec<u32>> + Send {
        let mut lengths = lengths.into_iter();
        move || lengths.next().map(|length| (0..length).collect())
    }

    #[tokio::test]
    async fn chunks_are_read_when_they_are_sent_and_empty_ones_are_passed_over() {
        for lengths in [vec![], vec![0], vec![0, 3, 0, 0, 2], vec![1; 50], vec![40_000, 0, 40_000]] {
            let count: u32 = 2 + lengths.iter().sum::<u32>();
            let listing = Listing::of(asked(), "numbers", vec![0, 1], |number: &u32| *number);
            let response = listing.then(chunks(lengths)).respond().await;
            let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.expect("a body");
            let body: Value = serde_json::from_slice(&body).expect("JSON");
            assert_eq!(body["numbers"].as_array().map(Vec::len), Some(count as usize));
        }
    }

    #[tokio::test]
    async fn each_piece_waits_for_its_turn() {
        let unanswered = Unanswered::new(2);
        let client = Client::Address([192, 0, 2, 1].into());
        let busy = unanswered.ask(client.clone()).expect("the first");
        let asked = unanswered.ask(client).expect("the second");
        let listing = Listing::of(asked, "numbers", (0..100_000).collect(), |number: &u32| *number);
        let body = listing.respond().await.into_body();
        let mut rest = std::pin::pin!(axum::body::to_bytes(body, usize::MAX));

        let turn = busy.turn().await.expect("a turn");
        for _ in 0..1000 {
            assert!(futures::poll!(rest.as_mut()).is_pending());
        }
        drop(turn);
        rest.await.expect("a body");
    }

    #[tokio::test]
    async fn a_reader_that_takes_nothing_has_a_chunk_in_memory_and_counts_until_it_is_gone() {
        let unanswered = Unanswered::new(1);
        let client = Client::Address([192, 0, 2, 1].into());
        let asked = unanswered.ask(client.clone()).expect("the only one");
        let read = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let counted = Arc::clone(&read);
        let mut chunks = chunks(vec![1000; 1000]);
        let more = move || {
            counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            chunks()
        };
        let listing = Listing::of(asked, "numbers", vec![0; 1000], |_: &u32| "x".repeat(100)).then(more);
        let response = listing.respond().await;
        assert!(read.load(std::sync::atomic::Ordering::Relaxed) <= 1, "no more than is sent");
        assert!(unanswered.ask(client.clone()).is_none(), "it is still being sent");
        drop(response);
        assert!(unanswered.ask(client).is_some());
    }
}
