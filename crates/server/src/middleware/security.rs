//! Headers that tell browsers what they may do with an answer, whatever it is.

use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::middleware::Next;
use axum::response::Response;

use crate::public::{limited, public};

/// What answers that are no page may do in a browser: nothing.
const POLICY: HeaderValue = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");

/// Personal answers are stored nowhere, so that nothing of them outlives a session.
const PERSONAL: HeaderValue = HeaderValue::from_static("private, no-store");

/// The request headers that say who asks, for caches that store an answer all the same.
const CREDENTIALS: HeaderValue =
    HeaderValue::from_static("Authorization, Cookie, X-Auth-Token, X-Project-Id, X-Allot-Console");

/// Has browsers take an answer for what it says it is, run nothing in it, tell nobody else where a user was, and store
/// it only if its address is public. A page that says itself what it may load keeps that.
pub(crate) async fn harden(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let personal = !public(path) || limited(path);
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(POLICY);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    if personal {
        headers.insert(CACHE_CONTROL, PERSONAL);
        headers.append(VARY, CREDENTIALS);
    }
    response
}
