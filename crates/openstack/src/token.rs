//! What Keystone says of a token.

use jiff::{SignedDuration, Timestamp};
use reqwest::header::HeaderName;
use serde::Deserialize;
use thiserror::Error;

use crate::access_rule::AccessRule;
use crate::catalog::Catalog;

/// Largest answer about a token, bytes.
pub(crate) const MOST_BYTES: usize = 4 << 20;

/// The header that a new token comes in, and that a token which is asked about goes in.
pub(crate) const SUBJECT: HeaderName = HeaderName::from_static("x-subject-token");

/// Something with an identifier, a name, and a domain that the name is unique in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The identifier, unique in the cloud.
    pub id: String,
    /// The name; nothing if Keystone does not say.
    pub name: String,
    /// The domain's name; nothing if Keystone does not say.
    pub domain: String,
}

/// An application credential that a token was issued for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplicationCredential {
    /// Its identifier.
    pub id: String,
    /// What it may be used for; none if for everything that its user may do.
    pub access_rules: Option<Vec<AccessRule>>,
}

/// What a token stands for.
#[derive(Clone, Debug)]
pub struct Token {
    /// Whose it is.
    pub user: Named,
    /// The project that it is for; none if it is unscoped, or for a domain or the system.
    pub project: Option<Named>,
    /// Names of the roles in the project, implied ones included.
    pub roles: Vec<String>,
    /// Since when it is valid.
    pub issued_at: Timestamp,
    /// Until when it is valid.
    pub expires_at: Timestamp,
    /// The application credential that it was issued for, if it was.
    pub application_credential: Option<ApplicationCredential>,
    /// The services that there are, if Keystone was asked for them.
    pub catalog: Catalog,
}

/// Why what Keystone says of a token cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TokenError {
    /// It is not the document that it should be.
    #[error("{0}")]
    Form(String),
    /// A date that is missing or none.
    #[error("{field} is no date: {value:?}")]
    Date {
        /// Which.
        field: &'static str,
        /// What is there.
        value: String,
    },
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
    /// Reads the answer to a login or to a validation.
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

    /// How long it is valid from when it was issued. It is the difference of two times of Keystone's clock, so the clock
    /// here does not matter.
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
