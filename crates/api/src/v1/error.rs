//! What is wrong with a request, in the words that clients know (API-create to API-hosts, API-texts).

use jiff::SignedDuration;
use leases::extra_specs::ExtraSpecError;
use leases::properties::ImageError;
use leases::terms::TermsError;
use leases::text::{Quoted, quoted_list};
use thiserror::Error;

/// Why a request cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RequestError {
    /// Something that must be there is not.
    #[error("Missing parameter {0}")]
    Missing(String),
    /// A value of the wrong type, or out of range.
    #[error("Malformed parameter {}", Quoted(.parameter))]
    Malformed {
        /// Where.
        parameter: String,
        /// What it should be.
        expected: &'static str,
    },
    /// Text that is too long.
    #[error("Malformed parameter {}: it has {size} characters and may have {most}", Quoted(.parameter))]
    TooLong {
        /// Where.
        parameter: String,
        /// How many characters it has.
        size: usize,
        /// How many it may have.
        most: usize,
        /// The operator's setting that says so, if one does.
        setting: Option<&'static str>,
    },
    /// A list or an object with too many entries.
    #[error("Malformed parameter {}: it has {size} entries and may have {most}", Quoted(.parameter))]
    TooMany {
        /// Where.
        parameter: String,
        /// How many entries it has.
        size: usize,
        /// How many it may have.
        most: usize,
        /// The operator's setting that says so.
        setting: &'static str,
    },
    /// A number that is too large.
    #[error("Malformed parameter {}: it is {value} and may be {most}", Quoted(.parameter))]
    TooLarge {
        /// Where.
        parameter: String,
        /// The number.
        value: String,
        /// The largest that will do.
        most: u64,
        /// The operator's setting that says so.
        setting: &'static str,
    },
    /// A date that is later than dates can be.
    #[error(
        "Malformed parameter {parameter}: {} is later than dates can be: {latest} at the latest",
        Quoted(.date)
    )]
    TooLate {
        /// Which.
        parameter: &'static str,
        /// The date.
        date: String,
        /// The latest that will do.
        latest: String,
    },
    /// A character that a terminal obeys, or that changes how the text around it is shown.
    #[error("Malformed parameter {}: it has the control character U+{:04X}", Quoted(.parameter), u32::from(*.found))]
    ControlCharacter {
        /// Where.
        parameter: String,
        /// The first one.
        found: char,
    },
    /// A field that a request cannot have: it is misspelt.
    #[error("Unknown parameter {}", Quoted(.parameter))]
    Unknown {
        /// Where.
        parameter: String,
        /// What there can be.
        known: Vec<&'static str>,
    },
    /// A field that belongs to the service, with another value than the service's (W8).
    #[error("Unknown parameter {}", Quoted(.0))]
    ReadOnly(String),
    /// A number that is too small.
    #[error("{parameter} must be >= {least}")]
    TooSmall {
        /// Which.
        parameter: &'static str,
        /// The smallest that will do.
        least: u32,
    },
    /// An amount that is no number.
    #[error("{0} must be an integer")]
    NoInteger(&'static str),
    /// An expression on hosts' properties that is none; in Python's notation, as Blazar shows it.
    #[error("Malformed requirements {}", Quoted(.shown))]
    Requirements {
        /// The expression.
        shown: String,
        /// What is wrong with it.
        why: String,
    },
    /// A date that is none.
    #[error("{} is an invalid date. Required format: %Y-%m-%d %H:%M", Quoted(.0))]
    Date(String),
    /// A lease that would wait for its start for longer than it may.
    #[error("timeout must be at most {0:#}")]
    TimeoutTooLong(SignedDuration),
    /// An affinity that is none.
    #[error("Malformed parameter affinity (must be a bool value or None)")]
    Affinity,
    /// An affinity of a flavor reservation.
    #[error("Affinity not supported yet")]
    AffinityOfFlavor,
    /// A type that there is not.
    #[error("The {} resource type is not supported", Quoted(.0))]
    ResourceType(String),
    /// A reservation cannot become one of another type.
    #[error("resource_type cannot be updated")]
    ResourceTypeChanged,
    /// The hints of a lease stay what they are.
    #[error("scheduler_hints cannot be updated")]
    HintsChanged,
    /// The lease has no such reservations.
    #[error("Please enter valid reservation IDs. Invalid reservation IDs are: {}", quoted_list(.0, ","))]
    ReservationIds(Vec<String>),
    /// A flavor that there is not.
    #[error("Flavor {} not found", Quoted(.0))]
    Flavor(String),
    /// An address that is none.
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
    /// The body is no JSON.
    #[error("Malformed JSON in the request body: {}", Quoted(.0))]
    Json(String),
    /// Extra specs that mean nothing (CLS-06).
    #[error("Malformed extra_specs: {0}")]
    ExtraSpecs(#[from] ExtraSpecError),
    /// Properties of an image that cannot be.
    #[error("Malformed image_properties: {0}")]
    Image(#[from] ImageError),
    /// A value that cannot be.
    #[error(transparent)]
    Terms(#[from] TermsError),
}

impl RequestError {
    pub(crate) fn malformed(parameter: impl Into<String>, expected: &'static str) -> Self {
        Self::Malformed { parameter: parameter.into(), expected }
    }

    /// The same, or that the field is read-only, if it is one of these.
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

    /// What the text leaves out.
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
