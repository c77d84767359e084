//! Errors of calls to a fleet.

use thiserror::Error;

/// Failure of a call to a fleet.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FleetError {
    /// A timeout, a broken connection, or a host that doesn't respond. It is unknown whether the call took
    /// effect. A later call can succeed.
    #[error("{0}")]
    Unavailable(String),
    /// The fleet rejected the call.
    #[error("{0}")]
    Refused(String),
}
