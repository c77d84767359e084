//! What SQLite says, in the store's words.

use store::{CommitError, StoreError};

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
#[expect(clippy::needless_pass_by_value, reason = "what `map_err` wants")]
pub(crate) fn unavailable(error: sqlx::Error) -> StoreError {
    match error {
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => StoreError::Corrupt(error.to_string()),
        _ => StoreError::Unavailable(error.to_string()),
    }
}

/// The same, for commits.
pub(crate) fn failed(error: sqlx::Error) -> CommitError {
    unavailable(error).into()
}
