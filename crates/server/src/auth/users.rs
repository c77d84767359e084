//! Users and their roles in projects, from a file.

use std::collections::BTreeMap;
use std::path::Path;

use leases::project::{ProjectId, UserId};
use serde::Deserialize;

use super::failures::shown;
use super::file::{self, AuthFileError, Form, Warning, WarningKind};
use super::hash::{Strength, fingerprint, strength};
use super::identity::{Identity, Names, Roles};

/// Warning for a weak hash.
const WEAK: &str = "the password_hash is weak: replace it by one that `allot hash password` prints";

const FORM: Form = Form {
    list: "users",
    required: &["name", "password_hash", "projects"],
    optional: &["id", "default_project", "disabled"],
};

#[derive(Debug, Deserialize)]
struct File {
    users: Vec<User>,
}

/// An entry of the users' file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct User {
    /// Login name.
    pub name: String,
    /// User identifier that owns leases. Defaults to the name.
    #[serde(default)]
    pub(super) id: Option<String>,
    /// Argon2id hash as a PHC string.
    pub password_hash: String,
    pub projects: BTreeMap<String, Vec<String>>,
    /// Project of requests that don't name one. Defaults to the first by name.
    #[serde(default)]
    pub(super) default_project: Option<String>,
    /// Rejects the user's logins and tokens for now.
    #[serde(default)]
    pub(super) disabled: bool,
}

impl User {
    /// User identifier that owns leases.
    pub fn id(&self) -> &str {
        self.id.as_deref().unwrap_or(&self.name)
    }

    /// Hash of the user's entry, as far as it concerns the project. Any change to name, identifier, password
    /// or roles changes it.
    pub fn entry(&self, project: &ProjectId) -> String {
        let mut parts = vec![self.id(), &self.name, &self.password_hash, &project.0];
        parts.extend(self.projects.get(&project.0).into_iter().flatten().map(String::as_str));
        let parts: Vec<&[u8]> = parts.into_iter().map(str::as_bytes).collect();
        fingerprint(&parts)
    }

    /// The user's identity in `project`, or in the default project. `None` if the user has no role there.
    pub fn identity(&self, project: Option<&str>) -> Option<Identity> {
        let usual = self.default_project.as_ref().or_else(|| self.projects.keys().next());
        let project = project.or(usual.map(String::as_str))?;
        let roles = self.projects.get(project).filter(|roles| !roles.is_empty())?;
        Some(Identity {
            user: UserId(self.id().to_owned()),
            project: ProjectId(project.to_owned()),
            roles: Roles::new(roles),
            names: Names { user: self.name.clone(), project: project.to_owned() },
        })
    }
}

/// Users of the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Users {
    all: Vec<User>,
    warnings: Vec<Warning>,
}

impl Users {
    pub fn read(path: &Path) -> Result<Self, AuthFileError> {
        Self::parse(path, &file::text_of(path)?)
    }

    pub fn parse(path: &Path, text: &str) -> Result<Self, AuthFileError> {
        let mut file: file::Read<File> = file::parse(path, text, &FORM)?;
        let mut mistakes = std::mem::take(&mut file.mistakes);
        let users = &file.value.users;
        let mut warnings = Vec::new();
        for (position, user) in users.iter().enumerate() {
            let whose = format!("user {}", shown(&user.name));
            let mut wrong = |field: &str, message: &str| {
                mistakes.push(AuthFileError::Entry {
                    path: path.to_owned(),
                    line: file.line_of_field(position, field),
                    entry: whose.clone(),
                    message: message.to_owned(),
                });
            };
            match strength(&user.password_hash) {
                Strength::Unusable(reason) => wrong("password_hash", reason),
                Strength::Weak => {
                    warnings.push(file.warning(path, position, &whose, WarningKind::Hash(WEAK)));
                }
                Strength::Fine => {}
            }
            let roles: Vec<String> = user.projects.values().flatten().cloned().collect();
            warnings.extend(file.unknown_roles(path, position, &whose, &roles));
            if users[..position].iter().any(|other| other.name == user.name || other.id() == user.id()) {
                wrong("name", "another user has this name or id");
            }
            if user.default_project.as_ref().is_some_and(|project| !user.projects.contains_key(project)) {
                wrong("default_project", "default_project isn't one of the user's projects");
            }
        }
        AuthFileError::all(mistakes)?;
        Ok(Self { all: file.value.users, warnings })
    }

    pub fn all(&self) -> &[User] {
        &self.all
    }

    /// Warnings about entries.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Finds an enabled user by `id`, or by `name` if `id` is `None`.
    pub fn find(&self, name: Option<&str>, id: Option<&str>) -> Option<&User> {
        self.all.iter().filter(|user| !user.disabled).find(|user| match (id, name) {
            (Some(id), _) => user.id() == id,
            (None, Some(name)) => user.name == name,
            (None, None) => false,
        })
    }
}
