//! What can be wrong with a file that is to be opened.

use std::io;
use std::path::PathBuf;

use sqlx::migrate::MigrateError;
use store::schema::Newer;
use thiserror::Error;

/// Why a store cannot be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Another service has it.
    #[error("{0} is in use by another service: stop that one first, or give this one another file")]
    InUse(PathBuf),
    /// Its name is a symbolic link to nothing.
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
        /// Path of the file.
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
        /// Path of the database.
        path: PathBuf,
        /// Reason.
        #[source]
        error: io::Error,
    },
    /// It has other names, under which another service would not see that it is in use.
    #[error(
        "{path} has {links} names (hard links), and a database may have one only: \
         remove the others, or copy it by `allot database backup`"
    )]
    Linked {
        /// The file.
        path: PathBuf,
        /// How many names.
        links: u64,
    },
    /// What was committed last is there, and the database is not.
    #[error(
        "{path} is missing or empty, but {journal} is there, which holds what was last written to it: \
         bring {path} back, or move {journal} away"
    )]
    JournalAlone {
        /// The database.
        path: PathBuf,
        /// The journal.
        journal: PathBuf,
    },
    /// The file cannot be used.
    #[error("cannot use {path}: {error}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// The lock beside it cannot be had.
    #[error("cannot lock {path}: {error}")]
    Lock {
        /// The file that is locked.
        path: PathBuf,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// It is of a later version.
    #[error("{path}: {error}")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        error: Newer,
    },
    /// It is none of ours, or damaged.
    #[error("{path} cannot be brought up to date: {error}")]
    Migrate {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        error: MigrateError,
    },
    /// It cannot be read or written.
    #[error("cannot open {path}: {error}")]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        error: sqlx::Error,
    },
}
