//! What is wrong with extra specs, and how many there may be.

use thiserror::Error;

use crate::text::{Quoted, quoted};

/// The longest key, and the longest value, in characters: Nova's limit.
pub const MAX_LENGTH: usize = 255;
/// How many specs a reservation may have. Each is compared with each host.
pub const MAX_SPECS: usize = 100;
/// How many values they may compare with, all together.
pub const MAX_VALUES: usize = 500;

/// Why specs are none.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ExtraSpecError {
    /// Neither a property nor a trait nor a class.
    #[error("{:?} names nothing: write name, or scope:name", quoted(.0))]
    NoName(String),
    /// A comparison of numbers with what is none.
    #[error(
        "{} is compared as a number, and {:?} is none: compare text with s==, s!=, s<, s<=, s> or s>=",
        Quoted(.0), quoted(.1)
    )]
    NoNumber(String, String),
    /// An amount of resources that is none.
    #[error("{} must be a whole number from 0 on, not {:?}", Quoted(.0), quoted(.1))]
    NoAmount(String, String),
    /// A trait that is neither wanted nor not wanted.
    #[error("{} must be required or forbidden, not {:?}", Quoted(.0), quoted(.1))]
    NoTrait(String, String),
    /// Numbered groups of Placement, which may be served by different providers: to ignore them would promise what
    /// is not there.
    #[error("{} is not supported: only resources:CLASS and trait:NAME are", Quoted(.0))]
    Unsupported(String),
    /// A key or value beyond [`MAX_LENGTH`].
    #[error("an extra spec may be {MAX_LENGTH} characters long, key and value each, not longer")]
    TooLong,
    /// Too many specs.
    #[error("there may be {MAX_SPECS} extra specs, not more")]
    TooMany,
    /// Too many values.
    #[error("extra specs may compare with {MAX_VALUES} values, not more")]
    TooLarge,
}
