//! Credentials of a session, and Keystone's format for them.

use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

/// Maximum size of a secret's file, in bytes.
const LARGEST_SECRET: u64 = 64 * 1024;

/// A domain, by identifier or name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Domain {
    Id(String),
    Name(String),
}

/// A user, by identifier, or by name and domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum User {
    Id(String),
    Name(String, Domain),
}

/// A project, by identifier, or by name and domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Project {
    Id(String),
    Name(String, Domain),
}

/// A secret that must not be shown.
#[derive(Clone, Debug)]
pub enum Secret {
    Text(SecretString),
    /// A file with the secret. Line breaks around it are removed. The file is read at every login, so a new
    /// secret requires no restart.
    File(PathBuf),
}

/// Credentials of a session.
#[derive(Clone, Debug)]
pub enum Login {
    /// A user's password, for a project.
    Password { user: User, password: Secret, project: Project },
    /// An application credential, which determines the project.
    ApplicationCredential { id: String, secret: Secret },
    /// Another token, for a project.
    Token { token: Secret, project: Project },
}

impl Secret {
    /// Returns the secret. Blocks while it reads a file.
    pub(crate) fn read(&self) -> Result<SecretString, String> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            Self::File(path) => read(path),
        }
    }
}

fn read(path: &Path) -> Result<SecretString, String> {
    let wrong = |reason: &str| Err(format!("cannot read the secret in {}: {reason}", path.display()));
    match path.metadata() {
        Ok(metadata) if metadata.len() > LARGEST_SECRET => return wrong("it is longer than 64 KiB"),
        Ok(_) => {}
        Err(error) => return wrong(&error.to_string()),
    }
    match std::fs::read_to_string(path) {
        Ok(text) if text.trim_matches(['\r', '\n']).is_empty() => wrong("it is empty"),
        Ok(text) => Ok(SecretString::from(text.trim_matches(['\r', '\n']))),
        Err(error) => wrong(&error.to_string()),
    }
}

impl Login {
    /// Secret of the credentials.
    pub(crate) fn secret(&self) -> &Secret {
        match self {
            Self::Password { password, .. } => password,
            Self::ApplicationCredential { secret, .. } => secret,
            Self::Token { token, .. } => token,
        }
    }

    /// Body of `POST /v3/auth/tokens` with this secret.
    pub fn body(&self, secret: &SecretString) -> Value {
        let secret = secret.expose_secret();
        match self {
            Self::Password { user, project, .. } => {
                let mut user = match user {
                    User::Id(id) => json!({"id": id}),
                    User::Name(name, of) => json!({"name": name, "domain": domain(of)}),
                };
                user["password"] = json!(secret);
                let identity = json!({"methods": ["password"], "password": {"user": user}});
                json!({"auth": {"identity": identity, "scope": scope(project)}})
            }
            Self::ApplicationCredential { id, .. } => {
                let credential = json!({"id": id, "secret": secret});
                let methods = ["application_credential"];
                json!({"auth": {"identity": {"methods": methods, "application_credential": credential}}})
            }
            Self::Token { project, .. } => {
                let identity = json!({"methods": ["token"], "token": {"id": secret}});
                json!({"auth": {"identity": identity, "scope": scope(project)}})
            }
        }
    }
}

fn domain(domain: &Domain) -> Value {
    match domain {
        Domain::Id(id) => json!({"id": id}),
        Domain::Name(name) => json!({"name": name}),
    }
}

fn scope(project: &Project) -> Value {
    match project {
        Project::Id(id) => json!({"project": {"id": id}}),
        Project::Name(name, of) => json!({"project": {"name": name, "domain": domain(of)}}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_to_log_in_is_what_keystone_reads() {
        let default = || Domain::Name("Default".to_owned());
        let secret = || Secret::Text(SecretString::from("s3cret"));
        let project = || Project::Name("service".to_owned(), default());
        let scope = json!({"project": {"name": "service", "domain": {"name": "Default"}}});
        let body = |login: Login| login.body(&SecretString::from("s3cret"));

        let user = User::Name("allot".to_owned(), default());
        let by_name = Login::Password { user, password: secret(), project: project() };
        assert!(!format!("{by_name:?}").contains("s3cret"));
        let user = json!({"name": "allot", "domain": {"name": "Default"}, "password": "s3cret"});
        let identity = json!({"methods": ["password"], "password": {"user": user}});
        assert_eq!(body(by_name), json!({"auth": {"identity": identity, "scope": scope}}));

        let by_id = Login::Password {
            user: User::Id("u".to_owned()),
            password: secret(),
            project: Project::Name("p".to_owned(), Domain::Id("d".to_owned())),
        };
        let user = json!({"id": "u", "password": "s3cret"});
        let identity = json!({"methods": ["password"], "password": {"user": user}});
        let of_domain = json!({"project": {"name": "p", "domain": {"id": "d"}}});
        assert_eq!(body(by_id), json!({"auth": {"identity": identity, "scope": of_domain}}));

        let credential = Login::ApplicationCredential { id: "c".to_owned(), secret: secret() };
        let identity = json!({
            "methods": ["application_credential"], "application_credential": {"id": "c", "secret": "s3cret"},
        });
        assert_eq!(body(credential), json!({"auth": {"identity": identity}}));

        let token = Login::Token { token: secret(), project: Project::Id("p".to_owned()) };
        let identity = json!({"methods": ["token"], "token": {"id": "s3cret"}});
        assert_eq!(body(token), json!({"auth": {"identity": identity, "scope": {"project": {"id": "p"}}}}));
    }

    #[test]
    fn a_secret_in_a_file_is_read_without_the_end_of_its_line() {
        let path = std::env::temp_dir().join(format!("openstack-secret-{}", std::process::id()));
        std::fs::write(&path, "s3cret with spaces \n").expect("a file");
        let secret = Secret::File(path.clone());
        assert_eq!(
            secret.read().map(|secret| secret.expose_secret().to_owned()),
            Ok("s3cret with spaces ".to_owned())
        );
        std::fs::write(&path, "\n").expect("a file");
        assert!(secret.read().expect_err("empty").ends_with("it is empty"));
        std::fs::remove_file(&path).expect("it is there");
        assert!(secret.read().expect_err("gone").contains(&path.display().to_string()));
    }
}
