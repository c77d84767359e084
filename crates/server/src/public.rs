//! Paths that need no authentication.

use crate::console;

/// Path of the console's session.
pub(crate) const SESSION: &str = "/v1/session";

/// Whether the route is for monitoring. Programs request such routes every few seconds.
pub(crate) fn is_probe(route: &str) -> bool {
    matches!(route, "/healthz" | "/readyz" | "/metrics")
}

/// Whether the path is public: versions, the console's files, the OpenAPI document and monitoring. The local
/// Keystone asks for credentials itself.
pub(crate) fn public(path: &str) -> bool {
    matches!(path, "/" | "/versions" | "/openapi.json")
        || is_probe(path)
        || path == "/identity"
        || path == "/identity/v3"
        || path.starts_with("/identity/v3/")
        || path.starts_with(console::ASSETS)
}

/// Whether the path accepts passwords. Such paths are public, but rate limited.
pub(crate) fn limited(path: &str) -> bool {
    path.starts_with("/identity/v3/") || path == SESSION
}
