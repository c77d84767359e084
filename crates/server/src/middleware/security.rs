//! Headers of all responses that restrict what browsers do with them.

use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::middleware::Next;
use axum::response::Response;

use crate::public::{limited, public};

/// Content security policy of responses that aren't pages: everything is forbidden.
const POLICY: HeaderValue = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");

/// Personal responses are never stored, so they don't outlive a session.
const PERSONAL: HeaderValue = HeaderValue::from_static("private, no-store");

/// Request headers that identify the client, for caches that store a response all the same.
const CREDENTIALS: HeaderValue =
    HeaderValue::from_static("Authorization, Cookie, X-Auth-Token, X-Project-Id, X-Allot-Console");

/// Adds headers by which browsers rely on the declared media type, run nothing in a response, send no referrer to other
/// sites, and store only responses of public paths. A page that sets its own content security policy keeps it.
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
