//! Lets requests see what other services on the same store have committed before they came: a client that is
//! served by one and then by another finds what it has made.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::error::ApiError;
use crate::public::public;

/// Brings the service up to date. If the store cannot be reached, what is known is shown all the same; changes
/// are refused, and nothing is said not to be there, since another service may have made it.
pub(crate) async fn current(State(app): State<App>, request: Request, next: Next) -> Response {
    if public(request.uri().path()) {
        return next.run(request).await;
    }
    let Err(error) = app.service().refresh().await else { return next.run(request).await };
    if !request.method().is_safe() {
        return ApiError::from(error).into_response();
    }
    tracing::debug!(%error, "answer may be stale");
    let answer = next.run(request).await;
    if answer.status() == StatusCode::NOT_FOUND { ApiError::from(error).into_response() } else { answer }
}
