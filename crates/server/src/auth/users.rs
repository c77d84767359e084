//! Users and their roles in projects, from a file.

use std::collections::BTreeMap;
use std::path::Path;

use leases::project::{ProjectId, UserId};
use serde::Deserialize;

use super::file::{self, AuthFileError};
use super::hash::is_password_hash;
use super::{Identity, Roles};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    users: Vec<User>,
}

/// A user.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct User {
    /// What the user types.
    pub name: String,
    /// What leases are kept under; the name if absent.
    #[serde(default)]
    id: Option<String>,
    /// The argon2id hash of the password, as PHC string.
    pub password_hash: String,
    /// Roles by project.
    pub projects: BTreeMap<String, Vec<String>>,
    /// The project that is meant when none is named; the first by name if absent.
    #[serde(default)]
    default_project: Option<String>,
}

impl User {
    /// What leases are kept under.
    pub fn id(&self) -> &str {
        self.id.as_deref().unwrap_or(&self.name)
    }

    /// The user in that project, or in the usual one. None without a role there.
    pub fn identity(&self, project: Option<&str>) -> Option<Identity> {
        let usual = self.default_project.as_ref().or_else(|| self.projects.keys().next());
        let project = project.or(usual.map(String::as_str))?;
        let roles = self.projects.get(project).filter(|roles| !roles.is_empty())?;
        Some(Identity {
            user: UserId(self.id().to_owned()),
            project: ProjectId(project.to_owned()),
            roles: Roles::new(roles),
        })
    }
}

/// All users.
#[derive(Clone, Debug)]
pub(crate) struct Users(Vec<User>);

impl Users {
    /// Reads them from a file.
    pub fn read(path: &Path) -> Result<Self, AuthFileError> {
        let file: File = file::read(path)?;
        for (position, user) in file.users.iter().enumerate() {
            let wrong = |message: &str| {
                Err(AuthFileError::Entry {
                    path: path.to_owned(),
                    entry: format!("user {}", user.name),
                    message: message.to_owned(),
                })
            };
            if !is_password_hash(&user.password_hash) {
                return wrong("password_hash must be an argon2 hash, `$argon2id$...`");
            }
            if file.users[..position].iter().any(|other| other.name == user.name || other.id() == user.id()) {
                return wrong("there is another user of that name or id");
            }
            if user.default_project.as_ref().is_some_and(|project| !user.projects.contains_key(project)) {
                return wrong("default_project is not among the user's projects");
            }
        }
        Ok(Self(file.users))
    }

    /// The user of that name or identifier.
    pub fn find(&self, name: Option<&str>, id: Option<&str>) -> Option<&User> {
        self.0.iter().find(|user| match (id, name) {
            (Some(id), _) => user.id() == id,
            (None, Some(name)) => user.name == name,
            (None, None) => false,
        })
    }
}
