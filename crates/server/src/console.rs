//! The console: a page and its assets, built into the server ([`build.rs`](../build.rs) embeds them).
//!
//! They need no authentication. The page gets its data from the API like any other client.

use std::sync::OnceLock;

use axum::extract::Path;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::auth::fingerprint;
use crate::error::ApiError;

/// The page, if it was built, and its assets in ascending order of their names.
mod built {
    include!(concat!(env!("OUT_DIR"), "/console.rs"));

    pub(super) fn index() -> Option<&'static [u8]> {
        INDEX
    }

    pub(super) fn assets() -> &'static [(&'static str, &'static [u8])] {
        ASSETS
    }
}

/// Path prefix of the page's assets.
pub(crate) const ASSETS: &str = "/console/assets/";

/// Content security policy of the page: no inline scripts or styles, and nothing from other hosts.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; font-src 'self'; base-uri 'none'; frame-ancestors 'none'; \
                      form-action 'self'";

/// Page of a server that was built without the console.
const NOT_BUILT: &str = "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>Allotment</title></head>\n\
    <body>\n<h1>Allotment</h1>\n<p>The service runs, but this program was built without the console.</p>\n\
    <p>To build it, install Node.js and run in the source directory:</p>\n\
    <pre>cargo xtask console\ncargo build --release -p allot</pre>\n\
    <p>The API is described by <a href=\"/openapi.json\">/openapi.json</a>.</p>\n</body>\n</html>\n";

/// The page. Browsers revalidate it on every use.
pub(crate) fn page(headers: &HeaderMap) -> Response {
    static TAG: OnceLock<String> = OnceLock::new();
    let content = built::index().unwrap_or(NOT_BUILT.as_bytes());
    let tag = TAG.get_or_init(|| format!("W/\"{}\"", &fingerprint(&[content])[..32]));
    let about = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CACHE_CONTROL, "no-cache"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (ETAG, tag.as_str()),
        (VARY, "Accept"),
    ];
    if knows(headers, tag) {
        return (StatusCode::NOT_MODIFIED, about).into_response();
    }
    (about, content).into_response()
}

/// Whether the client already has this version of a response (RFC 9110 §13.1.2).
pub(crate) fn knows(headers: &HeaderMap, tag: &str) -> bool {
    let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    let known = headers.get_all(IF_NONE_MATCH).into_iter().filter_map(|value| value.to_str().ok());
    known.flat_map(|list| list.split(',')).any(|known| known.trim() == "*" || opaque(known) == opaque(tag))
}

/// An asset of the page. Its name changes with its content, so browsers may cache it.
pub(crate) async fn asset(Path(name): Path<String>) -> Result<Response, ApiError> {
    let assets = built::assets();
    let position = assets.binary_search_by(|(other, _)| (*other).cmp(name.as_str()));
    let Ok(position) = position else {
        return Err(ApiError::framework(StatusCode::NOT_FOUND, "Not Found"));
    };
    let about: [(HeaderName, &str); 2] =
        [(CONTENT_TYPE, media_type(&name)), (CACHE_CONTROL, "public, max-age=31536000, immutable")];
    Ok((about, assets[position].1).into_response())
}

/// Media type by file extension.
fn media_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("html") => "text/html; charset=utf-8",
        Some("txt") => "text/plain; charset=utf-8",
        Some("json" | "map") => "application/json",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/vnd.microsoft.icon",
        Some("webp") => "image/webp",
        Some("woff2") => "font/woff2",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_known_however_it_is_quoted() {
        let knows = |value: &str| {
            let headers = HeaderMap::from_iter([(IF_NONE_MATCH, value.parse().expect("a value"))]);
            super::knows(&headers, "W/\"a1\"")
        };
        assert!(knows("W/\"a1\"") && knows("\"a1\"") && knows("\"b\", W/\"a1\"") && knows("*"));
        assert!(!knows("\"a\"") && !knows("") && !knows("W/\"a12\""));
    }

    #[test]
    fn the_parts_of_the_page_are_in_order() {
        assert!(built::assets().is_sorted_by(|a, b| a.0 < b.0), "they are looked for by halves");
    }
}
