//! Keystone's description of a token.

use jiff::{SignedDuration, Timestamp};
use reqwest::header::HeaderName;
use serde::Deserialize;
use thiserror::Error;

use crate::access_rule::AccessRule;
use crate::catalog::Catalog;

/// Maximum size of a response about a token, in bytes.
pub(crate) const MOST_BYTES: usize = 4 << 20;

/// Header of a new token in the response, and of the token to validate in a request.
pub(crate) const SUBJECT: HeaderName = HeaderName::from_static("x-subject-token");

/// An object with an identifier, and a name that is unique in its domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Unique in the cloud.
    pub id: String,
    /// Empty if Keystone doesn't include it.
    pub name: String,
    /// Name of the domain; empty if Keystone doesn't include it.
    pub domain: String,
}

/// An application credential that a token was issued for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplicationCredential {
    pub id: String,
    /// Allowed requests. `None` allows everything that the user is allowed.
    pub access_rules: Option<Vec<AccessRule>>,
}

/// Scope and validity of a token.
#[derive(Clone, Debug)]
pub struct Token {
    pub user: Named,
    /// `None` if the token is unscoped, or scoped to a domain or the system.
    pub project: Option<Named>,
    /// Names of the roles in the project, including implied roles.
    pub roles: Vec<String>,
    pub issued_at: Timestamp,
    pub expires_at: Timestamp,
    /// The application credential that the token was issued for, if any.
    pub application_credential: Option<ApplicationCredential>,
    /// Empty if the catalog wasn't requested.
    pub catalog: Catalog,
}

/// Invalid description of a token.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TokenError {
    /// The response isn't a token document.
    #[error("{0}")]
    Form(String),
    /// A date is missing or invalid.
    #[error("invalid date in {field}: {value:?}")]
    Date { field: &'static str, value: String },
}

#[derive(Deserialize)]
struct Document {
    token: Body,
}

#[derive(Deserialize)]
struct Body {
    user: Reference,
    #[serde(default)]
    project: Option<Reference>,
    #[serde(default)]
    roles: Vec<RoleBody>,
    #[serde(default)]
    issued_at: String,
    expires_at: String,
    #[serde(default)]
    application_credential: Option<CredentialBody>,
    #[serde(default)]
    catalog: Catalog,
}

#[derive(Deserialize)]
struct Reference {
    id: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    domain: Option<DomainBody>,
}

#[derive(Deserialize)]
struct DomainBody {
    #[serde(default)]
    name: Option<String>,
}

#[derive(Deserialize)]
struct RoleBody {
    name: String,
}

#[derive(Deserialize)]
struct CredentialBody {
    id: String,
    #[serde(default)]
    access_rules: Option<Vec<AccessRule>>,
}

impl From<Reference> for Named {
    fn from(reference: Reference) -> Self {
        let Reference { id, name, domain } = reference;
        Self {
            id,
            name: name.unwrap_or_default(),
            domain: domain.and_then(|domain| domain.name).unwrap_or_default(),
        }
    }
}

impl Token {
    /// Parses the response to a login or a validation.
    pub fn read(body: &[u8]) -> Result<Self, TokenError> {
        let document: Document =
            serde_json::from_slice(body).map_err(|error| TokenError::Form(error.to_string()))?;
        let Body { user, project, roles, issued_at, expires_at, application_credential, catalog } =
            document.token;
        let date = |field, value: String| {
            value
                .parse::<Timestamp>()
                .map_err(|_| TokenError::Date { field, value: crate::error::shown(&value) })
        };
        Ok(Self {
            user: user.into(),
            project: project.map(Named::from),
            roles: roles.into_iter().map(|role| role.name).collect(),
            issued_at: date("issued_at", issued_at)?,
            expires_at: date("expires_at", expires_at)?,
            application_credential: application_credential
                .map(|CredentialBody { id, access_rules }| ApplicationCredential { id, access_rules }),
            catalog,
        })
    }

    /// Duration from issue to expiry. Both times are from Keystone's clock, so it doesn't depend on the local
    /// clock.
    pub fn lifetime(&self) -> SignedDuration {
        self.expires_at.duration_since(self.issued_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_needed_may_be_anything_and_what_is_needed_must_be_there() {
        let token = Token::read(
            br#"{"token": {"user": {"id": "u", "name": "Ann", "domain": {"id": "default", "name": "Default"}, "x": 1},
                 "project": {"id": "p", "name": "physics", "domain": {"id": "d", "name": "D"}}, "is_domain": false,
                 "roles": [{"id": "r", "name": "member"}, {"name": "reader"}], "methods": ["password"], "OS-X": [],
                 "issued_at": "2026-11-25T16:00:00.000000Z", "expires_at": "2026-11-25T17:00:00.000000Z"}, "y": 2}"#,
        )
        .expect("a token");
        assert_eq!((token.user.name.as_str(), token.user.domain.as_str()), ("Ann", "Default"));
        assert_eq!(token.project.as_ref().map(|project| project.id.as_str()), Some("p"));
        assert_eq!(token.roles, ["member", "reader"]);
        assert_eq!(token.lifetime(), SignedDuration::from_hours(1));
        let dates = r#""issued_at": "2026-11-25T16:00:00Z", "expires_at": "2026-11-25T17:00:00Z""#;
        let unscoped = Token::read(format!(r#"{{"token": {{"user": {{"id": "u"}}, {dates}}}}}"#).as_bytes());
        assert!(unscoped.is_ok_and(|token| token.project.is_none() && token.roles.is_empty()));
        for wrong in [
            r#"{"token": {}}"#.to_owned(),
            format!(r#"{{"token": {{{dates}}}}}"#),
            r#"{"token": {"user": {"id": "u"}, "issued_at": "2026-11-25T16:00:00Z"}}"#.to_owned(),
            r#"{"token": {"user": {"id": "u"}, "issued_at": "2026-11-25T16:00:00Z", "expires_at": "soon"}}"#
                .to_owned(),
            "<html>".to_owned(),
        ] {
            assert!(Token::read(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
