//! Reasons why terms are invalid.

use thiserror::Error;

use crate::text::Quoted;

/// Reason why terms are invalid. Where Blazar has a message, it is used (API-create, API-texts).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TermsError {
    #[error("End date must be later than start date.")]
    EndNotAfterStart,
    /// The length exceeds the period in which the lease can be placed.
    #[error("The duration must not be longer than the time from start_date to end_date")]
    LongerThanWindow,
    /// The before-end action isn't due strictly inside the window.
    #[error("Datetime is out of lease limits")]
    BeforeEndOutOfLimits,
    /// `min` or `max` is 0.
    #[error("Malformed parameter min and max (must be greater than or equal to 1)")]
    NoHosts,
    /// `max < min`.
    #[error("Invalid values for min/max of hosts. Max must be equal to or larger than min.")]
    MaxBelowMin,
    /// Instances without CPU or memory, or that use nothing of their host.
    #[error("{0} must be >= 1")]
    EmptySize(&'static str),
    /// More addresses are required than requested.
    #[error(
        "Invalid values for required_floatingips and amount. \
         The amount must be equal to or longer than length of required_floatingips."
    )]
    MoreRequiredThanAmount,
    /// A flavor has an extra spec that placement doesn't understand and therefore couldn't honor.
    #[error(
        "flavor {} has the extra spec {}={}, which reservations do not support",
        Quoted(.flavor), Quoted(.key), Quoted(.value)
    )]
    UnsupportedExtraSpec { flavor: String, key: String, value: String },
}
