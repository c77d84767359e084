//! Which addresses are open to everybody.

use crate::console;

/// The address of the console's session.
pub(crate) const SESSION: &str = "/v1/session";

/// Whether the route is for monitoring. Programs request such routes every few seconds.
pub(crate) fn is_probe(route: &str) -> bool {
    matches!(route, "/healthz" | "/readyz" | "/metrics")
}

/// What everybody may see: which versions there are, the console's files, the document, and how the server is. The local
/// Keystone asks for credentials itself.
pub(crate) fn public(path: &str) -> bool {
    matches!(path, "/" | "/versions" | "/openapi.json")
        || is_probe(path)
        || path == "/identity"
        || path == "/identity/v3"
        || path.starts_with("/identity/v3/")
        || path.starts_with(console::ASSETS)
}

/// What is public, and limited nevertheless: where passwords can be tried.
pub(crate) fn limited(path: &str) -> bool {
    path.starts_with("/identity/v3/") || path == SESSION
}
