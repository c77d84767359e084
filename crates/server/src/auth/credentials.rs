//! What a request says about who sends it.

use std::net::IpAddr;

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, Method};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use secrecy::SecretString;

/// What a request says about who sends it.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    /// `X-Auth-Token`.
    pub token: Option<SecretString>,
    /// Name and password, by HTTP basic.
    pub password: Option<(String, SecretString)>,
    /// The project that is meant (`X-Project-Id`), where the credentials do not say.
    pub project: Option<String>,
    /// Where the request comes from, if there is a socket.
    pub peer: Option<IpAddr>,
    /// What is asked, where that matters: credentials may be for some requests only. None is for no request.
    pub asked: Option<Asked>,
}

/// With what somebody tries to log in to the console.
#[derive(Clone, Debug)]
pub(crate) enum Attempt {
    /// With a token.
    Token(SecretString),
    /// With a password, for the project that is named or the usual one.
    Password {
        /// The user's name, unless the identifier is given.
        name: Option<String>,
        /// The user's identifier.
        id: Option<String>,
        /// The password.
        password: SecretString,
        /// The project.
        project: Option<String>,
    },
}

impl Attempt {
    /// The name or identifier that was given.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Token(_) => None,
            Self::Password { name, id, .. } => id.as_deref().or(name.as_deref()),
        }
    }
}

/// What a request asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The method.
    pub method: Method,
    /// The path, as it is sent.
    pub path: String,
}

impl Credentials {
    /// Whether the request has neither token nor password.
    pub fn is_empty(&self) -> bool {
        self.token.is_none() && self.password.is_none()
    }

    /// Those of somebody who has that token and asks the same.
    #[must_use]
    pub fn with_token(&self, token: SecretString) -> Self {
        Self { token: Some(token), password: None, project: None, ..self.clone() }
    }

    /// The same for a request of that method and path.
    #[must_use]
    pub fn for_request(self, method: &Method, path: &str) -> Self {
        Self { asked: Some(Asked { method: method.clone(), path: path.to_owned() }), ..self }
    }

    /// Those of a request, whatever it asks.
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
