//! Limit on the length of leases, with its scope.

use std::fmt;

use jiff::SignedDuration;

use crate::scoped::{Scope, ScopeKind};

/// A limit on the length of leases.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LengthLimit {
    pub longest: SignedDuration,
    /// The project, flavor or free pool that the limit is for; `None` for the general limit.
    pub scope: Option<Scope>,
}

/// Wording for reports of a search for hosts.
impl fmt::Display for LengthLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at most {} seconds{}", self.longest.as_secs(), of_scope(self.scope.as_ref()))
    }
}

/// Suffix such as ` for flavor m1.huge (leases.max_duration)`; empty for the general limit.
pub(crate) fn of_scope(scope: Option<&Scope>) -> String {
    let Some(Scope { kind, name }) = scope else { return String::new() };
    match kind {
        // The names of pools may be hidden from members.
        ScopeKind::Pool => " for its free pool (leases.max_duration)".to_owned(),
        kind => format!(" for {} {name} (leases.max_duration)", kind.name()),
    }
}
