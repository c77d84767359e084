//! Errors in the text format.

use thiserror::Error;

use crate::number::NumberError;

/// Error in a file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TextError {
    /// Sections are missing.
    #[error("Invalid format of the input file: {0} sections instead of 4 or more")]
    Sections(usize),
    /// Lines end in CR LF, so no line is empty.
    #[error("Invalid format of the input file: its lines end in CR LF; remove the CR (dos2unix)")]
    CarriageReturns,
    #[error(
        "Invalid format of the input file: this is JSON, not the text format; -I reads allocation requests"
    )]
    Json,
    #[error("line {line}: {error}")]
    Row {
        /// Line number, from 1.
        line: usize,
        error: RowError,
    },
}

/// Error in a row.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RowError {
    /// Too few fields.
    #[error("Invalid/incomplete {kind} data: '[{fields}]'")]
    Incomplete {
        /// Kind of row.
        kind: &'static str,
        /// The fields, quoted.
        fields: String,
    },
    /// A policy has too few fields.
    #[error("Invalid ipolicy data: '[{0}]'")]
    IncompletePolicy(String),
    /// A word that isn't one of the type's names.
    #[error("{prefix}Invalid string value for type {kind}: {word:?}")]
    Word {
        /// Start of the message.
        prefix: String,
        /// Name of the type.
        kind: &'static str,
        word: String,
    },
    #[error(transparent)]
    Number(#[from] NumberError),
    /// No group has the UUID.
    #[error("Unknown group '{group}' for node {node}")]
    UnknownGroup { group: String, node: String },
    /// Neither `Y` nor `N`.
    #[error("Invalid exclusive_storage value for node '{node}': {word}")]
    ExclusiveStorage { node: String, word: String },
    /// No node has the name.
    #[error("Unknown node '{node}' for instance {instance}")]
    UnknownNode { node: String, instance: String },
    /// Neither `Y` nor `N`.
    #[error("Invalid {what} value '{word}' for instance {instance}")]
    Flag {
        /// Name of the field.
        what: &'static str,
        word: String,
        instance: String,
    },
    /// A mirrored instance needs two different nodes.
    #[error("Instance {instance} has same primary and secondary node - {node}")]
    SameNodes { instance: String, node: String },
    /// The policy's owner is not the name of exactly one group.
    #[error("Wrong number of elems found with name {0}")]
    PolicyOwner(String),
    /// A size in a policy doesn't have six numbers.
    #[error("Invalid ispec data for {what}: [{fields}]")]
    Spec {
        /// Name of the size.
        what: String,
        /// The fields, quoted.
        fields: String,
    },
    /// A minimum without a maximum.
    #[error("Odd number of min/max specs for {0}")]
    OddSpecs(String),
}
