//! Errors in requests, in the words that clients know (API-create to API-hosts, API-texts).

use jiff::SignedDuration;
use leases::extra_specs::ExtraSpecError;
use leases::properties::ImageError;
use leases::terms::TermsError;
use leases::text::{Quoted, quoted_list};
use thiserror::Error;

/// Reason why a request can't be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RequestError {
    /// A required parameter is missing.
    #[error("Missing parameter {0}")]
    Missing(String),
    /// A value of the wrong type, or out of range.
    #[error("Malformed parameter {}", Quoted(.parameter))]
    Malformed {
        /// Where.
        parameter: String,
        /// Description of valid values that completes the sentence "it must be …".
        expected: &'static str,
    },
    /// Text that is too long.
    #[error("Malformed parameter {}: it has {size} characters and may have {most}", Quoted(.parameter))]
    TooLong {
        /// Where.
        parameter: String,
        /// Its length, characters.
        size: usize,
        /// The limit, characters.
        most: usize,
        /// The operator's setting for the limit. `None` if the limit is fixed.
        setting: Option<&'static str>,
    },
    /// A list or an object with too many entries.
    #[error("Malformed parameter {}: it has {size} entries and may have {most}", Quoted(.parameter))]
    TooMany {
        /// Where.
        parameter: String,
        /// How many entries it has.
        size: usize,
        /// The limit, characters.
        most: usize,
        /// The operator's setting for the limit.
        setting: &'static str,
    },
    /// A number that is too large.
    #[error("Malformed parameter {}: it is {value} and may be {most}", Quoted(.parameter))]
    TooLarge {
        /// Where.
        parameter: String,
        /// The number.
        value: String,
        /// The largest accepted number.
        most: u64,
        /// The operator's setting for the limit.
        setting: &'static str,
    },
    /// A date after the latest allowed one.
    #[error(
        "Malformed parameter {parameter}: {} is later than dates can be: {latest} at the latest",
        Quoted(.date)
    )]
    TooLate {
        /// Which.
        parameter: &'static str,
        /// The date.
        date: String,
        /// The latest allowed date.
        latest: String,
    },
    /// A character that controls a terminal, or that changes how the text around it is shown.
    #[error("Malformed parameter {}: it has the control character U+{:04X}", Quoted(.parameter), u32::from(*.found))]
    ControlCharacter {
        /// Where.
        parameter: String,
        /// The first such character.
        found: char,
    },
    /// A field that requests don't have: it is misspelled.
    #[error("Unknown parameter {}", Quoted(.parameter))]
    Unknown {
        /// Where.
        parameter: String,
        /// Fields that are allowed there.
        known: Vec<&'static str>,
    },
    /// A field that only the service sets, with another value than the service's (W8).
    #[error("Unknown parameter {}", Quoted(.0))]
    ReadOnly(String),
    /// A number that is too small.
    #[error("{parameter} must be >= {least}")]
    TooSmall {
        /// Which.
        parameter: &'static str,
        /// The smallest accepted number.
        least: u32,
    },
    /// An amount that isn't an integer.
    #[error("{0} must be an integer")]
    NoInteger(&'static str),
    /// An invalid expression on properties of hosts, in Python's notation, as Blazar shows it.
    #[error("Malformed requirements {}", Quoted(.shown))]
    Requirements {
        /// The expression.
        shown: String,
        /// The mistake in it.
        why: String,
    },
    /// An invalid date.
    #[error("{} is an invalid date. Required format: %Y-%m-%d %H:%M", Quoted(.0))]
    Date(String),
    /// A lease that would wait for its start for longer than this limit.
    #[error("timeout must be at most {0:#}")]
    TimeoutTooLong(SignedDuration),
    /// An invalid affinity.
    #[error("Malformed parameter affinity (must be a bool value or None)")]
    Affinity,
    /// An affinity of a flavor reservation.
    #[error("Affinity not supported yet")]
    AffinityOfFlavor,
    /// An unknown resource type.
    #[error("The {} resource type is not supported", Quoted(.0))]
    ResourceType(String),
    /// The type of a reservation can't be changed.
    #[error("resource_type cannot be updated")]
    ResourceTypeChanged,
    /// The hints of a lease can't be changed.
    #[error("scheduler_hints cannot be updated")]
    HintsChanged,
    /// Reservations that the lease doesn't have.
    #[error("Please enter valid reservation IDs. Invalid reservation IDs are: {}", quoted_list(.0, ","))]
    ReservationIds(Vec<String>),
    /// A flavor that doesn't exist.
    #[error("Flavor {} not found", Quoted(.0))]
    Flavor(String),
    /// An invalid IP address.
    #[error("IP address {} is invalid form.", Quoted(.0))]
    Address(String),
    /// A host without name or identifier.
    #[error("Invalid values for host {}", Quoted(.0))]
    Host(String),
    /// A capability with a name that is too long.
    #[error("Extra capability key too long")]
    CapabilityTooLong,
    /// A capability named like a field of hosts, which it would hide.
    #[error("Invalid extra capability {}: hosts have a field of that name", Quoted(.0))]
    CapabilityIsField(String),
    /// A change without anything to change.
    #[error("No data to update")]
    NothingToUpdate,
    /// A body that isn't JSON.
    #[error("Malformed JSON in the request body: {}", Quoted(.0))]
    Json(String),
    /// Invalid extra specs (CLS-06).
    #[error("Malformed extra_specs: {0}")]
    ExtraSpecs(#[from] ExtraSpecError),
    /// Invalid image properties.
    #[error("Malformed image_properties: {0}")]
    Image(#[from] ImageError),
    /// Invalid terms.
    #[error(transparent)]
    Terms(#[from] TermsError),
}

impl RequestError {
    pub(crate) fn malformed(parameter: impl Into<String>, expected: &'static str) -> Self {
        Self::Malformed { parameter: parameter.into(), expected }
    }

    /// Turns the error about an unknown field into one about a read-only field, if the field has one of these
    /// names.
    pub(crate) fn or_read_only(self, names: &[&str]) -> Self {
        match self {
            Self::Unknown { parameter, .. }
                if names.contains(&parameter.rsplit('.').next().unwrap_or_default()) =>
            {
                Self::ReadOnly(parameter)
            }
            other => other,
        }
    }

    /// The HTTP status of the answer.
    pub fn status(&self) -> u16 {
        match self {
            Self::Terms(TermsError::BeforeEndOutOfLimits) | Self::Host(_) => 403,
            Self::AffinityOfFlavor | Self::ResourceTypeChanged | Self::HintsChanged => 409,
            _ => 400,
        }
    }

    /// Help that isn't part of the text: a description of valid values, or the operator's setting.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Malformed { parameter, expected } => {
                Some(format!("{} must be {expected}", Quoted(parameter)))
            }
            Self::TooLong { setting: Some(setting), .. }
            | Self::TooMany { setting, .. }
            | Self::TooLarge { setting, .. } => Some(format!("the operator's setting is {setting}")),
            Self::Date(_) => Some(
                "dates are UTC unless they say otherwise: 2030-01-02 10:00, 2030-01-02T10:00:00, \
                 2030-01-02T10:00:00+02:00, or now"
                    .to_owned(),
            ),
            Self::TooLate { .. } => Some("the operator's setting is limits.dates_ahead".to_owned()),
            Self::ControlCharacter { .. } => {
                let what = "control characters, ends of lines and marks of the direction of writing";
                Some(format!("leave out {what}"))
            }
            Self::Unknown { known, .. } if !known.is_empty() => {
                Some(format!("known parameters: {}", known.join(", ")))
            }
            Self::ReadOnly(parameter) => Some(format!(
                "{parameter} is read-only: leave it out, or send the value that the lease has now"
            )),
            Self::Requirements { why, .. } => Some(why.clone()),
            Self::Host(_) => Some("name the host by name or id".to_owned()),
            _ => None,
        }
    }
}
