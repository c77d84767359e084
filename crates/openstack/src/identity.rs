//! Keystone: its URL, and validation of tokens.

use reqwest::Url;
use reqwest::header::HeaderName;
use secrecy::{ExposeSecret, SecretString};

use crate::call::{Api, Call};
use crate::error::Error;
use crate::session::Session;
use crate::token::{MOST_BYTES, SUBJECT, Token};

/// Header with the version of access rules that this service enforces.
const ACCESS_RULES: HeaderName = HeaderName::from_static("openstack-identity-access-rules");

/// URL of Keystone's version 3, from the URL that operators know: `http://HOST:5000`, with or without `/v3`.
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

/// Validates a token. `None` if it is unknown, expired or revoked. The session's user needs the role
/// `service` or `admin`. The response has no catalog. A 401 is an ordinary error and doesn't discard the
/// session's own token, so clients can't force logins: [`validate_own`] tells whether that token is still
/// valid.
pub async fn validate(session: &Session, token: &SecretString) -> Result<Option<Token>, Error> {
    if !is_token(token) {
        return Ok(None);
    }
    match session.call_once_logged_in(&validation(token)).await {
        Ok(answer) => {
            Token::read(&answer.body).map(Some).map_err(|error| answer.malformed(&error.to_string()))
        }
        Err(error) if error.status() == Some(404) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Validates the session's own token. If that fails, no other token can be validated either. Logs in again if
/// Keystone rejects the session's token.
pub async fn validate_own(session: &Session) -> Result<(), Error> {
    let token = session.secret().await?;
    match session.call(&validation(&token)).await {
        Ok(_) => Ok(()),
        // The token was replaced in the meantime, but Keystone has responded.
        Err(error) if error.status() == Some(404) => Ok(()),
        Err(error) => Err(error),
    }
}

fn validation(token: &SecretString) -> Call {
    Call::get(Api::Identity, "validate token", &["auth", "tokens"])
        .with_query("nocatalog", "1")
        // Without this header, Keystone rejects tokens with access rules, because it can't know that they are
        // enforced.
        .with_header(ACCESS_RULES, "1.0")
        .with_secret(SUBJECT, token.clone())
        .at_most(MOST_BYTES)
}

/// Whether Keystone has a project with this identifier, enabled or not. By default, Keystone requires a
/// reader of the project's domain or of the system for that.
pub async fn has_project(session: &Session, id: &str) -> Result<bool, Error> {
    let call = Call::get(Api::Identity, "show project", &["projects", id]);
    match session.call(&call).await {
        Ok(_) => Ok(true),
        Err(error) if error.status() == Some(404) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether the text can be the value of a header.
fn is_token(token: &SecretString) -> bool {
    let token = token.expose_secret();
    !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic())
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
}
