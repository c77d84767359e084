//! Policy checks, their targets, and their evaluation.

use leases::project::{ProjectId, UserId};

use crate::auth::identity::Identity;

/// Owner of the object of a call, for example of the lease. The caller, if a call has no object.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    pub project: &'a ProjectId,
    pub user: &'a UserId,
}

impl<'a> Target<'a> {
    pub fn caller(identity: &'a Identity) -> Self {
        Self { project: &identity.project, user: &identity.user }
    }
}

/// Parsed form of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// Always holds: `@`, or an empty rule.
    Always,
    /// Never holds: `!`.
    Never,
    /// `role:NAME`.
    Role(String),
    /// `rule:NAME`.
    Rule(String),
    /// `is_admin:True`. No caller has this flag; administrators are recognized by role.
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

/// Attribute that both callers and targets have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attribute {
    Project,
    User,
}

impl Attribute {
    /// Parses a name. `tenant` is an old word for project.
    pub fn of(name: &str) -> Option<Self> {
        match name {
            "project_id" | "tenant_id" | "tenant" => Some(Self::Project),
            "user_id" | "user" => Some(Self::User),
            _ => None,
        }
    }
}

/// Value that an attribute of the caller is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// `%(project_id)s`: attribute of the target.
    OfTarget(Attribute),
    Text(String),
}

impl Check {
    /// Evaluates the check. `rule` evaluates other rules by name.
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

    /// Whether the check depends on the role, ignoring case.
    pub fn names_role(&self, role: &str) -> bool {
        match self {
            Self::Role(name) => name.eq_ignore_ascii_case(role),
            Self::Not(check) => check.names_role(role),
            Self::And(checks) | Self::Or(checks) => checks.iter().any(|check| check.names_role(role)),
            _ => false,
        }
    }

    /// Names of the rules that the check refers to.
    pub fn references(&self) -> Vec<&str> {
        match self {
            Self::Rule(name) => vec![name],
            Self::Not(check) => check.references(),
            Self::And(checks) | Self::Or(checks) => checks.iter().flat_map(Self::references).collect(),
            _ => Vec::new(),
        }
    }
}
