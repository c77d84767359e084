//! Errors of opening a file.

use std::io;
use std::path::PathBuf;

use sqlx::migrate::MigrateError;
use store::schema::Newer;
use thiserror::Error;

/// Reason why a store can't be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Another service has the file open.
    #[error("{0} is in use by another service: stop that one first, or give this one another file")]
    InUse(PathBuf),
    /// The path is a symbolic link to a missing file.
    #[error("{0} is a symbolic link to a file that is not there: remove the link, or bring the file back")]
    Dangling(PathBuf),
    /// The path names a device, a directory, a pipe or a socket.
    #[error("{path} is {kind}, and a database is a regular file: give another name")]
    NotRegular {
        /// Path with symbolic links resolved.
        path: PathBuf,
        /// Kind of file, with its article.
        kind: &'static str,
    },
    /// The file has no bytes or no tables.
    #[error("{0} is empty: it holds no database")]
    Empty(PathBuf),
    /// A database of another program.
    #[error(
        "{path} is a database of another program, which allot must not change: it has the tables {tables}"
    )]
    Foreign {
        path: PathBuf,
        /// Names of some of its tables.
        tables: String,
    },
    /// The database and its journal can't be copied to a temporary directory, where they are read together.
    #[error(
        "cannot copy {path} and its journal to a temporary directory to read them: {error}; \
         set TMPDIR to a directory with room for them"
    )]
    Temporary {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
    /// The file has other names (hard links). A service that opens it by another name wouldn't notice that it
    /// is in use.
    #[error(
        "{path} has {links} names (hard links), but a database must have a single name: \
         remove the additional names, or copy the database with `allot database backup`"
    )]
    Linked {
        path: PathBuf,
        /// Number of names.
        links: u64,
    },
    /// The journal with the last commits exists, but the database doesn't.
    #[error(
        "{path} is missing or empty, but its journal {journal} exists and contains the latest commits: \
         restore {path}, or move {journal} away"
    )]
    JournalAlone { path: PathBuf, journal: PathBuf },
    /// The file can't be used.
    #[error("cannot use {path}: {error}")]
    File {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
    /// The database's lock file can't be locked.
    #[error("cannot lock {path}: {error}")]
    Lock {
        /// Path of the lock file.
        path: PathBuf,
        #[source]
        error: io::Error,
    },
    /// The schema is of a later version.
    #[error("{path}: {error}")]
    Newer {
        path: PathBuf,
        #[source]
        error: Newer,
    },
    /// The database isn't one of this program, or is damaged.
    #[error("{path} cannot be brought up to date: {error}")]
    Migrate {
        path: PathBuf,
        #[source]
        error: MigrateError,
    },
    /// The database can't be read or written.
    #[error("cannot open {path}: {error}")]
    Open {
        path: PathBuf,
        #[source]
        error: sqlx::Error,
    },
}
