//! Keystone: where it is, what a token of somebody else stands for, and what access rules allow.

use reqwest::Url;
use reqwest::header::HeaderName;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use crate::call::{Api, Call};
use crate::error::Error;
use crate::session::Session;
use crate::token::Token;

/// Largest answer about a token, bytes.
pub(crate) const MOST_BYTES: usize = 4 << 20;

/// The header that a new token comes in, and that a token which is asked about goes in.
pub(crate) const SUBJECT: HeaderName = HeaderName::from_static("x-subject-token");

/// Which version of access rules is obeyed.
const ACCESS_RULES: HeaderName = HeaderName::from_static("openstack-identity-access-rules");

/// The address of version 3 of Keystone, from the address that operators know: `http://HOST:5000`, with `/v3` or without.
pub fn identity_url(text: &str) -> Result<Url, String> {
    let mut url = Url::parse(text).map_err(|error| format!("{text:?} is no address: {error}"))?;
    if !["http", "https"].contains(&url.scheme()) || url.host_str().is_none() {
        return Err(format!(
            "{text:?} is no address of Keystone: write http://HOST:5000/v3 or https://HOST:5000/v3"
        ));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("Keystone's address must have no user and no password in it".to_owned());
    }
    url.set_query(None);
    url.set_fragment(None);
    let path = url.path().trim_end_matches('/').to_owned();
    if path.ends_with("/v2.0") {
        return Err(format!("{text:?} is of version 2.0 of Keystone: write the address of version 3"));
    }
    url.set_path(&if path.ends_with("/v3") { path } else { format!("{path}/v3") });
    Ok(url)
}

/// What a token stands for; none if it is unknown, expired or revoked. The session's user needs the role `service` or
/// `admin`. The answer has no catalog.
pub async fn validate(session: &Session, token: &SecretString) -> Result<Option<Token>, Error> {
    let call = Call::get(Api::Identity, "validate token", &["auth", "tokens"])
        .with_query("nocatalog", "1")
        // Without it Keystone refuses tokens that have access rules, since it cannot know that they are obeyed.
        .with_header(ACCESS_RULES, "1.0")
        .with_secret(SUBJECT, token.clone())
        .at_most(MOST_BYTES);
    if !is_token(token) {
        return Ok(None);
    }
    match session.call(&call).await {
        Ok(answer) => {
            Token::read(&answer.body).map(Some).map_err(|error| answer.malformed(&error.to_string()))
        }
        Err(error) if error.status() == Some(404) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether Keystone has a project of that identifier, disabled or not. By default it says so to readers of the project's
/// domain and of the system.
pub async fn has_project(session: &Session, id: &str) -> Result<bool, Error> {
    let call = Call::get(Api::Identity, "show project", &["projects", id]);
    match session.call(&call).await {
        Ok(_) => Ok(true),
        Err(error) if error.status() == Some(404) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether it can be in a header.
fn is_token(token: &SecretString) -> bool {
    let token = token.expose_secret();
    !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic())
}

/// A kind of request that an application credential may be used for; all others are refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct AccessRule {
    /// The type of the service: `reservation`.
    #[serde(default)]
    pub service: String,
    /// The method: `GET`.
    #[serde(default)]
    pub method: String,
    /// The path: `/v1/leases/*`. `*` and `{NAME}` stand for one part of it, `**` for any number of them.
    #[serde(default)]
    pub path: String,
}

impl AccessRule {
    /// Whether it allows a request to a service of that type.
    pub fn allows(&self, service: &str, method: &str, path: &str) -> bool {
        self.service == service && self.method == method && path_fits(&self.path, path)
    }
}

/// A part of a pattern.
#[derive(Clone, Copy)]
enum Piece {
    Byte(u8),
    /// One character or more, no slash among them.
    Segment,
    /// Anything, nothing included.
    Anything,
}

fn pieces(pattern: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = pattern;
    while let Some(first) = rest.bytes().next() {
        if let Some(after) = rest.strip_prefix("**") {
            pieces.push(Piece::Anything);
            rest = after;
        } else if let Some(after) = rest.strip_prefix('*') {
            pieces.push(Piece::Segment);
            rest = after;
        } else if let Some(end) = rest.find('}').filter(|_| first == b'{') {
            pieces.push(Piece::Segment);
            rest = &rest[end + 1..];
        } else {
            let next = rest.chars().next().map_or(1, char::len_utf8);
            pieces.extend(rest[..next].bytes().map(Piece::Byte));
            rest = &rest[next..];
        }
    }
    pieces
}

/// Whether the whole path fits the pattern. Takes as long as the product of their lengths at most.
fn path_fits(pattern: &str, path: &str) -> bool {
    let path = path.as_bytes();
    // For each piece, up to which bytes of the path the pieces before it can reach.
    let mut reached = vec![false; path.len() + 1];
    reached[0] = true;
    for piece in pieces(pattern) {
        let mut next = vec![false; path.len() + 1];
        match piece {
            Piece::Byte(wanted) => {
                for (at, byte) in path.iter().enumerate() {
                    next[at + 1] = reached[at] && *byte == wanted;
                }
            }
            Piece::Segment => {
                for (at, byte) in path.iter().enumerate() {
                    next[at + 1] = *byte != b'/' && (reached[at] || next[at]);
                }
            }
            Piece::Anything => {
                let mut open = false;
                for at in 0..=path.len() {
                    open |= reached[at];
                    next[at] = open;
                }
            }
        }
        reached = next;
    }
    reached[path.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keystones_address_may_have_its_version_or_not() {
        for (text, expected) in [
            ("http://k:5000", "http://k:5000/v3"),
            ("http://k:5000/", "http://k:5000/v3"),
            ("https://k/identity/v3/", "https://k/identity/v3"),
            ("https://k/identity?x#y", "https://k/identity/v3"),
        ] {
            assert_eq!(identity_url(text).map(|url| url.to_string()), Ok(expected.to_owned()), "{text}");
        }
        for wrong in ["k:5000", "ftp://k", "http://k/v2.0", "", "k"] {
            assert!(identity_url(wrong).is_err(), "{wrong}");
        }
        assert!(!identity_url("http://u:secret@k").expect_err("a password").contains("secret"));
    }

    #[test]
    fn an_access_rule_allows_what_its_path_stands_for_and_nothing_else() {
        let fits = |pattern, path| path_fits(pattern, path);
        assert!(
            fits("/v1/leases", "/v1/leases")
                && !fits("/v1/leases", "/v1/leases/")
                && !fits("/v1/leases", "/v1/lease")
        );
        for one in ["/v1/leases/*", "/v1/leases/{lease_id}"] {
            assert!(
                fits(one, "/v1/leases/a-b") && !fits(one, "/v1/leases/") && !fits(one, "/v1/leases/a/b"),
                "{one}"
            );
        }
        assert!(fits("/v1/**", "/v1/leases/a/b") && fits("/v1/**", "/v1/") && !fits("/v1/**", "/v2/leases"));
        assert!(fits("/v1/*/x**y", "/v1/a/xpqy") && !fits("/v1/*/x**y", "/v1/a/xpq"));
        assert!(fits("/v1/{unclosed", "/v1/{unclosed") && !fits("/v1/leases.", "/v1/leasesx"));
        assert!(!fits("", "/v1") && fits("**", "") && fits("/é*", "/éa"));

        let rule = AccessRule {
            service: "reservation".to_owned(),
            method: "GET".to_owned(),
            path: "/v1/leases".to_owned(),
        };
        assert!(rule.allows("reservation", "GET", "/v1/leases"));
        assert!(!rule.allows("reservation", "POST", "/v1/leases"));
        assert!(!rule.allows("compute", "GET", "/v1/leases"));
        assert!(!AccessRule::default().allows("reservation", "GET", "/v1/leases"));
    }
}
