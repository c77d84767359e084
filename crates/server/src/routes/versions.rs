//! Discovery of API versions (API-versions). Version 2 of Blazar is deprecated and not offered.

use api::v1::body::Link;
use axum::Json;
use axum::extract::State;
use axum::http::header::{HOST, VARY};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::accept::prefers_html;
use crate::app::App;
use crate::console;

/// Versions of the API.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct VersionsBody {
    /// Versions of the API.
    versions: Vec<Version>,
}

/// A version of the API.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "names of the wire")]
pub(crate) struct Version {
    /// Identifier of the version.
    id: String,
    /// Always CURRENT.
    status: String,
    /// Links to the version.
    links: Vec<Link>,
    /// Lowest supported microversion.
    min_version: String,
    /// Highest supported microversion.
    max_version: String,
}

/// Base URL of this server: the configured one, or the one in the request.
pub(crate) fn base_url(app: &App, headers: &HeaderMap) -> String {
    let config = &app.inner.config;
    if let Some(url) = &config.public_url {
        return url.trim_end_matches('/').to_owned();
    }
    let scheme = if config.tls.is_some() { "https" } else { "http" };
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    host.map_or_else(|| format!("{scheme}://{}", config.listen), |host| format!("{scheme}://{host}"))
}

fn document(app: &App, headers: &HeaderMap) -> Response {
    let version = Version {
        id: "v1.0".to_owned(),
        status: "CURRENT".to_owned(),
        links: vec![Link { href: format!("{}/v1", base_url(app, headers)), rel: "self".to_owned() }],
        min_version: "1.0".to_owned(),
        max_version: "1.0".to_owned(),
    };
    (StatusCode::MULTIPLE_CHOICES, Json(VersionsBody { versions: vec![version] })).into_response()
}

/// List versions of the API, or show the console to clients that prefer HTML.
#[utoipa::path(
    get, path = "/", tag = "versions", operation_id = "list_versions_at_root",
    responses(
        (status = 300, body = VersionsBody),
        (status = 200, description = "The console, for clients that prefer HTML", content_type = "text/html", body = String),
        (status = 304, description = "The client has the current console"),
    )
)]
pub(crate) async fn root(State(app): State<App>, headers: HeaderMap) -> Response {
    if prefers_html(&headers) {
        return console::page(&headers);
    }
    ([(VARY, "Accept")], document(&app, &headers)).into_response()
}

/// List versions of the API.
#[utoipa::path(
    get, path = "/versions", tag = "versions", operation_id = "list_versions",
    responses((status = 300, body = VersionsBody))
)]
pub(crate) async fn versions(State(app): State<App>, headers: HeaderMap) -> Response {
    document(&app, &headers)
}
