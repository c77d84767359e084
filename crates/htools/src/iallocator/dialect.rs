//! Dialects of the iallocator protocol.

/// Dialect that a message is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Ganeti 2.5 and later. Missing keys are errors.
    Current,
    /// Protocol version 2 of Ganeti 2.1. Keys that it didn't have get defaults. It's recognized by a message
    /// without `nodegroups`, by groups and nodes without newer keys, or by a `multi-evacuate` request.
    Version2,
}
