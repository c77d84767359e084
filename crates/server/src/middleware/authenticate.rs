//! Finds out who sends a request. Whatever is not public by its address needs valid credentials, addresses that
//! lead nowhere included, so that a new route is closed until somebody opens it.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::context::RequestId;
use crate::app::{App, Session};
use crate::auth::{self, Credentials};
use crate::error::ApiError;

/// What everybody may see: which versions there are, the document, and how the server is. The small Keystone
/// asks for credentials itself.
pub(crate) fn public(path: &str) -> bool {
    matches!(path, "/" | "/versions" | "/openapi.json" | "/healthz" | "/readyz" | "/metrics")
        || path == "/identity"
        || path == "/identity/v3"
        || path.starts_with("/identity/v3/")
}

/// Lets a request in, with who sends it, or answers that it may not.
pub(crate) async fn authenticate(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let authentication = &app.inner.authentication;
    if authentication.open && !auth::says_local(request.headers()) {
        let message = "This service is open to its own machine only: ask for localhost.";
        return ApiError::new(StatusCode::FORBIDDEN, message).into_response();
    }
    if public(request.uri().path()) {
        return next.run(request).await;
    }
    let credentials = Credentials::of(request.headers());
    let Some(identity) = authentication.authenticate(&credentials).await else {
        return ApiError::unauthorized(authentication.basic).into_response();
    };
    tracing::debug!(user = identity.user.0, project = identity.project.0, "authenticated");
    let request_id = request.extensions().get::<RequestId>().map(|id| id.0.clone()).unwrap_or_default();
    request.extensions_mut().insert(Session { identity, request_id });
    next.run(request).await
}
