//! Compresses responses to `GET` that are long or of unknown length, except on login routes.
//!
//! An attacker who can put text into a response that also has a secret, and who can observe its length, can
//! guess the secret if both are compressed together (BREACH). Only responses about tokens and sessions have
//! secrets, in headers, so these routes are not compressed. Event streams must be delivered immediately, so
//! they are not compressed either.

use axum::http::header::ACCEPT_ENCODING;
use axum::http::{HeaderValue, Method};
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{NotForContentType, Predicate, SizeAbove};

use crate::accept::preferred_encoding;
use crate::public::SESSION;

/// Minimum length in bytes. Shorter responses fit in one packet, so they gain nothing.
const WORTH_IT: u64 = 1024;

/// Compresses at the fastest level, because threads that serve requests write the lists.
pub(crate) fn layer() -> CompressionLayer<impl Predicate> {
    let worth_it = SizeAbove::new(WORTH_IT).and(NotForContentType::SSE).and(NotForContentType::IMAGES);
    CompressionLayer::new().quality(CompressionLevel::Fastest).compress_when(worth_it)
}

/// Leaves at most one encoding in `Accept-Encoding`. If a client excludes all encodings that the layer has,
/// the layer would refuse the request after it was carried out. A response without encoding does no harm.
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
