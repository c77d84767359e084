//! Which answers are compressed: those to `GET` that are long or of unknown length, except on routes about logins.
//!
//! An attacker who can have a text of theirs in an answer beside a secret, and see how long the answer is, can guess
//! the secret if both are compressed together (BREACH). Only answers about tokens and sessions have a secret, in headers,
//! so these routes are not compressed. Events of a stream have to arrive at once, so they are not compressed either.

use axum::http::header::ACCEPT_ENCODING;
use axum::http::{HeaderValue, Method};
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{NotForContentType, Predicate, SizeAbove};

use crate::accept::preferred_encoding;
use crate::public::SESSION;

/// Shorter answers gain nothing, in bytes: they fit one packet.
const WORTH_IT: u64 = 1024;

/// Compresses answers, with as little work as has an effect: a list is written by threads that serve requests.
pub(crate) fn layer() -> CompressionLayer<impl Predicate> {
    let worth_it = SizeAbove::new(WORTH_IT).and(NotForContentType::SSE).and(NotForContentType::IMAGES);
    CompressionLayer::new().quality(CompressionLevel::Fastest).compress_when(worth_it)
}

/// Leaves one encoding in the request, or none. The layer would refuse a client that wants none that it has, when what
/// the client asked for is done already; an answer that is not encoded does no harm.
pub(crate) fn choose<B>(mut request: axum::http::Request<B>) -> axum::http::Request<B> {
    let path = request.uri().path();
    let has_secrets = path == SESSION || path.starts_with("/identity");
    let may = request.method() == Method::GET && !has_secrets;
    let chosen = preferred_encoding(request.headers(), &["zstd", "gzip"]).filter(|_| may);
    match chosen {
        Some(encoding) => request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static(encoding)),
        None => request.headers_mut().remove(ACCEPT_ENCODING),
    };
    request
}
