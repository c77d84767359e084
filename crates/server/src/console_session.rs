//! Headers and cookies of the console: they mark its requests, and keep the users of one browser apart.

use axum::http::header::COOKIE;
use axum::http::{HeaderMap, HeaderName};
use percent_encoding::percent_decode;
use secrecy::SecretString;

use crate::auth::Identity;

/// Name of the session cookie over plain HTTP.
const NAME: &str = "allot_session";

/// Name of the session cookie over TLS. Browsers accept this prefix only from the host itself, so no other
/// host of its domain can set the cookie.
const HOST_NAME: &str = "__Host-allot_session";

/// Maximum number of session cookies that are tried. Only another host of the domain that wants to lock a
/// user out would set more.
const MAX_TRIED: usize = 16;

/// Name of the session cookie.
pub(crate) fn name(encrypted: bool) -> &'static str {
    if encrypted { HOST_NAME } else { NAME }
}

/// Header of the console's requests. Pages of other sites can't send it.
const CONSOLE: HeaderName = HeaderName::from_static("x-allot-console");

/// Whether the request comes from the console, or from a client that claims so. A page of another site can't.
pub(crate) fn is_of_console(headers: &HeaderMap) -> bool {
    headers.contains_key(CONSOLE)
}

/// Headers with the user and the project that a request is made for, percent-encoded.
const USER: HeaderName = HeaderName::from_static("x-allot-user");
const PROJECT: HeaderName = HeaderName::from_static("x-allot-project");

/// Whether the request is made for this user and project, or names none. All tabs of a browser share one
/// cookie, so a tab that was opened as one user would send the cookie of another user who has signed in
/// since.
pub(crate) fn is_meant_for(headers: &HeaderMap, identity: &Identity) -> bool {
    [(USER, &identity.user.0), (PROJECT, &identity.project.0)].into_iter().all(|(name, id)| {
        headers.get_all(name).into_iter().all(|value| percent_decode(value.as_bytes()).eq(id.bytes()))
    })
}

/// Values of the session cookies. There can be several, because another host of the same domain can set one.
pub(crate) fn cookies(headers: &HeaderMap, encrypted: bool) -> Vec<SecretString> {
    // Cookies of other applications on the domain can have any bytes. They must not hide this one.
    let pairs =
        headers.get_all(COOKIE).into_iter().flat_map(|list| list.as_bytes().split(|byte| *byte == b';'));
    pairs
        .filter_map(|pair| str::from_utf8(pair).ok())
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(found, _)| *found == name(encrypted))
        .map(|(_, value)| SecretString::from(value))
        .take(MAX_TRIED)
        .collect()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use leases::project::{ProjectId, UserId};
    use secrecy::ExposeSecret;

    use super::*;
    use crate::auth::{Names, Roles};

    #[test]
    fn a_request_is_meant_for_the_user_and_project_it_names_and_for_anyone_if_it_names_none() {
        let identity = Identity {
            user: UserId("zoë/1".to_owned()),
            project: ProjectId("p".to_owned()),
            roles: Roles::new(["member"]),
            names: Names::default(),
        };
        let meant = |headers: &[(HeaderName, &str)]| {
            let headers = headers.iter().map(|(name, value)| (name.clone(), value.parse().expect("a value")));
            is_meant_for(&headers.collect(), &identity)
        };
        assert!(meant(&[]));
        assert!(meant(&[(USER, "zo%C3%AB%2F1"), (PROJECT, "p")]));
        assert!(meant(&[(PROJECT, "p")]));
        for wrong in ["", "zoe", "zo%C3%AB%2f1%", "zo%C3%AB", "zo%EB/1", "p"] {
            assert!(!meant(&[(USER, wrong), (PROJECT, "p")]), "{wrong}");
        }
        assert!(!meant(&[(USER, "zo%C3%AB%2F1"), (PROJECT, "q")]));
        assert!(!meant(&[(USER, "zo%C3%AB%2F1"), (USER, "carl")]), "every value counts");
    }

    #[test]
    fn cookies_are_found_among_others_and_in_several_headers() {
        let found = |encrypted, values: &[&str]| {
            let headers: HeaderMap = values.iter().map(|v| (COOKIE, v.parse().expect("a value"))).collect();
            let values = cookies(&headers, encrypted);
            values.iter().map(|value| value.expose_secret().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(found(false, &["allot_session=a.b=="]), ["a.b=="]);
        assert_eq!(found(false, &["x=1; allot_session=a; y=2; allot_session=b"]), ["a", "b"]);
        assert_eq!(found(false, &["x=1", "allot_session=a"]), ["a"]);
        assert!(found(false, &["xallot_session=a; allot_sessions=b; allot_session"]).is_empty());
        let both = ["allot_session=a; __Host-allot_session=b"];
        assert_eq!((found(false, &both), found(true, &both)), (vec!["a".to_owned()], vec!["b".to_owned()]));
        assert_eq!(found(false, &[&"allot_session=a; ".repeat(1000)]).len(), MAX_TRIED);
        for foreign in ["x=\u{e9}; allot_session=a".as_bytes(), b"x=\xff; allot_session=a"] {
            let header = HeaderValue::from_bytes(foreign).expect("a value");
            assert_eq!(cookies(&HeaderMap::from_iter([(COOKIE, header)]), false).len(), 1);
        }
    }
}
