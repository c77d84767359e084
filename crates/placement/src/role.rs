//! What a node is to an instance that it is, or would be, a node of.

/// What a node is to an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// It runs the instance.
    Primary,
    /// It holds the mirror.
    Secondary,
}
