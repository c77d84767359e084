//! Assigns identifiers to requests, logs them and counts them.

use ambient::Stopwatch;
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::DATE;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use leases::text::quoted;
use tracing::Instrument;
use tracing::field::Empty;

use crate::app::App;
use crate::public::is_probe;
use crate::request::{RequestId, peer};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-openstack-request-id");

/// Assigns an identifier to the request, and logs and counts its outcome. The caller's own identifier for the
/// request is logged, too, but not sent back (API-answers).
pub(crate) async fn context(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let watch = Stopwatch::start();
    let id = format!("req-{}", leases::ids::LeaseId(app.inner.ids.uuid()));
    let method = request.method().clone();
    // The route's pattern rather than the path: it is the same for all leases, and callers can't make it up.
    let route = request.extensions().get::<MatchedPath>().map_or("unmatched", MatchedPath::as_str).to_owned();
    let global = global_id(request.headers()).unwrap_or_default();
    let path = shown_path(&route, request.uri().path());
    let peer = peer(request.extensions()).map(|peer| peer.to_string()).unwrap_or_default();
    let (user, project, user_name, project_name) = (Empty, Empty, Empty, Empty);
    let shown_method = quoted(method.as_str());
    let span = tracing::info_span!(
        "request",
        id,
        global,
        method = shown_method,
        route,
        path,
        peer,
        user,
        user_name,
        project,
        project_name
    );
    request.extensions_mut().insert(RequestId(id.clone()));
    let mut response = next.run(request).instrument(span.clone()).await;
    let elapsed = watch.elapsed();
    app.inner.metrics.served(&method, &route, response.status(), elapsed);
    span.in_scope(|| {
        let milliseconds = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        let status = response.status().as_u16();
        if is_routine(&route, response.status()) {
            tracing::debug!(status, milliseconds, "served");
        } else {
            tracing::info!(status, milliseconds, "served");
        }
    });
    if let Ok(value) = HeaderValue::try_from(id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    // The service's clock rather than the machine's. Clients of a service whose clock runs faster need to
    // know its time.
    let date = app.service().clock().now().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    if let Ok(value) = HeaderValue::try_from(date) {
        response.headers_mut().insert(DATE, value);
    }
    response
}

/// Whether the request is a successful probe. Programs send one every few seconds.
fn is_routine(route: &str, status: StatusCode) -> bool {
    is_probe(route) && status.is_success()
}

/// Path for logs. Parts chosen by the caller are shown only if they are identifiers, because anything else
/// could be a misplaced secret.
fn shown_path(route: &str, path: &str) -> String {
    if route == "unmatched" {
        return "*".to_owned();
    }
    let parts = route
        .split('/')
        .zip(path.split('/'))
        .map(|(pattern, part)| if !pattern.starts_with('{') || is_identifier(part) { part } else { "*" });
    parts.collect::<Vec<_>>().join("/")
}

/// Whether the part is a UUID or a number of at most 20 digits.
fn is_identifier(part: &str) -> bool {
    let number = part.len() <= 20 && part.bytes().all(|b| b.is_ascii_digit());
    number || (part.len() == 36 && api::v1::lease_id(part).is_some())
}

/// Identifier that the caller gave the request. `None` if malformed.
fn global_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(REQUEST_ID)?.to_str().ok()?;
    let uuid = id.strip_prefix("req-")?;
    (uuid.len() == 36 && api::v1::lease_id(uuid).is_some()).then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_probes_that_succeed_are_logged_at_debug() {
        assert!(is_routine("/healthz", StatusCode::OK) && is_routine("/metrics", StatusCode::OK));
        assert!(!is_routine("/readyz", StatusCode::SERVICE_UNAVAILABLE));
        assert!(!is_routine("/v1/leases", StatusCode::OK));
    }

    #[test]
    fn a_path_is_shown_as_far_as_it_holds_identifiers() {
        let route = "/v1/leases/{lease_id}";
        let id = "/v1/leases/6ee2bd2f-6b5b-4b6e-8f5c-2d1b6f1c3e77";
        assert_eq!(shown_path(route, id), id);
        assert_eq!(shown_path("/v1/os-hosts/{host_id}", "/v1/os-hosts/17"), "/v1/os-hosts/17");
        assert_eq!(shown_path(route, "/v1/leases/s%22e%0Acret"), "/v1/leases/*");
        assert_eq!(shown_path("/v1/a/{b}/c", "/v1/a/se-cret/c"), "/v1/a/*/c");
        assert_eq!(shown_path("unmatched", "/secret"), "*");
    }
}
