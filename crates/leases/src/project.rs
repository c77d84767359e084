//! Ownership of leases.

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

/// The project and the user of a lease. Fixed for the life of the lease: no change can set another owner
/// (W8).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    pub project: ProjectId,
    /// The user that requested the lease.
    pub user: UserId,
}
