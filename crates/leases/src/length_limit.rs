//! The longest that a lease may last, and what the limit is for.

use std::fmt;

use jiff::SignedDuration;

use crate::scoped::{Scope, ScopeKind};

/// A limit on the length of leases.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LengthLimit {
    /// The longest that is allowed.
    pub longest: SignedDuration,
    /// The project, flavor or free pool that the limit is for; `None` for the general limit.
    pub scope: Option<Scope>,
}

/// As in the report of a search for hosts.
impl fmt::Display for LengthLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at most {} seconds{}", self.longest.as_secs(), of_scope(self.scope.as_ref()))
    }
}

/// ` for flavor m1.huge (leases.max_duration)`; nothing for the general limit.
pub(crate) fn of_scope(scope: Option<&Scope>) -> String {
    let Some(Scope { kind, name }) = scope else { return String::new() };
    match kind {
        // Names of pools can be hidden from members.
        ScopeKind::Pool => " for its free pool (leases.max_duration)".to_owned(),
        kind => format!(" for {} {name} (leases.max_duration)", kind.name()),
    }
}
