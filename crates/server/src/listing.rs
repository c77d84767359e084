//! Long lists, which are written as they are sent: a client that asks for all there is and takes none of it would
//! otherwise keep all of it in memory, once for each time that it asks.

use axum::body::{Body, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures::stream;
use serde::Serialize;

use crate::error::ApiError;

/// So much is written at once.
const PIECE_BYTES: usize = 1 << 16;

/// The answer `{"FIELD": [...]}`.
pub(crate) struct Listing<T, W> {
    items: std::vec::IntoIter<T>,
    show: fn(&T) -> W,
    /// What comes after the list.
    end: String,
    /// What is written, and not sent yet.
    written: Vec<u8>,
    any: bool,
    done: bool,
}

impl<T, W: Serialize> Listing<T, W> {
    /// Of these, as they are shown.
    pub fn new(field: &str, items: Vec<T>, show: fn(&T) -> W) -> Self {
        let written = format!("{{\"{field}\":[").into_bytes();
        Self { items: items.into_iter(), show, end: "]}".to_owned(), written, any: false, done: false }
    }

    /// With another field beside the list.
    pub fn with(self, field: &str, value: &impl Serialize) -> Result<Self, ApiError> {
        let value = serde_json::to_string(value).map_err(|error| unwritten(&error))?;
        Ok(Self { end: format!("],\"{field}\":{value}}}"), ..self })
    }

    /// The next piece; nothing if all is written.
    fn piece(&mut self) -> Result<Option<Bytes>, serde_json::Error> {
        if self.done {
            return Ok(None);
        }
        while self.written.len() < PIECE_BYTES {
            let Some(item) = self.items.next() else {
                self.written.extend_from_slice(self.end.as_bytes());
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
    tracing::error!(%error, "an answer cannot be written");
    ApiError::internal()
}

impl<T: Send + 'static, W: Serialize + 'static> IntoResponse for Listing<T, W> {
    fn into_response(mut self) -> Response {
        let first = match self.piece() {
            Ok(first) => first.unwrap_or_default(),
            Err(error) => return unwritten(&error).into_response(),
        };
        // What is short has a length.
        let body = if self.done { Body::from(first) } else { Body::from_stream(pieces(first, self)) };
        ([(CONTENT_TYPE, "application/json")], body).into_response()
    }
}

fn pieces<T, W: Serialize>(
    first: Bytes,
    listing: Listing<T, W>,
) -> impl stream::Stream<Item = Result<Bytes, serde_json::Error>> {
    stream::unfold((Some(first), listing), async |(first, mut listing)| {
        let piece = match first {
            Some(first) => Ok(Some(first)),
            None => listing.piece(),
        };
        piece.transpose().map(|piece| (piece, (None, listing)))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    async fn answered(items: Vec<u32>) -> Value {
        let listing = Listing::new("numbers", items, |number| json!({"n": number, "text": "x".repeat(100)}));
        let response = listing.with("links", &["a"]).expect("JSON").into_response();
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
            assert_eq!(body["links"], json!(["a"]));
        }
    }

    #[test]
    fn a_long_list_is_written_piece_by_piece() {
        let mut listing = Listing::new("numbers", (0..100_000).collect(), |number: &u32| *number);
        let mut pieces = 0;
        while let Some(piece) = listing.piece().expect("JSON") {
            assert!(piece.len() < PIECE_BYTES + 20);
            pieces += 1;
        }
        assert!(pieces > 5, "{pieces}");
    }
}
