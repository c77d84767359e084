//! Translation of SQLite's errors into the store's.

use store::{CommitError, StoreError};

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
#[expect(clippy::needless_pass_by_value, reason = "is passed to `map_err`")]
pub(crate) fn unavailable(error: sqlx::Error) -> StoreError {
    match error {
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => StoreError::Corrupt(error.to_string()),
        _ => StoreError::Unavailable(error.to_string()),
    }
}

/// [`unavailable`], for commits.
pub(crate) fn failed(error: sqlx::Error) -> CommitError {
    unavailable(error).into()
}
