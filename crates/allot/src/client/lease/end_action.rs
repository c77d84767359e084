//! Actions for instances at the end of a lease.

use clap::ValueEnum;

/// As command lines say it.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum EndAction {
    /// They are deleted
    Delete,
    /// They stay where they are
    Keep,
    /// Images are taken of those on its hosts, and then they are deleted
    Snapshot,
    /// They are moved to hosts that no lease has, as far as that is possible; the others stay
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
