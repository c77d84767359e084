//! Credentials of a request.

use std::net::IpAddr;

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, Method};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use secrecy::SecretString;

/// Credentials of a request, with the facts needed to check them.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    /// `X-Auth-Token`.
    pub token: Option<SecretString>,
    /// User name and password from HTTP basic authentication.
    pub password: Option<(String, SecretString)>,
    /// Requested project (`X-Project-Id`), for credentials that aren't bound to one.
    pub project: Option<String>,
    /// Client's address. `None` without a socket.
    pub peer: Option<IpAddr>,
    /// Method and path, for credentials that are restricted by access rules. `None` matches no rule, so such
    /// credentials are rejected.
    pub asked: Option<Asked>,
}

/// Login to the console.
#[derive(Clone, Debug)]
pub(crate) enum Attempt {
    Token(SecretString),
    /// Login with a password, for a named project or the user's default one.
    Password {
        /// Ignored if `id` is set.
        name: Option<String>,
        id: Option<String>,
        password: SecretString,
        project: Option<String>,
    },
}

impl Attempt {
    /// User name or identifier, as sent by the client.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Token(_) => None,
            Self::Password { name, id, .. } => id.as_deref().or(name.as_deref()),
        }
    }
}

/// Method and path of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    pub method: Method,
    /// Not decoded.
    pub path: String,
}

impl Credentials {
    /// Whether there is neither a token nor a password.
    pub fn is_empty(&self) -> bool {
        self.token.is_none() && self.password.is_none()
    }

    /// Credentials of the same request with `token` instead of its own.
    #[must_use]
    pub fn with_token(&self, token: SecretString) -> Self {
        Self { token: Some(token), password: None, project: None, ..self.clone() }
    }

    #[must_use]
    pub fn for_request(self, method: &Method, path: &str) -> Self {
        Self { asked: Some(Asked { method: method.clone(), path: path.to_owned() }), ..self }
    }

    /// Reads the headers of a request. `asked` remains unset.
    pub fn of(headers: &HeaderMap, peer: Option<IpAddr>) -> Self {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        Self {
            token: text("x-auth-token").filter(|token| !token.is_empty()).map(SecretString::from),
            password: headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).and_then(basic),
            project: text("x-project-id").map(str::to_owned),
            peer,
            asked: None,
        }
    }
}

fn basic(header: &str) -> Option<(String, SecretString)> {
    let (scheme, encoded) = header.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (name, password) = decoded.split_once(':')?;
    Some((name.to_owned(), SecretString::from(password)))
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn a_password_may_have_colons_and_a_broken_header_has_no_password() {
        let (name, password) = basic("Basic YWxpY2U6YTpiOmM=").expect("well formed");
        assert_eq!((name.as_str(), password.expose_secret()), ("alice", "a:b:c"));
        for wrong in ["Basic", "Basic !", "Bearer YWxpY2U6YTpi", "Basic YWxpY2U="] {
            assert!(basic(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn no_log_prints_a_token_or_a_password() {
        let mut headers = HeaderMap::new();
        headers.insert("x-auth-token", "sesame".parse().expect("a value"));
        headers.insert(AUTHORIZATION, "Basic YWxpY2U6c2VzYW1l".parse().expect("a value"));
        let printed = format!("{:?}", Credentials::of(&headers, None));
        assert!(printed.contains("alice") && !printed.contains("sesame"), "{printed}");
    }
}
