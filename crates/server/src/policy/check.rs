//! Checks, what they are about, and whether they hold.

use leases::project::{ProjectId, UserId};

use crate::auth::identity::Identity;

/// What a call is about: the owner of the lease, or the caller where it is about nothing in particular.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The project.
    pub project: &'a ProjectId,
    /// The user.
    pub user: &'a UserId,
}

impl<'a> Target<'a> {
    /// The caller.
    pub fn caller(identity: &'a Identity) -> Self {
        Self { project: &identity.project, user: &identity.user }
    }
}

/// A check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// Holds always: `@`, or nothing at all.
    Always,
    /// Holds never: `!`.
    Never,
    /// `role:NAME`.
    Role(String),
    /// `rule:NAME`.
    Rule(String),
    /// `is_admin:True`: nobody is, other than by a role.
    IsAdmin(bool),
    /// `project_id:...` or `user_id:...`.
    Equals(Attribute, Value),
    /// `not ...`.
    Not(Box<Check>),
    /// `... and ...`.
    And(Vec<Check>),
    /// `... or ...`.
    Or(Vec<Check>),
}

/// Something that both a caller and a lease have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attribute {
    /// The project.
    Project,
    /// The user.
    User,
}

impl Attribute {
    /// That of this name; `tenant` is the old one of a project.
    pub fn of(name: &str) -> Option<Self> {
        match name {
            "project_id" | "tenant_id" | "tenant" => Some(Self::Project),
            "user_id" | "user" => Some(Self::User),
            _ => None,
        }
    }
}

/// What an attribute of the caller is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// `%(project_id)s`: that of what the call is about.
    OfTarget(Attribute),
    /// Text.
    Text(String),
}

impl Check {
    /// Whether it holds; `rule` says whether another rule does.
    pub fn holds(&self, caller: &Identity, target: &Target<'_>, rule: &dyn Fn(&str) -> bool) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Role(name) => caller.roles.has(name),
            Self::Rule(name) => rule(name),
            Self::IsAdmin(wanted) => !wanted,
            Self::Equals(attribute, value) => {
                let mine = match attribute {
                    Attribute::Project => &caller.project.0,
                    Attribute::User => &caller.user.0,
                };
                let other = match value {
                    Value::Text(text) => text,
                    Value::OfTarget(Attribute::Project) => &target.project.0,
                    Value::OfTarget(Attribute::User) => &target.user.0,
                };
                mine == other
            }
            Self::Not(check) => !check.holds(caller, target, rule),
            Self::And(checks) => checks.iter().all(|check| check.holds(caller, target, rule)),
            Self::Or(checks) => checks.iter().any(|check| check.holds(caller, target, rule)),
        }
    }

    /// Whether it depends on a role.
    pub fn names_role(&self, role: &str) -> bool {
        match self {
            Self::Role(name) => name.eq_ignore_ascii_case(role),
            Self::Not(check) => check.names_role(role),
            Self::And(checks) | Self::Or(checks) => checks.iter().any(|check| check.names_role(role)),
            _ => false,
        }
    }

    /// The rules that it names.
    pub fn references(&self) -> Vec<&str> {
        match self {
            Self::Rule(name) => vec![name],
            Self::Not(check) => check.references(),
            Self::And(checks) | Self::Or(checks) => checks.iter().flat_map(Self::references).collect(),
            _ => Vec::new(),
        }
    }
}
