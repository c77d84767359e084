//! Numbers requests, logs and counts them.

use ambient::Stopwatch;
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::DATE;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use tracing::Instrument;

use crate::app::App;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-openstack-request-id");

/// The identifier of a request: `req-` and a UUID.
#[derive(Clone, Debug)]
pub(crate) struct RequestId(pub String);

/// Gives the request an identifier of its own, and logs and counts what became of it. The identifier that the
/// caller gave it is logged beside, and not repeated (spec §1.3).
pub(crate) async fn context(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let watch = Stopwatch::start();
    let id = format!("req-{}", leases::ids::LeaseId(app.inner.ids.uuid()));
    let method = request.method().clone();
    // The pattern and not the address: it is the same for all leases, and cannot be made up by callers.
    let route = request.extensions().get::<MatchedPath>().map_or("unmatched", MatchedPath::as_str).to_owned();
    let global = global_id(request.headers()).unwrap_or_default();
    let span = tracing::info_span!("request", id, global, %method, route, path = request.uri().path());
    request.extensions_mut().insert(RequestId(id.clone()));
    let mut response = next.run(request).instrument(span.clone()).await;
    let elapsed = watch.elapsed();
    app.inner.metrics.served(&method, &route, response.status(), elapsed);
    span.in_scope(|| {
        let milliseconds = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        tracing::info!(status = response.status().as_u16(), milliseconds, "served");
    });
    if let Ok(value) = HeaderValue::try_from(id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    // The service's time rather than the machine's, so that clients of a clock that runs faster know it.
    let date = app.service().clock().now().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    if let Ok(value) = HeaderValue::try_from(date) {
        response.headers_mut().insert(DATE, value);
    }
    response
}

/// The identifier that the caller gave the request, unless it is malformed.
fn global_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(REQUEST_ID)?.to_str().ok()?;
    let uuid = id.strip_prefix("req-")?;
    (uuid.len() == 36 && api::v1::lease_id(uuid).is_some()).then(|| id.to_owned())
}
