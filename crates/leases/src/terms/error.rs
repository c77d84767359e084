//! Why terms are none.

use thiserror::Error;

use crate::text::Quoted;

/// Why terms are none. Texts are Blazar's where it has one (API-create, API-texts).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TermsError {
    /// The end is not after the start.
    #[error("End date must be later than start date.")]
    EndNotAfterStart,
    /// It does not fit into the time in which it may lie.
    #[error("The duration must not be longer than the time from start_date to end_date")]
    LongerThanWindow,
    /// The instant of the before-end action is not strictly inside.
    #[error("Datetime is out of lease limits")]
    BeforeEndOutOfLimits,
    /// No host wanted.
    #[error("Malformed parameter min and max (must be greater than or equal to 1)")]
    NoHosts,
    /// `max < min`.
    #[error("Invalid values for min/max of hosts. Max must be equal to or larger than min.")]
    MaxBelowMin,
    /// Instances without CPU or memory, or that use nothing of their host at all.
    #[error("{0} must be >= 1")]
    EmptySize(&'static str),
    /// More addresses required than wanted.
    #[error(
        "Invalid values for required_floatingips and amount. \
         The amount must be equal to or longer than length of required_floatingips."
    )]
    MoreRequiredThanAmount,
    /// A flavor's extra spec that placement does not understand, and so could not honour.
    #[error(
        "flavor {} has the extra spec {}={}, which reservations do not support",
        Quoted(.flavor), Quoted(.key), Quoted(.value)
    )]
    UnsupportedExtraSpec {
        /// The flavor.
        flavor: String,
        /// The key.
        key: String,
        /// Its value.
        value: String,
    },
}
