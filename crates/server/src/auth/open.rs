//! No authentication, for a server that is reachable only from its own machine.

use async_trait::async_trait;
use axum::http::HeaderMap;
use axum::http::header::{HOST, ORIGIN};
use leases::project::{ProjectId, UserId};

use super::credentials::Credentials;
use super::identity::{Authenticator, Denial, Identity, Names, Roles};

/// Makes every caller the administrator, in the project `admin`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open;

#[async_trait]
impl Authenticator for Open {
    async fn authenticate(&self, _: &Credentials) -> Result<Identity, Denial> {
        Ok(Identity {
            user: UserId("admin".to_owned()),
            project: ProjectId("admin".to_owned()),
            roles: Roles::new(["admin"]),
            names: Names::default(),
        })
    }
}

/// Whether the headers `Host` and `Origin` name this machine. Otherwise a web page in a local browser could
/// send requests in the user's name, directly or through a host name that it makes resolve to this machine.
pub(crate) fn says_local(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let host = text(HOST).is_none_or(is_loopback);
    let origin = text(ORIGIN)
        .is_none_or(|origin| origin.split_once("://").is_some_and(|(_, authority)| is_loopback(authority)));
    host && origin
}

fn is_loopback(authority: &str) -> bool {
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => host,
        _ => authority,
    };
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || address.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_local() {
        for local in ["localhost", "localhost:1234", "127.0.0.1:1", "[::1]:1234", "127.9.9.9"] {
            assert!(is_loopback(local), "{local}");
        }
        for foreign in ["evil.example", "evil.example:1234", "10.0.0.1:80", "localhost.evil.example", ""] {
            assert!(!is_loopback(foreign), "{foreign}");
        }
    }

    #[test]
    fn a_page_from_elsewhere_is_not_local() {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, "localhost:1234".parse().expect("a value"));
        assert!(says_local(&headers));
        headers.insert(ORIGIN, "https://evil.example".parse().expect("a value"));
        assert!(!says_local(&headers));
        headers.insert(ORIGIN, "http://localhost:1234".parse().expect("a value"));
        assert!(says_local(&headers));
        headers.insert(ORIGIN, "null".parse().expect("a value"));
        assert!(!says_local(&headers));
    }
}
