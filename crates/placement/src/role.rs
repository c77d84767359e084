//! Role of a node for an instance.

/// Role that a node has, or would have, for an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Runs the instance.
    Primary,
    /// Holds the mirror.
    Secondary,
}
