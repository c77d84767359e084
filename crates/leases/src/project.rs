//! Whom a lease belongs to.

use std::fmt;

/// A project (tenant), by the name or identifier that the identity service uses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProjectId(pub String);

impl fmt::Display for ProjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A user, by the name or identifier that the identity service uses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserId(pub String);

/// Who asked for a lease, and for which project. Fixed for the life of the lease: no change of a lease can
/// carry another owner (W8).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    /// The project that the lease belongs to.
    pub project: ProjectId,
    /// The user who asked for it.
    pub user: UserId,
}
