//! Why a call to a fleet did not go.

use thiserror::Error;

/// Why it did not go.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FleetError {
    /// It may go later: a time limit, a broken connection, a host that does not answer. Whether it was done is
    /// not known.
    #[error("{0}")]
    Unavailable(String),
    /// The fleet says no.
    #[error("{0}")]
    Refused(String),
}
