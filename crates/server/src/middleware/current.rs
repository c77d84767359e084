//! Shows requests everything that other services on the same store have committed before, so a client finds
//! the objects that it created through another service.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::error::ApiError;
use crate::public::public;

/// Refreshes the service from the store. If the store is unreachable, reads show the known state, writes are
/// rejected, and 404 is replaced by an error, since another service could have created the object.
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
