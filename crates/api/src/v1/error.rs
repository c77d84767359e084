//! What is wrong with a request, in the words that clients know (spec §1.8 to §1.12, appendix A).

use jiff::SignedDuration;
use leases::extra_specs::ExtraSpecError;
use leases::properties::ImageError;
use leases::terms::TermsError;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use utoipa::ToSchema;

use super::Offer;

/// The answer to a request that has no effect.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// The HTTP status.
    pub error_code: u16,
    /// What is wrong.
    pub error_message: String,
    /// The HTTP status again, as in Blazar.
    pub error_name: u16,
    /// What would help: which filter ruled out how many hosts, say. Not in Blazar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// What could be had instead. Not in Blazar.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offers: Vec<Offer>,
}

/// Why a request cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RequestError {
    /// Something that must be there is not.
    #[error("Missing parameter {0}")]
    Missing(String),
    /// A value of the wrong type, or out of range.
    #[error("Malformed parameter {parameter}")]
    Malformed {
        /// Where.
        parameter: String,
        /// What it should be.
        expected: &'static str,
    },
    /// A field that a request cannot have: it is misspelt, or belongs to the service (spec W8).
    #[error("Unknown parameter {parameter}")]
    Unknown {
        /// Where.
        parameter: String,
        /// What there can be.
        known: Vec<&'static str>,
    },
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
    #[error("Malformed requirements {shown}")]
    Requirements {
        /// The expression.
        shown: String,
        /// What is wrong with it.
        why: String,
    },
    /// A date that is none.
    #[error("{0} is an invalid date. Required format: %Y-%m-%d %H:%M")]
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
    #[error("The {0} resource type is not supported")]
    ResourceType(String),
    /// A reservation cannot become one of another type.
    #[error("resource_type cannot be updated")]
    ResourceTypeChanged,
    /// The hints of a lease stay what they are.
    #[error("scheduler_hints cannot be updated")]
    HintsChanged,
    /// The lease has no such reservations.
    #[error("Please enter valid reservation IDs. Invalid reservation IDs are: {}", .0.join(","))]
    ReservationIds(Vec<String>),
    /// A flavor that there is not.
    #[error("Flavor {0} not found")]
    Flavor(String),
    /// An address that is none.
    #[error("IP address {0} is invalid form.")]
    Address(String),
    /// A host without name or identifier.
    #[error("Invalid values for host {0}")]
    Host(String),
    /// A capability with a name that is too long.
    #[error("Extra capability key too long")]
    CapabilityTooLong,
    /// A capability named like a field of hosts, which it would hide.
    #[error("Invalid extra capability {0}: hosts have a field of that name")]
    CapabilityIsField(String),
    /// A change without anything to change.
    #[error("No data to update")]
    NothingToUpdate,
    /// The body is no JSON.
    #[error("Malformed JSON in the request body: {0}")]
    Json(String),
    /// Extra specs that mean nothing (spec CLS-06).
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
            Self::Malformed { parameter, expected } => Some(format!("{parameter} must be {expected}")),
            Self::Unknown { known, .. } if !known.is_empty() => {
                Some(format!("known parameters: {}", known.join(", ")))
            }
            Self::Requirements { why, .. } => Some(why.clone()),
            Self::Host(_) => Some("name the host by name or id".to_owned()),
            _ => None,
        }
    }
}
