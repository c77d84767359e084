//! Translation of PostgreSQL's errors into the store's, and whether a retry helps.

use store::{CommitError, StoreError};

/// Reason why a transaction failed.
#[derive(Debug)]
pub(crate) enum TxError {
    /// It was rejected and would be again.
    Refused(CommitError),
    /// A booking isn't possible. It isn't known yet which, because all were inserted together.
    Obstructed,
    /// It collided with another transaction, which has ended.
    Overrun(StoreError),
    /// The connection is broken, and the transaction had no effect.
    Disconnected(StoreError),
    /// A retry wouldn't help.
    Failed(StoreError),
}

/// Reason why a trigger of the schema rejected a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The host or address does not exist.
    Gone,
    /// The host or address is in another lease.
    Taken,
    /// The slots don't fit.
    NoRoom,
    /// A lease still has the host or address.
    InUse,
}

/// The rejection in an error; `None` for other errors.
pub(crate) fn refusal(error: &sqlx::Error) -> Option<Refusal> {
    match error.as_database_error()?.message() {
        "allot: gone" => Some(Refusal::Gone),
        "allot: taken" => Some(Refusal::Taken),
        "allot: no_room" => Some(Refusal::NoRoom),
        "allot: in_use" => Some(Refusal::InUse),
        _ => None,
    }
}

/// Whether the row already exists.
pub(crate) fn exists(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(sqlx::error::DatabaseError::is_unique_violation)
}

/// Whether the row refers to a missing row, or is still referred to.
pub(crate) fn refers(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(sqlx::error::DatabaseError::is_foreign_key_violation)
}

/// A failure that isn't the caller's fault.
pub(crate) fn unavailable(error: &sqlx::Error) -> StoreError {
    match error {
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => StoreError::Corrupt(error.to_string()),
        _ => StoreError::Unavailable(error.to_string()),
    }
}

impl From<sqlx::Error> for TxError {
    fn from(error: sqlx::Error) -> Self {
        let said = unavailable(&error);
        let Some(database) = error.as_database_error() else {
            return match error {
                sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed => {
                    Self::Disconnected(said)
                }
                _ => Self::Failed(said),
            };
        };
        match database.code().as_deref().unwrap_or_default() {
            // Serialization failure, deadlock, lock timeout.
            "40001" | "40P01" | "55P03" => Self::Overrun(said),
            // Read-only, because the server has become a standby. Connection failures, shutdowns, crashes,
            // idle timeouts.
            "25006" | "25P03" => Self::Disconnected(said),
            code if code.starts_with("08") || code.starts_with("57P") => Self::Disconnected(said),
            _ => Self::Failed(said),
        }
    }
}

impl From<StoreError> for TxError {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

impl From<store::encoding::Unreadable> for TxError {
    fn from(unreadable: store::encoding::Unreadable) -> Self {
        Self::Failed(unreadable.into())
    }
}

impl From<CommitError> for TxError {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Store(error) => Self::Failed(error),
            refused => Self::Refused(refused),
        }
    }
}

impl From<TxError> for CommitError {
    fn from(error: TxError) -> Self {
        match error {
            TxError::Refused(error) => error,
            TxError::Overrun(error) | TxError::Disconnected(error) | TxError::Failed(error) => error.into(),
            TxError::Obstructed => {
                StoreError::Unavailable("bookings conflicted with other transactions in every attempt".into())
                    .into()
            }
        }
    }
}

impl From<TxError> for StoreError {
    fn from(error: TxError) -> Self {
        match CommitError::from(error) {
            CommitError::Store(error) => error,
            refused => Self::Unavailable(refused.to_string()),
        }
    }
}
