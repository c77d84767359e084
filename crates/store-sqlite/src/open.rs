//! Opening the file.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::Connection;
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::sqlite::{
    SqliteAutoVacuum, SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePoolOptions,
    SqliteSynchronous,
};
use store::schema::{Newer, Schema};
use thiserror::Error;
use tokio::sync::{Mutex, watch};

use crate::SqliteStore;

/// The schema's history; it is brought up to date when a store is opened. Whether later migrations than these are
/// bearable is not for the migrator to say ([`Schema::check`]).
fn migrations() -> Migrator {
    let mut migrations = sqlx::migrate!();
    migrations.set_ignore_missing(true);
    migrations
}

/// Readers beside the writer.
const READERS: u32 = 4;

/// How many rows SQLite's thread may read ahead. Handing over a row at a time makes two threads wait for each
/// other, which takes much longer than reading.
const ROWS_AHEAD: usize = 4096;

/// How long to wait for others that have the file open, such as a backup.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a store cannot be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Another service has it.
    #[error("{0} is in use by another service: stop that one first, or give this one another file")]
    InUse(PathBuf),
    /// It is not there and cannot be made.
    #[error("cannot make {path}: {error}")]
    Make {
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
        let path = path.as_ref();
        let lock = lock(path)?;
        make(path)?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(BUSY_TIMEOUT);
        let reading = options.clone().read_only(true).create_if_missing(false).row_buffer_size(ROWS_AHEAD);
        // Of a file that is there already, this changes nothing.
        let options = options.auto_vacuum(SqliteAutoVacuum::Incremental);
        let cannot_open = |error| OpenError::Open { path: path.to_owned(), error };
        let mut writer = SqliteConnection::connect_with(&options).await.map_err(cannot_open)?;
        let migrations = migrations();
        if let Some(schema) = schema(&mut writer).await.map_err(cannot_open)? {
            let known = migrations.iter().map(|migration| migration.version).max().unwrap_or_default();
            schema.check(known).map_err(|error| OpenError::Newer { path: path.to_owned(), error })?;
        }
        let cannot_migrate = |error| OpenError::Migrate { path: path.to_owned(), error };
        migrations.run(&mut writer).await.map_err(cannot_migrate)?;
        let readers = SqlitePoolOptions::new().max_connections(READERS).connect_lazy_with(reading);
        let writer = Mutex::new(Some(writer));
        let revision = watch::Sender::new(None);
        Ok(Self { path: path.to_owned(), writer, options, readers, revision, _lock: lock })
    }
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

/// How files are opened that are read and written by their owner only, whatever the umask: databases hold the keys that
/// tokens are signed with.
pub(crate) fn private() -> OpenOptions {
    let mut options = File::options();
    options.create(true).truncate(false).write(true).mode(0o600);
    options
}

/// Makes the file if there is none, since SQLite would make one that others can read. What SQLite keeps beside it gets its
/// mode.
fn make(path: &Path) -> Result<(), OpenError> {
    if path.exists() {
        return Ok(());
    }
    private().open(path).map(drop).map_err(|error| OpenError::Make { path: path.to_owned(), error })
}

/// Locks a file beside the database: the database itself is locked by SQLite as it needs, not for long, and not
/// against readers.
fn lock(database: &Path) -> Result<File, OpenError> {
    let mut path = database.as_os_str().to_owned();
    path.push(".lock");
    let path = PathBuf::from(path);
    let cannot_lock = |error| OpenError::Lock { path: path.clone(), error };
    let file = private().open(&path).map_err(cannot_lock)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse(database.to_owned())),
        Err(TryLockError::Error(error)) => Err(cannot_lock(error)),
    }
}
