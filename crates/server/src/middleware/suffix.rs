//! Alternative spellings of paths: every path of version 1 also exists with the suffix `.json`
//! (API-addresses), and login URLs are often configured with a trailing slash.

use axum::http::Uri;
use axum::http::uri::PathAndQuery;

/// Rewrites the request's path to its canonical form.
pub(crate) fn strip<B>(mut request: axum::http::Request<B>) -> axum::http::Request<B> {
    if let Some(uri) = stripped(request.uri()) {
        *request.uri_mut() = uri;
    }
    request
}

fn stripped(uri: &Uri) -> Option<Uri> {
    let path = match uri.path() {
        "/identity/" => "/identity",
        "/identity/v3/" => "/identity/v3",
        path => path.strip_suffix(".json").filter(|path| path.starts_with("/v1/"))?,
    };
    let short = match uri.query() {
        Some(query) => PathAndQuery::try_from(format!("{path}?{query}")),
        None => PathAndQuery::try_from(path),
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(short.ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_version_1_lose_their_ending_and_others_keep_it() {
        let strip = |uri: &'static str| stripped(&Uri::from_static(uri)).map(|uri| uri.to_string());
        assert_eq!(strip("/v1/leases.json").as_deref(), Some("/v1/leases"));
        assert_eq!(strip("/v1/leases/7.json?a=b.json").as_deref(), Some("/v1/leases/7?a=b.json"));
        assert_eq!(strip("/openapi.json"), None);
        assert_eq!(strip("/identity/v3/").as_deref(), Some("/identity/v3"));
        assert_eq!(strip("/v1/leases"), None);
    }
}
