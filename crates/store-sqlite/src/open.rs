//! Opening the file.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use sqlx::Connection;
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::sqlite::{
    SqliteAutoVacuum, SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePoolOptions,
    SqliteSynchronous,
};
use store::Store as _;
use store::schema::{Newer, Schema};
use thiserror::Error;
use tokio::sync::{Mutex, watch};

use crate::{SqliteStore, file};

/// The schema's history; it is brought up to date when a store is opened. Whether later migrations than these are
/// bearable is not for the migrator to say ([`Schema::check`]).
pub(crate) fn migrations() -> Migrator {
    let mut migrations = sqlx::migrate!();
    migrations.set_ignore_missing(true);
    migrations
}

/// Readers beside the writer.
const READERS: u32 = 4;

/// How many rows SQLite's thread may read ahead. Handing over a row at a time makes two threads wait for each
/// other, which takes much longer than reading.
const ROWS_AHEAD: usize = 4096;

/// Memory for pages of the writer, 32 MiB: those that a large commit changes are not written and read again before its
/// end. In the unit of `PRAGMA cache_size`: KiB below zero.
const WRITER_CACHE: &str = "-32768";

/// How long to wait for others that have the file open, such as a backup.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a store cannot be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Another service has it.
    #[error("{0} is in use by another service: stop that one first, or give this one another file")]
    InUse(PathBuf),
    /// Its name is a symbolic link to nothing.
    #[error("{0} is a symbolic link to a file that is not there: remove the link, or bring the file back")]
    Dangling(PathBuf),
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

impl SqliteStore {
    /// Opens the store in that file, which is made if there is none, and locks it. A lock goes with the process
    /// that holds it, whatever becomes of that process.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let real = file::resolve(path.as_ref())?;
        let lock = file::lock(&real)?;
        file::make(&real)?;
        Self::open_locked(path.as_ref(), lock).await
    }

    /// Opens the store in a file that is there, under a lock that is held already.
    pub(crate) async fn open_locked(path: &Path, lock: File) -> Result<Self, OpenError> {
        let options = options(path).create_if_missing(false).journal_mode(SqliteJournalMode::Wal);
        let reading = options.clone().read_only(true).row_buffer_size(ROWS_AHEAD);
        // Of a file that is there already, this changes nothing.
        let options = options.auto_vacuum(SqliteAutoVacuum::Incremental).pragma("cache_size", WRITER_CACHE);
        let cannot_open = |error| OpenError::Open { path: path.to_owned(), error };
        let mut writer = SqliteConnection::connect_with(&options).await.map_err(cannot_open)?;
        let migrations = migrations();
        check_schema(&mut writer, path, &migrations).await?;
        let cannot_migrate = |error| OpenError::Migrate { path: path.to_owned(), error };
        migrations.run(&mut writer).await.map_err(cannot_migrate)?;
        let readers = SqlitePoolOptions::new().max_connections(READERS).connect_lazy_with(reading);
        let writer = Mutex::new(Some(writer));
        let revision = watch::Sender::new(None);
        let store = Self {
            path: path.to_owned(),
            writer,
            options,
            readers,
            revision,
            opened: OnceLock::new(),
            _lock: lock,
        };
        // The journal is made by what is written first.
        let unusable = |error| OpenError::File { path: path.to_owned(), error };
        let probed = store.check().await;
        probed.map_err(|error| unusable(io::Error::other(error)))?;
        let _ = store.opened.set(file::Opened::new(path).map_err(unusable)?);
        Ok(store)
    }
}

/// How connections that write are made.
pub(crate) fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(BUSY_TIMEOUT)
}

/// Whether this version works with the schema that is there; says whether it is of an earlier one.
pub(crate) async fn check_schema(
    db: &mut SqliteConnection,
    path: &Path,
    migrations: &Migrator,
) -> Result<bool, OpenError> {
    let read = schema(db).await;
    let Some(schema) = read.map_err(|error| OpenError::Open { path: path.to_owned(), error })? else {
        return Ok(true);
    };
    let known = migrations.iter().map(|migration| migration.version).max().unwrap_or_default();
    schema.check(known).map_err(|error| OpenError::Newer { path: path.to_owned(), error })?;
    Ok(schema.newest < known)
}

/// What schema there is; none in a new file, and in those of before it was written down.
async fn schema(db: &mut SqliteConnection) -> Result<Option<Schema>, sqlx::Error> {
    let written = sqlx::query_scalar!(
        r#"SELECT count(*) AS "tables: i64" FROM sqlite_schema WHERE type = 'table' AND name = 'compatibility'"#
    );
    if written.fetch_one(&mut *db).await? == 0 {
        return Ok(None);
    }
    // The compiler does not see the table that the migrator makes.
    let newest = sqlx::query_scalar("SELECT coalesce(max(version), 0) FROM _sqlx_migrations");
    let newest: i64 = newest.fetch_one(&mut *db).await?;
    let oldest = sqlx::query_scalar!("SELECT oldest FROM compatibility").fetch_one(db).await?;
    Ok(Some(Schema { newest, oldest }))
}
