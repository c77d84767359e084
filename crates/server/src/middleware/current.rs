//! Lets requests see what other services on the same store have committed before they came: a client that is
//! served by one and then by another finds what it has made.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;

use super::authenticate::public;
use crate::app::App;

/// Brings the service up to date. If the store cannot be reached, what is known is shown all the same; changes
/// are refused by the service.
pub(crate) async fn current(State(app): State<App>, request: Request, next: Next) -> Response {
    if !public(request.uri().path())
        && let Err(error) = app.service().refresh().await
    {
        tracing::debug!(%error, "what is shown may be old");
    }
    next.run(request).await
}
