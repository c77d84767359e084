//! How requests of the console are told from those of others.

use axum::http::header::COOKIE;
use axum::http::{HeaderMap, HeaderName};
use secrecy::SecretString;

/// The name of the session's cookie.
pub(crate) const NAME: &str = "allot_session";

/// The header that the console sends, and no page of another site can.
const CONSOLE: HeaderName = HeaderName::from_static("x-allot-console");

/// Whether the console sends this, or somebody who says so: a page of another site cannot.
pub(crate) fn is_of_console(headers: &HeaderMap) -> bool {
    headers.contains_key(CONSOLE)
}

/// The value of the session's cookie, if there is one.
pub(crate) fn cookie(headers: &HeaderMap) -> Option<SecretString> {
    let cookies = headers.get_all(COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == NAME).map(|(_, value)| SecretString::from(value))
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn the_cookie_is_found_among_others_and_in_several_headers() {
        let found = |values: &[&str]| {
            let headers: HeaderMap = values.iter().map(|v| (COOKIE, v.parse().expect("a value"))).collect();
            cookie(&headers).map(|value| value.expose_secret().to_owned())
        };
        assert_eq!(found(&["allot_session=a.b=="]).as_deref(), Some("a.b=="));
        assert_eq!(found(&["x=1; allot_session=a; y=2"]).as_deref(), Some("a"));
        assert_eq!(found(&["x=1", "allot_session=a"]).as_deref(), Some("a"));
        assert_eq!(found(&["xallot_session=a; allot_sessions=b; allot_session"]), None);
    }
}
