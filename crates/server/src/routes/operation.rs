//! Health, readiness and metrics, for operators.

use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::accept::prefers_openmetrics;
use crate::app::App;
use crate::error::ApiError;

/// Whether the process runs: it answers.
#[utoipa::path(
    get, path = "/healthz", tag = "operation", operation_id = "healthz",
    responses((status = 200, body = String, content_type = "text/plain"))
)]
pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// Whether requests can be served: the store can be written to, and the loop runs. The answer is `ready`, or `degraded`
/// with the reason if requests are served, but no lease can start or end before an operator sets something right.
#[utoipa::path(
    get, path = "/readyz", tag = "operation", operation_id = "readyz",
    responses(
        (status = 200, body = String, content_type = "text/plain"),
        (status = 503, body = String, content_type = "text/plain"),
    )
)]
pub(crate) async fn readyz(State(app): State<App>) -> Response {
    match app.service().ready().await {
        Ok(()) => match app.service().fleet_obstacle() {
            None => (StatusCode::OK, "ready\n".to_owned()).into_response(),
            // Without this service behind its load balancer, clients could not even read leases.
            Some(why) => {
                (StatusCode::OK, format!("degraded: {why}, so no lease can start or end\n")).into_response()
            }
        },
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")).into_response(),
    }
}

/// Figures for Prometheus: in the `OpenMetrics` format for a client that prefers it, as Prometheus does, and in the older
/// text format for any other.
#[utoipa::path(
    get, path = "/metrics", tag = "operation", operation_id = "metrics",
    responses((status = 200, content(
        (String = "text/plain"),
        (String = "application/openmetrics-text"),
    )))
)]
pub(crate) async fn metrics(State(app): State<App>, headers: HeaderMap) -> Result<Response, ApiError> {
    let metrics = &app.inner.metrics;
    let (text, content_type) = if prefers_openmetrics(&headers) {
        (metrics.text(), "application/openmetrics-text; version=1.0.0; charset=utf-8")
    } else {
        (metrics.older_text(), "text/plain; version=0.0.4; charset=utf-8")
    };
    let text = text.map_err(|_| ApiError::internal())?;
    Ok(([(CONTENT_TYPE, content_type), (VARY, "Accept")], text).into_response())
}
