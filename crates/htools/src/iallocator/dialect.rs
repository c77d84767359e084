//! The dialects of the protocol.

/// Which dialect of the protocol a message is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Ganeti 2.5 and later; what is missing is an error.
    Current,
    /// Protocol version 2 of Ganeti 2.1; what that protocol did not have is assumed. It is recognized by a message
    /// without `nodegroups`, by groups and nodes that have nothing newer, or by a request for `multi-evacuate`.
    Version2,
}
