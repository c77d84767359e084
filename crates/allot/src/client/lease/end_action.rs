//! Actions for instances at the end of a lease.

use clap::ValueEnum;

/// End actions as command lines name them.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum EndAction {
    /// Delete them
    Delete,
    /// Leave them where they are
    Keep,
    /// Take images of instances on its hosts, then delete them
    Snapshot,
    /// Move them to hosts without leases, as far as possible; the rest stay
    Migrate,
}

impl EndAction {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Keep => "keep",
            Self::Snapshot => "snapshot",
            Self::Migrate => "migrate",
        }
    }
}
