//! What PostgreSQL says, in the store's words, and whether trying again helps.

use store::{CommitError, StoreError};

/// Why a transaction came to nothing.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// It was refused, and would be again.
    Refused(CommitError),
    /// Something that it takes cannot be had, and it is not known yet what: all was taken together.
    Obstructed,
    /// It was in the way of another one, which is over now.
    Overrun(StoreError),
    /// The connection is of no use any more. Nothing has happened.
    Disconnected(StoreError),
    /// It does not work.
    Failed(StoreError),
}

/// Why a trigger of the schema refused a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The host or address does not exist.
    Gone,
    /// Somebody else has it.
    Taken,
    /// The slots do not fit.
    NoRoom,
    /// A lease has it.
    InUse,
}

/// The refusal that an error is, if it is one.
pub(crate) fn refusal(error: &sqlx::Error) -> Option<Refusal> {
    match error.as_database_error()?.message() {
        "allot: gone" => Some(Refusal::Gone),
        "allot: taken" => Some(Refusal::Taken),
        "allot: no_room" => Some(Refusal::NoRoom),
        "allot: in_use" => Some(Refusal::InUse),
        _ => None,
    }
}

/// Whether an error says that there is such a row already.
pub(crate) fn exists(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(sqlx::error::DatabaseError::is_unique_violation)
}

/// Whether an error says that a row refers to one that there is not, or is referred to.
pub(crate) fn refers(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(sqlx::error::DatabaseError::is_foreign_key_violation)
}

/// An error that is nobody's fault who asked.
pub(crate) fn unavailable(error: &sqlx::Error) -> StoreError {
    match error {
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => StoreError::Corrupt(error.to_string()),
        _ => StoreError::Unavailable(error.to_string()),
    }
}

impl From<sqlx::Error> for Trouble {
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
            // Serialization failure, deadlock, a lock that was not had in time.
            "40001" | "40P01" | "55P03" => Self::Overrun(said),
            // Read-only: it has become a standby. Connection failures, shutdowns, crashes, idleness.
            "25006" | "25P03" => Self::Disconnected(said),
            code if code.starts_with("08") || code.starts_with("57P") => Self::Disconnected(said),
            _ => Self::Failed(said),
        }
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

impl From<store::encoding::Unreadable> for Trouble {
    fn from(unreadable: store::encoding::Unreadable) -> Self {
        Self::Failed(unreadable.into())
    }
}

impl From<CommitError> for Trouble {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Store(error) => Self::Failed(error),
            refused => Self::Refused(refused),
        }
    }
}

impl From<Trouble> for CommitError {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Refused(error) => error,
            Trouble::Overrun(error) | Trouble::Disconnected(error) | Trouble::Failed(error) => error.into(),
            Trouble::Obstructed => StoreError::Unavailable("others were in the way each time".into()).into(),
        }
    }
}

impl From<Trouble> for StoreError {
    fn from(trouble: Trouble) -> Self {
        match CommitError::from(trouble) {
            CommitError::Store(error) => error,
            refused => Self::Unavailable(refused.to_string()),
        }
    }
}
