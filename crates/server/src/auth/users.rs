//! Users and their roles in projects, from a file.

use std::collections::BTreeMap;
use std::path::Path;

use leases::project::{ProjectId, UserId};
use serde::Deserialize;

use super::failures::shown;
use super::file::{self, AuthFileError, Form, Warning, WarningKind};
use super::hash::{Strength, fingerprint, strength};
use super::identity::{Identity, Names, Roles};

/// What is said of a hash that is weak.
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

/// A user.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct User {
    /// What the user types.
    pub name: String,
    /// What leases are kept under; the name if absent.
    #[serde(default)]
    pub(super) id: Option<String>,
    /// The argon2id hash of the password, as PHC string.
    pub password_hash: String,
    /// Roles by project.
    pub projects: BTreeMap<String, Vec<String>>,
    /// The project that is meant when none is named; the first by name if absent.
    #[serde(default)]
    pub(super) default_project: Option<String>,
    /// Whether the user may not come in, for now.
    #[serde(default)]
    pub(super) disabled: bool,
}

impl User {
    /// What leases are kept under.
    pub fn id(&self) -> &str {
        self.id.as_deref().unwrap_or(&self.name)
    }

    /// A hash of all that is said of the user and of that project: another one as soon as any of it changes.
    pub fn entry(&self, project: &ProjectId) -> String {
        let mut parts = vec![self.id(), &self.name, &self.password_hash, &project.0];
        parts.extend(self.projects.get(&project.0).into_iter().flatten().map(String::as_str));
        let parts: Vec<&[u8]> = parts.into_iter().map(str::as_bytes).collect();
        fingerprint(&parts)
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
            names: Names { user: self.name.clone(), project: project.to_owned() },
        })
    }
}

/// All users.
#[derive(Clone, Debug, Default)]
pub(crate) struct Users {
    all: Vec<User>,
    warnings: Vec<Warning>,
}

impl Users {
    /// Reads them from a file.
    pub fn read(path: &Path) -> Result<Self, AuthFileError> {
        Self::parse(path, &file::text_of(path)?)
    }

    /// Parses the content of a file.
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

    /// All of them.
    pub fn all(&self) -> &[User] {
        &self.all
    }

    /// Questionable entries.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The user of that name or identifier.
    pub fn find(&self, name: Option<&str>, id: Option<&str>) -> Option<&User> {
        self.all.iter().filter(|user| !user.disabled).find(|user| match (id, name) {
            (Some(id), _) => user.id() == id,
            (None, Some(name)) => user.name == name,
            (None, None) => false,
        })
    }
}
