//! Errors and limits of extra specs.

use thiserror::Error;

use crate::text::{Quoted, quoted};

/// Maximum length of a key, and of a value, in characters: Nova's limit.
pub const MAX_LENGTH: usize = 255;
/// Maximum number of specs per reservation. Each is compared with each host.
pub const MAX_SPECS: usize = 100;
/// Maximum number of values that all specs of a reservation compare with.
pub const MAX_VALUES: usize = 500;

/// Invalid extra specs.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ExtraSpecError {
    /// The key names no property, trait or resource class.
    #[error("{:?} names nothing: write name, or scope:name", quoted(.0))]
    NoName(String),
    #[error(
        "{} is compared as a number, and {:?} is none: compare text with s==, s!=, s<, s<=, s> or s>=",
        Quoted(.0), quoted(.1)
    )]
    NoNumber(String, String),
    #[error("{} must be a whole number from 0 on, not {:?}", Quoted(.0), quoted(.1))]
    NoAmount(String, String),
    #[error("{} must be required or forbidden, not {:?}", Quoted(.0), quoted(.1))]
    NoTrait(String, String),
    /// Placement's numbered groups, which different providers can serve. Ignoring them would promise
    /// resources that don't exist.
    #[error("{} is not supported: only resources:CLASS and trait:NAME are", Quoted(.0))]
    Unsupported(String),
    #[error("an extra spec may be {MAX_LENGTH} characters long, key and value each, not longer")]
    TooLong,
    #[error("there may be {MAX_SPECS} extra specs, not more")]
    TooMany,
    #[error("extra specs may compare with {MAX_VALUES} values, not more")]
    TooLarge,
}
