//! Which answers are compressed: those to `GET` that are long or of unknown length, unless they must not be stored.
//!
//! An attacker who can have a text of theirs in an answer beside a secret, and see how long the answer is, can guess
//! the secret if both are compressed together (BREACH). No answer but those about tokens and sessions has a secret, in
//! headers: those of `/identity`, and those that say `Cache-Control: no-store`, are not compressed. Events of a stream
//! have to arrive at once, so they are not compressed either.

use axum::http::header::{ACCEPT_ENCODING, CACHE_CONTROL};
use axum::http::{Extensions, HeaderMap, HeaderValue, Method, StatusCode, Version};
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{NotForContentType, Predicate, SizeAbove};

use crate::accept::preferred_encoding;

/// Shorter answers gain nothing, in bytes: they fit one packet.
const WORTH_IT: u64 = 1024;

/// Compresses answers, with as little work as has an effect: a list is written by threads that serve requests.
pub(crate) fn layer() -> CompressionLayer<impl Predicate> {
    let may_be_stored = |_: StatusCode, _: Version, headers: &HeaderMap, _: &Extensions| {
        let directives = headers.get_all(CACHE_CONTROL).into_iter().filter_map(|value| value.to_str().ok());
        !directives.flat_map(|value| value.split(',')).any(|directive| directive.trim() == "no-store")
    };
    let worth_it = SizeAbove::new(WORTH_IT).and(NotForContentType::SSE).and(NotForContentType::IMAGES);
    CompressionLayer::new().quality(CompressionLevel::Fastest).compress_when(worth_it.and(may_be_stored))
}

/// Leaves one encoding in the request, or none. The layer would refuse a client that wants none that it has, when what
/// the client asked for is done already; an answer that is not encoded does no harm.
pub(crate) fn choose<B>(mut request: axum::http::Request<B>) -> axum::http::Request<B> {
    let may = request.method() == Method::GET && !request.uri().path().starts_with("/identity");
    let chosen = preferred_encoding(request.headers(), &["zstd", "gzip"]).filter(|_| may);
    match chosen {
        Some(encoding) => request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static(encoding)),
        None => request.headers_mut().remove(ACCEPT_ENCODING),
    };
    request
}
