//! What is wrong with a text.

use thiserror::Error;

use crate::number::NumberError;

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TextError {
    /// Not all sections are there.
    #[error("Invalid format of the input file: {0} sections instead of 4 or more")]
    Sections(usize),
    /// Its lines end as on other systems, so that no line is empty.
    #[error("Invalid format of the input file: its lines end in CR LF; remove the CR (dos2unix)")]
    CarriageReturns,
    /// It is in another format.
    #[error(
        "Invalid format of the input file: this is JSON, not the text format; -I reads allocation requests"
    )]
    Json,
    /// A row is wrong.
    #[error("line {line}: {error}")]
    Row {
        /// The row's line, counted from 1.
        line: usize,
        /// Why.
        error: RowError,
    },
}

/// What is wrong with a row.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RowError {
    /// Too few fields.
    #[error("Invalid/incomplete {kind} data: '[{fields}]'")]
    Incomplete {
        /// Which kind of row.
        kind: &'static str,
        /// The fields, quoted.
        fields: String,
    },
    /// Too few fields in a policy.
    #[error("Invalid ipolicy data: '[{0}]'")]
    IncompletePolicy(String),
    /// A word that must be one of a few is none of them.
    #[error("{prefix}Invalid string value for type {kind}: {word:?}")]
    Word {
        /// What precedes the message.
        prefix: String,
        /// What the words stand for.
        kind: &'static str,
        /// The word.
        word: String,
    },
    /// A number does not read.
    #[error(transparent)]
    Number(#[from] NumberError),
    /// No group of that UUID.
    #[error("Unknown group '{group}' for node {node}")]
    UnknownGroup {
        /// The UUID.
        group: String,
        /// The node.
        node: String,
    },
    /// Neither `Y` nor `N`.
    #[error("Invalid exclusive_storage value for node '{node}': {word}")]
    ExclusiveStorage {
        /// The node.
        node: String,
        /// What was found.
        word: String,
    },
    /// No node of that name.
    #[error("Unknown node '{node}' for instance {instance}")]
    UnknownNode {
        /// The name.
        node: String,
        /// The instance.
        instance: String,
    },
    /// Neither `Y` nor `N`.
    #[error("Invalid {what} value '{word}' for instance {instance}")]
    Flag {
        /// Which field.
        what: &'static str,
        /// What was found.
        word: String,
        /// The instance.
        instance: String,
    },
    /// A mirrored instance needs two nodes.
    #[error("Instance {instance} has same primary and secondary node - {node}")]
    SameNodes {
        /// The instance.
        instance: String,
        /// The node.
        node: String,
    },
    /// A policy for something that is not exactly one group.
    #[error("Wrong number of elems found with name {0}")]
    PolicyOwner(String),
    /// A specification without its six numbers.
    #[error("Invalid ispec data for {what}: [{fields}]")]
    Spec {
        /// Which one.
        what: String,
        /// The fields, quoted.
        fields: String,
    },
    /// A minimum without maximum.
    #[error("Odd number of min/max specs for {0}")]
    OddSpecs(String),
}
