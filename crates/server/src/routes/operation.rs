//! Health, readiness and metrics, for operators.

use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::accept::prefers_openmetrics;
use crate::app::App;
use crate::error::ApiError;

/// Check that the process runs.
#[utoipa::path(
    get, path = "/healthz", tag = "operation", operation_id = "healthz",
    responses((status = 200, body = String, content_type = "text/plain"))
)]
pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// Check that requests can be served.
///
/// The store must be writable, and the loop must run. The response is `ready`, or `degraded` with a reason if
/// requests are served, but leases can't start or end until an operator fixes the problem.
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
            // Still 200: if a load balancer removed this service, clients couldn't even read leases.
            Some(why) => {
                (StatusCode::OK, format!("degraded: {why}, so no lease can start or end\n")).into_response()
            }
        },
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")).into_response(),
    }
}

/// Get metrics for Prometheus.
///
/// The format is `OpenMetrics` for clients that prefer it, as Prometheus does, and otherwise the older text
/// format.
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
